"""Decode a tool result into msgspec and Pydantic types, and show a decode error."""

from mcpspec.v2026_07_28.exact import models, structs

RAW = b'{"resultType": "complete", "content": [{"type": "text", "text": "12 degrees, light rain"}]}'

result = structs.decode(RAW, structs.CallToolResult)
print(result.content[0])

model = models.decode(RAW, models.CallToolResult)
print(repr(model.content[0]))

try:
    structs.decode(RAW.replace(b"text", b"txet"), structs.CallToolResult)
except structs.DecodeError as error:
    print(error)
