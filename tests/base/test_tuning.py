"""A tuning constant's name stands for one number in the whole library."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path

import numgrad
from numgrad.base import tuning

ROOT = Path(numgrad.__file__).parent


def numbers_of(path: Path) -> dict[str, float]:
    """Return the constants of a module that are written as numbers, in capitals."""
    found: dict[str, float] = {}
    for node in ast.parse(path.read_text()).body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        parts = list(ast.walk(node.value))
        plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
        name = node.targets[0].id
        if name.isupper() and all(isinstance(part, plain) for part in parts):
            value = eval(compile(ast.Expression(node.value), str(path), "eval"))
            if isinstance(value, int | float):
                found[name.lstrip("_")] = value
    return found


def test_a_name_stands_for_one_number_in_one_place():
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for name in numbers_of(path):
            places[name].append(path.relative_to(ROOT).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_what_is_in_the_table_is_nowhere_else():
    """No module has a number of its own under a name of the table."""
    table = {name for name in vars(tuning) if name.isupper()}
    assert len(table) > 30
    for path in ROOT.rglob("*.py"):
        if path.name != "tuning.py":
            assert not table & set(numbers_of(path)), path


def test_the_table_says_of_each_number_what_it_was_measured_against():
    """A comment stands beside each number, or above it and those that follow at once."""
    text = inspect.getsource(tuning)
    told = True
    for line in text[text.index("# ---") :].splitlines():
        if re.match(r"[A-Z_]+ = ", line):
            assert told or "#:" in line, line
        else:
            told = line.startswith("#:") if line.strip() else False
