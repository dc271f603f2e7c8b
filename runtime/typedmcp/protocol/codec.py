"""Codecs, which decode the messages of clients on one revision, and encode messages.

A codec validates with the exact types of its revision, and converts to the dialect, whose plain types are all that
handlers see. There is one for msgspec, and one for Pydantic, which decodes into models. The converters of a method are
compiled when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from threading import RLock
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, Union, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType

import mcpspec
from mcpspec.features import NAME_PARAMS
from mcpspec.support.converters import Converter, DroppedFields, leave
from mcpspec.support.members import holds_objects, members_of
from mcpspec.support.methods import Method
from mcpspec.support.objects import LARGE_TEXT, is_object, spread_union, strip_absent
from mcpspec.support.structs import constructor, dec_hook, from_builtins, may_contain_non_finite
from typedmcp import dialect
from typedmcp.errors import DecodeError, UsageError
from typedmcp.protocol.backends import to_struct
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.nulls import remove_nulls
from typedmcp.protocol.repairs import FindRepair, repair_finder
from typedmcp.revisions.conversions import downgrader, upgrader
from typedmcp.revisions.features import DIALECT, FEATURES, Features, methods_of, structs_of
from typedmcp_schemas.nesting import encode_json

__all__ = [
    "Backend", "Codec", "JsonResult", "MethodCodec", "MethodTable", "Notification", "OwnMethod", "Response",
    "codec_for", "encode_error", "encode_message", "encoder", "fallback_codec", "json_result_reader",
]  # fmt: skip

Backend: TypeAlias = Literal["msgspec", "pydantic"]
"""The library whose types handlers get."""

D = dialect.structs
X = dialect.exact

_NEWLINE: Final = 10
_DELIVERING: Final = "tasks/result"
"""The method of a legacy revision within which a server sends the input requests of a task."""


class JsonResult(msgspec.Struct, frozen=True):
    """A result as JSON of a revision, such as a gateway has it of a server. A handler may return it for any request.

    It is sent as it is, with members that no schema knows. The request must have the same revision: otherwise nothing
    is sent, and the client gets an internal error.
    """

    data: msgspec.Raw | dict[str, Any]
    """The result: encoded, or a dict. A dict gets the name of the server in its `_meta` where the revision has that."""
    revision: str
    """The protocol revision that the result belongs to, such as `2025-11-25`."""


def json_result_reader(revision: str) -> Converter:
    """Return the converter of such results for requests of a revision: it raises `UsageError` for another revision."""

    def read(value: Any, lost: DroppedFields) -> Any:  # noqa: ARG001  # nothing is converted
        if value.revision != revision:
            raise UsageError(f"a JsonResult of {value.revision} cannot answer a request of {revision}")
        return value.data

    return read


class MethodTable(Protocol):
    """The tables of a `methods` module: of a revision, or of a package that `mcpspec-codegen compile` has made."""

    @property
    def METHODS(self) -> Mapping[str, Method[Any, Any]]: ...  # noqa: N802
    @property
    def CLIENT_REQUESTS(self) -> Mapping[str, Method[Any, Any]]: ...  # noqa: N802
    @property
    def CLIENT_NOTIFICATIONS(self) -> Mapping[str, Method[Any, Any]]: ...  # noqa: N802
    @property
    def PROTOCOL_VERSION(self) -> str: ...  # noqa: N802


class OwnMethod(NamedTuple):
    """A method of an extension."""

    record: Method[Any, Any]
    name_param: str | None
    """The parameter that the header `Mcp-Name` repeats, if there is one."""


class MethodCodec:
    """The codec of one method: it upgrades parameters to the dialect, and downgrades results to the revision.

    `table` is that of the handlers; None for a method of an extension, which belongs to no revision.
    """

    def __init__(self, method: Method[Any, Any], revision: str, table: MethodTable | None) -> None:
        self.method: str = method.name
        self.header: bytes = method.name.encode()
        """The method as the header `Mcp-Method` spells it."""
        self.handler_name: str = method.handler
        self.is_request: bool = method.kind == "request"
        self.name_param: str | None = NAME_PARAMS.get(method.name)
        """The attribute of the parameter that the header `Mcp-Name` repeats, if there is one."""
        self._record = method
        self._revision = revision
        self._table = table
        self.downgrades: dict[type, Converter | None] = {JsonResult: json_result_reader(revision)}
        """The converters of results by their class, compiled so far. None stands for no conversion."""

    @cached_property
    def accepts_input(self) -> bool:
        """True if a result may ask the client for input."""
        results = _results(self._record, self._table)
        return self.method == _DELIVERING or any(kind.__name__ == "InputRequiredResult" for kind in results)

    @cached_property
    def find_repair(self) -> FindRepair | None:
        """Finds what has to be repaired in a result before it is downgraded; None if results need no such check."""
        return repair_finder(_results(self._record, self._table))

    def upgrade(self, params: Any, meta: Any) -> Any:
        """Return the parameters in the dialect, with this `_meta`. The first call compiles the converter."""
        self.upgrade = self._compile_upgrade()  # type: ignore[assignment, method-assign]
        return self.upgrade(params, meta)

    def downgrade(self, result: object, dropped: DroppedFields) -> Any:
        """Return a result of the dialect in the types of the revision. Append the members that it lacks to `dropped`.

        Raises `UsageError` if the result is not of the method's type, or needs a repair.
        """
        try:
            convert = self.downgrades[type(result)]
        except KeyError:
            # An exact type of a legacy revision needs no conversion.
            is_exact = self._revision != DIALECT and type(result).__module__ == structs_of(self._revision).__name__
            convert = None if is_exact else self._compile_downgrade(type(result))
            if self.find_repair is not None:
                convert = _reject_unrepaired(self.find_repair, convert)
            self.downgrades[type(result)] = convert
        return result if convert is None else convert(result, dropped)

    def _handled(self, module: str) -> Method[Any, Any]:
        """Return the record for handlers. Of a method that only the revision has, its module with this name has it."""
        if self._table is None:
            return self._record
        known = self._table.METHODS.get(self.method)
        return known or getattr(mcpspec.revision(self._revision), module).METHODS[self.method]

    def _compile_upgrade(self) -> Callable[[Any, Any], Any]:
        raise NotImplementedError

    def _compile_downgrade(self, kind: type) -> Converter | None:
        raise NotImplementedError

    def _expected(self, kind: type) -> type:
        """Return the result type of the method that a class is, or derives from."""
        known = _results(self._record, self._table)
        found = next((result for result in known if issubclass(kind, result)), None)
        if found is None and known:
            names = " or ".join(_describe(result, kind) for result in known)
            hint = _codec_hint(kind, known)
            raise UsageError(f"the handler of {self.method} returned {_describe(kind, *known)}, expected {names}{hint}")
        return kind if found is None else found


def _reject_unrepaired(find_repair: FindRepair, convert: Converter | None) -> Converter:
    """Wrap a converter, so that a result that needs a repair leaves the fast path."""

    def check(value: Any, lost: DroppedFields) -> Any:
        repair = find_repair(value)
        if repair is not None:
            raise UsageError(repair.text)
        return value if convert is None else convert(value, lost)

    return check


def _describe(kind: type, *others: type) -> str:
    """Return the name of a class, with its module if another class has the same name."""
    is_unique = all(kind.__name__ != other.__name__ for other in others)
    return kind.__name__ if is_unique else f"{kind.__module__}.{kind.__name__}"


def _codec_hint(kind: type, known: Sequence[type]) -> str:
    """Return what to change if a handler returns types of the other library."""
    if all(kind.__name__ != other.__name__ for other in known) or _is_struct(kind) == _is_struct(known[0]):
        return ""
    return "; serve it without codec='pydantic'" if _is_struct(kind) else "; serve it with codec='pydantic'"


def _results(method: Method[Any, Any], table: MethodTable | None) -> list[type]:
    """Return the handlers' result types of a method; none if their table lacks the method, or for a notification."""
    known = method if table is None else table.CLIENT_REQUESTS.get(method.name)
    return [] if known is None or known.kind != "request" else spread_union(known.result)


class _UnknownMethodCodec(MethodCodec):
    def __init__(self, method: str, revision: str, *, is_request: bool) -> None:
        self.method, self.handler_name, self.is_request = method, "fallback", is_request
        self.__dict__ |= {"accepts_input": False, "find_repair": None}
        self.header, self.name_param, self._revision = method.encode(errors="replace"), None, revision
        self.downgrades: dict[type, Converter | None] = {JsonResult: json_result_reader(revision)}

    def downgrade(self, result: object, dropped: DroppedFields) -> Any:  # no other type is known
        if isinstance(result, JsonResult):
            return json_result_reader(self._revision)(result, dropped)
        if is_object(result) or isinstance(result, msgspec.Struct | Raw) or hasattr(result, "model_dump"):
            return result
        raise UsageError(f"the handler of {self.method} returned {type(result).__name__}, expected an object")


def fallback_codec(method: str, revision: str, *, is_request: bool) -> MethodCodec:
    """Return the codec of a method that the protocol does not have. It converts nothing."""
    return _UnknownMethodCodec(method, revision, is_request=is_request)


class _Named(msgspec.Struct):
    """A message, as far as its method."""

    method: str


_making = RLock()


class Codec:
    """Decodes the requests and notifications of clients on one revision.

    `decode` returns a message for a line whose depth is limited, and raises `ValueError` for any other line.
    `by_message_type` and `methods` have the `MethodCodec` for the class and for the method of a message. Messages have
    `params`, and requests an `id`. Parameters have `meta`, their encoded `_meta`.
    """

    def __init__(self, revision: str, methods: list[tuple[Method[Any, Any], MethodCodec]]) -> None:
        self.revision: str = revision
        self.features: Features = FEATURES[revision]
        self.decode: Callable[[Any], Any] = self._decode_first
        self.by_message_type: dict[type, MethodCodec] = {}
        self.methods: dict[str, MethodCodec] = {method_codec.method: method_codec for _, method_codec in methods}
        self._records: dict[str, Method[Any, Any]] = {record.name: record for record, _ in methods}

    def _decode_first(self, line: Any) -> Any:
        """Decode a line. The first one makes the decoder, unless its method has none, as in a handshake."""
        if msgspec.json.decode(line, type=_Named).method not in self.methods:
            raise ValueError("a message of another method")
        with _making:
            if not self.by_message_type:
                kinds = {_message_type(r, self._params_type(r)): self.methods[r.name] for r in self._records.values()}
                decode = self._decoder(Union[tuple(kinds)])  # noqa: UP007
                self.by_message_type = kinds
                self.decode = decode
        return self.decode(line)

    def _params_type(self, record: Method[Any, Any]) -> Any:
        return _params_type(record)

    def _decoder(self, kind: Any) -> Callable[[Any], Any]:
        return msgspec.json.Decoder(kind, dec_hook=dec_hook).decode

    def check_params(self, method: str, value: Any) -> None:
        """Raise `DecodeError` if plain parameters are not valid on the revision."""
        from_builtins(value, self._records[method].params)

    def struct_of_params(self, method: str) -> Any:
        """Return the struct of a method's parameters; `NoneType` if it has none, or an unknown one."""
        return self._records[method].params if method in self._records else NoneType

    def remove_nulls(self, method: str, params: dict[str, Any]) -> list[str]:
        """Remove the parameters that are `null` where the revision allows only absence, and return their paths."""
        return remove_nulls(params, self.struct_of_params(method))


@cache
def codec_for(
    revision: str, backend: Backend = "msgspec", extended: MethodTable | None = None, own: tuple[OwnMethod, ...] = ()
) -> Codec:
    """Return the codec for the messages of clients that speak a revision.

    `extended` is the table of a handler whose types extend the dialect: by default the dialect's own table. `own` are
    the methods of extensions.
    """
    is_msgspec = backend == "msgspec"
    table: MethodTable = extended or (dialect.methods if is_msgspec else dialect.models_methods)
    exact: Any = methods_of(revision) if is_msgspec else mcpspec.revision(revision).models_methods
    records = _exact_records(exact) if extended is None else _extend(exact, extended, revision)
    kind = _StructMethodCodec if is_msgspec else _ModelMethodCodec
    codecs: list[tuple[Method[Any, Any], MethodCodec]] = [(r, kind(r, revision, table)) for r in records]
    codecs += [(m.record, _own_codec(m, revision, is_encoded=not is_msgspec)) for m in own]
    return (Codec if is_msgspec else _ModelCodec)(revision, codecs)


def _own_codec(method: OwnMethod, revision: str, *, is_encoded: bool) -> MethodCodec:
    """Return the codec of a method of an extension. `is_encoded` is true for the codec of models."""
    if not issubclass(method.record.message, msgspec.Struct):
        codec: MethodCodec = _ModelMethodCodec(method.record, revision, None)
    elif is_encoded:
        codec = _EncodedStructMethodCodec(method.record, revision, None)
    else:
        codec = _StructMethodCodec(method.record, revision, None)
    codec.handler_name = method.record.name  # which no method of a handler can have
    codec.name_param = None if method.name_param is None else _attribute(method.record.params, method.name_param)
    return codec


def _attribute(params: Any, member: str) -> str | None:
    """Return the attribute of a member of parameters, whose name in JSON is given."""
    if not _is_struct(params):
        return None
    return next((field.name for field in msgspec.structs.fields(params) if field.encode_name == member), None)


def _records(module: MethodTable) -> list[Method[Any, Any]]:
    return [*module.CLIENT_REQUESTS.values(), *module.CLIENT_NOTIFICATIONS.values()]


def _exact_records(module: MethodTable) -> list[Method[Any, Any]]:
    return [record.exact for record in _records(module)]


def _extend(exact: MethodTable, extended: MethodTable, revision: str) -> list[Method[Any, Any]]:
    """Return the methods of a revision, and those that only the handlers' table has."""
    own = _records(extended)
    if revision == DIALECT:
        return own
    return [*_exact_records(exact), *(record for record in own if record.name not in dialect.methods.METHODS)]


def _message_type(method: Method[Any, Any], params: Any) -> type[msgspec.Struct]:
    """Return the type of a method's messages: the JSON-RPC envelope, with the method as its tag."""
    needs = method.params_required
    if method.params is NoneType:  # clients may send `_meta` all the same
        params = dict[str, Any]
    fields: list[Any] = [("jsonrpc", Literal["2.0"]), ("params", params, msgspec.NODEFAULT if needs else None)]
    if method.kind == "request":
        fields.append(("id", RequestId))
    return msgspec.defstruct("Message", fields, kw_only=True, tag_field="method", tag=method.name)


# On msgspec


@cache
def _params_type(method: Method[Any, Any]) -> Any:
    """Return the type of the parameters, with `_meta` left encoded: most requests repeat it, and it is decoded once."""
    kind: Any = method.params
    if not _is_struct(kind):
        return kind
    hints = get_type_hints(kind, include_extras=True)
    fields: list[Any] = []
    for f in msgspec.structs.fields(kind):
        if f.encode_name == "_meta":
            fields.append((f.name, Raw | UnsetType, msgspec.field(name="_meta", default=UNSET)))
        else:
            hint = strip_absent(hints[f.name], NoneType) if f.default is None else hints[f.name]
            fields.append((f.name, hint, msgspec.field(name=f.encode_name, default=f.default)))
    return msgspec.defstruct(kind.__name__, fields, kw_only=True)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


class _StructMethodCodec(MethodCodec):
    def _compile_upgrade(self) -> Callable[[Any, Any], Any]:
        source: Any = self._record.params
        target: Any = self._handled("methods").params
        if target is NoneType:
            return lambda params, _meta: params
        if not _is_struct(target):  # an open object, of a method that the dialect does not have
            return lambda params, _meta: D.from_builtins(params or {}, target)
        has_meta = self.is_request and "meta" in target.__struct_fields__
        if not _is_struct(source):  # an open object, of which the dialect has the `_meta` alone
            return lambda _params, meta: target(meta=meta) if has_meta else target()
        make = _copy(target) if source is target else self._find_upgrade(source, target)
        if not has_meta:
            return _upgrade_notification(make)
        if self._record.params_required:
            return make
        return lambda params, meta: target(meta=meta) if params is None else make(params, meta)

    def _find_upgrade(self, source: Any, target: Any) -> Callable[[Any, Any], Any]:
        """Return the conversion `(params, meta) -> params`. Methods of legacy revisions alone are converted as JSON."""
        found = None
        if self._table is not None and self.method in self._table.METHODS:
            found = upgrader(self._revision, import_module(target.__module__)).method_between(source, target)
        return found or (lambda params, meta: from_builtins({**_without_meta(params), "_meta": meta}, target))

    def _compile_downgrade(self, kind: type) -> Converter | None:
        # An exact type, which handlers may return, too, is encoded as it is.
        is_exact = kind.__module__ == X.__name__
        expected = self._expected(getattr(D, kind.__name__) if is_exact else kind)
        exact = getattr(structs_of(self._revision), expected.__name__, None)
        is_free = self._table is None or not _results(self._record, self._table)  # of no revision
        if self._revision == DIALECT or exact is None or is_free:
            return None
        if is_exact or getattr(D, expected.__name__, None) in (None, expected):
            found: Converter | None = downgrader(self._revision, is_exact=is_exact).method(expected.__name__)
            return found
        added = _types_beyond_dialect(expected.__module__)
        convert: Converter | None = downgrader(self._revision, added=added).method(expected.__name__)
        return lambda value, lost: (convert or leave)(_reduce(value, lost), lost)


def _copy(kind: Any) -> Callable[[Any, Any], Any]:
    """Return a function `(params, meta) -> params` for parameters whose members are of the right types already."""
    names = [name for name in kind.__struct_fields__ if name != "meta"]
    has_meta = "meta" in kind.__struct_fields__

    def copy(params: Any, meta: Any) -> Any:
        members = {name: getattr(params, name) for name in names}
        return kind(**members, meta=meta) if has_meta else kind(**members)

    return copy


def _upgrade_notification(make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the conversion of a notification, whose `_meta` describes no client."""

    def convert(params: Any, _meta: Any) -> Any:
        own = getattr(params, "meta", UNSET)
        return make(params, None if own is UNSET else dict(X.decode(bytes(own), X.NotificationMetaObject)))

    return convert


def _without_meta(params: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {} if params is None else msgspec.to_builtins(params, builtin_types=(Raw,))
    return {name: value for name, value in plain.items() if name != "_meta"}


# Types that extend the dialect


@cache
def _types_beyond_dialect(module: str) -> frozenset[type]:
    """Return the structs of a module that extends the dialect for which the dialect has no type."""
    known = mcpspec.revision(DIALECT).structs.__all__
    kinds = [kind for kind in vars(import_module(module)).values() if _is_struct(kind)]
    return frozenset(kind for kind in kinds if kind.__name__ not in known)


def _reduce(value: Any, lost: DroppedFields) -> Any:
    """Return a value of types that extend the dialect as one of its own types. Append what those lack to `lost`."""
    if isinstance(value, msgspec.Struct):
        return _reducer(value.__class__)(value, lost)
    if value.__class__ is list:
        return [_reduce(each, lost) for each in value]
    if value.__class__ is dict:
        return {key: _reduce(each, lost) for key, each in value.items()}
    return value


@cache
def _reducer(kind: type[msgspec.Struct]) -> Converter:
    known = mcpspec.revision(DIALECT).structs.__all__
    extended = next((base for base in kind.__mro__ if base.__name__ in known), None)
    if extended is None:
        return _report_type(kind.__name__)
    target: Any = getattr(D, extended.__name__)
    if issubclass(kind, target):
        return leave
    members = members_of(kind)
    own = [name for name in members if name not in target.__struct_fields__]
    objects = [name for name in target.__struct_fields__ if holds_objects(members[name].hint)]
    make = constructor(target)

    def convert(value: Any, lost: DroppedFields) -> Any:
        lost += [f"{extended.__name__}.{name}" for name in own if getattr(value, name) is not None]
        made = {name: getattr(value, name) for name in target.__struct_fields__}
        return make(**made | {name: _reduce(made[name], lost) for name in objects})

    return convert


def _report_type(name: str) -> Converter:
    def convert(value: Any, lost: DroppedFields) -> Any:
        lost.append(name)
        return value

    return convert


# On Pydantic


class _MetaOnly(msgspec.Struct):
    """Parameters of which only `_meta` is decoded."""

    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


_decode_meta = msgspec.json.Decoder(_MetaOnly).decode


class _EncodedParams:
    """Encoded parameters, which `_ModelMethodCodec` decodes."""

    __slots__ = ("meta", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.meta = _decode_meta(raw).meta


class _ModelCodec(Codec):
    def _decoder(self, kind: Any) -> Callable[[Any], Any]:
        read = super()._decoder(kind)

        def decode(line: bytes) -> Any:
            message = read(line)
            if message.params is not None:
                raw = bytes(message.params)
                if raw.rfind(b"null") >= 0:
                    self._reject_nulls(self.by_message_type[type(message)].method, raw)
                message.params = _EncodedParams(raw)
            return message

        return decode

    def _params_type(self, record: Method[Any, Any]) -> Any:  # noqa: ARG002
        return Raw

    def check_params(self, method: str, value: Any) -> None:
        kind = self._records[method].params
        (from_builtins if _is_struct(kind) else dialect.models.from_builtins)(value, kind)

    def _reject_nulls(self, method: str, raw: bytes) -> None:
        """Raise `DecodeError` for a null instead of absence, which plain models would accept silently."""
        for path in remove_nulls(msgspec.json.decode(raw), self.struct_of_params(method)):
            raise DecodeError(path.removeprefix("params."), "expected absence, got null")

    def struct_of_params(self, method: str) -> Any:
        exact = super().struct_of_params(method)
        module = import_module(exact.__module__.replace("models", "structs"))
        return getattr(module, exact.__name__, NoneType)


class _ModelMethodCodec(MethodCodec):
    def _compile_upgrade(self) -> Callable[[Any, Any], Any]:
        exact = self._record.params
        target: Any = self._handled("models_methods").params
        decode, rebuild, dump = dialect.models.decode, dialect.models.from_builtins, dialect.models.to_builtins
        if target is NoneType:
            return lambda params, _meta: params
        if self._revision == DIALECT:
            return lambda params, _meta: decode(b"{}" if params is None else params.raw, target)

        # A method that only the handlers' table has is of no revision: legacy clients leave out its `_meta`.
        is_own = exact is target
        read: Callable[[bytes], Any] = msgspec.json.decode if is_own else lambda raw: dump(decode(raw, exact))

        def to_dialect(params: Any, meta: Any) -> Any:
            plain: dict[str, Any] = {} if params is None else read(params.raw)
            return rebuild({**plain, "_meta": meta}, target)

        return to_dialect

    def _compile_downgrade(self, kind: type) -> Converter | None:
        expected = self._expected(kind)
        source = getattr(D, expected.__name__, None)
        if self._revision == DIALECT or source is None or not _results(self._record, self._table):
            dump = dialect.models.to_builtins
            return lambda value, lost: value if is_object(value) else dump(value)  # noqa: ARG005
        convert: Converter | None = downgrader(self._revision).method(source.__name__)
        return lambda value, lost: to_struct(value) if convert is None else convert(to_struct(value), lost)


class _EncodedStructMethodCodec(_StructMethodCodec):
    """The codec of a method on Structs, of an extension, beside methods on models."""

    def _compile_upgrade(self) -> Callable[[Any, Any], Any]:
        target: Any = self._record.params
        if target is NoneType:
            return lambda params, _meta: params

        def to_target(params: Any, meta: Any) -> Any:
            plain: dict[str, Any] = {} if params is None else msgspec.json.decode(params.raw)
            return from_builtins({**plain, "_meta": meta}, target)

        return to_target


# Writing


class Response(msgspec.Struct):
    """A successful response."""

    jsonrpc: str
    id: RequestId
    result: Any


class Notification(msgspec.Struct, omit_defaults=True):
    """A notification or, with an id, a request."""

    jsonrpc: str
    method: str
    params: Any = None
    id: RequestId | None = None


encoder: msgspec.json.Encoder = msgspec.json.Encoder()


def encode_message(message: msgspec.Struct) -> bytes:
    """Encode a message in one line, without a newline.

    Raises `TypeError` or `ValueError` for values without JSON, such as NaN or a list that contains itself.
    """
    line = encode_json(message)
    # `rpartition` is the fastest way to search a word in a short text.
    if (len(line) > LARGE_TEXT or line.rpartition(b"null")[1]) and may_contain_non_finite(line, message):
        D.encode(message)
    if _NEWLINE in line:  # in JSON that was encoded already
        line = msgspec.json.format(line, indent=-1)
    return line


def encode_error(id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """Encode an error response. If `id` is None, the member is left out: some clients reject `null`."""
    error: dict[str, Any] = {"code": code, "message": message}
    head: dict[str, Any] = {"jsonrpc": "2.0"} if id is None else {"jsonrpc": "2.0", "id": id}
    if data is not None:
        error["data"] = data
    return encode_json({**head, "error": error})
