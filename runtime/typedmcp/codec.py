"""Frames to typed messages of a revision, and back.

A codec knows one revision: msgspec's, or Pydantic's, which decodes straight into the `models` types. Both give what
the dialect has for the parameters, and take what it has for the results, so that a handler never learns which
revision was on the wire. What is compiled for a method is compiled when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, Literal, TypeAlias, Union, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpspec._support.methods import Method
from mcpspec._support.objects import is_object, leaves
from mcpspec._support.structs import dec_hook, from_builtins, may_have_lost
from typedmcp import dialect
from typedmcp.backends import as_struct, models, models_methods
from typedmcp.edge.convert import Converter, Lost
from typedmcp.edge.revisions import DIALECT, methods, types
from typedmcp.edge.rules import down, up
from typedmcp.errors import UsageError
from typedmcp.wire import RequestId

__all__ = [
    "Backend", "Codec", "Entry", "Notification", "Response", "codec_for", "encode_into", "encoder",
    "error_bytes", "unknown",
]  # fmt: skip

Backend: TypeAlias = Literal["msgspec", "pydantic"]
"""The library whose types handlers get."""

D = dialect.structs

NAMED: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods whose requests are about something that has a name, each with the parameter that says it."""


class Entry:
    """What a codec knows of one method."""

    def __init__(self, method: Method[Any, Any], revision: str) -> None:
        self.method: str = method.name
        self.header: bytes = method.name.encode()
        """The method as the header of a request over HTTP has it."""
        self.handler: str = method.handler
        self.is_request: bool = method.kind == "request"
        self.names: str | None = NAMED.get(method.name)
        """The member of its parameters that says what it is about."""
        self.takes_input: bool = any(kind.__name__ == "InputRequiredResult" for kind in _results(method))
        self._record = method
        self._revision = revision
        self.downs: dict[type, Converter | None] = {}
        """The converters of results, by their class, as far as they have been needed."""

    def up(self, params: Any, meta: Any) -> Any:
        """The parameters of the dialect, with this `_meta`. Replaced by what it compiles."""
        self.up = self._compile_up()  # type: ignore[assignment, method-assign]
        return self.up(params, meta)

    def down(self, result: object, lost: Lost) -> Any:
        """What is encoded for a result of the dialect, without the server's name.

        Raises `UsageError` for what is no result of the method.
        """
        try:
            convert = self.downs[type(result)]
        except KeyError:
            convert = self.downs[type(result)] = self._compile_down(type(result))
        return result if convert is None else convert(result, lost)

    def _compile_up(self) -> Callable[[Any, Any], Any]:
        raise NotImplementedError

    def _compile_down(self, kind: type) -> Converter | None:
        raise NotImplementedError

    def _expected(self, kind: type) -> type:
        """The result type that a class is, or is derived from."""
        known = _results(self._record)
        found = next((result for result in known if issubclass(kind, result)), None)
        if found is None and known:
            names = " or ".join(result.__name__ for result in known)
            raise UsageError(f"the handler of {self.method} returned {kind.__name__}, expected {names}")
        return kind if found is None else found


def _results(method: Method[Any, Any]) -> list[type]:
    """The dialect's results of a method, in the library that the method is of; none where the dialect lacks it."""
    table = models_methods() if method.message.__module__.endswith(".models") else dialect.methods
    known = table.CLIENT_REQUESTS.get(method.name)
    return [] if known is None else leaves(known.result)


class _Unknown(Entry):
    def __init__(self, method: str, *, is_request: bool) -> None:
        self.method, self.handler, self.is_request, self.takes_input = method, "fallback", is_request, False
        self.header, self.names = method.encode(errors="replace"), None
        self.downs: dict[type, Converter | None] = {}

    def down(self, result: object, lost: Lost) -> Any:  # noqa: ARG002  # nothing is known of it
        if is_object(result) or isinstance(result, msgspec.Struct | Raw) or hasattr(result, "model_dump"):
            return result
        raise UsageError(f"the handler of {self.method} returned {type(result).__name__}, expected an object")


def unknown(method: str, *, is_request: bool) -> Entry:
    """The entry of a method that is not the protocol's: its parameters and its result go as they are."""
    return _Unknown(method, is_request=is_request)


class _Never(msgspec.Struct, tag_field="method", tag="\0"):
    """What no message is. msgspec asks for a tag only where it has to choose: a second type makes it ask."""


class Codec:
    """Reads the requests and notifications of clients on one revision.

    `decode` gives a message for a line, and raises `msgspec.MsgspecError`, `ValueError` or `RecursionError` for any
    other line. `forms` has the entry for the class of a message. A message has `params`, and an `id` if it is a
    request; parameters have `meta`, the bytes of their `_meta`, if there is one.
    """

    def __init__(self, records: list[Method[Any, Any]], forms: dict[type, Entry]) -> None:
        self.decode: Callable[[Any], Any] = self._decoder(Union[tuple(forms)])  # noqa: UP007
        self.forms = forms
        self.entries: dict[str, Entry] = {entry.method: entry for entry in forms.values()}
        self._exact = {record.name: record.params for record in records}

    def reader(self, method: str) -> tuple[Callable[[Any], Any], Entry]:
        """What decodes the messages of one method and raises for those of others, and its entry.

        Raises `KeyError` for a method that the revision does not have.
        """
        entry = self.entries[method]
        form = next(form for form, known in self.forms.items() if known is entry)
        return self._decoder(Union[form, _Never]), entry  # noqa: UP007

    def _decoder(self, kind: Any) -> Callable[[Any], Any]:
        return msgspec.json.Decoder(kind, dec_hook=dec_hook).decode

    def check(self, method: str, value: Any) -> None:
        """Raises `DecodeError` where plain parameters are not what the revision takes."""
        from_builtins(value, self._exact[method])


@cache
def codec_for(revision: str, backend: Backend = "msgspec") -> Codec:
    """The codec for what clients send on a revision."""
    if backend == "msgspec":
        records = _records(methods(revision))
        return Codec(records, {_form(record, _params(record)): _StructEntry(record, revision) for record in records})
    records = _records(import_module(f"mcpspec.v{revision.replace('-', '_')}.models_methods"))
    return _ModelCodec(records, {_form(record, Raw): _ModelEntry(record, revision) for record in records})


def _records(module: Any) -> list[Method[Any, Any]]:
    return [*module.CLIENT_REQUESTS.values(), *module.CLIENT_NOTIFICATIONS.values()]


def _form(method: Method[Any, Any], params: Any) -> type[msgspec.Struct]:
    """A message as it has to be on every revision: JSON-RPC's envelope, found by its method."""
    needs = method.params_required
    fields: list[Any] = [
        ("jsonrpc", Literal["2.0"]),
        ("params", params if needs else params | UnsetType, msgspec.NODEFAULT if needs else UNSET),
    ]
    if method.kind == "request":
        fields.append(("id", RequestId))
    return msgspec.defstruct("Message", fields, kw_only=True, tag_field="method", tag=method.name)


# On msgspec


@cache
def _params(method: Method[Any, Any]) -> Any:
    """The type of the parameters with `_meta` left as bytes: it is the same in most requests, and decoded once."""
    kind: Any = method.params
    if not _is_struct(kind):
        return kind
    hints = get_type_hints(kind, include_extras=True)
    fields: list[Any] = []
    for f in msgspec.structs.fields(kind):
        if f.encode_name == "_meta":
            fields.append((f.name, Raw | UnsetType, msgspec.field(name="_meta", default=UNSET)))
        else:
            default = msgspec.NODEFAULT if f.required else UNSET
            fields.append((f.name, hints[f.name], msgspec.field(name=f.encode_name, default=default)))
    return msgspec.defstruct(kind.__name__, fields, kw_only=True)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


class _StructEntry(Entry):
    def _compile_up(self) -> Callable[[Any, Any], Any]:
        known = dialect.methods.METHODS.get(self.method)
        target: Any = None if known is None or known.params is NoneType else known.params
        source = _params(self._record)
        if target is None:
            return lambda params, _meta: params
        has_meta = "RequestMetaObject" in str(get_type_hints(target).get("meta"))
        if not _is_struct(source):  # nothing but open: only its `_meta` is the dialect's
            return lambda _params, meta: target(meta=meta) if has_meta else target()
        if not has_meta:
            return self._compile_notice(source, target)
        make = up(self._revision).with_meta(source, target)
        if self._record.params_required:
            return make
        return lambda params, meta: target(meta=meta) if params is UNSET else make(params, meta)

    def _compile_notice(self, source: Any, target: Any) -> Callable[[Any, Any], Any]:
        """For notifications: their `_meta` is their own, not that of a request."""
        make = up(self._revision).with_meta(source, target)

        def convert(params: Any, _meta: Any) -> Any:
            own = getattr(params, "meta", UNSET)
            return make(params, own if own is UNSET else D.decode(bytes(own), D.NotificationMetaObject))

        return convert

    def _compile_down(self, kind: type) -> Converter | None:
        expected = self._expected(kind)
        older = getattr(types(self._revision), expected.__name__, None)
        if self._revision == DIALECT or older is None or not _results(self._record):
            return None
        return down(self._revision).between(expected, older)


# On Pydantic


class _Peek(msgspec.Struct):
    """Just the `_meta` of some parameters."""

    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


_peek = msgspec.json.Decoder(_Peek).decode


class _Lazy:
    """Parameters for models: the bytes, from which the entry decodes them."""

    __slots__ = ("meta", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.meta = _peek(raw).meta


class _ModelCodec(Codec):
    def _decoder(self, kind: Any) -> Callable[[Any], Any]:
        read = super()._decoder(kind)

        def decode(line: bytes) -> Any:
            message = read(line)
            params = message.params
            if params is not UNSET:
                message.params = _Lazy(bytes(params))
            return message

        return decode

    def check(self, method: str, value: Any) -> None:
        models().from_builtins(value, self._exact[method])


class _ModelEntry(Entry):
    def _compile_up(self) -> Callable[[Any, Any], Any]:
        exact = self._record.params
        known = models_methods().METHODS.get(self.method)
        decode, rebuild, dump = models().decode, models().from_builtins, models().to_builtins
        if known is None or known.params is NoneType:
            return lambda params, _meta: params if params is UNSET else decode(params.raw, exact)
        if self._revision == DIALECT:
            return lambda params, _meta: decode(b"{}" if params is UNSET else params.raw, exact)

        def to_dialect(params: Any, meta: Any) -> Any:
            plain: dict[str, Any] = {} if params is UNSET else dump(decode(params.raw, exact))
            return rebuild({**plain, "_meta": D.to_builtins(meta)}, known.params)

        return to_dialect

    def _compile_down(self, kind: type) -> Converter | None:
        expected = self._expected(kind)
        if self._revision == DIALECT or not _results(self._record):
            dump = models().to_builtins
            return lambda result, _lost: result if is_object(result) else dump(result)
        source = getattr(D, expected.__name__)
        convert = down(self._revision).between(source, getattr(types(self._revision), expected.__name__))
        return lambda result, lost: as_struct(result) if convert is None else convert(as_struct(result), lost)


# Writing


class Response(msgspec.Struct):
    """A result on the wire."""

    jsonrpc: str
    id: RequestId
    result: Any


class Notification(msgspec.Struct, omit_defaults=True):
    """A notification or, with an id, a request on the wire."""

    jsonrpc: str
    method: str
    params: Any = UNSET
    id: RequestId | UnsetType = UNSET


encoder: msgspec.json.Encoder = msgspec.json.Encoder()


def encode_into(message: msgspec.Struct, buffer: bytearray) -> None:
    """Append a message and its newline. Leaves the buffer as it was where the message cannot be encoded.

    Raises `TypeError` or `ValueError` for that: a value of a type that JSON does not have, NaN, infinity.
    """
    start = len(buffer)
    try:
        encoder.encode_into(message, buffer, -1)
        if may_have_lost(buffer, message, start):
            D.encode(message)
        if buffer.find(b"\n", start) >= 0:  # in JSON that was encoded already
            buffer[start:] = msgspec.json.format(bytes(buffer[start:]), indent=-1)
    except BaseException:
        del buffer[start:]
        raise
    buffer += b"\n"


def error_bytes(id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """An error answer as a line. Without an id that could be read it has none: `null` is refused by some clients."""
    error: dict[str, Any] = {"code": code, "message": message}
    head: dict[str, Any] = {"jsonrpc": "2.0"} if id is None else {"jsonrpc": "2.0", "id": id}
    if data is not None:
        error["data"] = data
    return encoder.encode({**head, "error": error}) + b"\n"
