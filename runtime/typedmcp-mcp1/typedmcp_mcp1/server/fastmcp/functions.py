"""The arguments and the results of functions, by their annotations.

Schemas and results are those that Pydantic makes, since programs for mcp 1.x are written for them.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, TypeAlias, cast, get_args, get_origin, get_type_hints

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, WithJsonSchema, create_model
from pydantic.json_schema import GenerateJsonSchema, PydanticJsonSchemaWarning
from typing_extensions import is_typeddict

from typedmcp.building import is_awaitable
from typedmcp_mcp1 import types
from typedmcp_mcp1.server.fastmcp.exceptions import InvalidSignatureError
from typedmcp_mcp1.server.fastmcp.utilities.types import Audio, Image

__all__ = ["Arguments", "Output", "call", "find_context_parameter", "to_content", "to_text"]

_Function: TypeAlias = Callable[..., Any]


class _ArgumentModel(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)


def find_context_parameter(function: _Function, kind: type) -> str | None:
    """Return the parameter whose annotation is the class of contexts, or a union with it."""
    try:
        hints = get_type_hints(function)
    except Exception:  # what an annotation names may be missing: then nothing is injected
        return None
    for name, hint in hints.items():
        named = (hint, get_origin(hint), *get_args(hint), *map(get_origin, get_args(hint)))
        if name != "return" and any(isinstance(each, type) and issubclass(each, kind) for each in named):
            return name
    return None


class Arguments:
    """The parameters of a function but for its context: their schema, and the conversion of arguments to them."""

    def __init__(self, function: _Function, name: str, context: str | None) -> None:
        self.signature: inspect.Signature = _signature_of(function)
        fields: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        for each in self.signature.parameters.values():
            if each.name == context:
                continue
            if each.name.startswith("_"):
                raise InvalidSignatureError(f"Parameter {each.name} of {name} cannot start with '_'")
            attribute = f"field_{each.name}" if callable(getattr(BaseModel, each.name, None)) else each.name
            self._names[attribute] = each.name
            fields[attribute] = _field_of(each, attribute)
        self.model: type[BaseModel] = create_model(f"{name}Arguments", __base__=_ArgumentModel, **fields)
        """A model with the parameters as its fields."""
        self.schema: dict[str, Any] = self.model.model_json_schema(by_alias=True)
        """The JSON Schema of the arguments."""

    def convert(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Convert arguments to the types of the parameters. Raises Pydantic's `ValidationError`.

        A text in place of an array or an object may be its JSON, as some models write it.
        """
        texts = {name for name, field in self.model.model_fields.items() if field.annotation is str}
        members = {
            name: value if not isinstance(value, str) or name in texts else _parsed(value)
            for name, value in given.items()
        }
        made = self.model.model_validate(members)
        return {name: getattr(made, attribute) for attribute, name in self._names.items()}


def _signature_of(function: _Function) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise InvalidSignatureError(f"the annotations of {function!r} name something unknown: {error}") from error


def _field_of(parameter: inspect.Parameter, attribute: str) -> Any:
    is_plain = parameter.annotation is parameter.empty
    marks: list[Any] = [WithJsonSchema({"title": parameter.name, "type": "string"})] if is_plain else []
    if attribute != parameter.name:
        marks.append(Field(alias=parameter.name))
    hint: Any = Any if is_plain else parameter.annotation
    annotation: Any = Annotated[(hint, *marks)] if marks else hint
    return annotation if parameter.default is parameter.empty else (annotation, parameter.default)


def _parsed(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, str | int | float) else value


async def call(function: _Function, arguments: Mapping[str, Any]) -> Any:
    """Call a function, async or not, in the event loop."""
    made = function(**arguments)
    return await made if is_awaitable(made) else made


class _StrictSchema(GenerateJsonSchema):
    def emit_warning(self, kind: Any, detail: str) -> None:
        raise ValueError(f"{kind}: {detail}")


class Output:
    """The structured content of a function, by its return annotation. `schema` is None if there is none."""

    schema: dict[str, Any] | None = None

    def __init__(self, signature: inspect.Signature, name: str, structured: bool | None) -> None:
        self._adapter: TypeAdapter[Any] | None = None
        self._is_wrapped = False
        hint = signature.return_annotation
        if structured is False or (hint is signature.empty and not structured):
            return
        if hint is signature.empty:
            raise InvalidSignatureError(f"Function {name}: return annotation required for structured output")
        made = _output_type(hint, name)
        if made is None:
            return
        kind, self._is_wrapped = made
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", PydanticJsonSchemaWarning)
                self._adapter = TypeAdapter(kind)
                self.schema = self._adapter.json_schema(schema_generator=_StrictSchema)
        except Exception as error:
            self._adapter = None
            if structured:
                text = f"Function {name}: return type {hint} is not serializable for structured output"
                raise InvalidSignatureError(text) from error

    def convert(self, value: Any) -> Any:
        """Return the result of a call: blocks, or blocks and structured content, or a whole result as it is."""
        if isinstance(value, types.CallToolResult):
            if self._adapter is not None:
                self._adapter.validate_python(value.structured_content)
            return value
        content = to_content(value)
        if self._adapter is None:
            return content
        checked = self._adapter.validate_python({"result": value} if self._is_wrapped else value)
        return content, self._adapter.dump_python(checked, mode="json", by_alias=True)


def _output_type(hint: Any, name: str) -> tuple[Any, bool] | None:
    """Return the type of structured content, and whether it wraps a value in `result`; None for no such content."""
    origin: Any = get_origin(hint)
    if origin is Annotated:
        inner, *marks = get_args(hint)
        if _is_result(inner):
            return _output_type(marks[0], name) if marks else None
        return _output_type(inner, name) if _is_object_type(inner) else (_wrapped(hint, name), True)
    if _is_result(hint):
        return None
    if origin is dict and get_args(hint)[:1] == (str,):
        return _named_root(hint, f"{name}DictOutput"), False
    if is_typeddict(hint):
        return _model_of(hint), False
    if _is_object_type(hint):
        return hint, False
    return _class_output(hint, name) if origin is None and _is_own_class(hint) else (_wrapped(hint, name), True)


def _is_result(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, types.CallToolResult)


def _class_output(kind: type, name: str) -> tuple[Any, bool] | None:
    members = _members_of(kind, name)
    return None if members is None else (members, False)


def _named_root(hint: Any, name: str) -> type[BaseModel]:
    root: Any = RootModel
    base: Any = root[hint]
    return type(name, (base,), {})


def _is_own_class(hint: Any) -> bool:
    return isinstance(hint, type) and hint not in (str, int, float, bool, bytes, type(None))


def _is_object_type(hint: Any) -> bool:
    if not isinstance(hint, type):
        return is_typeddict(hint)
    kind: type[Any] = hint
    return is_typeddict(kind) or issubclass(kind, BaseModel) or is_dataclass(kind)


def _model_of(kind: Any) -> type[BaseModel]:
    """Return a model of a `TypedDict`: on some versions of Python, Pydantic takes those of typing-extensions alone."""
    fields: dict[str, Any] = {
        name: hint if name in kind.__required_keys__ else (hint, None) for name, hint in get_type_hints(kind).items()
    }
    return create_model(kind.__name__, **fields)


def _members_of(kind: type, name: str) -> type[BaseModel] | None:
    """Return a model of the annotated attributes of a class; None for a class without any."""
    try:
        hints = {key: hint for key, hint in get_type_hints(kind).items() if not key.startswith("_")}
    except Exception as error:
        raise InvalidSignatureError(f"Function {name}: the attributes of {kind.__name__}: {error}") from error
    if not hints:
        return None
    fields: dict[str, Any] = {
        key: (hint, getattr(kind, key)) if hasattr(kind, key) else hint for key, hint in hints.items()
    }
    return create_model(kind.__name__, __config__=ConfigDict(from_attributes=True), **fields)


def _wrapped(hint: Any, name: str) -> type[BaseModel]:
    return create_model(f"{name}Output", result=hint)


def to_text(value: Any) -> str:
    """Return a value as text: JSON, unless it is a text."""
    return value if isinstance(value, str) else pydantic_core.to_json(value, fallback=str, indent=2).decode()


def to_content(value: Any) -> list[Any]:
    """Return what a tool has returned as blocks of content: each item of a list becomes blocks of its own."""
    match value:
        case None:
            return []
        case Image():
            return [value.to_image_content()]
        case Audio():
            return [value.to_audio_content()]
        case list() | tuple():
            items = cast("Iterable[Any]", value)
            return [block for item in items for block in to_content(item)]
        case _ if isinstance(value, types.ContentBlock):
            return [value]
        case _:
            return [types.TextContent(text=to_text(value))]
