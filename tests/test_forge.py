"""The workflows, hooks and templates for a forge: they call targets that exist, on the Pythons that are promised."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from tests.cases import each
from tests.docs.shell import errors_in
from tests.paths import ROOT

FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (FORGE / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.yaml.decode(path.read_bytes())
    return content


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


@each("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_exist(path: Path) -> None:
    made = [line for step in steps(path) for line in step.get("run", "").splitlines() if line.startswith("make ")]
    assert made
    assert [error for line in made for error in errors_in(line)] == []


@each("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_only_read_unless_a_job_needs_more(path: Path) -> None:
    assert read(path)["permissions"] == {"contents": "read"}


def test_the_tests_run_on_each_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert read(FORGE / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == promised


def test_a_release_is_published_without_a_password_and_attested() -> None:
    jobs = read(FORGE / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "pypi"
    text = (FORGE / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "password" not in text
    assert "secrets." not in text
    assert {"make dist", "make sbom"} <= {step.get("run") for step in jobs["build"]["steps"]}


@each("path", FORMS, ids=lambda path: path.name)
def test_forms_have_what_the_forge_requires(path: Path) -> None:
    form = read(path)
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len({*ids})
    assert all(field["attributes"]["label"] for field in form["body"])
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_each_step_of_the_checklist_of_a_release_is_a_command_that_exists() -> None:
    text = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(make [^`]+)` \|", text, re.MULTILINE)
    assert {"make complete", "make test-full", "make dist", "make sbom"} <= {*listed}
    assert [error for line in listed for error in errors_in(line)] == []


def test_hooks_run_the_tools_of_the_checks() -> None:
    (own,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    checks = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in own["hooks"]:
        program = hook["entry"].removeprefix(".venv/bin/python -m ").split(" --")[0]
        assert f"$(RUN) -m {program}" in checks, hook["id"]
