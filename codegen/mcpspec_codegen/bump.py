"""Import a schema file of upstream, and compare our files with upstream's."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import urllib.request
from http.client import HTTPException
from pathlib import Path

from mcpspec_codegen import errata
from mcpspec_codegen.diff import describe_changes
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Schema
from mcpspec_codegen.pipeline import compile_all, load_interface
from mcpspec_codegen.source import EXTENSION, Pinned, check_version, format_interface, load, load_pinned, parse, sha256

__all__ = ["bump", "find_differences"]

_UPSTREAM = re.compile(r"https://[^/]+/(?P<repository>[^/]+/[^/]+)/(?P<commit>[0-9a-f]{40})/(?P<path>.+)")
_REFERENCE = "https://modelcontextprotocol.io/specification/{version}/schema#{{anchor}}"
_TIMEOUT_SECONDS = 60
_LIMIT_BYTES = 64 << 20


def bump(version: str, origin: str, folder: Path, *, commit: str | None, repin: bool) -> tuple[dict[str, str], str]:
    """Import a schema into the schema folder, and return the regenerated files and a report.

    Raises `SchemaError` for a file whose hash is not the pinned one (unless `repin`), or that cannot be
    compiled; nothing is written then.
    """
    check_version(version, "VERSION")
    data = _read(origin)
    pinned = load_pinned(folder)
    entry = pinned.get(version, {})
    same = entry.get("upstream_sha256") == sha256(data)
    if entry and not same and not repin:
        raise SchemaError(
            origin, "", f"sha256 {sha256(data)} differs from the one pinned for {version}; REPIN=1 accepts it"
        )
    schema = parse(data, origin)
    text = format_interface(schema)
    with tempfile.TemporaryDirectory() as scratch:
        draft = Path(scratch) / "schema"
        shutil.copytree(folder, draft)
        (draft / f"{version}.json").parent.mkdir(exist_ok=True)
        (draft / f"{version}.json").write_text(text, encoding="utf-8")
        pinned[version] = _entry(version, origin, entry, commit, same=same) | {
            "upstream_sha256": sha256(data),
            "sha256": sha256(text.encode()),
        }
        _write_pinned(draft, pinned)
        try:
            files, missing = compile_all(draft)
        except SchemaError as error:
            raise _with_origin(error, draft, version, origin, schema) from error
        report = _report(version, folder, draft, missing)
        shutil.copytree(draft, folder, dirs_exist_ok=True)
    return files, report


def _with_origin(error: SchemaError, draft: Path, version: str, origin: str, schema: Schema) -> SchemaError:
    """Return an error of the draft as one of the original file, with the errata that might fix it."""
    file = origin if error.file == str(draft / f"{version}.json") else error.file
    proposed = "\n".join(_proposals(schema, draft, version))
    return SchemaError(file, error.pointer, error.reason + (f"\n{proposed}" if proposed else ""))


def _proposals(schema: Schema, folder: Path, version: str) -> list[str]:
    lines: list[str] = []
    for entry in errata.carry_over(schema, errata.load(folder), version):
        lines.append(f"errata: {entry['pointer']} has the same defect as in an older revision; consider adding:")
        lines.append(json.dumps(entry, indent=2))
    return lines


def _read(origin: str) -> bytes:
    if "://" in origin and not origin.startswith("https://"):
        raise SchemaError(origin, "", "expected a path or an https URL")
    if not origin.startswith("https://"):
        try:
            return Path(origin).read_bytes()
        except OSError as error:
            raise SchemaError(origin, "", error.strerror or str(error)) from error
    try:
        with urllib.request.urlopen(origin, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310  # https, checked
            data: bytes = response.read(_LIMIT_BYTES + 1)
    except (OSError, ValueError, HTTPException) as error:
        raise SchemaError(origin, "", f"cannot be fetched: {error}") from error
    if len(data) > _LIMIT_BYTES:
        raise SchemaError(origin, "", f"larger than {_LIMIT_BYTES >> 20} MiB")
    return data


def _entry(
    version: str, origin: str, known: dict[str, str], commit: str | None, *, same: bool = True
) -> dict[str, str]:
    """Describe the origin of a schema: from its URL, else as given, else as pinned before."""
    if found := _UPSTREAM.fullmatch(origin):
        source = found.groupdict()
    else:
        source = {
            "repository": known.get("repository", "modelcontextprotocol/modelcontextprotocol"),
            "commit": commit or (known.get("commit") if same else None) or "unknown",
            "path": known.get("path", f"schema/{version}/schema.json"),
        }
    return source | {"reference": known.get("reference", _REFERENCE.format(version=version))}


def _write_pinned(folder: Path, pinned: Pinned) -> None:
    ordered = sorted(pinned, key=lambda version: (version.startswith(EXTENSION), version))
    keys = ("repository", "commit", "path", "upstream_sha256", "sha256", "reference")
    document = {version: {key: pinned[version][key] for key in keys} for version in ordered}
    (folder / "PINNED.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _report(version: str, before: Path, after: Path, missing: list[str]) -> str:
    """Report the changes against the newest earlier revision, and against the same version as pinned before."""
    older = _predecessor(version, before)
    lines: list[str] = []
    new = load_interface(after, version)
    if older is not None:
        lines.append(f"{version} against {older}:")
        lines.append(describe_changes(load_interface(before, older), new) or "no changes\n")
    if version in load_pinned(before):
        lines.append(f"{version} against its previous file:")
        lines.append(describe_changes(load_interface(before, version), new) or "no changes\n")
    schema = next(source.schema for source in load(after) if source.version == version)
    lines += _proposals(schema, after, version)
    lines += [f"no description in docs.toml: {name}" for name in missing]
    return "\n".join(lines)


def _predecessor(version: str, folder: Path) -> str | None:
    known = load_pinned(folder)
    if version.startswith(EXTENSION):
        return None
    return max((other for other in known if not other.startswith(EXTENSION) and other < version), default=None)


def find_differences(folder: Path, official: Path) -> list[str]:
    """List the differences between our schemas and upstream's without prose, one line each; also apply the errata."""
    differences: list[str] = []
    for version, entry in load_pinned(folder).items():
        path = official / version.replace("/", "-") / "schema.json"
        if not path.is_file():
            differences.append(f"{version}: upstream's file is missing: {path}")
            continue
        data = path.read_bytes()
        if sha256(data) != entry["upstream_sha256"]:
            differences.append(f"{version}: the sha256 of upstream's file differs from the one in PINNED.json")
        elif format_interface(parse(data, str(path))) != (folder / f"{version}.json").read_text(encoding="utf-8"):
            differences.append(f"{version}: our file differs from upstream's without prose")
    for source in load(folder):
        errata.apply(source.schema, errata.load(folder), source.version, source.file)
    return differences
