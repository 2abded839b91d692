"""Short programs of gradients, hooks, versions and saved tensors: what comes of each, in words.

The table is outcomes.txt: a program, then what its last expression is or which error it raises,
then the warnings, with the file that they point at. What stands behind the line of dashes is
another matter in PyTorch.
"""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import numgrad as ng

TEXT = Path(__file__).with_name("outcomes.txt").read_text()
TABLES = [
    [tuple(block.splitlines()) for block in part.strip().split("\n\n")]
    for part in TEXT.split("-" * 100)
]


def outcome(m: Any, program: str) -> tuple[str, ...]:
    """Run statements, with leaves `w` and `u`, and return what the expression behind them gives."""
    statements, _, expression = program.partition(" -> ")
    names = {"torch": m, "w": m.tensor([1.0, 2.0], requires_grad=True)}
    names["u"] = m.tensor([3.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(statements.replace("\\n", "\n"), names)
            found = str(eval(expression or "None", names))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    said = [f"{each.category.__name__} at {each.filename}: {each.message}" for each in caught]
    return found, *[each for each in said if "reference cycle" not in each]


@pytest.mark.parametrize("count", range(0, len(TABLES[0]), 25))
def test_programs_end_as_they_do_in_pytorch(lib: Any, count: int) -> None:
    for program, *expected in TABLES[0][count : count + 25]:
        assert outcome(lib, program) == tuple(expected), program


def test_programs_that_end_otherwise_in_pytorch() -> None:
    for program, *expected in TABLES[1]:
        assert outcome(ng, program) == tuple(expected), program


BASES = ["m.ones(2, 2, requires_grad=True) * 1", "m.ones(2, 2, requires_grad=True)", "m.ones(2, 2)"]
MODES = ["enable_grad", "no_grad", "inference_mode"]
VIEWS = ["view(-1)", "unbind()[0]"]
WRITES = ["second.mul_(2)", "base.mul_(2)"]


def test_views_of_views_of_any_modes_may_be_written_to_where_pytorchs_may(torch: Any) -> None:
    for base, outer, view, inner, inner_view in product(BASES, MODES, VIEWS, MODES, VIEWS):
        statements = [
            f"base = {base}",
            f"with m.{outer}(): first = base.{view}",
            f"with m.{inner}(): second = first.{inner_view}",
        ]
        for write in WRITES:
            found = [after_a_write(m, [*statements, write]) for m in (ng, torch)]
            assert found[0] == found[1], (statements, write)


def after_a_write(m: Any, statements: list[str]) -> list[Any]:
    """Return which error a write raises, and what is to be seen of the tensors after it."""
    names: dict[str, Any] = {"m": m}
    found: list[Any] = []
    try:
        exec("\n".join(statements), names)
    except RuntimeError as error:
        found.append(str(error))
    for name in ("base", "first", "second"):
        tensor = names[name]
        found += [tensor.requires_grad, tensor.is_inference(), tensor._is_view()]
        try:
            node = tensor.grad_fn
            found.append(None if node is None else node.name())
        except RuntimeError as error:
            found.append(str(error))
        if not tensor.is_inference():
            found.append(tensor._version)
    return found
