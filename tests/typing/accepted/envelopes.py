"""A typed result of any revision, in either library, fits the envelope of a response."""

from __future__ import annotations

from typing import assert_type

from mcpspec.support.envelope import Frame, RequestFrame, ResultFrame, encode_frame, parse_frame
from mcpspec.v2025_06_18.exact import models as models_2025
from mcpspec.v2025_06_18.exact import structs as structs_2025
from mcpspec.v2026_07_28 import models, structs


def respond(line: bytes) -> bytes:
    frame = assert_type(parse_frame(line), Frame)
    assert isinstance(frame, RequestFrame)
    results = (
        structs.encode(structs.CallToolResult(content=[structs.TextContent(text="x")])),
        models.encode(models.CallToolResult(content=[models.TextContent(text="x")])),
        structs_2025.encode(structs_2025.CallToolResult(content=[structs_2025.TextContent(text="x")])),
        models_2025.encode(models_2025.CallToolResult(content=[models_2025.TextContent(text="x")])),
    )
    return b"\n".join(encode_frame(ResultFrame(id=frame.id, result=result)) for result in results)
