"""A handler of typedmcp over HTTP, for several workers: with sessions in Redis if REDIS_URL is set, else without."""

import os

from echo_handler import HttpEchoHandler

import typedmcp
import typedmcp_redis

URL = os.environ.get("REDIS_URL")
app = typedmcp.asgi(
    HttpEchoHandler(),
    name="echo",
    version="1",
    state_signer=typedmcp.StateSigner(b"only for this benchmark"),
    store=None if URL is None else typedmcp_redis.RedisStore(URL),
    sessions=URL is not None,
)
