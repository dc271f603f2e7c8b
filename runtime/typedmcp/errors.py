"""Every error that typedmcp raises, in one tree.

```
Error
├── UsageError                 what you did wrong
│   └── InputUnavailable       input was asked for where none can be had
├── ProtocolError              what the peer did wrong
├── ToolError                  what a tool says went wrong
├── RemoteError                what the peer answered, or what a handler wants answered
│   ├── MethodNotFound         -32601
│   ├── InvalidParams          -32602
│   │   └── ResourceNotFound   -32002 or -32602, as the revision says
│   ├── HeaderMismatch         -32020
│   ├── MissingCapability      -32021
│   ├── UnsupportedVersion     -32022
│   ├── InsufficientScope      -31403
│   └── CallLost               -31503
└── ConnectionLost             what the connection did
    ├── RequestTimeout
    └── HttpStatusError        a status of HTTP in the place of an answer
        ├── AuthorizationRequired   401, 403
        └── ServerBusy              429, 503
```

A call that fails names its method and id, and the path where there is one. `DecodeError`, a `ValueError`,
comes from `mcpspec`: data that is not what its type says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcpspec._support.errors import DecodeError

__all__ = [
    "AuthorizationRequired", "CallLost", "ConnectionLost", "DecodeError", "Error", "HeaderMismatch",
    "HttpStatusError", "InputUnavailable", "InsufficientScope", "InvalidParams", "MethodNotFound",
    "MissingCapability", "ProtocolError", "RemoteError", "RequestTimeout", "ResourceNotFound", "ServerBusy",
    "ToolError", "UnsupportedVersion", "UsageError",
]  # fmt: skip

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_LARGEST_CODE = 1 << 53


class Error(Exception):
    """Base of all errors of typedmcp. `method` and `id` name the call that failed, where there was one."""

    method: str | None = None
    id: int | str | None = None

    def of_call(self, method: str, id: int | str) -> Error:
        """The same error, with the call that it ended."""
        self.method, self.id = method, id
        return self

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.method is None else f"{self.method} (id {self.id!r}): {text}"


class UsageError(Error):
    """The library was used in a way that it cannot serve."""


class InputUnavailable(UsageError):  # noqa: N818  # named for the state, as all of them are
    """Input was asked for outside a call, or in one that cannot ask, or too many times."""


class ProtocolError(Error):
    """The peer sent what the protocol does not allow."""


class ToolError(Error):
    """A tool failed in its own terms: raised by tools, and by calls with `raise_on_error`.

    A tool's call is answered with `isError` and this text, which models read; `content`, where it is given, is what
    they get instead: blocks of content, or anything that a tool may return. In a client `result` is the whole result.
    https://modelcontextprotocol.io/specification/2026-07-28/server/tools#error-handling
    """

    def __init__(self, text: str = "", *, content: Any = None, result: Any = None) -> None:
        super().__init__(text)
        self.content = content
        self.result = result

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


class RemoteError(Error):
    """An error answer: raised by calls that the peer answered so, and by handlers that want to answer so.

    `code`, `message` and `data` are what stands on the wire.
    See https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        if type(code) is not int:
            raise TypeError(f"the code of an error is an integer, not {code!r}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @staticmethod
    def of_wire(error: Mapping[str, Any]) -> RemoteError:
        """The error that a peer answered, of the class that its code has; what is missing is made up for."""
        code, message = error.get("code"), error.get("message")
        if type(code) is not int or abs(code) > _LARGEST_CODE:
            code = INTERNAL_ERROR
        kind = _kinds().get(code, RemoteError)
        data = error.get("data")
        if kind is InvalidParams and isinstance(data, Mapping) and [*cast("Mapping[str, Any]", data)] == ["uri"]:
            kind = ResourceNotFound  # which has no code of its own any more, but is to name the URI
        made = kind.__new__(kind)
        text = message if isinstance(message, str) else "an error without a message"
        RemoteError.__init__(made, code, text, error.get("data"))
        return made

    def wire_code(self, revision: str) -> int:  # noqa: ARG002  # others depend on it
        """The code that a revision has for this error."""
        return self.code

    def __str__(self) -> str:
        return f"{super().__str__()} ({self.code})"

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[Error], args: tuple[Any, ...], state: dict[str, Any]) -> Error:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class MethodNotFound(RemoteError):  # noqa: N818
    """The method is unknown, or not implemented."""

    def __init__(self, method: str) -> None:
        super().__init__(METHOD_NOT_FOUND, f"method not found: {method}")


class InvalidParams(RemoteError):  # noqa: N818
    """The parameters are not what the method takes. `data` should say where."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(INVALID_PARAMS, message, data)


def in_params(error: DecodeError) -> InvalidParams:
    """What is answered where parameters cannot be decoded: with the place, in words and as data."""
    path = f"params.{error.path}" if error.path else "params"
    return InvalidParams(f"{path}: {error.reason}", {"path": path})


class ResourceNotFound(InvalidParams):
    """There is no such resource."""

    LEGACY_CODE = -32002

    def __init__(self, uri: str) -> None:
        super().__init__(f"resource not found: {uri}", {"uri": uri})

    def wire_code(self, revision: str) -> int:
        """Up to 2025-11-25 resources had a code of their own."""
        from typedmcp.edge.revisions import is_modern

        return self.code if is_modern(revision) else self.LEGACY_CODE


class MissingCapability(RemoteError):  # noqa: N818
    """The call needs something that the client has not declared, such as `{"sampling": {}}`."""

    CODE = -32021

    def __init__(self, required: dict[str, Any]) -> None:
        names = ", ".join(required)
        super().__init__(self.CODE, f"the client has not declared: {names}", {"requiredCapabilities": required})

    def wire_code(self, revision: str) -> int:
        """The code is that of 2026-07-28; before, it was an invalid request."""
        from typedmcp.edge.revisions import is_modern

        return self.code if is_modern(revision) else INVALID_REQUEST


class UnsupportedVersion(RemoteError):  # noqa: N818
    """The server does not speak the revision that was asked for."""

    CODE = -32022

    def __init__(self, requested: str, supported: list[str]) -> None:
        data = {"supported": supported, "requested": requested}
        super().__init__(self.CODE, f"unsupported protocol version: {requested}", data)


class HeaderMismatch(RemoteError):  # noqa: N818
    """HTTP headers are not what the body says, or are missing, repeated or malformed."""

    CODE = -32020

    def __init__(self, message: str) -> None:
        super().__init__(self.CODE, message)


class InsufficientScope(RemoteError):  # noqa: N818
    """The credentials of the request do not cover what it wants. Over HTTP it is answered with 403 and a challenge."""

    CODE = -31403

    def __init__(self, *scopes: str) -> None:
        super().__init__(self.CODE, f"this needs the scopes: {' '.join(scopes)}", {"requiredScopes": list(scopes)})


class CallLost(RemoteError):  # noqa: N818
    """The process that worked on a call of a resumable session has died. Whether the call took effect is not known."""

    CODE = -31503

    def __init__(self) -> None:
        super().__init__(self.CODE, "the process that worked on this has died; it may or may not have taken effect")


def _kinds() -> dict[int, type[RemoteError]]:
    return {
        HeaderMismatch.CODE: HeaderMismatch,
        InsufficientScope.CODE: InsufficientScope,
        CallLost.CODE: CallLost,
        METHOD_NOT_FOUND: MethodNotFound,
        INVALID_PARAMS: InvalidParams,
        ResourceNotFound.LEGACY_CODE: ResourceNotFound,
        MissingCapability.CODE: MissingCapability,
        UnsupportedVersion.CODE: UnsupportedVersion,
    }


class ConnectionLost(Error):  # noqa: N818
    """The connection ended before the answer came."""


class RequestTimeout(ConnectionLost):
    """No answer within the time allowed. `seconds` is that time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class HttpStatusError(ConnectionLost):
    """A server, or what stands before it, answered with a status of HTTP's instead of a message of the protocol's.

    `status` is its number, `body` the beginning of what came with it.
    """

    def __init__(self, status: int, text: str, body: str = "") -> None:
        super().__init__(f"{text}: {body}" if body else text)
        self.status = status
        self.body = body

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


class AuthorizationRequired(HttpStatusError):  # noqa: N818
    """The server wants to know who asks (401), or does not let this one do it (403).

    `challenge` is what its `WWW-Authenticate` header says, or empty.
    """

    def __init__(self, status: int, challenge: str, body: str = "") -> None:
        what = "wants to know who asks" if status == 401 else "does not allow it"
        super().__init__(status, f"the server {what} ({status}{f', {challenge}' if challenge else ''})", body)
        self.challenge = challenge


class ServerBusy(HttpStatusError):  # noqa: N818
    """The server asks to be left alone for a while (429, 503): `retry_after` seconds, or None if it does not say."""

    def __init__(self, status: int, retry_after: float | None, body: str = "") -> None:
        when = "later" if retry_after is None else f"in {retry_after:g} s"
        super().__init__(status, f"the server is busy ({status}), try again {when}", body)
        self.retry_after = retry_after
