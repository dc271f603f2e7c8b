"""Convert values to the types of the official SDK and to ours, and print the differences as a JSON document.

    python sdk_types.py < VALUES

`VALUES` is a JSON list of `[definition, case, value]`. It runs in an environment of its own, with `mcp` 1.x or 2.x.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, cast

from pydantic import BaseModel, RootModel, ValidationError

from mcpspec import compat
from mcpspec.compat import sdk

types: Any = importlib.import_module("mcp.types")  # by name: type checkers run where it is not installed

RENAMED = {
    "JSONRPCErrorResponse": ["JSONRPCError"],
    "JSONRPCResultResponse": ["JSONRPCResponse"],
    "ElicitationCompleteNotification": ["ElicitCompleteNotification"],
    "CreateMessageResult": ["CreateMessageResult", "CreateMessageResultWithTools"],
    "ResourceReference": ["ResourceTemplateReference"],
}
"""The SDK's names for definitions of the schema."""


@cache
def classes() -> dict[str, type[BaseModel]]:
    """Return the SDK's classes by name, without the parametrized ones."""
    found = {name: getattr(types, name) for name in dir(types) if "[" not in name}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__.startswith("mcp")
    }


def models(value: Any) -> Iterator[BaseModel]:
    """List the models in a value, including itself."""
    members: list[Any] = []
    if isinstance(value, BaseModel):
        yield value
        members = [*value.__dict__.values(), *(value.model_extra or {}).values()]
    elif isinstance(value, dict):
        members = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, list):
        members = value  # pyright: ignore[reportUnknownVariableType]
    for item in members:
        yield from models(item)


def dump(value: BaseModel) -> str:
    """Return JSON text with the members that are set."""
    return json.dumps(value.model_dump(mode="json", by_alias=True, exclude_unset=True), sort_keys=True)


def differences(theirs: BaseModel, value: Any) -> Iterator[str]:
    """Describe the differences after conversions in both directions."""
    ours = sdk.from_sdk(theirs)
    if type(ours) is not getattr(compat, type(theirs).__name__):
        yield f"the class is {type(ours)}"
    foreign = [type(part).__name__ for part in models(ours) if part.__class__.__module__.startswith("mcp.")]
    if foreign:
        yield f"contains objects of the SDK: {foreign}"
    back = sdk.to_sdk(ours)
    if type(back) is not type(theirs) or back != theirs:
        yield f"back: {back!r} != {theirs!r}"
    if dump(back) != dump(theirs):
        yield f"set: {dump(back)} != {dump(theirs)}"
    direct = sdk.to_sdk(getattr(compat, type(theirs).__name__).model_validate(value))
    if direct != theirs:
        yield f"decoded by us: {direct!r} != {theirs!r}"


def validated(names: list[str], value: Any) -> BaseModel | None:
    """Return an object of the first class that accepts a value, without the root model of a union."""
    known = classes()
    for name in filter(known.__contains__, names):
        with suppress(ValidationError):
            model: Any = known[name].model_validate(value)
            return cast("BaseModel", getattr(model, "root", model))
    return None


def main() -> dict[str, Any]:
    known = classes()
    seen: set[str] = set()
    rejected: list[str] = []
    found: dict[str, str] = {}
    checked = 0
    for definition, case, value in json.load(sys.stdin):
        names = [name for name in RENAMED.get(definition, [definition]) if name in known]
        theirs = validated(names, value)
        if theirs is None:
            rejected += [f"{name} {case}" for name in names[:1]]
            continue
        checked += 1
        seen |= {type(part).__name__ for part in models(theirs)}
        if problems := list(differences(theirs, value)):
            found[f"{definition} {case}"] = "; ".join(problems)
    wanted = {name for name, model in known.items() if not issubclass(model, RootModel)}
    return {"checked": checked, "rejected": rejected, "unseen": sorted(wanted - seen), "differences": found}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
