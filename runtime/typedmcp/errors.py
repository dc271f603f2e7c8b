"""All exceptions of typedmcp, in one tree.

```
Error
├── UsageError                       your code used the library wrongly
│   └── InputUnavailableError        input was requested where the client cannot be asked
├── ProtocolError                    the peer broke the protocol
├── ToolError                        a tool failed
├── TaskCancelledError               a task was cancelled
├── SignInError                      a client could not get an access token
├── RemoteError                      the peer answered with an error, or a handler answers with one
│   ├── MethodNotFoundError          -32601
│   ├── InvalidParamsError           -32602
│   │   └── ResourceNotFoundError    -32002 or -32602, depending on the revision
│   ├── HeaderMismatchError          -32020
│   ├── MissingCapabilityError       -32021
│   ├── UnsupportedVersionError      -32022
│   ├── InsufficientScopeError       -31403
│   └── CallLostError                -31503
└── ConnectionLostError              the connection failed
    ├── RequestTimeoutError          no response in time
    └── HttpStatusError              an HTTP status instead of a response
        ├── AuthorizationRequiredError   401, 403
        └── ServerBusyError              429, 503
```

The message of an error that ended a call begins with the method and the id of the call, and names the path of the
value that was wrong, if there is one. `DecodeError`, a `ValueError`, comes from `mcpspec`: a value does not match its
type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from mcpspec.support.error_text import clip, escape_unprintable
from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import is_array, is_object
from typedmcp.dialect import SPOKEN
from typedmcp_schemas.nesting import decode_json

__all__ = [
    "INTERNAL_ERROR", "INVALID_PARAMS", "INVALID_REQUEST", "METHOD_NOT_FOUND", "PARSE_ERROR",
    "URL_ELICITATION_REQUIRED", "AuthorizationRequiredError", "CallLostError", "ConnectionLostError", "DecodeError",
    "Error",
    "HeaderMismatchError", "HttpStatusError", "InputUnavailableError", "InsufficientScopeError",
    "InvalidParamsError", "MethodNotFoundError", "MissingCapabilityError", "ProtocolError", "RemoteError",
    "RequestTimeoutError", "ResourceNotFoundError", "ServerBusyError", "SignInError", "TaskCancelledError",
    "ToolError", "UnsupportedVersionError", "UsageError", "is_reserved_code", "missing_extra", "moved",
    "to_invalid_params", "to_remote_error",
]  # fmt: skip

_CODES: Final = {name: code for features in SPOKEN.values() for name, code in features.error_codes.items()}
"""The error codes of all spoken revisions by their names; the newest revision that has a name defines its code."""

_MAX_CHARACTERS: Final = 2000
"""Characters of a peer's text in an exception. Attributes such as `RemoteError.message` have all of it."""

PARSE_ERROR: Final = _CODES["PARSE_ERROR"]
INVALID_REQUEST: Final = _CODES["INVALID_REQUEST"]
METHOD_NOT_FOUND: Final = _CODES["METHOD_NOT_FOUND"]
INVALID_PARAMS: Final = _CODES["INVALID_PARAMS"]
INTERNAL_ERROR: Final = _CODES["INTERNAL_ERROR"]
URL_ELICITATION_REQUIRED: Final = _CODES["URL_ELICITATION_REQUIRED"]

_RESERVED_CODES: Final = range(-32099, -32019)
"""The codes that modern revisions keep for themselves."""

_CALLBACKS: Final = {"elicitation": "elicit", "sampling": "sample", "roots": "roots"}
"""The options of `connect` that declare a capability of the client."""

_MAX_CODE = 1 << 53
"""The largest integer that every JSON parser reads exactly."""


def is_reserved_code(code: int, revision: str) -> bool:
    """Return whether a revision reserves a code that it does not define, so that it must not be sent.

    https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes
    """
    features = SPOKEN[revision]
    if not features.is_modern or code in features.error_codes.values():
        return False
    return code in _RESERVED_CODES or code in _CODES.values()


class Error(Exception):
    """Base class of all errors of typedmcp.

    `method` and `id` name the call that the error ended. Both are None for an error outside a call.
    """

    method: str | None = None
    id: int | str | None = None

    def attach_call(self, method: str, id: int | str) -> Error:
        """Set the method and the id of the call that this error ended, and return the error."""
        self.method, self.id = method, id
        return self

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.method is None else f"{self.method} (id {self.id!r}): {text}{self._remedy()}"

    def _remedy(self) -> str:
        """Return what a caller can change, as the end of the text of an error that ended a call."""
        return ""

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[Error], args: tuple[Any, ...], state: dict[str, Any]) -> Error:
    """Unpickle an error, whose constructor takes different arguments from `Exception`."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def missing_extra(what: str, extra: str) -> str:
    """Return the text of an error for what needs an extra that is not installed."""
    return f"{what} needs the extra {extra}: {_installation(extra)}"


def moved(name: str, extra: str, use: str) -> str:
    """Return the text of an error for a name of a satellite: `extra` installs it, and `use` is the code for it."""
    return f"{name} is in the distribution typedmcp-{extra}: {_installation(extra)}; then {use}"


def _installation(extra: str) -> str:
    return f"pip install 'typedmcp[{extra}]', or in a checkout, python tools/install.py {extra}"


def to_remote_error(error: BaseException, method: str) -> RemoteError:
    """Return the error response for a callback that failed. Only typedmcp's own exceptions are disclosed."""
    if isinstance(error, RemoteError):
        return error
    return RemoteError(INTERNAL_ERROR, str(error) if isinstance(error, Error) else f"the client failed in {method}")


def _one_line(text: str) -> str:
    """Return text of a peer as one line, which controls neither a terminal nor a log."""
    return escape_unprintable(clip(text, _MAX_CHARACTERS))


class UsageError(Error):
    """The library was used in a way that it does not support."""


class InputUnavailableError(UsageError):
    """Input was requested outside a call, in a call whose client cannot be asked, or in too many rounds."""


class ProtocolError(Error):
    """The peer sent a message that the protocol does not allow."""


class ToolError(Error):
    """A tool failed. Tools raise it, and so do calls with `raise_on_error`.

    A server answers the call with a result that has `isError` and this text, for the model to read. `content` replaces
    the text: blocks of content, or any value that a tool may return. In a client, `result` is the whole result.
    https://modelcontextprotocol.io/specification/2026-07-28/server/tools#error-handling
    """

    def __init__(self, text: str = "", *, content: Any = None, result: Any = None) -> None:
        super().__init__(text)
        self.content = content
        self.result = result


class TaskCancelledError(Error):
    """A task was cancelled before it had a result."""


class RemoteError(Error):
    """An error response. Calls raise it for an error response; handlers raise it to send one.

    `code`, `message` and `data` are the members of the error on the wire. Raises `TypeError` for a code that is not an
    integer. https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        if type(code) is not int:
            raise TypeError(f"code must be an integer, not {code!r}")
        self.code = code
        self.message: str = message.encode(errors="backslashreplace").decode()  # a name of a file may be no Unicode
        super().__init__(self.message)
        self.data = data

    @staticmethod
    def from_wire(error: Mapping[str, Any]) -> RemoteError:
        """Build the exception for the `error` of a response, of the class that belongs to its code.

        A missing or invalid code becomes that of an internal error. A missing message is replaced with a fixed text.
        """
        code, message, data = error.get("code"), error.get("message"), error.get("data")
        if type(code) is not int or abs(code) > _MAX_CODE:
            code = INTERNAL_ERROR
        kind = _CLASSES.get(code, RemoteError)
        if kind is InvalidParamsError and isinstance(data, Mapping) and [*cast("Mapping[str, Any]", data)] == ["uri"]:
            kind = ResourceNotFoundError  # modern revisions have no code for it, but the data names the URI
        made = kind.__new__(kind)
        RemoteError.__init__(made, code, message if isinstance(message, str) else "an error without a message", data)
        return made

    def wire_code(self, revision: str) -> int:
        """Return the code of this error on a revision: another one in place of a code that must not be sent on it."""
        if not is_reserved_code(self.code, revision):
            return self.code
        return INVALID_PARAMS if self.code == ResourceNotFoundError.LEGACY_CODE else INTERNAL_ERROR

    def __str__(self) -> str:
        return f"{_one_line(super().__str__())} ({self.code})"


class MethodNotFoundError(RemoteError):
    """The method is unknown, or the server does not implement it."""

    CODE: Final = METHOD_NOT_FOUND

    def __init__(self, method: str) -> None:
        super().__init__(self.CODE, f"method not found: {method}")


class InvalidParamsError(RemoteError):
    """The parameters do not match the method. `data` should name the path of the wrong member."""

    CODE: Final = INVALID_PARAMS

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(self.CODE, message, data)


def to_invalid_params(error: DecodeError) -> InvalidParamsError:
    """Build the error response for parameters that cannot be decoded, with the path in the message and in `data`."""
    path = f"params.{error.path}" if error.path else "params"
    return InvalidParamsError(f"{path}: {error.reason}", {"path": path})


class ResourceNotFoundError(InvalidParamsError):
    """The server has no resource with this URI."""

    LEGACY_CODE: Final = _CODES["RESOURCE_NOT_FOUND"]
    """The code on revisions that have one for it."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"resource not found: {uri}", {"uri": uri})

    def wire_code(self, revision: str) -> int:
        """Return the code of this error on a revision: its own if the revision has one, else "invalid params"."""
        return SPOKEN[revision].error_codes.get("RESOURCE_NOT_FOUND", self.CODE)


class MissingCapabilityError(RemoteError):
    """The call needs capabilities that the client has not declared, such as `{"sampling": {}}`."""

    CODE: Final = _CODES["MISSING_REQUIRED_CLIENT_CAPABILITY"]

    def __init__(self, required: dict[str, Any]) -> None:
        named = [[f"{name}.{part}" for part in parts or ()] or [name] for name, parts in required.items()]
        names = ", ".join(name for each in named for name in each)
        super().__init__(self.CODE, f"the client has not declared: {names}", {"requiredCapabilities": required})

    def _remedy(self) -> str:
        required: object = self.data.get("requiredCapabilities") if is_object(self.data) else None
        if not is_object(required):
            return ""
        is_url = required.get("elicitation") == {"url": {}}
        option = next(("elicit_url" if is_url else each for name, each in _CALLBACKS.items() if name in required), None)
        return "" if option is None else f"; declare it with connect(…, {option}=…)"

    def wire_code(self, revision: str) -> int:
        """Return the code of this error on a revision: its own if the revision has one, else "invalid request"."""
        return SPOKEN[revision].error_codes.get("MISSING_REQUIRED_CLIENT_CAPABILITY", INVALID_REQUEST)


class UnsupportedVersionError(RemoteError):
    """The peer does not support the requested protocol revision."""

    CODE: Final = _CODES["UNSUPPORTED_PROTOCOL_VERSION"]

    def __init__(self, requested: str, supported: list[str]) -> None:
        data = {"supported": supported, "requested": requested}
        text = f"unsupported protocol version: {_in_ascii(requested)}"
        if requested in supported:
            text = f"protocol version {requested}: begin a session with initialize, and name no version in _meta"
        elif supported:
            text += f"; supported: {_in_ascii(*supported[:20])}"
        super().__init__(self.CODE, text, data)

    @property
    def supported(self) -> list[str]:
        """The revisions that the peer names as supported, which may be none."""
        names: object = self.data.get("supported") if is_object(self.data) else None
        return [name for name in names if isinstance(name, str)] if is_array(names) else []

    def _remedy(self) -> str:
        names = _in_ascii(*self.supported[:20])
        return f"; supported: {names}" if names and names not in self.message else ""


def _in_ascii(*versions: str) -> str:
    """Return versions that a peer named: shortened, without control characters."""
    return ", ".join(ascii(version[:40])[1:-1] for version in versions)


class HeaderMismatchError(RemoteError):
    """HTTP headers contradict the body, or are missing, repeated or malformed."""

    CODE: Final = _CODES["HEADER_MISMATCH"]

    def __init__(self, message: str) -> None:
        super().__init__(self.CODE, message)


class InsufficientScopeError(RemoteError):
    """The access token of the request lacks scopes. Over HTTP it is answered with 403 and a challenge.

    `scopes` are all that the operation needs. `description` is a text for people, in place of their list.
    https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-challenge-handling
    """

    CODE: Final = -31403

    def __init__(self, *scopes: str, description: str | None = None) -> None:
        text = description or f"required scopes: {' '.join(scopes)}"
        super().__init__(self.CODE, text, {"requiredScopes": list(scopes)})


class CallLostError(RemoteError):
    """The process that handled a call died or stopped before the call had ended. The call may have taken effect."""

    CODE: Final = -31503

    def __init__(self, reason: str = "the process that handled this call died") -> None:
        super().__init__(self.CODE, f"{reason}; the call may have taken effect")


_CLASSES: Final[Mapping[int, type[RemoteError]]] = {
    **{
        kind.CODE: kind
        for kind in (
            MethodNotFoundError, InvalidParamsError, HeaderMismatchError, MissingCapabilityError,
            UnsupportedVersionError, InsufficientScopeError, CallLostError,
        )
    },
    ResourceNotFoundError.LEGACY_CODE: ResourceNotFoundError,
}  # fmt: skip
"""The exceptions by their codes on the wire."""


class ConnectionLostError(Error):
    """The connection ended before the response arrived."""


class RequestTimeoutError(ConnectionLostError):
    """No response arrived within the timeout, `seconds`. `hint` is a possible reason.

    `limit` describes the limit of this side at which the request waited and was not sent; None if it was sent.
    """

    def __init__(self, seconds: float, hint: str = "", *, limit: str | None = None) -> None:
        what = f"no answer within {seconds:g} s{hint}" if limit is None else f"not sent within {seconds:g} s: {limit}"
        super().__init__(what)
        self.seconds = seconds
        self.limit = limit


class HttpStatusError(ConnectionLostError):
    """The server, or a proxy before it, answered with an HTTP status instead of a message of the protocol.

    `status` is the number of the status, `body` the beginning of the body that came with it.
    """

    def __init__(self, status: int, text: str, body: str = "") -> None:
        shown = _message_in(body) or body
        super().__init__(_one_line(f"{text}: {shown}" if shown else text))
        self.status = status
        self.body = body


def _message_in(body: str) -> str | None:
    """Return the message of an error response, or None for another body."""
    try:
        found: _RejectionBody = decode_json(body, _RejectionBody)
    except ValueError:
        return None
    return found.error.message


class _RejectionError(msgspec.Struct):
    message: str


class _RejectionBody(msgspec.Struct):
    error: _RejectionError


class AuthorizationRequiredError(HttpStatusError):
    """401: the access token is missing or not valid. 403: the token does not permit the request.

    `challenge` is the value of the header `WWW-Authenticate`, or empty.
    """

    def __init__(self, status: int, challenge: str, body: str = "") -> None:
        text = "the access token is missing or not valid" if status == 401 else "the server denies access"
        super().__init__(status, f"{text} ({status}{f', {challenge}' if challenge else ''})", body)
        self.challenge = challenge

    def _remedy(self) -> str:
        return "; connect(…, auth=…) sends one" if self.status == 401 else ""


class SignInError(Error):
    """A client could not get an access token.

    `code` is the error of the authorization server, such as `access_denied`, or None.
    """

    def __init__(self, text: str, code: str | None = None) -> None:
        super().__init__(_one_line(text))
        self.code = code


class ServerBusyError(HttpStatusError):
    """429 or 503: the server is overloaded. `retry_after` is the time to wait in seconds, None if it is unknown."""

    def __init__(self, status: int, retry_after: float | None, body: str = "") -> None:
        when = "later" if retry_after is None else f"in {retry_after:g} s"
        super().__init__(status, f"the server is busy ({status}), try again {when}", body)
        self.retry_after = retry_after
