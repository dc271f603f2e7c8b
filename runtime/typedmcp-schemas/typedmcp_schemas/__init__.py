"""Python types and JSON Schema: schemas of types and functions, strict conversion, errors with places, validation.

`schema_of` describes a type, `convert` reads parsed JSON as one, and `explain` says what is wrong with it. A
`Signature` does all of it for the arguments of a function. `compile_schema` checks values against a schema that is
given, within bounds of time and memory, and `to_portable` writes a schema as the APIs of language models take it.

Types may be builtins, dataclasses, TypedDicts, named tuples, enums, Structs of msgspec, attrs classes and, where
Pydantic is installed, its models. A name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp_schemas.lazy import lazy_names

if TYPE_CHECKING:
    from typedmcp_schemas.adapt import has_keyword, schema_of, to_msgspec
    from typedmcp_schemas.arguments import ArgumentError, join_faults, join_repairs
    from typedmcp_schemas.custom_types import type_name
    from typedmcp_schemas.definitions import JsonSchema, reference_name, resolve_root
    from typedmcp_schemas.examination import Examined, examine
    from typedmcp_schemas.explanations import explain
    from typedmcp_schemas.hosts import SchemaRefusal, find_refusals, replace_forbidden
    from typedmcp_schemas.portable import portable_schema_of, to_portable
    from typedmcp_schemas.pydantic_types import pydantic_output
    from typedmcp_schemas.schema_cost import ExternalReferenceError, SchemaRejectedError, UnsupportedDialectError
    from typedmcp_schemas.signatures import Parameter, Signature, SignatureError
    from typedmcp_schemas.type_cache import cached_by_type
    from typedmcp_schemas.validate import SchemaValidator, can_validate, compile_schema
    from typedmcp_schemas.values import UnsupportedTypeError, ValueConversionError, convert, enc_hook, to_builtins
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        "typedmcp_schemas.adapt": ["has_keyword", "schema_of", "to_msgspec"],
        "typedmcp_schemas.arguments": ["ArgumentError", "join_faults", "join_repairs"],
        "typedmcp_schemas.custom_types": ["type_name"],
        "typedmcp_schemas.definitions": ["JsonSchema", "reference_name", "resolve_root"],
        "typedmcp_schemas.examination": ["Examined", "examine"],
        "typedmcp_schemas.explanations": ["explain"],
        "typedmcp_schemas.hosts": ["SchemaRefusal", "find_refusals", "replace_forbidden"],
        "typedmcp_schemas.portable": ["portable_schema_of", "to_portable"],
        "typedmcp_schemas.pydantic_types": ["pydantic_output"],
        "typedmcp_schemas.schema_cost": ["ExternalReferenceError", "SchemaRejectedError", "UnsupportedDialectError"],
        "typedmcp_schemas.signatures": ["Parameter", "Signature", "SignatureError"],
        "typedmcp_schemas.type_cache": ["cached_by_type"],
        "typedmcp_schemas.validate": ["SchemaValidator", "can_validate", "compile_schema"],
        "typedmcp_schemas.values": [
            "UnsupportedTypeError", "ValueConversionError", "convert", "enc_hook", "to_builtins",
        ],
    })  # fmt: skip

__all__ = [
    "ArgumentError", "Examined", "ExternalReferenceError", "JsonSchema", "Parameter", "SchemaRefusal",
    "SchemaRejectedError", "SchemaValidator", "Signature", "SignatureError", "UnsupportedDialectError",
    "UnsupportedTypeError", "ValueConversionError", "cached_by_type", "can_validate", "compile_schema", "convert",
    "enc_hook", "examine", "explain", "find_refusals", "has_keyword", "join_faults", "join_repairs",
    "portable_schema_of", "pydantic_output", "reference_name", "replace_forbidden", "resolve_root", "schema_of",
    "to_builtins", "to_msgspec", "to_portable", "type_name",
]  # fmt: skip
