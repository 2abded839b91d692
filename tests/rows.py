"""Rows that families of operations add to the tables of tests which walk the whole catalogue.

A family with tests of its own, below `tests/ops/`, keeps its rows in a file `rows.py` there: each
table is a dict or a set of the name that `rows_of` is asked for where the table stands.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numgrad import special
from numgrad.nn import functional
from numgrad.ops.core.registry import FUNCTIONS

__all__ = ["function_of", "names_of", "rows_of"]

_FAMILIES = [
    importlib.import_module(f"tests.ops.{path.parent.name}.rows")
    for path in sorted((Path(__file__).parent / "ops").glob("*/rows.py"))
]
_TABLES = {
    "NODES",  # of tests/graph/node_table.py: a call, its node and what that says it saved
    "KEPT_TOO",  # of tests/graph/test_node_names.py
    "NOT_KEPT",
    "OTHER_VALUES",
    "PARTS",
    "ARGUMENTS",  # of tests/ops/layout_calls.py: a name, the arguments behind its first tensor
    "LEFT_OUT",
    "DIFFERENT",  # of tests/ops/test_strides.py
    "REFUSED",
    "DIFFERENT_GRADIENTS",  # DIFFERENT of tests/ops/test_gradient_strides.py
    "DISPATCH",  # CALLS of tests/ops/calls/test_dispatch.py
    "COMPLEX",  # CALLS of tests/ops/calls/test_complex_calls.py
    "REAL_ONLY",  # of tests/ops/test_catalogue_complex.py
    "PARTS_FOR_REAL",
    "TORCH",  # CALLS of tests/ops/test_catalogue_torch.py
    "NOT_PYTORCHS",  # elementwise primitives that PyTorch has not
    "OWN_DERIVATIVES",
    "OWN_NODES",
    "LESS_ACCURATE",
    "UNDECIDED",
    "LOST_SECOND_DERIVATIVES",
    "DIFFER",  # of tests/ops/pointwise/test_special_values.py
    "CANCELLING",
    "NOT_COMPARED",  # of tests/ops/test_unusual_operands.py
    "OTHER_ERRORS",
    "FEWER_WAYS",
    "HALF_PARTS",  # PARTS of tests/ops/pointwise/test_half.py
    "HALF_REFUSED",
    "HALF_ROUNDED",
    "IN_DOUBLE",  # of tests/kernels/pointwise/test_elementwise.py
    "SHAPE_DEPENDS_ON_VALUES",  # of tests/jit/test_jit_catalogue.py and test_layouts_everywhere.py
}
for _family in _FAMILIES:
    _unknown = {name for name in vars(_family) if name.isupper() and name[0] != "_"} - _TABLES
    if _unknown:
        raise NameError(f"{_family.__name__}: no table is named {sorted(_unknown)}")


def rows_of(table: str) -> dict[str, Any]:
    """Return what families have in a table that is a dict."""
    assert table in _TABLES
    return {k: v for family in _FAMILIES for k, v in getattr(family, table, {}).items()}


def names_of(table: str) -> set[Any]:
    """Return what families have in a table that is a set."""
    assert table in _TABLES
    return {name for family in _FAMILIES for name in getattr(family, table, ())}


def function_of(name: str) -> Callable[..., Any]:
    """Return the public function of a name in the catalogue: of special_entr, special.entr."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    module = functional if hasattr(functional, name) else special
    found: Callable[..., Any] = getattr(module, name.removeprefix("special_"))
    return found
