"""Types are used for the first time in several threads at once, when nothing has been used before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.generated.backends import FACES

RACE = """
import sys
from importlib import import_module
from threading import Barrier, Thread

THREADS = 8
TOOL = {"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
CONTENT = [{"type": "text", "text": "a"}, {"type": "resource", "resource": {"uri": "a:b", "blob": ""}}]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": META, "name": "a"}}
RESULT = {"resultType": "complete", "content": CONTENT}
VALUES = {
    "Tool": TOOL, "ContentBlock": CONTENT[1], "CallToolResult": RESULT, "ServerResult": RESULT, "ClientRequest": CALL,
    "JSONRPCMessage": CALL, "CallToolResultResponse": {"jsonrpc": "2.0", "id": 1, "result": RESULT},
    "CreateMessageRequestParams": {"messages": [{"role": "user", "content": CONTENT[:1]}], "maxTokens": 1},
}

def schema_of(kind):
    if sys.argv[1].endswith("structs"):
        from msgspec.json import schema
        from mcpspec.support.structs import schema_hook
        return schema(kind, schema_hook=schema_hook)
    return kind.model_json_schema()

def use(types):
    yield types.TextContent(text="a")
    yield types.Icon(src="a").__replace__(mime_type="b")
    yield schema_of(types.GetPromptResult)
    for name, value in VALUES.items():
        kind = getattr(types, name)
        made = types.from_builtins(value, kind)
        text = types.encode(made)
        yield made
        yield text
        yield types.validate(types.decode(text, kind))
        try:
            types.decode(b'{"resultType": 1, "name": 1, "type": 1, "method": 1}', kind)
        except types.DecodeError as error:
            yield str(error)

def run(index):
    start.wait()
    found[index] = list(use(import_module(sys.argv[1])))

sys.setswitchinterval(1e-6)
for attempt in range(int(sys.argv[2])):
    for name in [name for name in sys.modules if name.split(".")[0] == "mcpspec"]:
        del sys.modules[name]
    start = Barrier(THREADS)
    found = {}
    threads = [Thread(target=run, args=(index,)) for index in range(THREADS)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    expected = list(use(import_module(sys.argv[1])))
    assert len(expected) == 35, len(expected)
    assert len(found) == THREADS, f"only {len(found)} threads have finished"
    for each in found.values():
        assert each == expected
        assert [type(value) for value in each] == [type(value) for value in expected]
"""
"""Use types in all threads, a number of times. Each time they are imported anew."""


@pytest.mark.parametrize(("face", "attempts"), [(face, 5 if face.endswith("structs") else 3) for face in FACES])
def test_the_first_use_may_be_in_several_threads_at_once(face: str, attempts: int) -> None:
    run = [sys.executable, "-W", "error", "-c", RACE, f"mcpspec.v2026_07_28.{face}", str(attempts)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
