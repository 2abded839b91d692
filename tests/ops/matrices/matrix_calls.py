"""Calls of functions of matrices, for tests that compare with PyTorch: drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

Array = np.ndarray[Any, Any]

DTYPES = ("float32", "float64", "complex64", "complex128")
BATCHES = ((), (3,), (2, 2), (0,))


class MatrixCall(NamedTuple):
    """One call: ``function(library, *tensors)`` gives tensors that determine each other.

    Attributes
    ----------
    function : callable
    kinds : str
        What each operand is: a general (g), positive definite (p), tall (m) or wide (w) matrix,
        Cholesky's factor (t), right sides (b) or a vector (v).
    """

    function: Callable[..., Any]
    kinds: str


def operand(kind: str, batch: tuple[int, ...], size: int, dtype: str, random: Any) -> Array:
    """Return an operand of one kind, well conditioned."""
    columns = {"b": 2, "m": size, "w": size + 2}.get(kind, size)
    rows = size + 2 if kind == "m" else size
    shape = (*batch, rows) if kind == "v" else (*batch, rows, columns)
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    if kind in "gt":
        values = values + np.diag(3.0 + 2 * np.arange(size))
    if kind == "t":
        values = np.tril(values, -1) + np.eye(size) * values.real  # as a Cholesky factor is
    if kind == "p":
        values = values @ values.conj().swapaxes(-2, -1) + np.diag(1.0 + np.arange(size))
    return np.asarray(values.astype(dtype))


def operands(call: MatrixCall, seed: int, dtype: str) -> list[Array]:
    """Return the operands of a call, of a batch and a size that the seed decides."""
    random = np.random.default_rng(seed)
    batch = BATCHES[seed % len(BATCHES)]
    size = int(random.choice([0, 1, 2, 3, 5]))
    return [operand(kind, batch, size, dtype, random) for kind in call.kinds]


def results(library: Any, call: MatrixCall, arrays: list[Array]) -> tuple[list[Any], list[Any]]:
    """Return what a call gives, and the gradients for cotangents that are drawn alike."""
    leaves = [library.from_numpy(array.copy()).requires_grad_() for array in arrays]
    found = call.function(library, *leaves)
    outputs = [found] if isinstance(found, library.Tensor) else list(found)
    random = np.random.default_rng(0)
    loss: Any = 0
    for output in outputs:
        if output.requires_grad:
            weights = random.standard_normal(tuple(output.shape))
            if output.is_complex():
                weights = weights + 1j * random.standard_normal(tuple(output.shape))
            weight = library.from_numpy(np.asarray(weights)).to(output.dtype)
            product = (output * weight).sum()
            loss = loss + (product.real if product.is_complex() else product)
    if isinstance(loss, int):
        return outputs, []
    gradients = library.autograd.grad(loss, leaves, allow_unused=True)
    return outputs, list(gradients)


def compare(torch: Any, numgrad: Any, call: MatrixCall, seed: int, dtype: str) -> None:
    """Check values, gradients, dtypes and strides of a call against PyTorch's."""
    arrays = operands(call, seed, dtype)
    theirs, their_gradients = results(torch, call, arrays)
    ours, our_gradients = results(numgrad, call, arrays)
    assert len(ours) == len(theirs)
    single = dtype in ("float32", "complex64")
    for mine, reference in zip(ours, theirs, strict=True):
        assert repr(mine.dtype) == repr(reference.dtype)
        assert mine.requires_grad == reference.requires_grad
        if min(mine.shape, default=2) > 1:
            assert mine.stride() == reference.stride()
        close(mine.numpy(force=True), reference.numpy(force=True), single)
    for mine, reference in zip(our_gradients, their_gradients, strict=True):
        assert (mine is None) == (reference is None)
        if reference is not None:
            assert repr(mine.dtype) == repr(reference.dtype)
            close(mine.numpy(force=True), reference.numpy(force=True), single)


def close(mine: Array, reference: Array, single: bool) -> None:
    """Check that two results differ by roundings of their scale."""
    assert mine.shape == reference.shape
    scale = float(np.abs(reference).max(initial=1.0))
    tolerance = 2e-4 if single else 1e-10
    np.testing.assert_allclose(mine, reference, rtol=tolerance, atol=tolerance * scale)


def matrix(library: Any, *shape: int, dtype: str = "float32") -> Any:
    """Return a well conditioned tensor of a shape, the same one in every library."""
    array = np.cos(np.arange(1, 1 + np.prod(shape, dtype=int)) ** 2.0).reshape(shape)
    if len(shape) > 1:
        array = array + 3 * np.eye(*shape[-2:])
    return library.from_numpy(array.astype(dtype))


def compare_outcome(torch: Any, numgrad: Any, call: Callable[[Any], Any], where: Any = "") -> None:
    """Check that a call gives what PyTorch gives: tensors, or an error of its kind and words."""
    expected = raised = None
    try:
        expected = call(torch)
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        raised = error
    if raised is not None:
        kind = type(raised)
        kind = numgrad.linalg.LinAlgError if "LinAlg" in kind.__name__ else kind
        with pytest.raises(kind) as caught:
            call(numgrad)
        assert (where, caught.type) == (where, kind)
        assert str(caught.value).split("\n")[0] == str(raised).split("\n")[0], where
        return
    found = call(numgrad)
    assert isinstance(found, (tuple, list)) == isinstance(expected, (tuple, list)), where
    pairs = zip(found, expected, strict=True) if isinstance(found, (tuple, list)) else None
    for mine, theirs in pairs or [(found, expected)]:
        assert repr(mine.dtype) == repr(theirs.dtype), where
        assert tuple(mine.shape) == tuple(theirs.shape), where
        if min(mine.shape, default=2) > 1:
            assert mine.stride() == theirs.stride(), where
        np.testing.assert_allclose(
            mine.numpy(force=True), theirs.numpy(force=True), 2e-3, 1e-4, err_msg=str(where)
        )
