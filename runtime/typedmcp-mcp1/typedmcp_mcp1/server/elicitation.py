"""Answers to forms, under the names of `mcp.server.elicitation`."""

from __future__ import annotations

from types import NoneType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel

from typedmcp_mcp1.server.session import ServerSession

__all__ = [
    "AcceptedElicitation", "AcceptedUrlElicitation", "CancelledElicitation", "DeclinedElicitation",
    "ElicitSchemaModelT", "ElicitationResult", "UrlElicitationResult", "elicit_url", "elicit_with_validation",
]  # fmt: skip

ElicitSchemaModelT = TypeVar("ElicitSchemaModelT", bound=BaseModel)


class AcceptedElicitation(BaseModel, Generic[ElicitSchemaModelT]):
    """The user has filled in the form: `data` has the fields."""

    action: Literal["accept"] = "accept"
    data: ElicitSchemaModelT


class DeclinedElicitation(BaseModel):
    """The user does not want to answer."""

    action: Literal["decline"] = "decline"


class CancelledElicitation(BaseModel):
    """The user has closed the form without a choice."""

    action: Literal["cancel"] = "cancel"


class AcceptedUrlElicitation(BaseModel):
    """The user wants to open the URL."""

    action: Literal["accept"] = "accept"


ElicitationResult: TypeAlias = AcceptedElicitation[ElicitSchemaModelT] | DeclinedElicitation | CancelledElicitation
UrlElicitationResult: TypeAlias = AcceptedUrlElicitation | DeclinedElicitation | CancelledElicitation

_REFUSALS: dict[str, type[Any]] = {"decline": DeclinedElicitation, "cancel": CancelledElicitation}
_FIELDS = (str, int, float, bool, NoneType)


async def elicit_with_validation(
    session: ServerSession, message: str, schema: type[ElicitSchemaModelT], related_request_id: Any = None
) -> ElicitationResult[ElicitSchemaModelT]:
    """Ask the user to fill in the fields of a model. Raises `TypeError` for fields that no form has."""
    for name, field in schema.model_fields.items():
        if not _is_field(field.annotation):
            raise TypeError(
                f"Elicitation schema field {name!r} must be a text, number, boolean or sequence of texts, not "
                f"{field.annotation}: forms have no nested fields"
            )
    result = await session.elicit_form(message, schema.model_json_schema(), related_request_id)
    if result.action == "accept":
        return AcceptedElicitation(data=schema.model_validate(result.content or {}))
    made: DeclinedElicitation | CancelledElicitation = _REFUSALS[result.action]()
    return made


def _is_field(annotation: Any) -> bool:
    if annotation in _FIELDS:
        return True
    inner = get_args(annotation)
    if get_origin(annotation) in (list, tuple, set):
        return all(each is str for each in inner)
    return bool(inner) and (get_origin(annotation) is Literal or all(map(_is_field, inner)))


async def elicit_url(
    session: ServerSession, message: str, url: str, elicitation_id: str, related_request_id: Any = None
) -> UrlElicitationResult:
    """Ask the user to open a URL."""
    result = await session.elicit_url(message, url, elicitation_id, related_request_id)
    if result.action == "accept":
        return AcceptedUrlElicitation()
    made: DeclinedElicitation | CancelledElicitation = _REFUSALS[result.action]()
    return made
