"""Build the distributions, try each in empty environments, and put them into `dist/` if all pass.

Usage: `python -m tools.dist UV [lowest|newest …]`. It checks that

- each archive has exactly the files that it should have, and an sdist builds the same wheel, byte for byte;
- all have one version, and each needs exactly this version of the others;
- an index accepts their metadata, and shows their README: `twine check`;
- the wheels work with the lowest and with the newest versions of their dependencies, or with those that are named;
- `mcpspec` and `typedmcp-schemas` bring msgspec alone, and `typedmcp` no satellite;
- `pyright --verifytypes` is at 100 %.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from email.message import Message
from email.parser import Parser
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
_run_folder = tempfile.TemporaryDirectory(prefix="dist-")
BUILT = Path(_run_folder.name)
"""The archives of this run. `dist/` gets them when all are tried: two Pythons may try theirs side by side."""
TRIALS = Path(__file__).parent / "trials"
"""Scripts that use what is installed."""
METADATA_FILES = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
"""Files of an sdist that are not the package's."""

Kind: TypeAlias = Literal["wheel", "sdist"]
End: TypeAlias = Literal["lowest", "newest"]
ENDS: tuple[End, ...] = ("lowest", "newest")


@dataclass(frozen=True)
class Distribution:
    """One of the distributions."""

    name: str
    project: Path
    package: Path
    further: frozenset[str] = frozenset()
    """Further files of the sdist."""

    def archive(self, kind: Kind) -> Path:
        """Return the wheel or the sdist that this run has built."""
        suffix = "-py3-none-any.whl" if kind == "wheel" else ".tar.gz"
        (found,) = BUILT.glob(f"{self.package.name}-[0-9]*{suffix}")
        return found

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The files of the package in the checkout."""
        return read_all(self.package)

    @cached_property
    def metadata(self) -> Message:
        with zipfile.ZipFile(self.archive("wheel")) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return Parser().parsestr(wheel.read(name).decode())

    @property
    def version(self) -> str:
        return str(self.metadata["Version"])

    @property
    def extras(self) -> list[str]:
        return self.metadata.get_all("Provides-Extra", [])

    def requirements(self, extras: list[str]) -> list[Requirement]:
        """List what the distribution needs with some of its extras."""
        needed = [Requirement(text) for text in self.metadata.get_all("Requires-Dist", [])]
        return [one for one in needed if not one.marker or any(one.marker.evaluate({"extra": e}) for e in extras)]


MCPSPEC = Distribution("mcpspec", ROOT / "generated", ROOT / "generated" / "mcpspec")
CODEGEN = Distribution("mcpspec-codegen", ROOT / "codegen", ROOT / "codegen" / "mcpspec_codegen")
TYPEDMCP = Distribution("typedmcp", ROOT, ROOT / "runtime" / "typedmcp", frozenset({"CHANGELOG.md", "SECURITY.md"}))
SCHEMAS, *SATELLITES = sorted(
    (
        Distribution(folder.name, folder, folder / folder.name.replace("-", "_"))
        for folder in (ROOT / "runtime").glob("typedmcp-*")
    ),
    key=lambda one: (one.name != "typedmcp-schemas", one.name),
)
"""The distribution beneath `typedmcp`, and those that build on it, each in a folder of its name."""
DISTRIBUTIONS = {one.name: one for one in (MCPSPEC, CODEGEN, SCHEMAS, TYPEDMCP, *SATELLITES)}


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command and return its output. Raise `SystemExit` with the output if it fails."""
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def read_all(package: Path) -> dict[str, bytes]:
    """Return the files of a package. Paths begin with the name of the package."""
    paths = (Path(folder, name) for folder, _, names in os.walk(package, followlinks=True) for name in names)
    return {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in paths if path.suffix != ".pyc"}


# Archives


def build(uv: str, distribution: Distribution, scratch: Path) -> None:
    """Build an sdist and the wheel of it, and check that the wheel of the checkout is the same."""
    run(uv, "build", "--quiet", "--out-dir", BUILT, distribution.project)
    run(uv, "build", "--quiet", "--wheel", "--out-dir", scratch, distribution.project)
    wheel = distribution.archive("wheel")
    assert wheel.read_bytes() == (scratch / wheel.name).read_bytes(), f"the sdist builds another {wheel.name}"
    check_wheel(distribution)
    check_sdist(distribution)
    sizes = [
        f"{path.name} ({path.stat().st_size >> 10} KiB)"
        for path in (distribution.archive("wheel"), distribution.archive("sdist"))
    ]
    print("built", " and ".join(sizes))


def check_wheel(distribution: Distribution) -> None:
    """Check that the wheel has the files of the package, README and LICENSE, and nothing else."""
    with zipfile.ZipFile(distribution.archive("wheel")) as wheel:
        content = {name: wheel.read(name) for name in wheel.namelist()}
    info = f"{distribution.package.name}-{distribution.version}.dist-info"
    scripts = {"entry_points.txt"} & {name.rpartition("/")[2] for name in content}
    expected = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE", *scripts)}
    check_same_names({*content}, expected | distribution.files.keys(), distribution.archive("wheel"))
    assert f"{distribution.package.name}/py.typed" in content
    assert [name for name, data in distribution.files.items() if content[name] != data] == []
    assert str(distribution.metadata.get_payload()) == (distribution.project / "README.md").read_text(encoding="utf-8")


def check_sdist(distribution: Distribution) -> None:
    """Check that the sdist has what builds the wheel, and nothing else."""
    with tarfile.open(distribution.archive("sdist")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    folder = distribution.package.parent.relative_to(distribution.project)
    files = {(folder / name).as_posix() for name in distribution.files}
    check_same_names(names, files | METADATA_FILES | distribution.further, distribution.archive("sdist"))


def check_same_names(found: set[str], expected: set[str], archive: Path) -> None:
    if found != expected:
        sys.exit(f"{archive.name}: missing {sorted(expected - found)}, not expected {sorted(found - expected)}")


def check_versions() -> None:
    """Check that all have one version, and that the runtime and the satellites need the others in this version."""
    (version,) = {distribution.version for distribution in DISTRIBUTIONS.values()}
    for distribution in (TYPEDMCP, *SATELLITES):
        ours = [one for one in distribution.requirements(["", *distribution.extras]) if one.name in DISTRIBUTIONS]
        assert ours, distribution.name
        assert {str(one.specifier) for one in ours} <= {f"=={version}", ""}, ours
    print("all have the version", version)


# Environments


@dataclass(frozen=True)
class TrialEnvironment:
    """An environment with our wheels, and their dependencies at one end of their ranges."""

    uv: str
    folder: Path
    end: End

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def create(self) -> None:
        run(self.uv, "venv", "--quiet", "--python", sys.executable, self.folder)

    def install(self, distribution: Distribution, extras: list[str]) -> None:
        """Install a distribution with some of its extras."""
        ours, others = expand(distribution, extras)
        archives = [f"{one.name} @ {one.archive('wheel').as_uri()}" for one in ours]
        # The lowest versions are taken for requirements that are given here, and not for those of the archives.
        requirements = [f"{one.name}{one.specifier}" for one in others]
        options = ["--resolution", "lowest-direct"] if self.end == "lowest" else ["--upgrade"]
        run(self.uv, "pip", "install", "--quiet", "--python", self.python, *options, *archives, *requirements)
        if self.end == "lowest":
            self.check_lowest(others)

    def installed(self) -> dict[str, Version]:
        listed = run(self.uv, "pip", "list", "--quiet", "--format", "json", "--python", self.python)
        return {one["name"]: Version(one["version"]) for one in json.loads(listed)}

    def check_lowest(self, requirements: list[Requirement]) -> None:
        """Check that the lower bounds are installed: they exist, and no other requirement excludes them."""
        installed = self.installed()
        bounds: dict[str, Version] = {}
        for one in requirements:
            (bound,) = (Version(part.version) for part in one.specifier if part.operator in (">=", "=="))
            bounds[one.name] = max(bound, bounds.get(one.name, bound))
        wrong = [f"{name} {installed[name]}, not {bound}" for name, bound in bounds.items() if installed[name] != bound]
        assert not wrong, f"a lower bound cannot be installed: {wrong}"

    def run(self, script: str, *arguments: str | Path) -> None:
        """Run a script of `trials` with warnings as errors."""
        run(self.python, "-W", "error", TRIALS / script, *arguments, cwd=self.folder)

    def verify_types(self, package: str) -> None:
        """Check that every public name of an installed package has a known type."""
        command = [sys.executable, "-m", "pyright", "--ignoreexternal", "--outputjson", "--verifytypes", package]
        # For this check, pyright searches only the active environment.
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        active = {**os.environ, "VIRTUAL_ENV": str(self.folder), "PATH": path}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=active, cwd=self.folder)  # noqa: S603
        report = json.loads(done.stdout)["typeCompleteness"]
        public = [symbol for symbol in report["symbols"] if symbol["isExported"]]
        unknown = [symbol["name"] for symbol in public if not symbol["isTypeKnown"]]
        if unknown or not public or report["exportedSymbolCounts"]["withAmbiguousType"]:
            sys.exit("\n".join([f"{package}, {self}: public names with unknown types", *unknown[:20]]))
        print(f"{self}: all {len(public)} public names of {package} have known types")

    def __str__(self) -> str:
        return f"{self.end} dependencies"


def expand(distribution: Distribution, extras: list[str]) -> tuple[list[Distribution], list[Requirement]]:
    """Return what is installed with a distribution: ours, and the requirements for others."""
    ours, others = [distribution], []
    for one in distribution.requirements(["", *extras]):
        if one.name in DISTRIBUTIONS:
            further, their_others = expand(DISTRIBUTIONS[one.name], [*one.extras])
            ours += [each for each in further if each not in ours]
            others += their_others
        else:
            others.append(one)
    return ours, others


# Trials


def try_types(environment: TrialEnvironment) -> None:
    environment.install(MCPSPEC, [])
    assert environment.installed().keys() == {"mcpspec", "msgspec"}, environment.installed()
    environment.run("decode_vectors.py", "structs", ROOT / "tests" / "vectors")
    environment.install(MCPSPEC, ["pydantic"])
    environment.run("decode_vectors.py", "models", ROOT / "tests" / "vectors")
    environment.verify_types("mcpspec")


def try_compiler(environment: TrialEnvironment) -> None:
    """Compile the schemas that come with the compiler, and the one of its README with the commands that are there."""
    environment.install(CODEGEN, ["migrate"])
    environment.run("migrate_imports.py")
    environment.install(CODEGEN, [])
    command = environment.python.with_name("mcpspec-codegen")
    output = environment.folder / "output"
    run(command, "--output", output, "generate", cwd=environment.folder)
    assert read_all(output / MCPSPEC.name) == MCPSPEC.files

    environment.install(MCPSPEC, ["pydantic"])
    readme = (CODEGEN.project / "README.md").read_text(encoding="utf-8")
    schema, compiling = (
        found[1] for found in re.finditer(r"```(?:json|sh)\n(\{.*?|mcpspec-codegen .*?)```", readme, re.DOTALL)
    )
    (environment.folder / "acme.json").write_text(schema, encoding="utf-8")
    run(command, *compiling.split()[1:], cwd=environment.folder)
    use = "from acme_mcp import models, structs; structs.Weather(place='Graz'), models.Weather(place='Graz')"
    run(environment.python, "-W", "error", "-c", use, cwd=environment.folder)


def try_schemas(environment: TrialEnvironment) -> None:
    environment.install(SCHEMAS, [])
    assert environment.installed().keys() == {"msgspec", "typedmcp-schemas"}, environment.installed()
    environment.run("typedmcp_schemas_alone.py")
    environment.install(SCHEMAS, SCHEMAS.extras)
    environment.run("typedmcp_schemas_alone.py", *SCHEMAS.extras)
    environment.verify_types(SCHEMAS.package.name)


def try_runtime(environment: TrialEnvironment) -> None:
    environment.install(TYPEDMCP, [])
    expected = {"mcpspec", "msgspec", "typedmcp", "typedmcp-schemas"}
    assert environment.installed().keys() == expected, environment.installed()
    environment.run("call_tool.py", "stdio")
    check_missing_command(environment.python)
    environment.install(TYPEDMCP, TYPEDMCP.extras)
    environment.run("call_tool.py", "stdio")
    environment.run("call_tool.py", "http")
    run(environment.python.with_name("typedmcp"), "diff", "2025-06-18", "2025-11-25")
    if environment.end == "newest":
        environment.verify_types("typedmcp")


def try_satellites(environment: TrialEnvironment) -> None:
    """Try each satellite with what it needs alone, and with nothing of the others."""
    for satellite in SATELLITES:
        alone = replace(environment, folder=environment.folder / satellite.name)
        alone.create()
        alone.install(TYPEDMCP, [])
        alone.run("missing_satellite.py", satellite.package.name)
        alone.install(satellite, [])
        ours = {name for name in alone.installed() if name in DISTRIBUTIONS}
        assert ours == {one.name for one in expand(satellite, [])[0]}, ours
        alone.run(f"{satellite.package.name}_alone.py")
        if environment.end == "newest":
            alone.verify_types(satellite.package.name)


def try_checkout(environment: TrialEnvironment) -> None:
    """Install the checkout with extras as README says, into an environment that has pip alone."""
    if environment.end == "newest":
        run(sys.executable, "-m", "venv", "--clear", environment.folder)
        run(environment.python, ROOT / "tools" / "install.py", "hosts,redis")
        expected = {MCPSPEC.name, SCHEMAS.name, TYPEDMCP.name, "typedmcp-hosts", "typedmcp-redis"}
        assert environment.installed().keys() >= expected
        environment.run("typedmcp_redis_alone.py")


def check_missing_command(python: Path) -> None:
    """Check that `python -m typedmcp` without the distribution of the command says how to install it."""
    assert not python.with_name("typedmcp").exists()
    done = subprocess.run([python, "-m", "typedmcp", "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "pip install 'typedmcp[cli]'" in done.stderr, done.stderr


def main(uv: str, *ends: str) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        scratch = Path(folder)
        list(pool.map(lambda one: build(uv, one, scratch / "built"), DISTRIBUTIONS.values()))
        check_versions()
        run(uv, "tool", "run", "twine", "check", "--strict", *sorted(BUILT.glob("[a-z]*")))  # uv writes a `.gitignore`
        trials = [
            pool.submit(attempt, TrialEnvironment(uv, scratch / f"{trial.__name__}-{end}", end), trial)
            for trial in (try_types, try_compiler, try_schemas, try_runtime, try_satellites, try_checkout)
            for end in ENDS
            if end in (ends or ENDS)
        ]
        for trial in trials:
            trial.result()
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.copytree(BUILT, DIST, dirs_exist_ok=True)


def attempt(environment: TrialEnvironment, trial: Callable[[TrialEnvironment], None]) -> None:
    environment.create()
    trial(environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
