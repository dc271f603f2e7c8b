"""The names of members of `_meta` are those of the schema."""

from __future__ import annotations

from typing import Any

import pytest

from typedmcp.dialect import structs
from typedmcp.protocol import meta


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (meta.VERSION, structs.RequestMetaObject),
        (meta.CLIENT_INFO, structs.RequestMetaObject),
        (meta.CAPABILITIES, structs.RequestMetaObject),
        (meta.LOG_LEVEL, structs.RequestMetaObject),
        (meta.SERVER_INFO, structs.ResultMetaObject),
        (meta.SUBSCRIPTION, structs.NotificationMetaObject),
    ],
)
def test_the_schema_declares_the_name(name: str, kind: Any) -> None:
    assert name in {member.wire for member in kind.__attributes__.values()}
