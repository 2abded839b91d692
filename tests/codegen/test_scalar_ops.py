"""The table of scalar operations says of each what its function is."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.math import scalar


@pytest.mark.parametrize("name", SCALAR_OPS)
def test_an_operation_has_as_many_operands_as_its_function(name: str) -> None:
    operation, function = SCALAR_OPS[name], getattr(scalar, name, None)
    kinds = []
    if function is not None:
        signature = inspect.signature(getattr(function, "py_func", function))
        kinds = [each.kind for each in signature.parameters.values()]
    if kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        assert len(kinds) == operation.operands
    if isinstance(operation.exact, np.ufunc):
        assert operation.exact.nin == operation.operands


def test_only_what_computes_nothing_counts_as_nothing() -> None:
    free = {name for name, operation in SCALAR_OPS.items() if operation.flops < 1}
    assert free == {"cast", "real", "imag", "conj", "complex_of"}
