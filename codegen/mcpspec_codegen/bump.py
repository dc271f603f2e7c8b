"""Import a schema file of upstream, and compare our files with upstream's."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import urllib.request
from http.client import HTTPException
from pathlib import Path

import msgspec

from mcpspec_codegen import errata
from mcpspec_codegen.comparison.changes import find_changes
from mcpspec_codegen.comparison.interfaces import InterfaceShape
from mcpspec_codegen.comparison.reports import write_changes
from mcpspec_codegen.dialects import list_ignored_siblings
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Schema, pointer_text
from mcpspec_codegen.normalise import merge_definitions
from mcpspec_codegen.order import keep_known, list_members, load_orders, save_orders
from mcpspec_codegen.output import find_unusable_name
from mcpspec_codegen.pipeline import compile_all, load_interface
from mcpspec_codegen.source import (
    DRAFT,
    EXTENSION,
    STAGED,
    Pinned,
    check_version,
    format_interface,
    load,
    load_pinned,
    parse,
    read_json,
    sha256,
)
from mcpspec_codegen.syntax import list_ignored
from mcpspec_codegen.typescript import Order, read_order

__all__ = ["bump", "find_differences"]

_UPSTREAM = re.compile(r"https://[^/]+/(?P<repository>[^/]+/[^/]+)/(?P<commit>[0-9a-f]{40})/(?P<path>.+)")
_REFERENCE = "https://modelcontextprotocol.io/specification/{version}/schema#{{anchor}}"
_EXTENSION_PAGE = "https://modelcontextprotocol.io/extensions/{name}/overview"
_TIMEOUT_SECONDS = 60
_LIMIT_BYTES = 64 << 20
_PINS = "PINNED.json"


def bump(
    version: str, origin: str, folder: Path, *, commit: str | None, repin: bool, typescript: str | None = None,
    is_finished: bool = True,
) -> tuple[dict[str, str], str]:  # fmt: skip
    """Import a schema into the schema folder, and return the regenerated files and a report.

    `typescript` is the path or URL of upstream's `schema.ts`, from which the order of members is read. Unless the files
    are to be finished, they are neither formatted, nor is every name in them tried.
    Raises `SchemaError` for a file whose hash is not the pinned one (unless `repin`, or for the draft), or that cannot
    be compiled; nothing is written then.
    """
    check_version(version, "VERSION")
    _finish_import(folder)
    data = _read(origin)
    entry = load_pinned(folder).get(version, {})
    same = entry.get("upstream_sha256") == sha256(data)
    if entry and not same and not repin and version != DRAFT:
        raise SchemaError(
            origin, "", f"sha256 {sha256(data)} differs from the one pinned for {version}; REPIN=1 accepts it"
        )
    schema = parse(data, origin)
    with tempfile.TemporaryDirectory() as scratch:
        new = Path(scratch) / "schema"
        shutil.copytree(folder, new)
        source = _entry(version, origin, entry, commit, same=same)
        _import(schema, version, new, source | {"upstream_sha256": sha256(data)})
        ignored = [*list_ignored(schema), *list_ignored_siblings(schema)]
        notes = [] if same else [*ignored, *_update_errata(schema, version, new)]
        if typescript is not None or (not same and version in load_orders(new)):
            notes += _update_order(schema, version, new, origin, typescript)
        removed = _remove_equal_draft(new)
        notes = removed if removed and version == DRAFT else [*notes, *removed]
        try:
            files = compile_all(new, is_formatted=is_finished)
            if is_finished:
                _try_names(files, version, new)
        except SchemaError as error:
            raise _with_origin(error, new, version, origin, notes) from error
        report = _report(version, folder, new, notes)
        _replace(folder, new)
    return files, report


def _try_names(files: dict[str, str], version: str, folder: Path) -> None:
    """Raise `SchemaError` for a name that nobody can use, in the modules that a new schema changes."""
    package = next((f"mcpspec/{each.package}/" for each in load(folder) if each.version == version), "mcpspec/compat/")
    changed = (package, "mcpspec/compat/", "mcpspec/features.py")
    modules = [path for path in files if path.endswith(".py") and (path.startswith(changed) or "/conversions/" in path)]
    if (found := find_unusable_name(files, modules)) is None:
        return
    module, name, error = found
    at = pointer_text(("$defs", name)) if name else ""
    text = f"`{f'{module}.{name}'.rstrip('.')}` cannot be used: {error}; this is a fault of the compiler, so report it"
    raise SchemaError(str(folder / f"{version}.json"), at, text)


def _import(schema: Schema, version: str, folder: Path, entry: dict[str, str]) -> None:
    """Write a schema without its prose, and pin it."""
    text = format_interface(schema)
    path = folder / f"{version}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    _write_pinned(folder, {**load_pinned(folder), version: entry | {"sha256": sha256(text.encode())}})


def _update_errata(schema: Schema, version: str, folder: Path) -> list[str]:
    """Carry errata over to a new schema, or remove them from it, and return a line for each change."""
    entries = errata.load(folder)
    updated, report = errata.update(entries, schema, version, _predecessor(version, folder))
    if updated != entries:
        errata.save(updated, folder)
    return report


def _update_order(schema: Schema, version: str, folder: Path, origin: str, typescript: str | None) -> list[str]:
    """Read the order of members, drop what the schema lacks, and return a line for each name that was dropped."""
    orders = load_orders(folder)
    order = orders[version] if typescript is None else _read_order(typescript)
    corrected = errata.apply(schema, errata.load(folder), version, origin)
    known, unknown = keep_known(order, list_members(merge_definitions(corrected, origin)))
    if known != orders.get(version):
        save_orders({**orders, version: known}, folder)
    return [f"order.json: {name} is not in the schema, so its place is dropped" for name in unknown]


def _read_order(origin: str) -> Order:
    try:
        return read_order(_read(origin).decode())
    except UnicodeDecodeError as error:
        raise SchemaError(origin, "", f"not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise SchemaError(origin, "", "nested too deeply") from error


def _remove_equal_draft(folder: Path) -> list[str]:
    """Remove the draft if it equals the newest revision, and return a line that says so."""
    pinned = load_pinned(folder)
    newest = _predecessor(DRAFT, folder)
    if DRAFT not in pinned or newest is None or pinned[DRAFT]["sha256"] != pinned[newest]["sha256"]:
        return []
    _write_pinned(folder, {version: entry for version, entry in pinned.items() if version != DRAFT})
    (folder / f"{DRAFT}.json").unlink()
    save_orders({version: order for version, order in load_orders(folder).items() if version != DRAFT}, folder)
    entries = errata.load(folder)
    if (others := errata.remove_version(entries, DRAFT)) != entries:
        errata.save(others, folder)
    return [f"the draft equals {newest}, so there is no package for it"]


def _replace(folder: Path, new: Path) -> None:
    """Replace the schema folder by a new one. Only a schema that is no longer pinned is deleted.

    An interruption leaves either the old folder, or one that `_finish_import` completes to the new one.
    """
    part = folder / _UNFINISHED
    part.mkdir()
    for path in _list_files(new):
        data, place = (new / path).read_bytes(), folder / path
        if not place.is_file() or place.read_bytes() != data:
            (part / path).parent.mkdir(parents=True, exist_ok=True)
            (part / path).write_bytes(data)
    part.rename(folder / STAGED)
    _finish_import(folder)


_UNFINISHED = STAGED + ".part"
"""The folder of an import whose files are not all written."""


def _finish_import(folder: Path) -> None:
    """Move the files of an import to their places, also if an earlier run was interrupted. The pins come last."""
    shutil.rmtree(folder / _UNFINISHED, ignore_errors=True)
    staged = folder / STAGED
    if not staged.is_dir():
        return
    if (staged / _PINS).is_file():
        for version in load_pinned(folder).keys() - load_pinned(staged).keys():
            (folder / f"{version}.json").unlink(missing_ok=True)
    for path in sorted(_list_files(staged), key=lambda path: path.name == _PINS):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (staged / path).replace(folder / path)
    shutil.rmtree(staged)


def _list_files(folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]


def _with_origin(error: SchemaError, new: Path, version: str, origin: str, notes: list[str]) -> SchemaError:
    """Return an error of the scratch folder as one of the original file, with notes that may explain it."""
    file = origin if error.file == str(new / f"{version}.json") else error.file
    remedy = f"nothing was written; if upstream's file is wrong, add the defect for {version} to errata.json"
    return SchemaError(file, error.pointer, "\n".join([error.reason, *notes, remedy]))


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
    elif package := _find_package(origin):
        source = package
    else:
        source = {
            "repository": known.get("repository", "modelcontextprotocol/modelcontextprotocol"),
            "commit": commit or (known.get("commit") if same else None) or "unknown",
            "path": known.get("path", f"schema/{version}/schema.json"),
        }
    return source | {"reference": known.get("reference", _reference(version))}


def _reference(version: str) -> str:
    """Return the URL of the published definitions, which an extension has on one page."""
    name = version.removeprefix(EXTENSION)
    return _REFERENCE.format(version=version) if name == version else _EXTENSION_PAGE.format(name=name)


def _find_package(origin: str) -> dict[str, str] | None:
    """Describe the published package, unpacked, that a file is in: its repository, and its version for the commit."""
    for folder in Path(origin).absolute().parents:
        if (path := folder / "package.json").is_file():
            package = read_json(path, _Package)
            repository = _REPOSITORY.fullmatch(package.repository.url)
            if repository is None:
                return None
            commit, file = f"{package.name}@{package.version}", Path(origin).absolute().relative_to(folder)
            return {"repository": repository["name"], "commit": commit, "path": file.as_posix()}
    return None


class _Repository(msgspec.Struct):
    url: str


class _Package(msgspec.Struct):
    """The members of `package.json` that say where a package comes from."""

    name: str
    version: str
    repository: _Repository


_REPOSITORY = re.compile(r"(?:git\+)?https://[^/]+/(?P<name>[^/]+/[^/]+?)(?:\.git)?")


def _write_pinned(folder: Path, pinned: Pinned) -> None:
    ordered = sorted(pinned, key=lambda version: (version.startswith(EXTENSION), version))
    keys = ("repository", "commit", "path", "upstream_sha256", "sha256", "reference")
    document = {version: {key: pinned[version][key] for key in keys} for version in ordered}
    (folder / _PINS).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _report(version: str, before: Path, after: Path, notes: list[str]) -> str:
    """Report the changes against the newest earlier revision, and against the same version as pinned before."""
    if version not in load_pinned(after):  # a draft that differs from nothing
        return "\n".join(notes)
    new = load_interface(after, version)
    older = _predecessor(version, after)
    lines: list[str] = []
    if older is not None:
        lines += [f"{version} against {older}:", *_describe_changes(load_interface(after, older), new)]
    if version in load_pinned(before):
        lines.append(f"{version} against its previous file:")
        lines += _describe_changes(load_interface(before, version), new)
    return "\n".join([*lines, *notes])


def _describe_changes(old: InterfaceShape, new: InterfaceShape) -> list[str]:
    return [*(write_changes(find_changes(old, new)) or ["no changes"]), ""]


def _predecessor(version: str, folder: Path) -> str | None:
    """Return the newest revision before a version; None for an extension, or for the oldest revision."""
    if version.startswith(EXTENSION):
        return None
    dates = (other for other in load_pinned(folder) if not other.startswith(EXTENSION) and other != DRAFT)
    return max((other for other in dates if other < version), default=None)


def find_differences(folder: Path, official: Path) -> list[str]:
    """List the differences between our schemas and upstream's without prose, one line each; also apply the errata.

    The folder need not have the schemas that were imported from packages.
    """
    differences: list[str] = []
    for version, entry in load_pinned(folder).items():
        path = official / version.replace("/", "-") / "schema.json"
        if not path.is_file() and "@" in entry["commit"]:
            continue  # upstream publishes it in a package
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
