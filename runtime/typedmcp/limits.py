"""Limits on what one peer can make this process keep or do.

A server and a client take `limits=Limits(...)`. Every limit has its unit in its name or its description, and a peer
that reaches one gets an answer, or a diagnostic, that names it. The reference of the site has the tables.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from typedmcp.errors import UsageError
from typedmcp_schemas.nesting import MAX_DEPTH

__all__ = ["DEFAULT_LIMITS", "Limits"]

_KIB = 1 << 10
_MIB = 1 << 20


class Limits(Struct, frozen=True, kw_only=True):  # a dataclass of this size adds 6.5 % to the imports of `serve`
    """The limits of a server or a client. Raises `UsageError` for a limit below 1 or above its maximum.

    The first paragraph of each description is what is counted, the second what happens when the limit is reached.
    The tables of the site quote both.
    """

    # Both sides
    recording_bytes: int = 1024 * _MIB
    """Bytes of a file that `record` writes.

    The recording ends with the last message that fits, and a warning is logged. The connection goes on.
    """
    message_bytes: int = 64 * _MIB
    """Bytes of one message on a line, and of one event or response that a client reads over HTTP.

    A server skips the message and sends error -32600, with the id if the id is in the first 4 KiB. A client reports the
    response, and the call raises `ProtocolError`.
    """
    message_depth: int = MAX_DEPTH
    """Levels of arrays and objects within each other in one message, at most 200.

    A server rejects the message with error -32700 and its id, over HTTP with status 400. A client reports the response,
    and the call raises `ProtocolError`.
    """
    batch_messages: int = 1000
    """Messages in one batch (2025-03-26).

    The whole batch gets one error -32600 without an id.
    """
    input_rounds: int = 10
    """Rounds of input requests within one call.

    A server ends the call with error -32603. A client raises `InputUnavailableError`.
    """
    input_requests: int = 100
    """Input requests in one round, and URLs in one error -32042.

    A server ends the call with error -32603. A client raises `InputUnavailableError`.
    """

    # Servers
    requests_in_flight: int = 65_536
    """Requests that one connection, session or stateless application handles at a time.

    Further requests get error -32603. Further notifications are dropped and reported.
    """
    threads: int = 32
    """Threads for functions that block.

    Further calls wait for a thread: clients take turns. Over HTTP one client uses at most three quarters of them.
    """
    resource_subscriptions: int = 10_000
    """Resources that one listener or session subscribes to.

    On 2026-07-28 the acknowledgement names the accepted resources. Older revisions get error -32602.
    """
    request_messages_per_second: int = 1000
    """Progress and log messages that the handler of one request sends in a second.

    Further ones are dropped until the second is over. The first is reported.
    """
    call_bytes: int = 128 * _MIB
    """Bytes of requests in progress, with 4 KiB for each: bodies while they arrive, messages and their headers while
    their handlers wait, also if the client has left, the collected responses of a batch, and large responses until the
    client has read them.

    Further requests get error -32603, over HTTP on 2026-07-28 with status 503. A body above 64 KiB gets status 503.
    Over HTTP a result above 64 KiB is dropped, and its request gets error -32603.
    """
    subscription_bytes: int = 64 * _MIB
    """Bytes of the URIs that listeners and connections are subscribed to, with 128 bytes for each.

    On 2026-07-28 the acknowledgement names the accepted resources. Older revisions get error -32602.
    """
    client_share_percent: int = 25
    """Percent of each budget of bytes that one client can use: a principal, an address (of IPv6 a network of 64 bits)
    or a connection. 100 sets no share.

    The client gets what follows from the budget. Other clients do not notice it.
    """

    # Servers over HTTP
    http_body_bytes: int = 4 * _MIB
    """Bytes of the body of one request.

    Status 413.
    """
    http_header_bytes: int = 64 * _KIB
    """Bytes of all headers of one request.

    Status 431.
    """
    http_headers: int = 128
    """Headers of one request.

    Status 431.
    """
    http_streams: int = 10_000
    """Open event streams of one application.

    Status 503 with `Retry-After`.
    """
    http_stream_buffer_bytes: int = 256 * _KIB
    """Bytes that wait in one event stream.

    The stream is congested: a handler that awaits `ctx.progress` or `ctx.log` waits. Progress and log messages are
    dropped and reported at twice the limit. Results are kept.
    """
    stream_bytes: int = 256 * _MIB
    """Bytes that wait in all event streams, with 16 KiB for each stream.

    Further streams get status 503 with `Retry-After`. Streams with more than 4 KiB in their queues are congested, and
    drop progress and log messages. A result above 64 KiB is dropped, and its request gets error -32603.
    """
    session_client_bytes: int = 64 * _KIB
    """Bytes of the client's description of itself in `initialize`.

    Status 413.
    """
    sse_queue_bytes: int = _MIB
    """Bytes of posted messages that wait in one connection of 2024-11-05.

    Further POSTs wait for their responses. Messages that were posted on other workers are dropped and reported at twice
    the limit.
    """
    access_token_bytes: int = 16 * _KIB
    """Bytes of one access token that `JwtVerifier` and `IntrospectionVerifier` examine.

    The token is not valid: 401.
    """
    verified_token_bytes: int = 16 * _MIB
    """Bytes of the tokens or introspections whose principals one verifier keeps. Each counts 1 KiB more.

    The principals that were used least recently are forgotten, and their tokens are verified again.
    """

    dpop_proof_bytes: int = 16 * _MIB
    """Bytes of the ids of proofs (DPoP) that one `DpopVerifier` remembers. Each counts 128 bytes.

    The oldest half is forgotten: such a proof can be used again until its time is too old.
    """

    # Clients
    list_pages: int = 10_000
    """Pages of one list.

    The list counts as endless, and the iteration raises `ProtocolError`.
    """
    cache_bytes: int = 8 * _MIB
    """Bytes of cached results.

    The client forgets the results it used least recently. 1 keeps none.
    """
    output_schema_bytes: int = 8 * _MIB
    """Bytes of the output schemas of listed tools, with 1 KiB and the name for each.

    The client forgets the schemas it used least recently, and does not check the results of their tools. The first is
    reported.
    """
    result_problems: int = 10_000
    """Invalid parts of one result that are left out or repaired.

    The call raises `ProtocolError`.
    """
    invalid_messages: int = 10_000
    """Messages of a server within ten seconds that are invalid or unexpected.

    The session ends, and its calls raise `ConnectionLostError`.
    """
    waiting_notifications: int = 10_000
    """Notifications that wait for callbacks.

    Further ones are dropped and reported.
    """
    server_requests_in_flight: int = 256
    """Requests of a legacy server that callbacks answer at a time.

    Further requests get an error.
    """
    waiting_message_bytes: int = 64 * _MIB
    """Bytes of the notifications and requests of a server whose async callbacks wait or run.

    Further notifications are dropped and reported, and further requests get an error. One message is always accepted.
    """
    http_calls_in_flight: int = 256
    """Calls of one HTTP client at a time, without streams that listen.

    Further calls wait for their turn.
    """
    http_redirects: int = 5
    """Requests in a row that a server answers with a redirect.

    The call raises `HttpStatusError`.
    """
    http_event_id_bytes: int = 1024
    """Bytes of the id of one event in a stream.

    The id is reported and dropped. If the stream breaks after this event, it is not resumed, and its call raises
    `ConnectionLostError`.
    """
    oauth_document_bytes: int = 256 * _KIB
    """Bytes of one response of an authorization server, or of one document about it.

    The client or the server closes the connection. In a client, the call raises `SignInError`. A server that cannot
    verify a token responds with 503.
    """
    page_bytes: int = 4 * _MIB
    """Bytes of the HTML of a page that a host loads (`typedmcp_extensions.apps`).

    `load_page` raises `ProtocolError`.
    """
    page_message_bytes: int = _MIB
    """Bytes of one message of a page to its host.

    The message is reported, and gets error -32600 if its id is in the first 4 KiB.
    """
    page_diagnostics: int = 100
    """Diagnostics of one page within ten seconds (`typedmcp_extensions.apps`).

    The last one says so, and further ones are dropped.
    """
    page_requests_in_flight: int = 16
    """Requests of one page that its host handles at a time.

    Further requests are reported, and get error -32000.
    """
    http_response_head_bytes: int = 128 * _KIB
    """Bytes of the head of one HTTP response, and of its trailers.

    The client closes the connection, and the call raises `ConnectionLostError`.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            if type(value) is not int or value < 1:
                raise UsageError(f"limits: {name} must be an integer of at least 1, not {value!r}")
        for name, most in (("client_share_percent", 100), ("message_depth", MAX_DEPTH)):
            if getattr(self, name) > most:
                raise UsageError(f"limits: {name} must be at most {most}, not {getattr(self, name)}")


DEFAULT_LIMITS: Final = Limits()
"""The limits of a server or client that is given none."""
