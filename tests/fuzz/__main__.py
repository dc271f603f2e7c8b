"""Fuzz targets with atheris, which follows the coverage of the code: `python -m tests.fuzz --seconds 60`.

The corpus in `tests/fuzz/corpus` is the start. What a run finds to be new goes to `.fuzz/`, which is not committed;
with `--keep` it goes to the corpus. A failure prints the path of its input, and
`python -m tests.fuzz TARGET --input FILE` repeats it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from tests.paths import ROOT

__all__: list[str] = []

_CORPUS = ROOT / "tests" / "fuzz" / "corpus"
_FOUND = ROOT / ".fuzz"
_MAX_BYTES = 4096
_MEMORY_MB = 2048
_SHOWN_CHARACTERS = 4000
_PACKAGES = ("typedmcp", "typedmcp_http", "typedmcp_schemas", "mcpspec.support")


def main() -> int:
    options = _options()
    if options.input is not None:
        return _fuzz(options.targets[0], [str(options.input)])
    if options.child:
        return _fuzz(options.targets[0], shlex.split(options.child))
    return asyncio.run(_run_all(options))


async def _run_all(options: argparse.Namespace) -> int:
    """Run each target in a process of its own, as many at a time as there are processors."""
    free = asyncio.Semaphore(os.cpu_count() or 1)

    async def run(target: str) -> bool:
        async with free:
            return await _run_target(target, options.seconds, keep=options.keep)

    return 0 if all(await asyncio.gather(*map(run, options.targets))) else 1


async def _run_target(target: str, seconds: int, *, keep: bool) -> bool:
    """Fuzz a target, print the result, and return whether nothing was found."""
    found, kept = _FOUND / target, _CORPUS / target
    found.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-max_len={_MAX_BYTES}", f"-rss_limit_mb={_MEMORY_MB}", "-timeout=20"]
    corpus = [str(kept)] if keep else [str(found), str(kept)]  # new inputs go to the first folder
    files = [f"-artifact_prefix={_FOUND}/failed-{target}-", *corpus]
    status, output = await _spawn(target, [*limits, "-print_final_stats=1", *files])
    executed = re.search(r"number_of_executed_units: +(\d+)", output)
    print(
        f"{target}: {executed[1] if executed else 'no'} inputs, {'FAILED' if status else 'nothing found'}", flush=True
    )
    if status:
        print(output[-_SHOWN_CHARACTERS:])
    return status == 0


async def _spawn(target: str, arguments: list[str]) -> tuple[int, str]:
    """Run libFuzzer in a new process. Return its exit status and its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fuzz", target, "--child", shlex.join(arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode(errors="replace")


def _fuzz(target: str, arguments: list[str]) -> int:
    """Run libFuzzer in this process, which it ends."""
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=[*_PACKAGES]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup([target, *arguments], TARGETS[target])
    atheris.Fuzz()
    return 0


def _options() -> argparse.Namespace:
    from tests.fuzz.names import NAMES

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}; the default is all")
    parser.add_argument("--seconds", type=int, default=60, help="the time for each target")
    parser.add_argument("--keep", action="store_true", help="add what is new to the corpus")
    parser.add_argument("--input", type=Path, help="repeat this input instead, with one target")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = {*options.targets} - {*NAMES}
    if unknown:
        parser.error(f"unknown target {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    if options.input and len(options.targets) != 1:
        parser.error("--input needs one target")
    options.targets = options.targets or [*NAMES]
    return options


if __name__ == "__main__":
    sys.exit(main())
