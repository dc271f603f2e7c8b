"""`diff`: changes between two revisions, read off the generated types."""

from __future__ import annotations

import functools
import itertools
import json

from mcpspec import VERSIONS
from mcpspec_codegen.diff import describe_changes as schema_changes
from mcpspec_codegen.pipeline import load_interface as schema_interface
from tests.cases import each
from tests.paths import SCHEMA
from tests.typedmcp_cli.command import typedmcp
from typedmcp_cli.commands.diff import compare_tables, render_changes
from typedmcp_cli.revision_tables import read_tables

_interface_of = functools.cache(functools.partial(schema_interface, SCHEMA))
NEIGHBOURS = [*itertools.pairwise(VERSIONS)]


def _lines(text: str) -> set[str]:
    """The names that were added and removed."""
    return {line.partition(":")[0] for line in text.splitlines() if line.startswith(("  + ", "  - "))}


@each("old, new", NEIGHBOURS)
def test_a_diff_of_the_types_equals_a_diff_of_the_schemas(old: str, new: str) -> None:
    expected = schema_changes(_interface_of(old), _interface_of(new))
    found = "\n".join(render_changes(compare_tables(read_tables(old), read_tables(new))))
    assert _lines(found) == _lines(expected)


@each("version", VERSIONS)
def test_a_revision_does_not_differ_from_itself(version: str) -> None:
    found = compare_tables(read_tables(version), read_tables(version))
    assert not any(names for kinds in found.values() for names in kinds.values())
    assert [*render_changes(found)] == []


@each("version", VERSIONS)
def test_types_are_described_in_the_words_of_json(version: str) -> None:
    tables = read_tables(version)
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
            "old": "client or server notification, ProgressNotificationParams",
            "new": "server notification, ProgressNotificationParams",
        },
    ),
]


def test_json_has_the_old_and_the_new_description_of_a_change() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-28", "--format", "json")
    found = json.loads(done.out)
    assert (done.status, found["old"], found["new"]) == (0, "2025-11-25", "2026-07-28")
    for kind, name, change in EXPECTED:
        assert found[kind]["changed"][name] == change
    assert found["types"]["added"]["InputRequest"] == "CreateMessageRequest | ListRootsRequest | ElicitRequest"
    assert found["types"]["removed"]["InitializeRequest"] == "object"
    assert found["methods"]["added"]["server/discover"] == "client request, RequestParams -> DiscoverResult"
    assert found["codes"]["removed"] == {"RESOURCE_NOT_FOUND": "-32002", "URL_ELICITATION_REQUIRED": "-32042"}


def test_text_has_sections_and_shortens_long_unions() -> None:
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


def test_markdown_has_the_same_sections() -> None:
    done = typedmcp("diff", "2025-06-18", "2025-11-25", "--format", "markdown")
    lines = done.out.splitlines()
    assert lines[0] == "# From 2025-06-18 to 2025-11-25"
    assert [line for line in lines if line.startswith("## ")] == [
        "## Types",
        "## Members",
        "## Methods",
        "## Error codes",
    ]
    assert "- `tasks/get`: `client or server request, GetTaskRequestParams -> GetTaskResult`" in lines


def test_an_unknown_revision_is_rejected() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-29")
    assert done.status == 2
    assert done.err.startswith('error: Invalid value "2026-07-29" for NEW.')
