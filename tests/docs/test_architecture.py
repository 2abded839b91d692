"""What docs/architecture.md and CONTRIBUTING.md name is there: files, functions, folders."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["docs/architecture.md", "CONTRIBUTING.md"]
PATH = re.compile(r"`([\w./]+(?:\.py|/))`")
NAME = re.compile(r"`(\w+(?:\.\w+)*)\(\)`")


def found_at(path: str) -> Path | None:
    """Return where a path is that a page names: in the package, or in the repository."""
    places = [ROOT / "numgrad" / path, ROOT / path]
    return next((place for place in places if place.exists()), None)


def defined_in(path: Path) -> set[str]:
    """Return the names of functions, classes and methods of a module, these also dotted."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
    return names


def paragraphs(page: str) -> list[str]:
    """Return the paragraphs, items of lists and rows of tables, without code."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    return re.split(r"\n\s*\n|\n(?=\s*(?:\d+\.|-|\|))", text)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_is_there(page):
    named = PATH.findall((ROOT / page).read_text())
    assert len(named) > 10
    assert [path for path in named if found_at(path) is None] == []


def test_every_function_is_in_a_file_named_beside_it():
    checked = 0
    for paragraph in paragraphs("docs/architecture.md"):
        files = [found_at(path) for path in PATH.findall(paragraph) if path.endswith(".py")]
        known = set().union(*[defined_in(path) for path in files if path is not None])
        for name in NAME.findall(paragraph):
            assert name in known, f"{name}() is in none of the files named in: {paragraph}"
            checked += 1
    assert checked > 40
