"""Python names for names of a server, which may be any text."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable

__all__ = ["BUILT_IN", "Names", "to_class_name", "to_identifier"]

_MAX_LENGTH = 80

BUILT_IN = frozenset(
    {
        "Any", "AsyncGenerator", "CallOptions", "Client", "ConnectOptions", "Generator", "Hints", "Literal", "Mapping",
        "Model", "Self", "Struct", "Stub", "SyncClient", "Target", "UNSET", "Unpack", "UnsetType",
        "asynccontextmanager", "bool", "classmethod", "contextmanager", "dict", "float", "int", "list", "quote", "str",
        "structs", "sync", "typedmcp",
    }
)  # fmt: skip
"""Names that generated code uses. A member with one of them would hide it."""


def to_identifier(text: str) -> str:
    """Return a name for a function or a member, in snake case: of ASCII letters, digits and underscores."""
    plain = unicodedata.normalize("NFKD", text[: 4 * _MAX_LENGTH]).encode("ascii", "ignore").decode()
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain)
    plain = re.sub(r"\W+|_+", "_", plain).strip("_").lower()[:_MAX_LENGTH].strip("_")
    if not plain:
        return "unnamed"
    if plain[0].isdigit():
        plain = f"n{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) or keyword.issoftkeyword(plain) else plain


def to_class_name(text: str) -> str:
    """Return a name for a class, in camel case."""
    return "".join(part[:1].upper() + part[1:] for part in to_identifier(text).split("_"))


class Names:
    """Names of one scope: no two are equal, and none is reserved."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*reserved, *BUILT_IN}

    def add(self, wanted: str) -> str:
        """Return a name, with an underscore or a number if it is taken."""
        name, number = wanted, 1
        while name in self._taken or keyword.iskeyword(name):
            name = f"{wanted}_" if number == 1 and wanted in BUILT_IN else f"{wanted.rstrip('_')}_{number + 1}"
            number += 1
        self._taken.add(name)
        return name
