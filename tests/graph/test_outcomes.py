"""Gradients, hooks, versions and saved tensors: what comes of short programs, in words."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import numgrad as ng
from tests import outcomes

ALIKE, OTHERWISE = outcomes.read(Path(__file__).with_name("outcomes.txt"))


@pytest.mark.parametrize("start", range(0, len(ALIKE), 25))
def test_programs_end_as_they_do_in_pytorch(lib: Any, start: int) -> None:
    for program, *expected in ALIKE[start : start + 25]:
        assert outcomes.outcome(lib, program) == tuple(expected), program


def test_programs_that_end_otherwise_in_pytorch() -> None:
    for program, *expected in OTHERWISE:
        assert outcomes.outcome(ng, program) == tuple(expected), program


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
