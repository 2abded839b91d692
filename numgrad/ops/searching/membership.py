"""Which elements are in a set: isin."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.search.bisection import is_member
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.movement.casts import cast
from numgrad.ops.searching.sorted_rows import number_in
from numgrad.ops.signatures.declared import declare

__all__ = ["isin"]

_IS_IN = Primitive(
    "isin", "NotImplemented", is_member, ["elements", "test_elements"], [None, None], listed=False
)
# Without bools and complex numbers, of which PyTorch says something else.
_REFUSED = frozenset(map(np.dtype, ("uint16", "uint32", "uint64")))


def _check(operand: Any) -> None:
    name = operand.dtype.scalar_name if isinstance(operand, Tensor) else ""
    if isinstance(operand, (bool, complex)):
        name = "Bool" if isinstance(operand, bool) else "ComplexDouble"
    if name == "Bool" or name.startswith("Complex"):
        raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")


def _common_dtype(values: Any, tests: Any, size: int) -> dtypes.dtype:
    """Return in which dtype PyTorch compares: it sorts many test elements, joined with the others.

    What is joined has one dim, and a number is int64 or float64 there: none gives way.
    """
    if not isinstance(tests, Tensor):
        return result_dtype([values, tests])
    if tests._array.size >= int(10 * size**0.145):
        return dtypes.promote_types(_own_dtype(values), tests.dtype)
    dtype = result_dtype([values, tests])
    if dtype.numpy in _REFUSED:
        raise NotImplementedError(f"\"isin_default_cpu\" not implemented for '{dtype.scalar_name}'")
    return dtype


def _own_dtype(values: Any) -> dtypes.dtype:
    if isinstance(values, Tensor):
        return values.dtype
    dtype = dtypes.scalar_dtype(values)
    return dtypes.float64 if dtype.is_floating_point else dtype


@declare(
    "isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, "
    "bool invert=False, Tensor? out=None)",
    "isin(number element, Tensor test_elements, *, bool assume_unique=False, "
    "bool invert=False, Tensor? out=None)",
    "isin(Tensor elements, number test_element, *, bool assume_unique=False, "
    "bool invert=False, Tensor? out=None)",
    method=False,
    dispatched=True,
)
def isin(
    elements: Any,
    test_elements: Any,
    element: Any,
    test_element: Any,
    assume_unique: bool,
    invert: bool,
) -> Tensor:
    """Return which elements are among the test elements, as bools in the shape of the elements.

    No gradient flows; nan is not among any.

    Parameters
    ----------
    elements, test_elements : tensor or number
        Not both numbers.
    element, test_element
        Their names where they are numbers.
    assume_unique
        Changes nothing: whether elements repeat does not matter.
    invert
        Return which are not.

    Raises
    ------
    RuntimeError
        If they are bools or complex.

    >>> import numgrad as ng
    >>> ng.isin(ng.tensor([1, 2, 3]), ng.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    values = element if elements is None else elements
    tests = test_element if test_elements is None else test_elements
    for operand in (values, tests):
        _check(operand)
    size = values._array.size if isinstance(values, Tensor) else 1
    if not size:
        return fresh(np.empty(values._array.shape, np.bool_))
    dtype = _common_dtype(values, tests, size)
    operands = [
        cast(each.detach(), dtype.numpy)
        if isinstance(each, Tensor)
        else fresh(number_in(each, dtype.numpy))
        for each in (values, tests)
    ]
    result: Tensor = _IS_IN.apply(*operands, invert=invert)
    return result
