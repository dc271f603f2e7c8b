"""The blocking client, used from plain code."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_client import ANSWER, answer, elicit, text
from tests.conformance import server
from tests.interop.peers import COMMAND
from tests.server.scripted import SUPPORTED
from typedmcp import sync
from typedmcp.client import ChangeEvent, Client
from typedmcp.dialect import structs

each_revision = each("revision", SUPPORTED)


@each_revision
def test_blocking_calls_return_what_async_calls_return(revision: str) -> None:
    roots = ["file:///home/ada"]
    client = sync.connect(server.Everything(), revisions=[revision], sample=answer, elicit=elicit, roots=lambda: roots)
    with client:
        assert client.revision == revision
        assert client.server.info is not None
        names = [name for name in server.TOOLS if name not in server.LATE]
        assert [tool.name for tool in client.tools()] == names
        assert text(client.call_tool("test_x_mcp_header", {"region": "north"})) == "Region: north"
        assert text(client.call_tool("test_sampling", {"prompt": "hi"})) == "LLM response: Paris, of course."
        with client.listen(tools=True) as changes:
            client.call_tool("test_trigger_tool_change")
            assert next(changes) == ChangeEvent("tools")
        with pytest.raises(typedmcp.MethodNotFoundError):
            client.send("x/y")


def test_callbacks_run_in_threads_and_may_use_the_client() -> None:
    threads: list[threading.Thread] = []

    def progress(params: structs.ProgressNotificationParams) -> None:
        threads.append(threading.current_thread())
        client.ping()

    with sync.connect(server.Everything()) as client:
        client.call_tool("test_tool_with_progress", on_progress=progress)
        client.ping()
        assert len(threads) == 3
        assert threading.main_thread() not in threads


def test_consent_to_a_url_is_given_in_a_thread() -> None:
    threads: list[threading.Thread] = []
    app = typedmcp.Server("pages")

    @app.tool
    async def visit(ctx: typedmcp.Context) -> str:
        return (await ctx.elicit_url("Sign in.", "https://example.com/a")).action

    def consent(params: structs.ElicitRequestURLParams) -> bool:
        threads.append(threading.current_thread())
        client.ping()
        return params.url == "https://example.com/a"

    with sync.connect(app, elicit_url=consent) as client:
        assert client.call_tool("visit", result_type=str) == "accept"
    assert threading.main_thread() not in threads


def test_several_threads_can_share_a_client() -> None:
    results: list[str] = []
    with sync.connect(server.Everything()) as client:

        def work(number: int) -> None:
            results.extend(text(client.call_tool("test_x_mcp_header", {"region": str(number)})) for _ in range(20))

        workers = [threading.Thread(target=work, args=[number]) for number in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert sorted(results) == sorted([f"Region: {number}" for number in range(8)] * 20)


def test_a_client_can_be_closed_twice_and_from_another_thread() -> None:
    client = sync.connect(server.Everything())
    client.open()
    worker = threading.Thread(target=client.close)
    worker.start()
    worker.join()
    client.close()
    with pytest.raises(typedmcp.ConnectionLostError):
        client.ping()


INTERRUPTED = """
import sys
from typedmcp import sync
with sync.connect(sys.argv[1:]) as client:
    try:
        client.call_tool("test_wait", on_progress=lambda _: print("waiting", flush=True))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    client.ping()
    print(client.call_tool("test_cancelled_waits").content[0].text, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_an_interrupt_cancels_the_call_and_the_client_stays_open() -> None:
    command = [sys.executable, "-W", "error", "-c", INTERRUPTED, *COMMAND]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "waiting\n"
        script.send_signal(signal.SIGINT)
        out, _ = script.communicate(timeout=30)
    assert out == "interrupted\n1\n"
    assert script.returncode == 0


LEFT_OPEN = """
import sys
from typedmcp import sync
client = sync.connect(sys.argv[1:])
client.open()
print(client.server.info.name)
"""


def test_an_open_client_shuts_its_server_down_at_the_end_of_the_process() -> None:
    command = [sys.executable, "-W", "error", "-c", LEFT_OPEN, *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("everything\n", "")


def test_a_blocking_call_in_the_event_loop_of_the_client_raises_usage_error() -> None:
    errors: list[Any] = []

    async def ask(_params: Any) -> Any:
        try:
            client.ping()
        except typedmcp.UsageError as error:
            errors.append(error)
        return ANSWER

    with sync.connect(server.Everything(), sample=ask) as client:
        client.call_tool("test_sampling", {"prompt": "hi"})
    assert "would wait for itself" in str(errors[0])


BLOCKING = [
    name
    for name in dir(sync.SyncClient)
    if not name.startswith("_") and name != "run" and callable(getattr(sync.SyncClient, name, None))
]


@each("name", BLOCKING)
def test_a_blocking_method_has_the_parameters_of_the_async_method(name: str) -> None:
    blocking, awaited = (inspect.signature(getattr(each, name)) for each in (sync.SyncClient, Client))
    assert blocking.parameters == awaited.parameters


@each("name", [each for each in BLOCKING if each not in ("open", "close")])
def test_a_blocking_method_has_the_documentation_of_the_async_method(name: str) -> None:
    assert getattr(sync.SyncClient, name).__doc__ == getattr(Client, name).__doc__


def test_every_method_of_the_async_client_has_a_blocking_one() -> None:
    public = {name for name in vars(Client) if not name.startswith("_") and hasattr(Client, name)}
    others = {"server", "revision", "is_connected", "extension", "decode"}  # `run` has a client with the last two
    assert public == {*BLOCKING, *others}


def test_callbacks_can_make_calls_that_lead_to_further_callbacks() -> None:
    depth = 0

    def ask(_params: Any) -> Any:
        nonlocal depth
        depth += 1
        if depth < 40:
            client.call_tool("test_elicitation", {"message": "deeper"})
        return {"username": "ada", "email": "a@b"}

    with sync.connect(server.Everything(), elicit=ask, max_time=20) as client:
        assert "accept" in text(client.call_tool("test_elicitation", {"message": "start"}))
    assert depth == 40


FORKED = """
import os, sys
from typedmcp import sync
client = sync.connect(sys.argv[1:])
client.open()
pid = os.fork()
if pid == 0:
    try:
        client.ping()
    except Exception as error:
        print(type(error).__name__, flush=True)
    with sync.connect(sys.argv[1:]) as other:
        print(other.server.info.name, flush=True)
    sys.exit(0)
os.waitpid(pid, 0)
client.ping()
client.close()
print("parent", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_has_to_connect_again() -> None:
    command = [sys.executable, "-c", FORKED, *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=True)
    assert done.stdout.splitlines() == ["UsageError", "everything", "parent"]


LEFT_BY_FORK = """
import os, sys
from typedmcp import sync
with sync.connect(sys.argv[1:]) as client, client.listen(resources=True):
    pid = os.fork()
    if pid == 0:
        sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    client.ping()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_leaves_the_connection_to_its_parent() -> None:
    command = [sys.executable, "-c", LEFT_BY_FORK, *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


def test_a_client_that_is_garbage_collected_is_closed_with_a_warning() -> None:
    client = sync.connect(COMMAND)
    client.open()
    session: Any = client.async_client._connection.session  # pyright: ignore[reportPrivateUsage]
    transport: Any = session.transport
    del session
    held = [client]
    del client
    with pytest.warns(ResourceWarning, match="was not closed"):
        held.clear()
    deadline = time.monotonic() + 20
    while transport.exit_status is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert transport.exit_status is not None
