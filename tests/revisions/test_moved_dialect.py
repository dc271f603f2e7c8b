"""Moving the dialect to a later revision: what is reported at start, and that nothing changes for older revisions."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.codegen.helpers import NEWEST
from tests.interop.peers import COMMAND, SERVER, STDIO, Peer, printed, scenario
from tests.listening import listening
from tests.paths import ROOT
from tests.revisions import later
from tests.revisions.later import LATER, Edit, Rule
from typedmcp.dialect import structs
from typedmcp.revisions.features import LEGACY, SUPPORTED
from typedmcp.transports.process_parameters import StdioServerParameters

pytestmark = pytest.mark.long

PEER = str(Path(__file__).parent / "later_peer.py")
WITH_ANNOTATIONS = [LATER, *SUPPORTED[:3]]
"""The revisions that have the renamed optional member."""
WITH_TOOLS = [LATER, *SUPPORTED[:2]]
"""The revisions in which a model may use tools, which the renamed required member belongs to."""


def _run(environment: dict[str, str], *command: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


# What is reported at start

GAPS = {
    "Annotations.last_modified": WITH_ANNOTATIONS[1:],
    "RecipeContent": [*SUPPORTED],
    "ToolResultContent.call_id": WITH_TOOLS[1:],
    "ToolResultContent.tool_use_id": WITH_TOOLS[1:],
}
"""What lacks a rule before the maintainer has written any, with the revisions."""

ENTRY_POINTS = ("typedmcp.serve", "typedmcp.connect", "typedmcp.Server", "typedmcp.asgi")


def _gaps(folder: Path, code: str = "import typedmcp; typedmcp.Server") -> dict[str, list[str]]:
    """Return the names that a start of the runtime reports, with their revisions."""
    done = _run(later.environment_of(folder), "-c", code)
    assert bool(done.returncode) == ("MissingRulesError" in done.stderr), done.stderr
    found = re.findall(r"^  ([-0-9, ]+): ([\w.]+): .*; .* schema/supplement\.json", done.stderr, re.MULTILINE)
    return {name: revisions.split(", ") for revisions, name in found}


@pytest.fixture(scope="session")
def without_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose dialect has moved before a maintainer has decided anything."""
    return later.build(tmp_path_factory.mktemp("moved"), later.DIALECT, rules=())


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_every_gap_is_reported_by_name_before_anything_is_served_or_called(without_rules: Path, entry: str) -> None:
    assert _gaps(without_rules, f"import typedmcp; {entry}; print('never printed')") == GAPS


@pytest.mark.parametrize(
    ("rule", "closed"),
    [*zip(later.RULES, [{*GAPS} - {"RecipeContent"}, {"RecipeContent"}], strict=True)],
    ids=["renamed members", "a type of content"],
)
def test_a_rule_closes_the_gaps_that_it_is_for(tmp_path: Path, rule: Rule, closed: set[str]) -> None:
    assert _gaps(later.build(tmp_path, later.DIALECT, rules=[rule])).keys() == GAPS.keys() - closed


def test_with_all_rules_the_runtime_starts(tmp_path: Path, later_folder: Path) -> None:
    assert _gaps(_edited(later_folder, tmp_path, *later.DIALECT)) == {}


def test_a_revision_later_than_the_dialect_is_never_spoken(later_folder: Path, tmp_path: Path) -> None:
    done = _run(
        later.environment_of(_edited(later_folder, tmp_path)),
        "-c", "import mcpspec, typedmcp.revisions.features as f; print(mcpspec.VERSIONS[-1], *f.SUPPORTED)",
    )  # fmt: skip
    assert done.stdout.split() == [LATER, *SUPPORTED], done.stderr


def _edited(later_folder: Path, folder: Path, *edits: Edit) -> Path:
    """Return a folder with the types of the later revision, and a runtime with some of the edits."""
    shutil.copytree(later_folder / "generated", folder / "generated")
    return later.edit(folder, edits)


# The new features

TEXT: dict[str, Any] = {"type": "text", "text": "a"}
RECIPE = {"type": "recipe", "title": "Soup", "steps": ["boil"]}
REPLACED = {"type": "text", "text": "[recipe Soup]"}
RETURNED = {"type": "tool_result", "callId": "1"}


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("revision", [LATER, *SUPPORTED])
def test_new_features_work_on_the_later_revision_and_follow_the_rules_on_older_ones(
    environment: dict[str, str], revision: str, transport: str
) -> None:
    if (transport, revision) == ("http", LEGACY[-1]):
        pytest.skip("the revision has another transport over HTTP")
    done = _run(environment, PEER, "client", transport, revision)
    assert done.returncode == 0, done.stderr
    is_later = revision == LATER
    content = RECIPE if is_later else REPLACED
    annotations = {"modifiedAt": "2031-01-01"} if revision in WITH_ANNOTATIONS else {}
    assert json.loads(done.stdout) == {
        "content": [{**TEXT, "annotations": annotations}, content],
        "recipe": RECIPE if is_later else "UsageError",
        "changes": ["recipes", "tools"] if is_later else ["tools"],
        "sampled": ["1", [{**RETURNED, "content": [content]}]]
        if revision in WITH_TOOLS
        else ["RemoteError", {"type": "text", "text": "[tool_result]"}],
    }


@pytest.mark.parametrize("revision", SUPPORTED)
def test_the_client_of_today_gets_the_types_of_today(environment: dict[str, str], revision: str) -> None:
    async def call() -> Any:
        server = StdioServerParameters(
            sys.executable, [PEER, "server", "stdio"], env={"PYTHONPATH": environment["PYTHONPATH"]}
        )
        async with typedmcp.connect(server, revisions=[revision]) as client:
            return structs.to_builtins((await client.call_tool("echo")).content)

    annotations = {"lastModified": "2031-01-01"} if revision in WITH_ANNOTATIONS else {}
    assert asyncio.run(asyncio.wait_for(call(), 120)) == [{**TEXT, "annotations": annotations}, REPLACED]


# The revisions before it

SUITES = {
    "server": (100, ["server/test_legacy_revisions.py", "server/test_handlers.py", "server/test_frames.py",
                      "server/test_fast_path.py", "server/test_misbehaviour.py", "server/test_batches.py",
                      "server/test_metadata.py", "server/http/test_stateless.py", "server/http/test_sessions.py",
                      "server/http/test_legacy_sse.py"]),
    "client": (50, ["client/test_client.py", "client/test_misbehaviour.py", "client/test_result_decoder.py",
                     "client/test_negotiation.py", "client/test_typed_results.py", "client/test_cache.py",
                     "client/http/test_session.py", "client/http/test_misbehaviour.py"]),
}  # fmt: skip
"""The tests of both sides that say what a peer of a revision gets, and the least number of them."""


@pytest.mark.parametrize("side", SUITES)
def test_the_tests_of_today_pass_on_the_revisions_of_today(environment: dict[str, str], side: str) -> None:
    least, files = SUITES[side]
    options = ["-q", "-p", "no:cacheprovider", "-m", "not long"]
    done = _run(
        {**environment, "TYPEDMCP_TEST_REVISION": NEWEST},
        "-m", "pytest", *options, *(f"tests/{name}" for name in files), timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= least


TYPESCRIPT = [peer for peer in STDIO if peer.client == "typescript"]
"""The official TypeScript client on every revision that it knows."""


@pytest.mark.parametrize("peer", [each.over(kind) for each in TYPESCRIPT for kind in ("stdio", "http")], ids=str)
def test_the_typescript_client_gets_the_same_results_before_and_after_the_dialect_moves(
    environment: dict[str, str], peer: Peer
) -> None:
    on_later = _steps(peer, ["env", f"PYTHONPATH={environment['PYTHONPATH']}"])
    assert on_later["about"]["protocolVersion"] == peer.revision
    assert on_later == _steps(peer, [])


def _steps(peer: Peer, prefix: list[str]) -> dict[str, Any]:
    """Return the results of the official client with the server of the interop tests, started behind `prefix`."""
    if peer.transport == "stdio":
        seen: dict[str, Any] = json.loads(printed(peer.command(*prefix, *COMMAND)))
        return seen
    with listening([*prefix, *SERVER]) as server:
        return scenario(peer, server.address)
