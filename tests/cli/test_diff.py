"""`diff`: what changed between two revisions, from the types that are installed."""

from __future__ import annotations

import itertools
import json

import pytest

from codegen.diff import changes as schema_changes
from codegen.pipeline import interface as schema_interface
from mcpspec import VERSIONS
from tests.cli.command import typedmcp
from tests.paths import SCHEMA
from typedmcp.cli.comparing import changes, told
from typedmcp.cli.interfaces import interface

NEIGHBOURS = [*itertools.pairwise(VERSIONS)]


def _lines(text: str) -> set[str]:
    """What came and went, without what it is."""
    return {line.partition(":")[0] for line in text.splitlines() if line.startswith(("  + ", "  - "))}


@pytest.mark.parametrize(("old", "new"), NEIGHBOURS)
def test_the_types_tell_the_same_as_the_schemas_that_they_were_compiled_from(old: str, new: str) -> None:
    expected = schema_changes(schema_interface(SCHEMA, old), schema_interface(SCHEMA, new))
    found = "\n".join(told(changes(interface(old), interface(new))))
    assert _lines(found) == _lines(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_revision_does_not_differ_from_itself(version: str) -> None:
    found = changes(interface(version), interface(version))
    assert not any(names for kinds in found.values() for names in kinds.values())
    assert [*told(found)] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_types_are_told_in_the_words_of_json(version: str) -> None:
    tables = interface(version)
    texts = " ".join([*tables.types.values(), *tables.members.values(), *tables.methods.values()])
    for word in ("UnsetType", "<", "str ", "bool ", "dict", "Literal", "Annotated", "float", "NoneType"):
        assert word not in texts


EXPECTED = [
    ("members", "CallToolResult.structuredContent", {"old": "object, optional", "new": "any, optional"}),
    ("members", "CancelledNotificationParams.requestId", {"old": "RequestId, optional", "new": "RequestId"}),
    (
        "members",
        "CompleteResultCompletion.values",
        {"old": "list of string", "new": "list of string (length at most 100)"},
    ),
    (
        "methods",
        "notifications/progress",
        {
            "old": "either's notification, ProgressNotificationParams",
            "new": "the server's notification, ProgressNotificationParams",
        },
    ),
]


def test_what_changed_is_told_with_what_it_was_and_what_it_is() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-28", "--format", "json")
    found = json.loads(done.out)
    assert (done.status, found["old"], found["new"]) == (0, "2025-11-25", "2026-07-28")
    for kind, name, change in EXPECTED:
        assert found[kind]["changed"][name] == change
    assert found["types"]["added"]["InputRequest"] == "CreateMessageRequest | ListRootsRequest | ElicitRequest"
    assert found["types"]["removed"]["InitializeRequest"] == "object"
    assert found["methods"]["added"]["server/discover"] == "the client's request, RequestParams -> DiscoverResult"
    assert found["codes"]["removed"] == {"RESOURCE_NOT_FOUND": "-32002", "URL_ELICITATION_REQUIRED": "-32042"}


def test_the_text_has_a_section_for_each_kind_and_names_only_what_comes_and_goes_of_long_unions() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-28")
    lines = done.out.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == ["Types", "Members", "Methods", "Error codes"]
    assert "  ~ CancelledNotificationParams.requestId: RequestId, optional => RequestId" in lines
    union = next(line for line in lines if line.startswith("  ~ ServerNotification: "))
    assert union.partition(": ")[2].split(", ") == [
        "+SubscriptionsAcknowledgedNotification",
        "-TaskStatusNotification",
        "-ElicitationCompleteNotification",
    ]


def test_the_same_as_markdown() -> None:
    done = typedmcp("diff", "2025-06-18", "2025-11-25", "--format", "markdown")
    lines = done.out.splitlines()
    assert lines[0] == "# From 2025-06-18 to 2025-11-25"
    assert [line for line in lines if line.startswith("## ")] == [
        "## Types",
        "## Members",
        "## Methods",
        "## Error codes",
    ]
    assert "- `tasks/get`: `either's request, GetTaskRequestParams -> GetTaskResult`" in lines


def test_a_revision_that_does_not_exist_is_refused() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-29")
    assert done.status == 2
    assert done.err.startswith('error: Invalid value "2026-07-29" for NEW.')
