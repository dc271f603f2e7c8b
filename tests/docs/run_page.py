"""Run the Python blocks of a page in order, as a reader would: `run_page.py PAGE`.

The blocks share a module and may use `await`. A block with a title is also a file of that name. The prelude of a page
defines the names that the page takes for granted, anew for each block. The output of `print` is compared with the
comments behind the calls, except for comments with an ellipsis.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.docs.markdown import Block, blocks

_PRELUDES = Path(__file__).parent / "preludes"
_SAID = re.compile(r"\s*print\(.*\)  # (?P<said>[^…]*)\Z")


def run(code: str, path: str, line: int, module: ModuleType, runner: asyncio.Runner) -> None:
    """Run code in a module, with the file and line number of its source."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compiled = compile("\n" * (line - 1) + code, path, "exec", flags=flags, dont_inherit=True)
    made: Any = eval(compiled, module.__dict__)  # noqa: S307
    if inspect.iscoroutine(made):
        runner.run(made)


def run_block(block: Block, module: ModuleType, runner: asyncio.Runner) -> None:
    """Run a block, and compare its output with its comments. Raises `AssertionError` if they differ."""
    file = Path("block.py").resolve()
    file.write_text(block.code, encoding="utf-8")
    module.__file__ = str(file)
    printed = io.StringIO()
    with redirect_stdout(printed):
        run(block.code, str(block.page), block.line, module, runner)
    lines = iter(printed.getvalue().splitlines())
    for said in (found["said"] for line in block.code.splitlines() if (found := _SAID.match(line))):
        if said not in lines:
            raise AssertionError(f"{block}: {said!r} is not printed; the output is\n{printed.getvalue()}")


def main() -> None:
    """Run the blocks of the page that the command line names."""
    page = Path(sys.argv[1])
    module = ModuleType("page")
    sys.modules["page"] = module
    todo = [*blocks(page)]
    for block in todo:
        if block.title:
            Path(block.title).write_text(block.code, encoding="utf-8")
    with asyncio.Runner() as runner:
        prelude = _PRELUDES / f"{page.stem.replace('-', '_')}.py"
        if prelude.exists():
            run(prelude.read_text(encoding="utf-8"), str(prelude), 1, module, runner)
        given = {**module.__dict__}
        for block in todo:
            if block.language == "python" and not block.excuse:
                module.__dict__.update(given)
                run_block(block, module, runner)


if __name__ == "__main__":
    main()
