"""msgspec alone: to plain JSON, and from there to the type of the other revision, which drops what it does not know.

Newer results require members that older ones do not have, so their defaults are added.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bench.contenders.conversion import ConversionCase, Converter, support
from mcpspec.support.structs import dec_hook

_DEFAULTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def make_converter(case: ConversionCase) -> Converter | None:
    def convert(value: Any) -> Any:
        plain = {**_DEFAULTS, **msgspec.to_builtins(value)}
        if case.meta is not None:
            plain["params"] = {**plain["params"], "_meta": case.meta}
        return msgspec.convert(plain, case.target, dec_hook=dec_hook)

    return support(convert, case)
