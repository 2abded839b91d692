"""Lines of code with what PyTorch answers, kept beside them: both libraries have to answer so.

A table is a string. In it stand lines of code, each with the answer behind ``=>``; what a line does
before its expression stands in front of ``->``. ``python -m tests.ops.recorded tests.ops.test_x``
prints the tables of a test file with the answers that PyTorch gives now.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from typing import Any

import numpy as np

__all__ = ["answer", "read"]

# What is said once a process stands in no answer: who says it depends on who came first.
ONCE = ("TypedStorage is deprecated",)


def read(table: str) -> list[tuple[str, str]]:
    """Return the lines of a table, each with its answer."""
    found = []
    for line in filter(None, table.strip().split("\n")):
        code, _, expected = line.partition(" =>")
        found.append((code.strip(), expected.strip()))
    return found


def answer(library: Any, code: str, setup: str = "") -> str:
    """Return what a line gives, or what it raises, and of what it warns."""
    names: dict[str, Any] = {"torch": library, "np": np}
    statements, _, expression = code.rpartition(" -> ")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(setup, names)
        try:
            exec(statements, names)
            found = repr(eval(expression.strip(), names))
        except Exception as error:
            found = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    said = [str(warning.message).split(" (Triggered")[0].split(". ")[0] for warning in caught]
    found = re.sub(r"\s+", " ", found).strip()
    return found + "".join(
        f" [{category}]" for category in dict.fromkeys(said) if category not in ONCE
    )


def main(module: str) -> None:
    """Print the tables of a module anew."""
    import torch

    tests = importlib.import_module(module)
    for name, table in vars(tests).items():
        if isinstance(table, str) and " =>" in table:
            print(f'{name} = r"""')
            for code, _ in read(table):
                print(f"{code} => {answer(torch, code, tests.SETUP)}")
            print('"""')


if __name__ == "__main__":
    main(sys.argv[1])
