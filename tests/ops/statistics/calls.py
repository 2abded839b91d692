"""What calls come to in either library, with gradients, for tests that compare with PyTorch.

A call is a line of Python that names `torch`, which is either library, and operands.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

__all__ = ["differences", "operands_of", "outcome"]

ERRORS = (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError, OverflowError)
# Numbers by which C++ multiplies and divides have nodes of their own; Python's have not.
SAME_NODES = {"MulBackward1": "MulBackward0", "DivBackward1": "DivBackward0"}


def operands_of(m: Any, arrays: dict[str, Any], dtype: str) -> dict[str, Any]:
    """Return tensors of a dtype made from arrays; those that may have gradients require them.

    Arrays of bools and integers keep their dtype.
    """
    tensors = {}
    for name, array in arrays.items():
        is_own = array.dtype.kind in "biu"
        tensor = m.from_numpy(array.copy() if is_own else array.astype(dtype))
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            tensor.requires_grad_()
        tensors[name] = tensor
    return tensors


def _described(tensor: Any) -> list[Any]:
    strides = tensor.stride() if tensor.numel() else None  # NumPy has its own, of nothing
    if strides is not None:  # ... and of dims of length 1
        strides = [s for s, size in zip(strides, tensor.shape, strict=True) if size > 1]
    node = tensor.grad_fn.name() if tensor.grad_fn is not None else None
    values = numbers(tensor.detach())
    return [str(tensor.dtype), list(tensor.shape), strides, SAME_NODES.get(node, node), values]


def numbers(tensor: Any) -> Any:
    """Return numbers as lists of Python's, complex ones as pairs, halves as they are."""
    if tensor.dtype.is_complex:
        tensor = tensor.resolve_conj()
        return [numbers(tensor.real), numbers(tensor.imag)]
    return tensor.tolist()


def _gradients(m: Any, results: list[Any], leaves: list[Any]) -> list[Any]:
    loss: Any = 0
    for result in results:
        if not result.requires_grad:
            continue
        weights = np.cos(1.7 * np.arange(result.numel())).reshape(tuple(result.shape))
        product = (result * m.from_numpy(np.asarray(weights)).to(result.dtype)).sum()
        loss = loss + (product.real + product.imag if product.dtype.is_complex else product)
    if isinstance(loss, int):
        return []
    found = m.autograd.grad(loss, leaves, allow_unused=True)
    return [None if each is None else [str(each.dtype), numbers(each)] for each in found]


def outcome(m: Any, call: str, tensors: dict[str, Any], gradients: bool = True) -> Any:
    """Return what a call comes to, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = eval(call, {"torch": m, "nan": float("nan"), "inf": float("inf"), **tensors})
            results = list(found) if isinstance(found, (tuple, list)) else [found]
            seen = [_described(each) for each in results]
            leaves = [each for each in tensors.values() if each.requires_grad]
            return [seen, _gradients(m, results, leaves) if gradients else None]
        except ERRORS as error:
            words = str(error).replace("ComplexHalf", "ComplexFloat")
            return [type(error).__name__, re.sub(r"in argument \d+", "in argument", words)]


def differences(ours: Any, theirs: Any, tolerance: float = 1e-5, path: str = "") -> list[str]:
    """Return where two outcomes differ; numbers by no more than a tolerance count as the same."""
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [f"{path}: {ours} is not {theirs}"]
        found = []
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            found += differences(one, other, tolerance, f"{path}[{at}]")
        return found
    if isinstance(ours, float) and isinstance(theirs, float):
        if np.isclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True):
            return []
    elif ours == theirs and type(ours) is type(theirs):
        return []
    return [f"{path}: {ours!r} is not {theirs!r}"]
