"""The names of members of `_meta` are those of the schema."""

from __future__ import annotations

from typing import Any

from tests.cases import each
from typedmcp.dialect import exact
from typedmcp.protocol import meta


@each(
    "name, kind",
    [
        (meta.VERSION, exact.RequestMetaObject),
        (meta.CLIENT_INFO, exact.RequestMetaObject),
        (meta.CAPABILITIES, exact.RequestMetaObject),
        (meta.LOG_LEVEL, exact.RequestMetaObject),
        (meta.SERVER_INFO, exact.ResultMetaObject),
        (meta.SUBSCRIPTION, exact.NotificationMetaObject),
    ],
)
def test_the_schema_declares_the_name(name: str, kind: Any) -> None:
    assert name in {member.wire for member in kind.__attributes__.values()}
