"""The record of a method of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from mcpspec.support.lazy import exact_type

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["Kind", "Method", "Sender", "by_name", "select"]

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT", covariant=True)

Sender: TypeAlias = Literal["client", "server", "both"]
"""The side that sends the message: the `client`, the `server`, or either of them (`both`)."""
Kind: TypeAlias = Literal["request", "notification", "input"]
"""The kind of the message. An `input` request is not a message of its own, but part of a result."""


@dataclass(frozen=True, slots=True)
class Method(Generic[ParamsT, ResultT]):
    """A method: its name on the wire, its sender, and the types of its parameters and result."""

    name: str
    """Name on the wire, such as `tools/call`."""
    sender: Sender
    kind: Kind
    message: type
    """Type of the whole message."""
    params: TypeForm[ParamsT]
    """Type of the parameters; `NoneType` if the method has none."""
    result: TypeForm[ResultT]
    """Type of the result; `NoneType` for notifications."""
    handler: str
    """Name of the handler's method, such as `call_tool`."""
    params_required: bool = True
    """True if a message must have parameters. Otherwise absent parameters mean empty ones."""
    _names: tuple[str, dict[str, Any]] | None = field(default=None, init=False, repr=False, compare=False)
    """The module of the types, and the types or their names, by attribute."""

    @staticmethod
    def of(module: str, *, message: str, params: Any, result: Any, **members: Any) -> Method[Any, Any]:
        """Return a method whose types are imported from a module when they are first read. They are given by name."""
        made: Method[Any, Any] = Method(message=NoneType, params=params, result=result, **members)
        object.__setattr__(made, "_names", (module, {"message": message, "params": params, "result": result}))
        for name in _TYPES:
            object.__delattr__(made, name)
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in _TYPES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            from importlib import import_module  # type checkers see no use of it above

            module, names = self._names
            found = names[name]
            object.__setattr__(self, name, getattr(import_module(module), found) if isinstance(found, str) else found)
            return object.__getattribute__(self, name)

    def __hash__(self) -> int:
        return hash((self.name, self.sender, self.kind))

    @property
    def exact(self) -> Method[Any, Any]:
        """The method with the exact types of the same names, which check all that the schema says."""
        if self not in _exact:
            _exact[self] = self._make_exact()
        return _exact[self]

    def _make_exact(self) -> Method[Any, Any]:
        if self._names is not None:
            module, names = self._names
            package, _, face = module.rpartition(".")
            others = {each: getattr(self, each) for each in ("name", "sender", "kind", "handler", "params_required")}
            return Method.of(f"{package}.exact.{face}", **others, **names)
        return replace(
            self,
            message=exact_type(self.message),
            params=exact_type(self.params),
            result=exact_type(self.result),
        )


_TYPES = ("message", "params", "result")
_exact: dict[Method[Any, Any], Method[Any, Any]] = {}


def by_name(*methods: Method[Any, Any]) -> Mapping[str, Method[Any, Any]]:
    """Return methods by their names on the wire."""
    return MappingProxyType({method.name: method for method in methods})


def select(methods: Mapping[str, Method[Any, Any]], sender: Sender, kind: Kind) -> Mapping[str, Method[Any, Any]]:
    """Return the methods of a kind that a side may send."""
    return by_name(*(m for m in methods.values() if m.kind == kind and m.sender in (sender, "both")))
