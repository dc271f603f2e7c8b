"""Our types in place of those of the official SDK, and conversions between both, with `mcp` 1.x and 2.x."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mcpspec
from tests.cases import each
from tests.examples.running import EXAMPLES
from tests.generated.vectors import valid_values
from tests.interop import install, peers, test_servers
from tests.interop.peers import Peer, printed
from tests.interop.servers.started import MODERN, OLDER, Server
from tests.interop.test_servers import PYTHON_1, PYTHON_2, Sdk

pytestmark = pytest.mark.long

JSON = dict[str, Any]

HERE = Path(__file__).parent
ENVIRONMENTS = ["py1", "py2"]
every_version = each("environment", ENVIRONMENTS)

NEWEST = {"py1": OLDER, "py2": MODERN}
"""The newest revision that each version of the SDK has."""

ERRORS: list[list[Any]] = [
    ["ElicitationRequiredErrorData", "a visit", {"elicitations": [
        {"mode": "url", "message": "Sign in.", "url": "https://example.org", "elicitationId": "1"},
    ]}],
    ["MissingRequiredClientCapabilityErrorData", "sampling", {"requiredCapabilities": {"sampling": {}}}],
    ["UnsupportedProtocolVersionErrorData", "an old one", {"supported": ["2025-11-25"], "requested": "1900-01-01"}],
]  # fmt: skip
"""Values of classes that the schemas have no definition for."""

REJECTED = {
    "JSONRPCError": "the SDK requires an id",
    "JSONRPCMessage": "the SDK has no batches",
    "JSONRPCResponse": "an error, which the SDK has another class for",
    "Notification": "the SDK has a generic base class",
    "Request": "the SDK has a generic base class",
    "Task": "the SDK bounds the numbers",
}
"""Classes of the SDK that reject vectors, with the reason."""


@cache
def converted(environment: str) -> JSON:
    """Convert all vectors to the SDK's types and to ours, and back."""
    versions = [version for version in mcpspec.VERSIONS if version <= NEWEST[environment]]
    vectors = [value for version in versions for value in valid_values(version)]
    cases = [[value.definition, f"{value.version} {value.case}", json.loads(value.text)] for value in vectors]
    interpreter = install.python(environment)
    if not interpreter.exists():
        pytest.skip("the clients are not installed: run tests/interop/install.py")
    command = [str(interpreter), str(HERE / "sdk_types.py")]
    text = json.dumps([*cases, *ERRORS])
    output = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=True).stdout
    found: JSON = json.loads(output)
    return found


@every_version
def test_every_class_survives_the_conversion_in_both_directions(environment: str) -> None:
    assert converted(environment)["differences"] == {}


@every_version
def test_the_vectors_have_objects_of_every_class(environment: str) -> None:
    assert set(converted(environment)["unseen"]) <= {"ResourceReference"}  # a deprecated name, in 1.x
    assert converted(environment)["checked"] > 700


def test_the_sdk_rejects_only_vectors_for_known_reasons() -> None:
    rejected = {case.partition(" ")[0] for environment in ENVIRONMENTS for case in converted(environment)["rejected"]}
    assert rejected == REJECTED.keys()


@every_version
def test_lists_dicts_and_objects_of_derived_classes_are_converted(environment: str) -> None:
    code = """
        from mcp import types
        from mcpspec import compat
        from mcpspec.compat.sdk import from_sdk, to_sdk
        class Mine(types.Tool):
            rank: int = 0
        tool = from_sdk(Mine(name="a", inputSchema={}, rank=1), compat.Tool)
        assert from_sdk([{"x": Mine(name="a", inputSchema={}, rank=1)}, 2]) == [{"x": tool}, 2]
        class Ours(compat.Tool):
            rank: int = 0
        assert type(to_sdk(Ours(name="a", input_schema={}, rank=1))) is types.Tool
        assert from_sdk("text") == to_sdk("text") == "text"
        print(tool.rank, type(tool).__name__)
    """
    assert _run(environment, inspect.cleandoc(code)) == "1 Tool"


@every_version
def test_another_class_than_the_expected_one_is_an_error(environment: str) -> None:
    code = """
        from mcp import types
        from mcpspec import compat
        from mcpspec.compat.sdk import from_sdk
        from_sdk(types.TextContent(type="text", text=""), compat.ImageContent)
    """
    assert _run(environment, inspect.cleandoc(code)) == "TypeError: expected ImageContent, got TextContent"


def test_a_class_that_the_sdk_lacks_is_an_error() -> None:
    code = "from mcpspec.compat import DiscoverRequest, sdk; sdk.to_sdk(DiscoverRequest(params={}))"
    assert _run("py1", code) == "TypeError: mcp.types has no class DiscoverRequest"


# The SDK with our types in place of its own


PEERS = [peer for peer in peers.PEERS if peer.client.startswith("python") and peer.transport != "sse"]


@each("peer", PEERS, ids=str)
def test_the_official_client_behaves_the_same_with_our_types(peer: Peer) -> None:
    assert peer.with_our_types().saw_everything() == peer.saw_everything()


def with_our_types(server: Server) -> Server:
    interpreter, *script = server.command
    return replace(server, command=(interpreter, str(HERE / "installed.py"), *script))


SDKS = [
    (with_our_types(server), revision)
    for server, revision in [(PYTHON_1, OLDER), (PYTHON_2, OLDER), (PYTHON_2, MODERN)]
]


@pytest.fixture(scope="module", params=SDKS, ids=lambda given: f"{given[0]} on {given[1]}")
def opened_sdk(request: pytest.FixtureRequest) -> Generator[Sdk]:
    line = Sdk(*request.param)
    yield line
    line.close()


@pytest.fixture
def sdk(opened_sdk: Sdk) -> Sdk:
    opened_sdk.begin_case()
    return opened_sdk


for _name, _test in vars(test_servers).items():  # what holds for the official server holds for it with our types
    if _name.startswith("test_") and "sdk" in inspect.signature(_test).parameters:
        globals()[_name] = _test


@every_version
def test_install_fails_after_the_sdk_is_imported(environment: str) -> None:
    late = "import mcp.types; from mcpspec.compat import sdk; sdk.install()"
    assert _run(environment, late).endswith(
        "RuntimeError: mcp is imported already: call install() before the first import of mcp"
    )


@every_version
def test_the_sdk_s_modules_have_their_names_and_constants_and_our_classes(environment: str) -> None:
    code = """
        from mcpspec import compat
        from mcpspec.compat import sdk
        sdk.install()
        sdk.install()
        import mcp
        from mcp import types
        from mcp.types import Tool
        assert mcp.types is types and Tool is mcp.Tool is compat.Tool
        print(types.LATEST_PROTOCOL_VERSION, hasattr(types, "DiscoverRequest"), isinstance(types.ClientRequest, type))
    """
    expected = {"py1": f"{OLDER} False True", "py2": f"{MODERN} True False"}
    assert _run(environment, inspect.cleandoc(code)) == expected[environment]


@every_version
def test_the_example_session_gives_our_objects(environment: str) -> None:
    server = [sys.executable, str(EXAMPLES / "one_file.py"), "serve"]
    assert printed([str(install.python(environment)), str(EXAMPLES / "official_session.py"), *server]).splitlines() == [
        "server: calculator 1.0",
        "tool: add ['a', 'b']",
        "tool: divide ['a', 'b']",
        "1 / 4 = 0.25 mcpspec.compat.types",
    ]


def _run(environment: str, code: str) -> str:
    """Return the last line that a program writes."""
    command = [str(install.python(environment)), "-c", code]
    if not Path(command[0]).exists():
        pytest.skip("the clients are not installed: run tests/interop/install.py")
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    )
    return result.stdout.strip().rpartition("\n")[2]
