"""The soak: a leak is found among noise, noise alone is none, and a hang ends."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from tests import soak
from tests.cases import each
from tests.paths import ROOT


def samples(objects_per_minute: float, bytes_per_minute: float) -> list[soak.Sample]:
    """Return twelve samples of ninety seconds, with noise and an outlier."""
    rng = random.Random(1)
    found: list[soak.Sample] = []
    for number in range(12):
        minutes = number * 90 / 11 / 60
        noise = rng.randrange(-200, 200) + (50_000 if number == 5 else 0)
        memory = 60_000_000 + bytes_per_minute * minutes + noise * 200
        found.append(soak.Sample(minutes * 60, int(90_000 + objects_per_minute * minutes + noise), int(memory)))
    return found


@each(
    "objects, size, status",
    [(0, 0, 0), (-5000, 0, 0), (3000, 0, 1), (0, 6 << 20, 1), (3000, 6 << 20, 1)],
    ids=["noise", "falling", "objects", "memory", "both"],
)
def test_a_rise_above_the_bound_fails(objects: float, size: float, status: int) -> None:
    assert soak.judge({"server": samples(objects, size)}) == status


HANGING = """
import asyncio, subprocess, sys
from contextlib import suppress
from tests.soak import ends_within

async def ignore_cancellation():
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], text=True)
print(server.pid, flush=True)
runner = asyncio.Runner()
with ends_within(1, runner.get_loop(), server), runner:
    runner.run(asyncio.wait_for(ignore_cancellation(), 0.1))
"""


def test_a_soak_that_hangs_ends_with_the_name_of_what_hangs_and_without_its_server() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "has not ended after 1 s" in done.stderr
    assert "in ignore_cancellation" in done.stderr
    stat = Path(f"/proc/{done.stdout.strip()}/stat")
    deadline = time.monotonic() + 60
    while stat.exists() and stat.read_text(encoding="ascii").split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
