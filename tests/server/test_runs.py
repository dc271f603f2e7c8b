"""The seam for extensions: a call that outlives its request, and a notification to its session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import typedmcp
from tests.architecture.test_satellites import find_faults
from tests.server import jobs
from tests.server.jobs import JobCalls, JobClient, Jobs
from tests.server.scripted import LEGACY, MODERN_REVISION, run
from typedmcp.extensions import restore_call


@pytest.mark.parametrize("revision", [LEGACY[0], MODERN_REVISION])
def test_a_job_goes_on_after_its_request(revision: str) -> None:
    async def main() -> None:
        extension = Jobs()
        reports: list[typedmcp.Diagnostic] = []
        config = typedmcp.ServerConfig(
            typedmcp.Server("x", extensions=[extension]), revisions=[revision], on_diagnostic=reports.append
        )

        async def elicit(_params: object) -> None:
            raise AssertionError("the run answers")

        async with typedmcp.connect(config, extensions=[JobClient()], elicit=elicit) as client:
            calls = client.extension(JobCalls)
            assert await calls.begin("tea") == "begun: tea"
            extension.answered.set()
            assert await calls.wait() == "tea"
            first = extension.runs[0]
            assert first.messages == ["half"]
            ((result, stored),) = zip(extension.results, extension.stored, strict=True)
            assert json.loads(result)["hits"] == [{"title": "tea: True"}]
            (hit,) = (await extension.take_over(stored)).hits
            assert hit.title == "tea: True"
            assert extension.runs[1].questions == first.questions, "the same question has the same key"
            dropped = [each.text for each in reports if each.method == "notifications/message"]
            reported = "notifications/message is not sent: the call has outlived its request"
            assert dropped == ([] if revision == MODERN_REVISION else [reported] * 2)

    run(main)


def test_the_extension_uses_public_names_alone() -> None:
    assert [*find_faults(Path(jobs.__file__).read_text(encoding="utf-8"), "tests")] == []


def test_a_client_without_the_extension_says_which_it_has() -> None:
    async def main() -> None:
        async with typedmcp.connect(typedmcp.Server("x")) as client:
            with pytest.raises(typedmcp.UsageError, match="no extension JobCalls; it has none"):
                client.extension(JobCalls)

    run(main)


def test_a_call_of_another_version_cannot_be_restored() -> None:
    config = typedmcp.ServerConfig(typedmcp.Server("x"))
    stored = b'{"raw": "e30=", "revision": "1999-01-01", "meta": {}}'
    with pytest.raises(ValueError, match="1999-01-01"):
        restore_call(config, stored, jobs.JobRun("1"))
