"""`diff`: changes between two revisions, read off the generated types."""

from __future__ import annotations

import functools
import itertools
import json
from pathlib import Path
from typing import Any

import mcpspec_codegen.comparison
import typedmcp_cli.comparison
from mcpspec import VERSIONS
from mcpspec_codegen.comparison.changes import find_changes as schema_changes
from mcpspec_codegen.pipeline import load_interface as schema_interface
from tests.cases import each
from tests.paths import SCHEMA
from tests.typedmcp_cli.command import typedmcp
from typedmcp_cli.comparison.changes import find_changes
from typedmcp_cli.revision_interface import read_revision

_interface_of = functools.cache(functools.partial(schema_interface, SCHEMA))
_revision = functools.cache(read_revision)
NEIGHBOURS = [*itertools.pairwise(VERSIONS)]


@each("old, new", NEIGHBOURS)
def test_a_diff_of_the_types_equals_a_diff_of_the_schemas(old: str, new: str) -> None:
    expected = schema_changes(_interface_of(old), _interface_of(new))
    found = find_changes(_revision(old), _revision(new))
    # Only the texts differ: the types do not tell that an alias in a list or a map has a name.
    assert [(each.verdict, each.kind, each.sign, each.name, *map(tuple, each.hits)) for each in found] == [
        (each.verdict, each.kind, each.sign, each.name, *map(tuple, each.hits)) for each in expected
    ]


def test_the_comparison_is_that_of_the_compiler() -> None:
    ours, theirs = (Path(str(each.__file__)).parent for each in (typedmcp_cli.comparison, mcpspec_codegen.comparison))
    for path in theirs.glob("*.py"):
        expected = path.read_text(encoding="utf-8").replace("mcpspec_codegen.", "typedmcp_cli.")
        assert (ours / path.name).read_text(encoding="utf-8") == expected
    assert {path.name for path in ours.glob("*.py")} == {path.name for path in theirs.glob("*.py")}


@each("version", VERSIONS)
def test_a_revision_does_not_differ_from_itself(version: str) -> None:
    assert find_changes(_revision(version), _revision(version)) == []


EXPECTED: list[dict[str, Any]] = [
    {
        "verdict": "compatible", "kind": "method", "name": "server/discover",
        "old": None, "new": "client request, RequestParams -> DiscoverResult",
        "text": "client request, RequestParams -> DiscoverResult", "hits": [],
    },
    {
        "verdict": "breaking", "kind": "member", "name": "CancelledNotificationParams.requestId",
        "old": "RequestId, optional", "new": "RequestId", "text": "required now",
        "hits": [{"side": "client", "role": "send"}, {"side": "server", "role": "send"}],
    },
    {
        "verdict": "breaking", "kind": "method", "name": "notifications/progress",
        "old": "client or server notification, ProgressNotificationParams",
        "new": "server notification, ProgressNotificationParams", "text": "sent by both => server",
        "hits": [{"side": "client", "role": "send"}, {"side": "server", "role": "get"}],
    },
    {
        "verdict": "words", "kind": "type", "name": "InputRequest", "old": None,
        "new": "CreateMessageRequest | ListRootsRequest | ElicitRequest",
        "text": "CreateMessageRequest | ListRootsRequest | ElicitRequest", "hits": [],
    },
]  # fmt: skip


def test_json_has_the_verdict_and_both_descriptions_of_a_change() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-28", "--format", "json")
    found = json.loads(done.out)
    assert (done.status, found["old"], found["new"]) == (0, "2025-11-25", "2026-07-28")
    for change in EXPECTED:
        assert change in found["changes"]
    assert found["counts"]["breaking"] == sum(change["verdict"] == "breaking" for change in found["changes"])


def test_text_has_a_section_for_each_verdict_and_the_options_of_unions_that_changed() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-28")
    lines = done.out.splitlines()
    titles = [line.partition(":")[0] for line in lines if not line.startswith("  ")]
    assert titles == ["breaking", "compatible", "only words"]
    assert "  ~ CancelledNotificationParams.requestId: required now  [both send]" in lines
    assert (
        "  ~ ServerNotification: + SubscriptionsAcknowledgedNotification, - TaskStatusNotification, "
        "- ElicitationCompleteNotification"
    ) in lines


def test_markdown_has_the_same_sections() -> None:
    done = typedmcp("diff", "2025-06-18", "2025-11-25", "--format", "markdown")
    lines = done.out.splitlines()
    assert lines[0] == "# From 2025-06-18 to 2025-11-25"
    assert [line for line in lines if line.startswith("## ")] == ["## Breaking", "## Compatible", "## Only words"]
    assert "| `+` | `tasks/get` | `client or server request, GetTaskRequestParams -> GetTaskResult` |  |" in lines


@each("fail_on, status", [("breaking", 1), ("any", 1)])
def test_the_status_is_about_the_changes_that_one_names(fail_on: str, status: int) -> None:
    assert typedmcp("diff", "2025-11-25", "2026-07-28", "--fail-on", fail_on).status == status
    assert typedmcp("diff", "2026-07-28", "2026-07-28", "--fail-on", fail_on).status == 0


def test_an_unknown_revision_is_rejected() -> None:
    done = typedmcp("diff", "2025-11-25", "2026-07-29")
    assert done.status == 2
    assert done.err.startswith('error: Invalid value "2026-07-29" for NEW.')
