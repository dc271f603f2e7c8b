"""Classes and functions of the core can be read in one sitting, or say why not."""

from __future__ import annotations

from tests.paths import ROOT
from tools.code_figures import ClassSize, class_sizes, functions_of, length

CORE = (ROOT / "runtime" / "typedmcp", ROOT / "runtime" / "typedmcp-schemas" / "typedmcp_schemas")
"""The runtime, and what stands beneath it."""
METHODS, ATTRIBUTES, LINES = 25, 12, 60

_OPTIONS = "a value for each option or limit, and no state"
_FOR_USERS = "what users call: each method is a feature, and most have a few lines"
_STORED = "an interface of a store, one method for each thing that is kept"
_HOT = "read for each message, where another object would cost a call"

LARGE_CLASSES: dict[str, str] = {
    "AppState": "what all requests to an application share: each attribute is a component or a limit",
    "AsgiApp": "one method for each kind of request, and the options of each, read for every request",
    "Client": _FOR_USERS,
    "ClientSession": "two kinds of connections share the calls in flight, the deadlines and what ends them",
    "ConnectOptions": _OPTIONS,
    "ConnectionManager": "options that each connection is opened with, beside the state of the present one",
    "Context": f"the face of a call for handlers: {_FOR_USERS}. It is the call itself: a second object would cost",
    "EventStream": "bytes, events and their numbers of one stream, which are written together",
    "HeaderTemplate": "the positions of all headers that are compared: " + _HOT,
    "HttpChannel": "one response, from its head to the end of its stream: " + _HOT,
    "HttpConnection": "a parser of HTTP/1.1: its callbacks, and what it has read so far",
    "HttpSession": "the ids, limits and streams of a session over HTTP; streams and heads are components",
    "IncomingMessageHandler": "callbacks of the user, one for each kind of message that a server sends",
    "Limits": _OPTIONS,
    "MemoryStore": _STORED,
    "Server": f"the decorators, and the methods of a handler that they make: {_FOR_USERS}",
    "ServerConfig": _OPTIONS,
    "ServerOptions": _OPTIONS,
    "Session": "what is known of a client, whatever its channel: " + _HOT,
    "Sessions": _STORED,
    "Signature": "one parameter list in the three forms that its uses need: schema, conversion, call",
    "StoredSession": "a session and what is stored of it: the methods of a session, and those of its streams",
    "Subscription": _FOR_USERS,
    "SyncClient": "types of methods, which are made from those of `Client`",
    "Tool": _OPTIONS + " besides the compiled function",
}
"""Classes of more than 25 methods or a dozen attributes, each with the reason."""

LONG_FUNCTIONS: dict[str, str] = {
    "server/config.py: __init__": "a parameter for each option, each stored on a line of its own",
}
"""Functions of more than 60 lines, each with the reason."""


def test_a_class_of_the_core_has_few_methods_and_attributes() -> None:
    large = {each.name: each for package in CORE for each in class_sizes(package) if _is_large(each)}
    assert [each for name, each in large.items() if name not in LARGE_CLASSES] == []
    assert large.keys() >= LARGE_CLASSES.keys(), "delete the exceptions that no class needs"


def _is_large(size: ClassSize) -> bool:
    return size.methods > METHODS or size.attributes > ATTRIBUTES


def test_a_function_of_the_core_is_short() -> None:
    long = {
        f"{path}: {function.name}": length(function)
        for path, function in (each for package in CORE for each in functions_of(package))
        if length(function) > LINES
    }
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}
    assert long.keys() >= LONG_FUNCTIONS.keys(), "delete the exceptions that no function needs"
