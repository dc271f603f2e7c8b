"""The record that describes one method of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["Direction", "Kind", "Method"]

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT")

Direction: TypeAlias = Literal["client", "server", "both"]
"""Who sends the message."""
Kind: TypeAlias = Literal["request", "notification", "input"]
"""`input` is a request for input that travels inside a result instead of as a message of its own."""


@dataclass(frozen=True, slots=True)
class Method(Generic[ParamsT, ResultT]):
    """A method: its name on the wire, who sends it, and the types of what it carries."""

    name: str
    """Name on the wire, such as `tools/call`."""
    direction: Direction
    kind: Kind
    message: type
    """Type of the whole message."""
    params: TypeForm[ParamsT]
    """Type of the parameters; `NoneType` where the method has none."""
    params_required: bool
    """Whether a message must carry parameters; where not, absent ones mean empty ones."""
    result: TypeForm[ResultT]
    """Type of the result; `NoneType` for notifications."""
    handler: str
    """Name of the method by which handlers implement it, such as `call_tool`."""
