"""Writes through views of another dtype: real parts of complex bases, complex views of real ones.

Chains of views and writes are drawn; gradient and tangent are compared with central differences.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd import forward_ad
from tests.cases import examples

EXAMPLES = settings(max_examples=examples(60))
BASES = ("complex", "pairs", "permuted", "without a history", "with gaps", "of two parts")
STEP = 1e-6


def base_of(kind: str, x: Any) -> Any:
    """Return a tensor that is no leaf or depends on nothing yet; `x` is of shape (2, 3, 2)."""
    if kind == "complex":
        return ng.view_as_complex(x * 2)
    if kind == "pairs":
        return x * 2
    if kind == "permuted":
        return ng.view_as_complex(x).t() * 1.5
    if kind == "without a history":
        return ng.zeros(2, 3, dtype=ng.complex128)
    if kind == "with gaps":
        return ng.from_numpy(np.zeros((6, 4), complex)[::2, ::2])
    return ng.complex(x[..., 0], x[..., 1] * 3)


def viewed(random: Random, tensor: Any) -> Any:
    """Return a view of a tensor, often in the other dtype."""
    kind = random.choice(["parts", "parts", "real", "imag", "select", "narrow", "transpose"])
    if kind == "parts":
        if tensor.is_complex():
            return ng.view_as_real(tensor)
        steps = tensor.stride()
        fits = tensor.ndim and tensor.shape[-1] == 2 and steps[-1] == 1
        fits = fits and not any(step % 2 for step in steps[:-1]) and not tensor.storage_offset() % 2
        return ng.view_as_complex(tensor) if fits else tensor
    if kind in ("real", "imag"):
        return getattr(tensor, kind) if tensor.is_complex() else tensor
    if not tensor.ndim:
        return tensor
    dim = random.randrange(tensor.ndim)
    if kind == "select":
        return tensor.select(dim, random.randrange(tensor.shape[dim]))
    if kind == "narrow":
        start = random.randrange(tensor.shape[dim])
        return tensor.narrow(dim, start, tensor.shape[dim] - start)
    return tensor.transpose(0, -1)


def written(random: Random, tensor: Any, x: Any) -> None:
    """Write into a tensor something that depends on it, on `x`, or on neither."""
    kind = random.choice(["mul", "square", "add", "set", "copy", "sin"])
    if kind == "mul":
        tensor.mul_(1.5)
    elif kind == "square":
        tensor.mul_(tensor.clone())
    elif kind == "add":
        tensor.add_(x.sum() * 0.1)
    elif kind == "set":
        tensor[...] = 0.5
    elif kind == "copy":
        tensor.copy_((x[0, 0, 0] * x[1, 2, 1]).to(tensor.dtype))
    else:
        tensor.sin_()


def chain(x: Any, kind: str, seed: int) -> Any:
    """Return a number after some views and writes."""
    random = Random(seed)
    base = base_of(kind, x)
    views = [base]
    for _ in range(random.randint(2, 7)):
        source = random.choice(views)
        if random.random() < 0.5:
            views.append(viewed(random, source))
        else:
            written(random, source, x)
    last = random.choice(views)
    result = (base * base).sum() + last.sum() * 2 + (x * 0.1).sum()
    return result.real if result.is_complex() else result


@pytest.mark.parametrize("kind", BASES)
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_gradient_and_tangent_are_the_central_difference(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    place = random.uniform(-0.6, 0.6, (2, 3, 2))
    direction = random.uniform(-1, 1, place.shape)

    def value(array: np.ndarray) -> float:
        return float(chain(ng.from_numpy(array), kind, seed))

    slope = (value(place + STEP * direction) - value(place - STEP * direction)) / (2 * STEP)
    x = ng.from_numpy(place).requires_grad_()
    (gradient,) = ng.autograd.grad(chain(x, kind, seed), x)
    scale = 1 + abs(slope)
    assert abs(float((gradient.numpy() * direction).sum()) - slope) < 1e-5 * scale
    point, along = ng.from_numpy(place), ng.from_numpy(direction)
    _, tangent = ng.func.jvp(lambda x: chain(x, kind, seed), (point,), (along,))
    assert abs(float(tangent) - slope) < 1e-5 * scale
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(point, along)
        _, tangent = forward_ad.unpack_dual(chain(dual, kind, seed))
    assert tangent is not None
    assert abs(float(tangent) - slope) < 1e-5 * scale
