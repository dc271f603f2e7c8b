"""The tables for operators in docs/deploying.md are true: servers of others start, refuse, reload and stop so."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from importlib.util import find_spec

import pytest

from tests.docs.markdown import replace_block
from tests.docs.operators import (
    EXPECTED,
    PAGE,
    REFUSED,
    WAYS,
    Way,
    fits,
    render,
    run_alone,
    run_refused,
    run_shared,
)
from tests.pairs import FULL_PRODUCTS, pairs
from tests.redis_server import RedisServer, shared_redis

__all__ = ["shared_redis"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="servers are ended by signals")

BY_NAME = {way.name: way for way in WAYS}
WITH_WORKERS = [way.name for way in WAYS if way.has_workers]
QUICK = [
    ("server.run, code", "Ctrl-C"),
    ("server.run, code", "SIGTERM"),
    ("typedmcp run, command", "Ctrl-C"),
    ("uvicorn, command", "SIGTERM"),
]
"""The runs that every change makes. All others are long."""
QUICKLY_REFUSED = ["uvicorn, code", "gunicorn, file"]


def way_of(name: str) -> Way:
    """Return a way whose server is installed."""
    way = BY_NAME[name]
    if find_spec(way.package) is None:
        pytest.skip(f"{way.package} is not installed")
    if way.server == "hypercorn" and sys.version_info >= (3, 12):
        pytest.skip("from Python 3.12 on, hypercorn waits for all that is open before it tells the application")
    return way


def factors(key: tuple[str, str]) -> list[str]:
    """Return the server of a run, the way to start it, and what ends it."""
    name, end = key
    return [*name.split(", "), end]


LONG: list[tuple[str, str]] = pairs((key for key in EXPECTED if key not in QUICK), factors)


def one_of_each(names: Iterable[str]) -> list[str]:
    """Choose one way to start each server. A release tries all."""
    if FULL_PRODUCTS:
        return list(names)
    return list({name.split(", ")[0]: name for name in names}.values())


def check_run(name: str, end: str) -> None:
    found = asyncio.run(run_alone(way_of(name), end))
    assert fits(found, EXPECTED[name, end]), (found, EXPECTED[name, end])


def check_refusal(name: str) -> None:
    way = way_of(name)
    status, log = asyncio.run(run_refused(way))
    assert str(status) in REFUSED[way.server].split(", or "), log
    assert "3 workers" in log or way.server == "granian"
    (missing, *_) = [line for line in log.splitlines() if "pass to each worker" in line]
    assert "StateSigner(key)" in missing
    assert "RedisStore(url)" in missing
    assert "sessions=False" in missing


def test_the_page_has_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replace_block(text, "operators", render()) == text


@pytest.mark.parametrize(("name", "end"), QUICK)
def test_a_server_that_is_often_used_ends_as_the_page_says(name: str, end: str) -> None:
    check_run(name, end)


@pytest.mark.long
@pytest.mark.parametrize(("name", "end"), LONG)
def test_a_server_ends_as_the_page_says(name: str, end: str) -> None:
    check_run(name, end)


@pytest.mark.parametrize("name", QUICKLY_REFUSED)
def test_workers_that_share_nothing_refuse_to_start_and_name_all_that_is_missing(name: str) -> None:
    check_refusal(name)


@pytest.mark.long
@pytest.mark.parametrize("name", one_of_each(name for name in WITH_WORKERS if name not in QUICKLY_REFUSED))
def test_workers_of_any_server_that_share_nothing_refuse_to_start(name: str) -> None:
    check_refusal(name)


@pytest.mark.long
@pytest.mark.parametrize("name", one_of_each(name for name in WITH_WORKERS if name.endswith((", command", ", file"))))
def test_workers_that_share_a_key_and_a_store_serve_every_session(name: str, shared_redis: RedisServer) -> None:
    way = way_of(name)
    statuses, ended, log = asyncio.run(run_shared(way, shared_redis.url))
    assert statuses == {200: 30}
    assert ended == 0
    assert "Traceback" not in log or way.server == "hypercorn", log
