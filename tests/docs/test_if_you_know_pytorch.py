"""The page for those who know PyTorch: each line of what is the same rests on tests that exist."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "if-you-know-pytorch.md").read_text()
IDENTIFIER = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def lines_of(heading: str) -> list[str]:
    """Return the entries of the lists under a heading, each with what it points to."""
    (part,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"^- .*(?:\n  .*)*", part, re.MULTILINE)


@functools.cache
def functions_of(path: str) -> dict[str, set[str]]:
    """Return the functions in a file, each with the names of its arguments."""
    tree = ast.parse((ROOT / path).read_text())
    return {
        node.name: {argument.arg for argument in node.args.args}
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


SAME = lines_of("What is the same")
POINTERS = sorted(set(IDENTIFIER.findall(PAGE)))


def test_the_list_of_what_is_the_same_is_read_whole() -> None:
    assert len(SAME) > 50
    assert len(POINTERS) > 100


@pytest.mark.parametrize("line", SAME, ids=lambda line: line[2:40])
def test_each_line_of_what_is_the_same_rests_on_a_comparison_with_pytorch(line: str) -> None:
    fixtures = [functions_of(path)[name] for path, name in IDENTIFIER.findall(line)]
    assert any(used & {"lib", "torch"} for used in fixtures)


def test_what_lines_point_to_exists() -> None:
    assert [pointer for pointer in POINTERS if pointer[1] not in functions_of(pointer[0])] == []


def test_what_looks_like_a_pointer_is_one() -> None:
    assert PAGE.count("::test_") == len(IDENTIFIER.findall(PAGE))
