"""The words of `docs.toml` hold for the versions in which they are used."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from mcpspec_codegen.normalise import normalise
from mcpspec_codegen.pipeline import find_gaps
from mcpspec_codegen.source import DescriptionFile, load_descriptions
from mcpspec_codegen.wording import find_contradictions, list_terms
from tests.cases import each
from tests.codegen.helpers import GENERATED, NEWEST, PREVIOUS, SCHEMA, codegen, pinned_versions, schema_folder

_DOCUMENT = normalise(
    {
        "$defs": {
            "Song": {
                "type": "object",
                "properties": {
                    "kind": {"const": "song", "type": "string"},
                    "key": {"enum": ["minor", "major"], "type": "string"},
                    "tempo": {"type": "integer"},
                    "title": {"type": "string"},
                },
                "required": ["kind", "title"],
            }
        }
    },
    "song.json",
)


def _contradictions(definition: str = "", **members: str) -> list[str]:
    descriptions = DescriptionFile({"Song": definition}, {**members}, {}, frozenset({"La Mer"})).of_version(NEWEST)
    return find_contradictions(_DOCUMENT, descriptions, list_terms(_DOCUMENT) | descriptions.examples)


@each(
    "members, found",
    [
        ({"title": "Name of the `Tune`."}, "Song.title (the present one names `Tune`, which the schema does not have)"),
        ({"title": "Name; empty when absent."}, "Song.title (the present one says what absence means, but"),
        ({"tempo": "Beats a minute; null for a free song."}, "Song.tempo (the present one says what null means, but"),
        ({"kind": "Kind, always `tempo`."}, "Song.kind (the present one says that the value is always `tempo`"),
        ({"tempo": "Beats, always `song`."}, "Song.tempo (the present one says that the value is always `song`"),
        ({"key": "Key, such as `minor`."}, "Song.key (the present one names some values, but not `major`"),
    ],
)
def test_a_description_of_a_member_that_contradicts_the_schema_is_reported(members: dict[str, str], found: str) -> None:
    (line,) = _contradictions(**members)
    assert line.startswith(found)


def test_a_description_of_a_definition_may_only_name_what_the_schema_has() -> None:
    assert _contradictions("Part of an `Album`.") == [
        "Song (the present one names `Album`, which the schema does not have)"
    ]


def test_descriptions_that_hold_are_not_reported() -> None:
    assert _contradictions(
        "A `Song` such as `La Mer`.",
        kind="Kind, always `song`.",
        key="The `minor` or `major` key; minor when absent.",
        tempo="Speed: an `integer`; moderate when absent.",
    ) == []  # fmt: skip


def test_words_that_are_wrong_for_a_revision_are_gaps_of_that_revision(tmp_path: Path) -> None:
    folder = schema_folder(tmp_path / "schema", PREVIOUS, NEWEST)
    path = folder / "docs.toml"
    right = 'Tool."2024-11-05" = "A function."\n' + f'Tool."{NEWEST}" = "A function with an `Etude`."'
    text = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(right if line.startswith("Tool = ") else line for line in text), encoding="utf-8")
    wrong = "docs.toml: no description of Tool (the present one names `Etude`, which the schema does not have)"
    assert find_gaps(folder) == [(NEWEST, wrong)]


@each(
    "version, text",
    [
        ("2024-11-05", None),
        ("2025-06-18", "first"),
        ("2025-11-24", "first"),
        ("2025-11-25", "second"),
        ("2026-07-28", "second"),
        ("ext/tasks", "of the extension"),
    ],
)
def test_a_description_holds_from_its_version_on(version: str, text: str | None) -> None:
    texts: dict[str, Any] = {"2025-06-18": "first", "2025-11-25": "second", "ext/tasks": "of the extension"}
    file = DescriptionFile({"Song": texts}, {"title": texts}, {"Song": {"title": texts}})
    descriptions = file.of_version(version)
    assert descriptions.of_definition("Song") == text
    assert descriptions.of_property([], "title") == text
    assert descriptions.of_property(["Song"], "title") == text


def test_a_description_of_a_version_that_is_none_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = schema_folder(tmp_path / "schema")
    path = folder / "docs.toml"
    text = path.read_text(encoding="utf-8").replace('Annotations."2024-11-05"', 'Annotations."soon"')
    path.write_text(text, encoding="utf-8")
    assert codegen(folder, tmp_path / "output", "generate") == 2
    assert f"error: {path}#: 'soon' is not a version" in capsys.readouterr().err


# The real file


def _texts(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of `docs.toml`, each with the version from which it holds, or an empty one."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _texts(cast("dict[str, Any]", value))
        elif isinstance(value, str):
            yield key if key in pinned_versions() else "", value


@cache
def _docstrings(version: str) -> frozenset[str]:
    """Return the docstrings of the classes, aliases and members of a version, without the links."""
    package = version if "/" in version else f"v{version.replace('-', '_')}"
    modules = [GENERATED / "mcpspec" / package / name for name in ("structs.py", "exact/structs.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules]
    nodes = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return frozenset(text.partition("\n")[0].partition(" https://")[0] for text in constants if isinstance(text, str))


def test_every_description_is_used_by_a_version_for_which_it_holds() -> None:
    texts = {*_texts(tomllib.loads((SCHEMA / "docs.toml").read_text(encoding="utf-8")))}
    versions = pinned_versions()
    assert len(texts) > 400
    assert [
        (since, text)
        for since, text in sorted(texts)
        if not any(version >= since and text in _docstrings(version) for version in versions)
    ] == []


def test_every_example_is_shown_by_a_description() -> None:
    shown = "\n".join(text for version in pinned_versions() for text in _docstrings(version))
    assert [example for example in load_descriptions(SCHEMA).examples if f"`{example}`" not in shown] == []
