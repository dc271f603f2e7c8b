"""The blocking face of the client, from plain code."""

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
from tests.conformance import server
from tests.interop.peers import COMMAND
from tests.runtime.scripted import SUPPORTED
from tests.runtime.test_client import ANSWER, answer, elicit, text
from typedmcp import sync
from typedmcp.client import Changed, Client
from typedmcp.dialect import structs

each_revision = pytest.mark.parametrize("revision", SUPPORTED)


@each_revision
def test_the_same_calls_block(revision: str) -> None:
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
            assert next(changes) == Changed("tools")
        with pytest.raises(typedmcp.MethodNotFound):
            client.send("x/y")


def test_callbacks_may_block_and_may_use_the_client() -> None:
    threads: list[threading.Thread] = []

    def progress(params: structs.ProgressNotificationParams) -> None:
        threads.append(threading.current_thread())
        client.ping()

    with sync.connect(server.Everything()) as client:
        client.call_tool("test_tool_with_progress", on_progress=progress)
        client.ping()
        assert len(threads) == 3
        assert threading.main_thread() not in threads


def test_several_threads_share_a_client() -> None:
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


def test_closing_twice_and_by_another_thread_is_fine() -> None:
    client = sync.connect(server.Everything())
    client.open()
    worker = threading.Thread(target=client.close)
    worker.start()
    worker.join()
    client.close()
    with pytest.raises(typedmcp.ConnectionLost):
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
def test_an_interrupt_ends_the_call_and_the_client_goes_on() -> None:
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


def test_a_client_that_nobody_closed_shuts_its_server_down_at_the_end() -> None:
    command = [sys.executable, "-W", "error", "-c", LEFT_OPEN, *COMMAND]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("everything\n", "")
    assert time.monotonic() - start < 15


def test_a_blocking_call_in_the_clients_own_loop_is_refused() -> None:
    refused: list[Any] = []

    async def ask(_params: Any) -> Any:
        try:
            client.ping()
        except typedmcp.UsageError as error:
            refused.append(error)
        return ANSWER

    with sync.connect(server.Everything(), sample=ask) as client:
        client.call_tool("test_sampling", {"prompt": "hi"})
    assert "would wait for itself" in str(refused[0])


BLOCKING = [name for name in vars(sync.Client) if not name.startswith("_") and callable(vars(sync.Client)[name])]


@pytest.mark.parametrize("name", BLOCKING)
def test_a_blocking_method_takes_what_the_other_takes(name: str) -> None:
    here, there = (inspect.signature(getattr(kind, name)) for kind in (sync.Client, Client))
    assert here.parameters == there.parameters


def test_no_method_of_the_other_is_missing() -> None:
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert public == {*BLOCKING, "server", "revision"}


def test_callbacks_may_call_what_calls_back_as_deep_as_they_like() -> None:
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_connects_anew_and_ends() -> None:
    command = [sys.executable, "-c", FORKED, *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=True)
    assert done.stdout.splitlines() == ["UsageError", "everything", "parent"]


def test_a_client_that_is_dropped_is_closed_with_a_warning() -> None:
    client = sync.connect(COMMAND)
    client.open()
    session: Any = client.engine._session  # pyright: ignore[reportPrivateUsage]
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
