"""Taking in a schema file of upstream's, and comparing ours with upstream's."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import urllib.request
from http.client import HTTPException
from pathlib import Path

from codegen import errata
from codegen.diff import changes
from codegen.errors import SchemaError
from codegen.nodes import Schema
from codegen.pipeline import compile_all, interface
from codegen.source import EXTENSION, Pinned, check_version, interface_text, load, load_pinned, parse, sha256

__all__ = ["bump", "schema_check"]

_UPSTREAM = re.compile(r"https://[^/]+/(?P<repository>[^/]+/[^/]+)/(?P<commit>[0-9a-f]{40})/(?P<path>.+)")
_REFERENCE = "https://modelcontextprotocol.io/specification/{version}/schema#{{anchor}}"
_TIMEOUT_SECONDS = 60
_LIMIT_BYTES = 64 << 20


def bump(version: str, origin: str, folder: Path, *, commit: str | None, repin: bool) -> tuple[dict[str, str], str]:
    """Take a schema in: returns the regenerated files and a report, after updating the schema folder.

    Raises `SchemaError` for a file whose hash is not the pinned one (unless `repin`), or that cannot be
    compiled; nothing has been written then.
    """
    check_version(version, "VERSION")
    data = _read(origin)
    pinned = load_pinned(folder)
    entry = pinned.get(version, {})
    same = entry.get("upstream_sha256") == sha256(data)
    if entry and not same and not repin:
        raise SchemaError(origin, "", f"sha256 {sha256(data)} is not the one pinned for {version}; REPIN=1 accepts it")
    schema = parse(data, origin)
    text = interface_text(schema)
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
            raise _told_of_origin(error, draft, version, origin, schema) from error
        report = _report(version, folder, draft, missing)
        shutil.copytree(draft, folder, dirs_exist_ok=True)
    return files, report


def _told_of_origin(error: SchemaError, draft: Path, version: str, origin: str, schema: Schema) -> SchemaError:
    """An error of the draft as one of the file it was made from, with the errata that may be what is missing."""
    file = origin if error.file == str(draft / f"{version}.json") else error.file
    proposed = "\n".join(_proposals(schema, draft, version))
    return SchemaError(file, error.pointer, error.reason + (f"\n{proposed}" if proposed else ""))


def _proposals(schema: Schema, folder: Path, version: str) -> list[str]:
    lines: list[str] = []
    for entry in errata.carry_over(schema, errata.load(folder), version):
        lines.append(f"errata: {entry['pointer']} has the defect of an older revision; consider adding:")
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
    """Where a schema comes from: read off its URL, else as stated, else as known."""
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
    """What changed against the newest earlier revision, or against what this version was."""
    older = _predecessor(version, before)
    lines: list[str] = []
    new = interface(after, version)
    if older is not None:
        lines.append(f"{version} against {older}:")
        lines.append(changes(interface(before, older), new) or "nothing changed\n")
    if version in load_pinned(before):
        lines.append(f"{version} against what it was:")
        lines.append(changes(interface(before, version), new) or "nothing changed\n")
    schema = next(source.schema for source in load(after) if source.version == version)
    lines += _proposals(schema, after, version)
    lines += [f"no words in docs.toml: {name}" for name in missing]
    return "\n".join(lines)


def _predecessor(version: str, folder: Path) -> str | None:
    known = load_pinned(folder)
    if version.startswith(EXTENSION):
        return None
    return max((other for other in known if not other.startswith(EXTENSION) and other < version), default=None)


def schema_check(folder: Path, official: Path) -> list[str]:
    """Proof that our files are upstream's without prose: what differs, a line each."""
    differences: list[str] = []
    for version, entry in load_pinned(folder).items():
        path = official / version.replace("/", "-") / "schema.json"
        if not path.is_file():
            differences.append(f"{version}: upstream's file is missing: {path}")
            continue
        data = path.read_bytes()
        if sha256(data) != entry["upstream_sha256"]:
            differences.append(f"{version}: upstream's file has another sha256 than PINNED.json says")
        elif interface_text(parse(data, str(path))) != (folder / f"{version}.json").read_text(encoding="utf-8"):
            differences.append(f"{version}: our file is not upstream's without prose")
    for source in load(folder):
        errata.apply(source.schema, errata.load(folder), source.version, source.file)
    return differences
