"""Soak a gateway: `python -m tests.typedmcp_gateway.soak --clients 1000 --servers 20 --seconds 600` (Linux).

The gateway, its servers and its clients are processes of their own. Servers are killed and stopped all the time; the
gateway restarts those over standard input and output, and the soak those over HTTP. It fails if a call has no end, if
the memory of the gateway rises, if the gateway does not end by itself, or if a process is left.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import typedmcp
from tests.ports import reserved_port
from tests.serving import serving_http
from tests.soak import MAX_BYTES_PER_MINUTE, Sample, slope
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp_gateway import Gateway

__all__ = ["Outcome", "find_faults", "run_soak"]

_DEADLINE: Final = 120.0
"""Seconds after which a call counts as one without an end. The gateway and the clients give up far earlier."""
_CALL_SECONDS: Final = 60.0
_MAX_PROCESSES: Final = 50
"""Clients that may have a process of their own each."""
_WARM_UP: Final = 0.25
"""The part of the time in which memory may rise."""
_END_SECONDS: Final = 30.0
"""Seconds that the gateway has to end."""
_VARIABLE: Final = re.compile(r"'[^']*'|https?://\S+|\b\d[\d.]*")
_SERVER: Final = Path(__file__).parents[1] / "servers" / "mortal_server.py"


class Outcome(NamedTuple):
    """What a soak has measured."""

    calls: int
    endless: int
    """Calls that had not ended after two minutes."""
    wrong: int
    """Results that are not the called tool's."""
    failures: dict[str, int]
    """Failed calls by kind."""
    seconds: dict[str, float]
    """The duration of calls: the median, that of the 99th percentile, and the longest."""
    killed: int
    stopped: int
    memory: dict[str, float]
    """Megabytes of the gateway: at the start, after a quarter of the time, at most, at the end; the rise a minute."""
    left: int
    """Processes that were left."""
    ended: bool
    """True if the gateway ended by itself."""


def find_faults(outcome: Outcome) -> list[str]:
    """Return what is wrong with an outcome."""
    faults = {
        "calls have no end": outcome.endless,
        "results are wrong": outcome.wrong,
        "processes are left": outcome.left,
        "MB a minute: the memory of the gateway rises": outcome.memory["rise"] > MAX_BYTES_PER_MINUTE / 2**20,
        "the gateway did not end": not outcome.ended,
        "no call had a result": outcome.calls <= sum(outcome.failures.values()),
        "no server was killed": not outcome.killed,
    }
    return [f"{text} ({found})" for text, found in faults.items() if found]


# The process of the gateway


class _Target(NamedTuple):
    name: str
    revision: str
    port: int | None
    """The port of a server over HTTP; None for one over standard input and output."""

    def command(self, folder: str) -> list[str]:
        return [sys.executable, str(_SERVER), self.revision, folder, *([] if self.port is None else [str(self.port)])]


def _targets(options: argparse.Namespace) -> list[_Target]:
    """Return the servers: half of those over HTTP, and a tenth of the others, are legacy ones.

    Each client needs a process of its own of a legacy server over standard input and output, so many clients have none.
    """
    ports = [int(port) for port in options.ports.split(",") if port]
    targets = [_Target(f"h{i}", LEGACY[0] if i % 2 else MODERN_REVISION, port) for i, port in enumerate(ports)]
    legacy = range(1 if options.clients <= _MAX_PROCESSES else options.servers, options.servers, 10)
    others = range(options.servers - len(ports))
    return [*targets, *(_Target(f"s{i}", LEGACY[-1] if i in legacy else MODERN_REVISION, None) for i in others)]


async def _serve_gateway(folder: str, targets: list[_Target], clients: int) -> None:
    servers = {
        each.name: {"url": f"http://127.0.0.1:{each.port}/mcp"} if each.port else each.command(folder)
        for each in targets
    }
    connections = 4 * clients + 100  # a session for each client at each legacy server, and subscriptions take half
    gateway = Gateway(servers=servers, max_connections=connections, answer_seconds=20.0, connect={"timeout": 15.0})
    limits = typedmcp.Limits(client_share_percent=100)  # all clients have one address
    async with serving_http(gateway.asgi(limits=limits, on_diagnostic=lambda _: None)) as url:
        print(url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until its parent wants the end


# The process of the clients


class _Load:
    """The clients, and what became of their calls."""

    def __init__(self, url: str, targets: list[_Target], seconds: float, pause: float) -> None:
        self.url, self.targets, self.pause = url, targets, pause
        self.end = time.monotonic() + seconds
        self.outcomes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.durations: list[float] = []

    async def use(self, number: int, delay: float) -> None:
        """Use the servers as one client, and connect again if the gateway does not answer."""
        rng, root = random.Random(number), f"file:///{number}"
        await asyncio.sleep(delay)
        while time.monotonic() < self.end:
            try:
                revisions = [MODERN_REVISION if number % 2 else LEGACY[0]]
                options: Any = {"revisions": revisions, "roots": [root], "timeout": _CALL_SECONDS}
                options |= {"max_time": _CALL_SECONDS, "name": f"c{number}"}
                async with typedmcp.connect(f"{self.url}/mcp", **options) as client:
                    while time.monotonic() < self.end:
                        await self._call(client, rng, number, root)
                        await asyncio.sleep(min(rng.expovariate(1 / self.pause), max(0, self.end - time.monotonic())))
            except typedmcp.Error as error:
                self.failures[f"connect: {_kind_of(error)}"] += 1
                await asyncio.sleep(1)

    async def _call(self, client: typedmcp.Client, rng: random.Random, number: int, root: str) -> None:
        target = rng.choice(self.targets)
        tool = rng.choices(["quick", "slow", "ask"], [6, 2, 2])[0]
        self.outcomes["calls"] += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(_DEADLINE):
                result = await client.call_tool(f"{target.name}_{tool}")
        except TimeoutError:
            self.outcomes["endless"] += 1
        except typedmcp.Error as error:
            self.failures[_kind_of(error)] += 1
        else:
            self.outcomes["wrong"] += typedmcp.text_of(result) != (root if tool == "ask" else tool)
        self.durations.append(time.monotonic() - began)


def _kind_of(error: Exception) -> str:
    """Return the kind of a failure, without names and numbers."""
    return f"{type(error).__name__}: {_VARIABLE.sub('…', str(error))}"[:140]


async def _run_clients(url: str, targets: list[_Target], clients: int, seconds: float, rate: float) -> None:
    load = _Load(url, targets, seconds, max(0.05, clients / rate))
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(load.use(number, number / clients * min(seconds / 10, 30)))
    durations = sorted(load.durations) or [0.0]
    picked = {"median": 0.5, "99 %": 0.99, "longest": 1.0}
    print(
        json.dumps(
            {
                **load.outcomes,
                "failures": load.failures,
                "seconds": {n: round(durations[int(p * (len(durations) - 1))], 2) for n, p in picked.items()},
            }
        )
    )


# The parent


class _Disturber:
    """Kills and stops servers, and starts those over HTTP again."""

    def __init__(self, folder: Path, targets: list[_Target], pause: float) -> None:
        self.folder, self.targets, self.pause = folder, targets, pause
        self.killed = self.stopped = 0
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start_servers(self) -> None:
        """Start each server over HTTP that does not run."""
        for target in self.targets:
            process = self.processes.get(target.name)
            if target.port and (process is None or process.poll() is not None):
                self.processes[target.name] = subprocess.Popen(target.command(str(self.folder)))

    async def disturb(self) -> None:
        """Kill or stop a server again and again."""
        rng = random.Random(0)
        while True:
            await asyncio.sleep(self.pause)
            if not (found := running(self.folder)):
                continue
            pid = rng.choice(found)
            with suppress(ProcessLookupError):
                if rng.random() < 0.7:
                    os.kill(pid, signal.SIGKILL)
                    self.killed += 1
                else:
                    os.kill(pid, signal.SIGSTOP)
                    self.stopped += 1
                    await asyncio.sleep(rng.uniform(0.5, 2 * self.pause))
                    os.kill(pid, signal.SIGCONT)
            await asyncio.to_thread(self.start_servers)

    def close(self) -> None:
        """End the servers over HTTP."""
        for process in self.processes.values():
            process.kill()
            process.wait()


def running(folder: Path) -> list[int]:
    """Return the processes of servers that were started and still run."""
    return [int(file.name) for file in folder.iterdir() if file.name.isdigit() and _is_running(int(file.name))]


def _is_running(pid: int) -> bool:
    """Return whether a process runs, and is no zombie."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


async def _sample(pid: int, samples: list[Sample], pause: float) -> None:
    while True:
        with suppress(OSError):
            pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
            samples.append(Sample(time.monotonic(), 0, pages * resource.getpagesize()))
        await asyncio.sleep(pause)


def _describe_memory(samples: list[Sample]) -> dict[str, float]:
    steady = samples[int(len(samples) * _WARM_UP) :]
    of = {"start": samples[0], "warm": steady[0], "end": samples[-1]}
    found = {name: round(sample.memory / 2**20, 1) for name, sample in of.items()}
    found["most"] = round(max(sample.memory for sample in samples) / 2**20, 1)
    rise = slope(steady, lambda sample: sample.memory) if len(steady) > 1 else 0.0
    return {**found, "rise": round(rise / 2**20, 2)}


def _arguments(mode: str, options: argparse.Namespace, *more: str) -> list[str]:
    numbers = [f"--{name}={getattr(options, name)}" for name in ("clients", "servers", "seconds", "rate", "disturb")]
    return [sys.executable, "-m", "tests.typedmcp_gateway.soak", f"--mode={mode}", *numbers, *more]


async def run_soak(options: argparse.Namespace) -> Outcome:
    """Run a soak, and return what it has measured."""
    pipe = subprocess.PIPE
    with tempfile.TemporaryDirectory() as name, ExitStack() as held:
        ports = [held.enter_context(reserved_port()) for _ in range(min(4, options.servers // 2))]
        options.ports = ",".join(map(str, ports))
        place = (f"--ports={options.ports}", f"--folder={name}")
        disturber = _Disturber(Path(name), _targets(options), options.disturb)
        disturber.start_servers()
        gateway = await asyncio.create_subprocess_exec(
            *_arguments("gateway", options, *place), stdin=pipe, stdout=pipe, cwd=Path.cwd()
        )
        assert gateway.stdout
        url = (await gateway.stdout.readline()).decode().strip()
        samples: list[Sample] = []
        watching = [
            asyncio.create_task(_sample(gateway.pid, samples, min(5.0, options.seconds / 20))),
            asyncio.create_task(disturber.disturb()),
        ]
        clients = await asyncio.create_subprocess_exec(
            *_arguments("clients", options, *place, f"--url={url}"), stdout=pipe
        )
        found = json.loads((await clients.communicate())[0])
        for task in watching:
            task.cancel()
        await asyncio.wait(watching)
        for pid in running(Path(name)):  # one that is stopped cannot end
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        ended = await _end(gateway)
        disturber.close()
        await asyncio.sleep(1)
        left = len(running(Path(name)))
    return Outcome(
        found.get("calls", 0), found.get("endless", 0), found.get("wrong", 0), found["failures"], found["seconds"],
        disturber.killed, disturber.stopped, _describe_memory(samples), left, ended,
    )  # fmt: skip


async def _end(gateway: asyncio.subprocess.Process) -> bool:
    """Ask the gateway to end. Return whether it did so in time."""
    assert gateway.stdin
    gateway.stdin.close()
    try:
        async with asyncio.timeout(_END_SECONDS):
            return await gateway.wait() == 0
    except TimeoutError:
        gateway.kill()
        await gateway.wait()
        return False


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.typedmcp_gateway.soak", description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=60, help="calls in a second, of all clients")
    parser.add_argument("--disturb", type=float, default=4, help="seconds between two killed or stopped servers")
    for name in ("mode", "ports", "folder", "url"):
        parser.add_argument(f"--{name}", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> int:
    options = parse_options(sys.argv[1:])
    if options.mode:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        targets = _targets(options)
        if options.mode == "gateway":
            asyncio.run(_serve_gateway(options.folder, targets, options.clients))
        else:
            asyncio.run(_run_clients(options.url, targets, options.clients, options.seconds, options.rate))
        return 0
    outcome = asyncio.run(run_soak(options))
    print(json.dumps(outcome._asdict(), indent=1))
    faults = find_faults(outcome)
    print(*faults, sep="\n", end="\n" * bool(faults))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
