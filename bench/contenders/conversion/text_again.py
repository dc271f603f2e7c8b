"""Encode the value, and decode the text with the types of the other revision, as one without a converter would.

There is no place for what the other revision requires, so this works only if it requires nothing more.
"""

from __future__ import annotations

from typing import Any

import mcpspec
from bench.contenders.conversion import ConversionCase, Converter, support


def make_converter(case: ConversionCase) -> Converter | None:
    types: Any = mcpspec.revision(case.to).exact.structs
    return support(lambda value: types.decode(types.encode(value), case.target), case)
