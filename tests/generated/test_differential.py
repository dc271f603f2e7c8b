"""Comparison of our types with `jsonschema` on upstream's schema: both accept and reject the same values.

Wherever one of them differs, the difference has to fall in a class that is listed here with its reason.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft7Validator, Draft202012Validator

import mcpspec
from mcpspec.support.walk import find_misplaced_nulls
from mcpspec_codegen.nodes import definitions_key
from tests import official, pairs, strategies
from tests.generated.backends import BACKENDS, PACKAGES, Backend, backend, is_list, is_object, type_tree
from tests.generated.vectors import valid_values
from tests.paths import SCHEMA

pytestmark = pytest.mark.long

_MUTANTS = 3_000
"""For each revision. At least 8,000 are required in total."""
_GENERATED = {"small": pairs.examples(15), "large": pairs.examples(5)}
"""For each definition of each revision, by the size of its schema."""
_LARGE = 4_000
_AGREEMENT = {"exact.structs": 0.995, "exact.models": 0.997}

_JUNK: tuple[Any, ...] = (None, True, 7, 1.5, "x", [], {})
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Deviation:
    """A class of values for which our types deviate from the schema on purpose."""

    reason: str
    applies: Callable[[Any], bool]


def _has_integral_float(value: Any) -> bool:
    if is_object(value):
        return any(map(_has_integral_float, value.values()))
    if is_list(value):
        return any(map(_has_integral_float, value))
    return isinstance(value, float) and value.is_integer()


def _has_request(value: Any) -> bool:
    if is_list(value):
        return any(map(_has_request, value))
    return is_object(value) and {"jsonrpc", "method", "id"} <= value.keys()


DEVIATIONS = {
    "integral float": Deviation(
        "JSON Schema counts 1.0 as an integer; JSON-RPC ids and MCP's counts are integers as written, "
        "and an `id` of 1.0 must not be taken for 1",
        _has_integral_float,
    ),
    "invalid request": Deviation(
        "to the schemas it is a notification with an undeclared member; JSON-RPC says that a notification has no id",
        _has_request,
    ),
}


@dataclass
class Tally:
    """The result of a comparison."""

    compared: int = 0
    accepted: int = 0
    differing: Counter[str] = field(default_factory=Counter[str])
    deviations: Counter[str] = field(default_factory=Counter[str])
    unexplained: list[str] = field(default_factory=list[str])


@cache
def _validator(version: str, name: str) -> Any:
    schema, key = official.patched_schema(version)
    kind = Draft7Validator if key == "definitions" else Draft202012Validator
    return kind({**schema, "$ref": f"#/{key}/{name}"})


def _compare(version: str, name: str, value: Any, backends: list[Backend], tally: Tally) -> None:
    expected = _validator(version, name).is_valid(value)
    raw = json.dumps(value).encode()
    outcomes: list[Any] = []
    tally.compared += 1
    tally.accepted += expected
    for types in backends:
        try:
            outcomes.append(type_tree(types.decode(raw, types.type(name))))
            accepted = True
        except types.module.DecodeError as error:
            outcomes.append(str(error))
            accepted = False
        if accepted != expected:
            _explain(types.name, f"{name} {raw.decode()}: schema {expected}, ours {outcomes[-1]}", value, tally)
    if outcomes[0] != outcomes[1]:
        tally.unexplained.append(f"the backends differ: {name} {raw.decode()}: {outcomes}")


def _explain(name: str, text: str, value: Any, tally: Tally) -> None:
    tally.differing[name] += 1
    classes = [title for title, deviation in DEVIATIONS.items() if deviation.applies(value)]
    tally.deviations.update(classes)
    if not classes:
        tally.unexplained.append(f"{name}: {text}")


def _judge(tally: Tally) -> None:
    assert not tally.unexplained, "\n".join(tally.unexplained[:20])
    for name in BACKENDS:
        assert 1 - tally.differing[name] / tally.compared >= _AGREEMENT[name], tally


def _originals(version: str) -> list[tuple[str, Any]]:
    values = [(vector.definition, json.loads(vector.text)) for vector in valid_values(version)]
    examples = official.examples() if version == official.EXAMPLES_VERSION else []
    return values + [(path.parent.name, json.loads(path.read_bytes())) for path in examples]


def _mutants(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield mutants of a value, each place removed or replaced by a value of another type, with descriptions."""
    for place in _places(value):
        if isinstance(place[-1], str):
            yield f"{_pattern(place)} dropped", _changed(value, place, drop=True)
        for junk in (*_JUNK, *_near(_at(value, place))):
            yield f"{_pattern(place)} = {junk!r}", _changed(value, place, junk)


def _near(value: Any) -> list[Any]:
    """List values of the same type that may be out of bounds."""
    return [] if isinstance(value, bool) or not isinstance(value, int) else [-value - 1]


def _places(value: Any, here: Path_ = ()) -> Iterator[Path_]:
    items = value.items() if is_object(value) else enumerate(value) if is_list(value) else ()
    for key, child in items:
        yield (*here, key)
        yield from _places(child, (*here, key))


def _pattern(place: Path_) -> str:
    return ".".join("*" if isinstance(part, int) else part for part in place)


def _at(value: Any, place: Path_) -> Any:
    for part in place:
        value = value[part]
    return value


def _changed(value: Any, place: Path_, junk: Any = None, *, drop: bool = False) -> Any:
    value = copy.deepcopy(value)
    holder = _at(value, place[:-1])
    if drop:
        del holder[place[-1]]
    else:
        holder[place[-1]] = junk
    return value


@pytest.mark.parametrize("version", mcpspec.VERSIONS)
def test_mutants_are_accepted_and_rejected_as_by_the_schema(version: str) -> None:
    unique = {(name, change): mutant for name, value in _originals(version) for change, mutant in _mutants(value)}
    chosen = random.Random(version).sample(sorted(unique), min(_MUTANTS, len(unique)))
    tally = Tally()
    backends = [backend(version, name) for name in BACKENDS]
    for name, change in chosen:
        _compare(version, name, unique[name, change], backends, tally)
    print(f"{version}: {tally.compared} mutants, {tally.accepted} valid, differing {dict(tally.differing)}")
    assert tally.compared * len(mcpspec.VERSIONS) >= 8_000
    assert 0.1 < tally.accepted / tally.compared < 0.9
    _judge(tally)


def test_no_accepted_deviation_is_stale() -> None:
    """Each class of deviation still contains a value for which our types deviate from the schema."""
    types = backend(mcpspec.LATEST, "exact.structs")
    assert DEVIATIONS.keys() == {"integral float", "invalid request"}
    assert _validator(mcpspec.LATEST, "RequestId").is_valid(1.0)
    with pytest.raises(types.module.DecodeError):
        types.decode(b"1.0", types.type("RequestId"))
    request = {"jsonrpc": "2.0", "id": None, "method": "x"}
    assert _validator(mcpspec.LATEST, "JSONRPCMessage").is_valid(request)
    with pytest.raises(types.module.DecodeError):
        types.decode(json.dumps(request).encode(), types.type("JSONRPCMessage"))


# Plain types


_SCHEMAS = ("inputSchema", "outputSchema", "requestedSchema")
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": mcpspec.LATEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/subscriptionId": "1",
}

Leniency = Callable[[str, Any, Any], Any]
"""Given the name of a definition, its plain type and a value, return the value as strict readers want it."""


def _drop_null_members(_name: str, kind: Any, value: Any) -> Any:
    value = copy.deepcopy(value)
    for found, wire in [*find_misplaced_nulls(value, kind)]:
        del found.value[wire]
    return value


def _fill_in_objects(name: str, _kind: Any, value: Any) -> Any:
    if is_list(value):
        return [_fill_in_objects("", None, item) for item in value]
    if not is_object(value):
        return value
    if name.endswith("MetaObject"):
        return _META
    known = {**dict.fromkeys(_SCHEMAS, _SCHEMA), "_meta": _META}
    return {
        key: known[key] if key in known and is_object(child) else _fill_in_objects("", None, child)
        for key, child in value.items()
    }


LENIENCIES: dict[str, tuple[str, Leniency]] = {
    "null is absence": (
        "peers write `null` for members that may be absent, and Python programs mean the same by both",
        _drop_null_members,
    ),
    "plain objects": (
        "JSON Schemas and `_meta` are dicts, which programs pass on or hand to other libraries; exact types check them",
        _fill_in_objects,
    ),
}
"""What plain types accept although the schema does not: title → reason, and the same value for strict readers."""


@pytest.mark.parametrize("version", mcpspec.VERSIONS)
def test_plain_types_accept_more_than_the_schema_for_stated_reasons_only(version: str) -> None:
    unique = {(name, change): mutant for name, value in _originals(version) for change, mutant in _mutants(value)}
    chosen = random.Random(f"plain {version}").sample(sorted(unique), min(_MUTANTS, len(unique)))
    libraries = [import_module(f"{PACKAGES[version]}.{name}") for name in ("structs", "models")]
    lenient: Counter[str] = Counter()
    for name, change in chosen:
        value = unique[name, change]
        expected = _validator(version, name).is_valid(value)
        outcomes = [_accepts(types, name, value) for types in libraries]
        assert outcomes[0] == outcomes[1], (name, change, value, outcomes)
        if outcomes[0] and not expected:
            kind = getattr(libraries[0], name)
            forms = {title: strict(name, kind, value) for title, (_, strict) in LENIENCIES.items()}
            forms["both"] = _fill_in_objects(name, kind, forms["null is absence"])
            titles = [title for title, form in forms.items() if _validator(version, name).is_valid(form)]
            assert titles, (name, change, value)
            lenient[titles[0]] += 1
        elif expected and not outcomes[0]:
            assert any(deviation.applies(value) for deviation in DEVIATIONS.values()), (name, change, value)
    assert lenient.keys() >= LENIENCIES.keys(), lenient


def _accepts(types: Any, name: str, value: Any) -> bool:
    try:
        types.decode(json.dumps(value).encode(), getattr(types, name))
    except types.DecodeError:
        return False
    return True


def _leaves_envelope_to_base(version: str) -> bool:
    schema = json.loads((SCHEMA / f"{version}.json").read_bytes())
    return "jsonrpc" not in schema[definitions_key(schema)]["CallToolRequest"]["properties"]


@pytest.mark.parametrize("version", [v for v in mcpspec.VERSIONS if _leaves_envelope_to_base(v)])
@pytest.mark.parametrize("name", BACKENDS)
def test_inherited_envelope(version: str, name: str) -> None:
    """Envelope members that older messages leave to their base types are checked like those."""
    types = backend(version, name)
    for base, message in (("JSONRPCRequest", "PingRequest"), ("JSONRPCNotification", "InitializedNotification")):
        method = {"PingRequest": "ping", "InitializedNotification": "notifications/initialized"}[message]
        whole = {"jsonrpc": "2.0", "method": method, "params": {"_meta": {"progressToken": 1}}, "id": 1}
        for key in ("jsonrpc", "id", "params"):
            for junk in _JUNK:
                value = {**whole, key: junk}
                expected = _validator(version, base).is_valid(value)
                try:
                    types.decode(json.dumps(value).encode(), types.type(message))
                    accepted = True
                except types.module.DecodeError:
                    accepted = False
                assert accepted == expected, (message, value)


@pytest.mark.parametrize("version", mcpspec.VERSIONS)
def test_generated_instances_are_accepted(version: str) -> None:
    tally = Tally()
    backends = [backend(version, name) for name in BACKENDS]
    for name in strategies.definitions(version):
        schema = strategies.narrow(version, name)
        size = "large" if len(json.dumps(schema)) > _LARGE else "small"

        @settings(
            max_examples=_GENERATED[size],
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=[*cast(Any, HealthCheck)],
            phases=[Phase.generate],
        )
        @given(value=strategies.instances(version, name))
        def compare(name: str, value: Any) -> None:
            _compare(version, name, value, backends, tally)

        compare(name)
    assert tally.compared >= pairs.examples(1_000)
    print(f"{version}: {tally.compared} instances, differing {dict(tally.differing)}")
    _judge(tally)
