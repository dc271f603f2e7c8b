"""The command `mcpspec-codegen`: generate, check, bump, schema-check, diff.

Exit status: 0 for success, 1 for differences, 2 for input that cannot be compiled; nothing is written then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mcpspec_codegen.bump import bump, find_differences
from mcpspec_codegen.diff import describe_changes
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.output import check_is_folder, compare, write
from mcpspec_codegen.pipeline import compile_all, load_interface

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (SchemaError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mcpspec-codegen", description="Compile MCP schemas to Python types.")
    parser.add_argument("--schema", type=Path, default=Path("schema"), help="the folder of schemas")
    parser.add_argument("--output", type=Path, default=Path("generated"), help="the folder to write or compare")
    commands = parser.add_subparsers(required=True)
    commands.add_parser("generate", help="write the package").set_defaults(run=_generate)
    commands.add_parser("check", help="compare the package with what would be written").set_defaults(run=_check)
    bumped = commands.add_parser("bump", help="import an upstream schema, regenerate, report the changes")
    bumped.add_argument("version", help="a date, draft, or ext/<name>")
    bumped.add_argument("origin", help="path or https URL of upstream's schema.json")
    bumped.add_argument("--commit", help="upstream's commit, if the origin does not contain it")
    bumped.add_argument("--repin", action="store_true", help="accept a file whose hash is not the pinned one")
    bumped.set_defaults(run=_bump)
    official = commands.add_parser("schema-check", help="prove that our schemas are upstream's without prose")
    official.add_argument("official", type=Path, help="folder with <version>/schema.json")
    official.set_defaults(run=_schema_check)
    compared = commands.add_parser("diff", help="print the changes between two pinned versions")
    compared.add_argument("old")
    compared.add_argument("new")
    compared.set_defaults(run=_diff)
    return parser


def _generate(options: argparse.Namespace) -> int:
    files = compile_all(options.schema)
    write(files, options.output)
    print(f"{len(files)} files in {options.output}")
    return 0


def _check(options: argparse.Namespace) -> int:
    files = compile_all(options.schema)
    return _print_differences(compare(files, options.output), "run `make generate` and commit what it writes")


def _bump(options: argparse.Namespace) -> int:
    check_is_folder(options.output)
    files, report = bump(options.version, options.origin, options.schema, commit=options.commit, repin=options.repin)
    write(files, options.output)
    print(report)
    return 0


def _schema_check(options: argparse.Namespace) -> int:
    return _print_differences(find_differences(options.schema, options.official), "run `make bump` for it")


def _diff(options: argparse.Namespace) -> int:
    print(
        describe_changes(load_interface(options.schema, options.old), load_interface(options.schema, options.new)),
        end="",
    )
    return 0


def _print_differences(differences: list[str], remedy: str) -> int:
    for line in differences:
        print(line)
    if differences:
        print(remedy)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
