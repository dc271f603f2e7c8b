"""The command `mcpspec-codegen`: compile schemas of MCP, or of one's own, and keep them up to date.

Exit status: 0 for success, 1 for differences, 2 for input that cannot be compiled; nothing is written then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from mcpspec_codegen.budget import MAX_STEPS
from mcpspec_codegen.bump import bump, find_differences
from mcpspec_codegen.bundle import bundle
from mcpspec_codegen.comparison.changes import find_changes
from mcpspec_codegen.comparison.interfaces import InterfaceShape
from mcpspec_codegen.comparison.reports import FAIL_ON, changes_to_json, is_failure, write_changes
from mcpspec_codegen.diff import read_interface
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.migrate.command import add_options, migrate
from mcpspec_codegen.output import check_is_folder, check_links, compare, write
from mcpspec_codegen.packages import (
    BACKENDS,
    PackageOptions,
    compare_package,
    compile_package,
    load_own,
    write_package,
)
from mcpspec_codegen.pipeline import compile_all, load_interface
from mcpspec_codegen.support.error_text import escape_unprintable

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (SchemaError, OSError) as error:
        _print(f"error: {error}", is_error=True)
        return 2
    return status


def _print(text: object, *, is_error: bool = False) -> None:
    """Print a text, in which names of a schema may hold control characters. They are escaped where a person reads."""
    stream = sys.stderr if is_error else sys.stdout
    is_shown = is_error or stream.isatty()
    print(escape_unprintable(str(text), "\n\t") if is_shown else text, file=stream)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcpspec-codegen",
        description="Compile schemas of the Model Context Protocol, or of your own, to Python types.",
        epilog="Exit status: 0 for success, 1 for differences that a check finds, 2 for input that cannot be compiled.",
    )
    parser.add_argument("--schema", type=Path, default=_schema_folder(), help="the folder of MCP's schemas")
    parser.add_argument("--output", type=Path, default=Path("generated"), help="the folder of mcpspec")
    commands = parser.add_subparsers(required=True, title="commands", metavar="COMMAND")
    _add_own_commands(commands.add_parser)
    _add_official_commands(commands.add_parser)
    return parser


_INSTALLED_SCHEMA = Path(__file__).parent / "schema"

_Add: TypeAlias = Callable[..., argparse.ArgumentParser]


def _schema_folder() -> Path:
    """Return the folder of MCP's schemas: that of a checkout, or that of the installed compiler."""
    own = Path("schema")
    return own if (own / "PINNED.json").is_file() else _INSTALLED_SCHEMA


def _add_own_commands(add: _Add) -> None:
    compiled = add("compile", help="compile schemas of your own to a package")
    _add_own(compiled, required=True)
    compiled.set_defaults(run=_compile)
    check = add("check", help="compare a package with what would be written; by default mcpspec")
    _add_own(check, required=False)
    _add_only(check)
    check.set_defaults(run=_check)
    compared = add("diff", help="print the changes between two schemas")
    for name in ("old", "new"):
        compared.add_argument(name, help="a version of MCP, a JSON file, or a folder of JSON files")
    _add_extends(compared)
    compared.add_argument("--json", action="store_true", help="print one JSON document")
    compared.add_argument(
        "--fail-on", choices=FAIL_ON, help="exit with 1 for such a change, or a worse one: breaking, compatible, or any"
    )
    compared.set_defaults(run=_diff)
    bundled = add("bundle", help="write corrected schemas as plain JSON Schema 2020-12")
    bundled.add_argument("schemas", nargs="*", type=Path, metavar="SCHEMA", help=_SCHEMAS + "; by default MCP's")
    bundled.add_argument("--out", type=Path, required=True, help="the folder to write to")
    _add_extends(bundled)
    _add_only(bundled)
    bundled.set_defaults(run=_bundle)
    migrated = add("migrate", help="rewrite imports of mcp.types and mcp_types to mcpspec.compat")
    add_options(migrated)
    migrated.set_defaults(run=_migrate)


_SCHEMAS = "a JSON Schema with definitions, or a folder of them"


def _add_own(command: argparse.ArgumentParser, *, required: bool) -> None:
    text = _SCHEMAS if required else f"{_SCHEMAS}; by default MCP's"
    command.add_argument("schemas", nargs="+" if required else "*", type=Path, metavar="SCHEMA", help=text)
    command.add_argument("--package", required=required, help="the package's import name, such as acme_mcp")
    command.add_argument("--out", type=Path, required=required, help="the folder that contains the package")
    _add_extends(command)
    command.add_argument(
        "--backend", choices=[*BACKENDS], help="structs (msgspec) or models (Pydantic); both by default"
    )


def _add_extends(command: argparse.ArgumentParser) -> None:
    command.add_argument("--extends", metavar="REVISION", help="the revision of MCP that the schemas add to")
    command.add_argument(
        "--max-steps", type=_at_least_one, default=MAX_STEPS, metavar="N",
        help="the work that the schemas may cause: 20 for each schema in them, 1 for each reference that is followed; "
        f"by default {MAX_STEPS}",
    )  # fmt: skip


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def _add_only(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only", action="append", default=[], metavar="VERSION", help="a version of MCP; several options for several"
    )


def _add_official_commands(add: _Add) -> None:
    generated = add("generate", help="write mcpspec")
    _add_only(generated)
    generated.set_defaults(run=_generate)
    bumped = add("bump", help="import an upstream schema, regenerate, report the changes")
    bumped.add_argument("version", help="a date, draft, or ext/<name>")
    bumped.add_argument("origin", help="path or https URL of upstream's schema.json")
    bumped.add_argument("--commit", help="upstream's commit, if the origin does not contain it")
    bumped.add_argument("--typescript", help="path or https URL of upstream's schema.ts, for the order of members")
    bumped.add_argument("--repin", action="store_true", help="accept a file whose hash is not the pinned one")
    bumped.set_defaults(run=_bump)
    official = add("schema-check", help="prove that our schemas are upstream's without prose")
    official.add_argument("official", type=Path, help="folder with <version>/schema.json")
    official.set_defaults(run=_schema_check)


def _compile(options: argparse.Namespace) -> int:
    files, notes = compile_package(options.schema, _package_options(options))
    write_package(files, options.out)
    for line in notes:
        _print(line)
    _print(f"{len(files)} files in {options.out / options.package.replace('.', '/')}")
    return 0


def _package_options(options: argparse.Namespace) -> PackageOptions:
    backends = [BACKENDS[options.backend]] if options.backend else [*BACKENDS.values()]
    return PackageOptions(options.schemas, options.package, options.extends, backends, options.max_steps)


def _generate(options: argparse.Namespace) -> int:
    files = compile_all(options.schema, options.only)
    write(files, options.output)
    _print(f"{len(files)} files in {options.output}")
    return 0


def _check(options: argparse.Namespace) -> int:
    if not options.schemas:
        files = compile_all(options.schema, options.only)
        return _print_differences(compare(files, options.output), "run `make generate` and commit what it writes")
    if not options.package or not options.out:
        raise SchemaError("check", "", "schemas of your own need --package and --out, as for `compile`")
    package = _package_options(options)
    files, _ = compile_package(options.schema, package)
    return _print_differences(compare_package(files, options.out), f"run `{package.command} --out {options.out}`")


def _migrate(options: argparse.Namespace) -> int:
    return migrate(options.paths, is_writing=options.write)


def _bundle(options: argparse.Namespace) -> int:
    check_is_folder(options.out)
    files = bundle(options.schema, options.schemas, options.extends, options.only, options.max_steps)
    check_links(files, options.out)
    for name, text in files.items():
        (options.out / name).parent.mkdir(parents=True, exist_ok=True)
        (options.out / name).write_bytes(text.encode())
        _print(options.out / name)
    return 0


def _bump(options: argparse.Namespace) -> int:
    if options.schema == _INSTALLED_SCHEMA:
        raise SchemaError(
            "bump", "", "no folder `schema` with PINNED.json here; run it in a checkout, or give --schema"
        )
    check_is_folder(options.output)
    files, report = bump(
        options.version,
        options.origin,
        options.schema,
        commit=options.commit,
        repin=options.repin,
        typescript=options.typescript,
    )
    write(files, options.output)
    _print(report)
    return 0


def _schema_check(options: argparse.Namespace) -> int:
    return _print_differences(find_differences(options.schema, options.official), "run `make bump` for it")


def _diff(options: argparse.Namespace) -> int:
    changes = find_changes(*(_load_interface(side, options) for side in (options.old, options.new)))
    if options.json:
        found = {"old": options.old, "new": options.new, **changes_to_json(changes)}
        _print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for line in write_changes(changes):
            _print(line)
    return 1 if is_failure(changes, options.fail_on) else 0


def _load_interface(side: str, options: argparse.Namespace) -> InterfaceShape:
    """Load one side of a comparison: a version of MCP, or a schema of one's own."""
    if not Path(side).exists():
        return load_interface(options.schema, side)
    interface = load_own(options.schema, [Path(side)], options.extends, options.max_steps).interface
    return read_interface(interface.document, interface.methods, interface.codes)


def _print_differences(differences: list[str], remedy: str) -> int:
    for line in differences:
        _print(line)
    if differences:
        _print(remedy)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
