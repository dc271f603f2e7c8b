"""Validate dicts with the types of the SDKs of language models. Runs in the environment `llm`.

Reads a JSON array of `[name, value]` from standard input, and prints an array of the errors.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError

# by name: type checkers run where they are not installed
chat: Any = importlib.import_module("openai.types.chat")
responses: Any = importlib.import_module("openai.types.responses")
anthropic: Any = importlib.import_module("anthropic.types")
gemini: Any = importlib.import_module("google.genai.types")


def of_typed_dict(kind: Any) -> Callable[[object], object]:
    return TypeAdapter(kind).validate_python


CHECKS: dict[str, Callable[[object], object]] = {
    "openai tool": of_typed_dict(chat.ChatCompletionToolParam),
    "openai result": of_typed_dict(chat.ChatCompletionToolMessageParam),
    "openai-responses tool": of_typed_dict(responses.FunctionToolParam),
    "openai-responses result": of_typed_dict(responses.response_input_param.FunctionCallOutput),
    "anthropic tool": of_typed_dict(anthropic.ToolParam),
    "anthropic result": of_typed_dict(anthropic.ToolResultBlockParam),
    "gemini tool": gemini.FunctionDeclaration.model_validate,  # it forbids unknown members
    "gemini result": gemini.Part.model_validate,
}


def error_of(name: str, value: object) -> str:
    try:
        CHECKS[name](value)
    except ValidationError as error:
        return f"{name}: {error}"
    return ""


print(json.dumps([text for name, value in json.load(sys.stdin) if (text := error_of(name, value))]))
