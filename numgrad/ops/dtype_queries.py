"""Questions about dtypes: of what kind a tensor's is, and what operands promote to."""

from __future__ import annotations

from typing import Any

from numgrad import dtypes
from numgrad.graph.core import Tensor
from numgrad.ops.functions import OPERANDS, public
from numgrad.ops.primitive import require_tensor
from numgrad.ops.promotion import result_dtype

__all__ = ["is_complex_tensor", "is_floating_point", "result_type"]


@public("is_complex", method=False)
def is_complex_tensor(input: Tensor) -> bool:
    """Return whether the tensor's numbers are complex.

    >>> import numgrad as ng
    >>> ng.is_complex(ng.tensor([1j]))
    True
    """
    return bool(require_tensor(input, "is_complex", "input", 1)._array.dtype.kind == "c")


@public(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Return whether the tensor's numbers are real floating point numbers.

    >>> import numgrad as ng
    >>> ng.is_floating_point(ng.tensor([1j]))
    False
    """
    return bool(require_tensor(input, "is_floating_point", "input", 1)._array.dtype.kind == "f")


@public(method=False)
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """Return the dtype that an operation on two tensors or numbers computes with.

    Raises
    ------
    TypeError
        If one is neither a tensor nor a number.

    >>> import numgrad as ng
    >>> ng.result_type(ng.tensor([1.0]), 1j)
    torch.complex64
    """
    for value, name, position in ((tensor1, "tensor1", 1), (tensor2, "tensor2", 2)):
        if not isinstance(value, OPERANDS):
            require_tensor(value, "result_type", name, position)
    return result_dtype([tensor1, tensor2])
