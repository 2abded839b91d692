"""One call of a function beside PyTorch: words, shape, dtype, node, values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import numgrad as ng

__all__ = ["array", "compare"]

DIFFERENTIABLE = ("float32", "float64", "complex128")
Shape = Sequence[int]


def array(shape: Shape, dtype: str, seed: int) -> np.ndarray:
    """Return numbers, all of them different but for two in some."""
    random = np.random.default_rng(seed + sum(shape))
    count = int(np.prod(shape))
    values = random.permutation(count).reshape(tuple(shape)) / 8 - count / 16
    if dtype.startswith("complex"):
        values = values + 1j * random.permutation(count).reshape(tuple(shape)) / 8
    if dtype.startswith("int"):
        values = values * 8
    return np.asarray(values.astype(dtype))


def _outcome(
    m: ModuleType, call: Callable[..., Any], arrays: Sequence[np.ndarray], node: bool
) -> tuple[list[Any], list[np.ndarray]]:
    tensors = [m.from_numpy(each.copy()) for each in arrays]
    moving = [each for each in tensors if str(each.dtype)[6:] in DIFFERENTIABLE]
    for each in moving:
        each.requires_grad_()
    try:
        found = call(m, *tensors)
    except (AssertionError, RuntimeError, IndexError, TypeError, ValueError) as error:
        return [type(error).__name__, str(error).splitlines()[0]], []
    results = found if isinstance(found, tuple) else (found,)
    y = results[0]
    facts = [[(tuple(each.shape), str(each.dtype), each.requires_grad) for each in results]]
    if node:
        facts.append(y.grad_fn and y.grad_fn.name())
    numbers = [each.detach().numpy() for each in results]
    if y.requires_grad and y.numel():
        sines = np.sin(np.arange(y.numel())).reshape(tuple(y.shape))
        loss = (m.from_numpy(np.asarray(sines)).to(y.dtype) * y).sum()
        loss = loss.abs() ** 2 + (y.abs() ** 2).sum()
        first = m.autograd.grad(loss, moving, create_graph=True)
        numbers += [each.detach().resolve_conj().numpy() for each in first]
        second = sum((each.abs() ** 2).sum() for each in first)
        numbers += [
            each.detach().resolve_conj().numpy() for each in m.autograd.grad(second, moving)
        ]
    return facts, numbers


def compare(
    torch: ModuleType, call: Callable[..., Any], arrays: Sequence[np.ndarray], node: bool = True
) -> None:
    """Assert that a call on arrays gives what it gives in PyTorch, up to rounding."""
    ours, found = _outcome(ng, call, arrays, node)
    theirs, expected = _outcome(torch, call, arrays, node)
    assert ours == theirs, f"{ours} is not {theirs}, of {[each.shape for each in arrays]}"
    small = any(each.dtype in (np.float32, np.float16) for each in (*arrays, *expected))
    for one, other in zip(found, expected, strict=True):
        scale = float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
        np.testing.assert_allclose(
            one, other, rtol=0, atol=(2e-3 if small else 1e-11) * (1 + scale)
        )
