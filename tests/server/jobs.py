"""An extension as a stranger writes it: jobs that go on after their request. It uses public names alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests import acme
from typedmcp import ClientExtension, Context, ServerConfig, ServerExtension
from typedmcp.extensions import (
    DetachedContext,
    ExtensionClient,
    SessionHandle,
    answers_given,
    detach,
    encode_result,
    find_answer_fault,
    restore_call,
    store_call,
)

__all__ = ["JobCalls", "JobClient", "JobRun", "Jobs"]


class JobRun:
    """What a job talks to: it keeps the progress, and answers every question with yes."""

    client = ""

    def __init__(self, id: str) -> None:
        self.id = id
        self.messages: list[str] = []
        self.questions: list[str] = []

    def notify(self, method: str, params: Any) -> bool:
        if method != "notifications/progress":
            return False
        self.messages.append(params.message)
        return True

    async def ask(self, questions: Mapping[str, Any]) -> Mapping[str, Any]:
        answers: dict[str, Any] = {}
        for key, request in questions.items():
            (name,) = request["params"]["requestedSchema"]["properties"]
            answers[key] = {"action": "accept", "content": {name: True}}
            assert find_answer_fault(request, answers[key]) is None
            assert find_answer_fault(request, {"action": "accept", "content": {name: "perhaps"}}) is not None
            self.questions.append(key)
        return answers


class Jobs(ServerExtension):
    """The server's side: `acme/search` begins a job, and a notification says that it has ended."""

    def __init__(self) -> None:
        super().__init__(acme.ACME, lifespan=self._open)
        self.handler(acme.SEARCH)(self._begin)
        self.runs: list[JobRun] = []
        self.stored: list[bytes] = []
        self.results: list[bytes] = []
        self.answered = asyncio.Event()

    @asynccontextmanager
    async def _open(self, config: ServerConfig) -> AsyncGenerator[asyncio.TaskGroup]:
        self.config = config
        async with asyncio.TaskGroup() as group:
            yield group

    async def _begin(self, params: acme.SearchParams, ctx: Context) -> acme.SearchResult:
        assert answers_given(ctx) == {}
        run = JobRun(f"job {len(self.runs)}")
        self.runs.append(run)
        self.stored.append(store_call(ctx))
        group: asyncio.TaskGroup = ctx.state_of(self)
        group.create_task(self._work(detach(ctx, run), SessionHandle(ctx)))
        return acme.SearchResult(hits=[acme.Hit(title=f"begun: {params.query}")])

    async def _work(self, ctx: DetachedContext, session: SessionHandle) -> None:
        await self.answered.wait()
        result = await self.search(ctx)
        self.results.append(encode_result(ctx, result))
        if session.is_open:
            session.notify(acme.INDEXED.name, acme.IndexedParams(folder=ctx.params.query, documents=len(result.hits)))

    async def search(self, ctx: DetachedContext) -> acme.SearchResult:
        await ctx.progress(1, message="half")
        await ctx.info("not for a job")
        answer = await ctx.elicit("Go on?", bool)
        title = await ctx.in_thread(lambda: f"{ctx.params.query}: {answer.data}")
        return acme.SearchResult(hits=[acme.Hit(title=title)])

    async def take_over(self, stored: bytes) -> acme.SearchResult:
        """Run a job again, as another worker does."""
        run = JobRun("job of another worker")
        self.runs.append(run)
        return await self.search(restore_call(self.config, stored, run))


class JobClient(ClientExtension):
    """The client's side: `client.extension(JobCalls)` waits for jobs."""

    def __init__(self) -> None:
        super().__init__(acme.ACME)

    def bind(self, client: ExtensionClient) -> JobCalls:
        return JobCalls(client)


class JobCalls(ClientExtension):
    """The jobs of one client."""

    def __init__(self, client: ExtensionClient) -> None:
        super().__init__(acme.ACME)
        self._client = client
        self._ended: asyncio.Queue[acme.IndexedParams] = asyncio.Queue()
        self.on(acme.INDEXED)(self._ended.put_nowait)

    async def begin(self, query: str) -> str:
        """Begin a job, and return what the server says of it."""
        (hit,) = (await self._client.send(acme.SEARCH, {"query": query})).hits
        return hit.title

    async def wait(self) -> str:
        """Wait until a job has ended, and return its query."""
        async with asyncio.timeout(10):
            return (await self._ended.get()).folder
