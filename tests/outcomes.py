"""What comes of short programs, in words: run them in either library, and read tables of them.

A table is a text file: a program, then what its last expression (behind an arrow) is or which error
it raises, then the warnings, with the file that they point at. What stands behind the line of
dashes is another matter in PyTorch.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

DASHES = "-" * 100


def outcome(m: Any, program: str) -> tuple[str, ...]:
    """Run statements, with leaves `w` and `u` and a matrix `m`, and say what comes of them."""
    statements, _, expression = program.partition(" -> ")
    names = {"torch": m, "np": np, "w": m.tensor([1.0, 2.0], requires_grad=True)}
    names["u"] = m.tensor([3.0], requires_grad=True)
    names["m"] = m.tensor([[1.0, 4.0, 2.0], [3.0, -1.0, 0.5]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(statements.replace("\\n", "\n"), names)
            found = str(eval(expression or "None", names))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    said = [f"{each.category.__name__} at {each.filename}: {each.message}" for each in caught]
    # One is PyTorch's own, from inside of it, and one is told by other rules than `warnings`.
    told = [
        each.partition(" (Triggered")[0]
        for each in said
        if not re.search("^DeprecationWarning|reference cycle", each)
    ]
    return tuple("\n".join([found, *told]).splitlines())


def read(path: Path) -> list[list[tuple[str, ...]]]:
    """Return the two parts of a table, each a list of programs with what comes of them."""
    parts = path.read_text().split(DASHES)
    return [[tuple(each.splitlines()) for each in part.strip().split("\n\n")] for part in parts]
