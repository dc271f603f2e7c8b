"""The pytest fixture `mcp_cassette`: tests that record a server once, and then run without it.

pytest finds this module by its entry point. What it needs of the runtime is imported when a test uses the fixture.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Collection, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ForwardRef, Literal, Unpack, cast

import pytest

if TYPE_CHECKING:
    from typedmcp import Client, ConnectOptions, ServerConfig
    from typedmcp.sync import SyncClient
    from typedmcp_cli.recording.recorder import Recorder
    from typedmcp_cli.replay import ReplayHandler
else:  # for `inspect.signature`
    Client, ConnectOptions = ForwardRef("Client", module="typedmcp"), ForwardRef("ConnectOptions", module="typedmcp")
    SyncClient = ForwardRef("SyncClient", module="typedmcp.sync")

__all__ = ["Cassette", "mcp_cassette", "mcp_cassette_mask"]

_OPTION: Final = "--mcp-record"
_MODES: Final = ("none", "once", "all")
_UNCHANGED: Final = r"[a-z0-9_.-]*"
_LONGEST_NAME: Final = 120
"""Parameters that the name of a file repeats as they are, and characters of the name. Others are told by a digest."""
_PASSED: Final = pytest.StashKey[bool]()


class Cassette:
    """The recording that belongs to a test: it is made by the first run, and answers in all others.

    `file` is `cassettes/MODULE/TEST.jsonl` beside the module of the test.
    """

    def __init__(self, file: Path, mode: Literal["none", "once", "all"], mask: Sequence[str] = ()) -> None:
        self.file: Path = file
        self.is_recording: bool = mode == "all" or (mode == "once" and not file.exists())
        """True if servers are started and recorded; False if the recording answers."""
        self._mask = mask
        self._new = file.with_name(file.name + ".new")
        """The recording until the test has passed."""
        self._recorder: Recorder | None = None
        self._server: ServerConfig | None = None
        self._has_command = False

    def connect(self, target: Any, **options: Unpack[ConnectOptions]) -> Client:
        """Return a client of `target`, like `typedmcp.connect`, or of the recording in its place."""
        import typedmcp

        return typedmcp.connect(self._replaced(target, options), **options)

    def connect_sync(self, target: Any, **options: Unpack[ConnectOptions]) -> SyncClient:
        """Return a blocking client of `target`, like `typedmcp.sync.connect`, or of the recording in its place."""
        from typedmcp import sync

        return sync.connect(self._replaced(target, options), **options)

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that starts a server, or the recording in its place, for clients of other libraries.

        A test has one such command, since it writes or reads the whole file.
        """
        if self._has_command or self._recorder is not None or self._server is not None:
            raise RuntimeError("mcp_cassette.command: this test uses its cassette already")
        self._has_command = True
        start = [sys.executable, "-m", "typedmcp"]
        if not self.is_recording:
            self._require()
            return [*start, "replay", str(self.file)]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        masks = [part for name in self._mask for part in ("--mask", name)]
        return [*start, "record", "--out", str(self._new), *masks, "--", *command]

    async def compare(self, target: Any, *, ignore: Collection[str] = (), **options: Unpack[ConnectOptions]) -> None:
        """Send the recorded requests to a server, and fail if its responses differ from the recorded ones.

        `ignore` names members of results that may differ, such as `timestamp`. Make the recording with `connect`.
        """
        import typedmcp
        from typedmcp_cli.recording.reader import read_recording
        from typedmcp_cli.replay import compare_with_server

        def connect(answers: ConnectOptions) -> Client:
            given: Any = {**answers, **options}
            return typedmcp.connect(target, **given)

        self._require()
        recording = read_recording(self.file)
        found = [
            f"{self.file.name}:{each.line}: {each}"
            async for _, differences in compare_with_server(recording, connect, ignore=ignore)
            for each in differences
        ]
        if found:
            pytest.fail("\n".join(["the server responds otherwise than recorded:", *found]), pytrace=False)

    @property
    def unused(self) -> list[str]:
        """The recorded requests that the test has not made, such as `tools/call "greet"`."""
        return [] if self._server is None else [str(each) for each in self._handler.unused]

    @property
    def _handler(self) -> ReplayHandler:
        assert self._server is not None
        return cast("ReplayHandler", self._server.handler)

    def _replaced(self, target: Any, options: ConnectOptions) -> Any:
        """Return the target to connect to. Adds the option that records, if the server is recorded."""
        from typedmcp_cli.recording.recorder import Recorder
        from typedmcp_cli.replay import replay_server

        if self.is_recording:
            if self._recorder is None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._recorder = Recorder(self._new, mask=self._mask)
            options["record"] = self._recorder
            return target
        if self._server is None:
            self._require()
            self._server = replay_server(self.file)
        for name in _URL_OPTIONS:
            options.pop(name, None)  # type: ignore[misc]  # a recording has no URL
        return self._server

    def _require(self) -> None:
        if not self.file.exists():
            how = f"run the test once with {_OPTION}=once, where the server is, and commit the file"
            pytest.fail(f"{self.file} does not exist: {how}", pytrace=False)

    def finish(self, *, is_passed: bool) -> list[str]:
        """Keep or remove a new recording, and return what the test did otherwise than the recording."""
        if self._recorder is not None:
            self._recorder.close()
        if self._new.exists():
            if is_passed:
                os.replace(self._new, self.file)
            else:
                self._new.unlink()
        return [] if self._server is None else self._handler.problems


_URL_OPTIONS: Final = ("headers", "auth", "proxy", "tls", "reconnects", "sse")


@pytest.fixture(scope="session")
def mcp_cassette_mask() -> list[str]:
    """Names of members whose values recordings mask, beside those of secrets. Override it in a `conftest.py`."""
    return []


@pytest.fixture
def mcp_cassette(request: pytest.FixtureRequest, mcp_cassette_mask: list[str]) -> Generator[Cassette]:
    """Yield the recording of this test, which is made once and then replayed; `--mcp-record` chooses otherwise."""
    node: Any = request.node
    folder = Path(node.path).parent / "cassettes" / Path(node.path).stem
    cassette = Cassette(folder / f"{_file_name(node)}.jsonl", _mode_of(request.config), mcp_cassette_mask)
    yield cassette
    problems = cassette.finish(is_passed=node.stash.get(_PASSED, False))
    if problems:
        pytest.fail("\n".join(["the test differs from its recording:", *problems]), pytrace=False)


def _file_name(node: pytest.Item) -> str:
    """Return the name of a test's file: no other test of its module has it, also where case does not count."""
    classes = [f"{parent.name}." for parent in node.listchain() if isinstance(parent, pytest.Class)]
    name, bracket, parameters = f"{''.join(classes)}{node.name}".partition("[")
    written = f"{name}-{parameters[:-1]}" if bracket else name
    if re.fullmatch(_UNCHANGED, parameters[:-1]) and name.isascii() and len(written) <= _LONGEST_NAME:
        return written
    digest = hashlib.sha256(f"{name}{bracket}{parameters}".encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', written)[:_LONGEST_NAME]}-{digest}"


def _mode_of(config: pytest.Config) -> Literal["none", "once", "all"]:
    mode = config.getoption(_OPTION) or ("none" if os.environ.get("CI") else "once")
    return cast("Literal['none', 'once', 'all']", mode)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that says when servers are recorded."""
    parser.getgroup("mcp").addoption(
        _OPTION,
        choices=_MODES,
        help="for mcp_cassette: 'once' records tests without a recording, 'all' records anew, 'none' only replays "
        "(default: once, and none where the variable CI is set)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether the test has passed, since a recording of a failed one is not kept."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = report.passed
    return report
