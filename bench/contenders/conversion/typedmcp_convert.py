"""`mcpspec.convert`, which names what is lost."""

from __future__ import annotations

import mcpspec
from bench.contenders.conversion import ConversionCase, Converter


def make_converter(case: ConversionCase) -> Converter:
    return lambda value: mcpspec.convert(value, case.to, meta=case.meta).value
