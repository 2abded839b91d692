"""`numgrad.fft` beside ``torch.fft``: values, layouts, gradients, nodes and words."""

from __future__ import annotations

import itertools
import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.fourier.transforms import TRANSFORMS
from tests.ops.lines import answer

DTYPES = ("float32", "float64", "complex64", "complex128", "int64", "float16", "bool")
SHAPES = [(4,), (5,), (3, 4), (3, 4, 5), (2, 3, 1, 4), ()]
ONE: list[dict[str, Any]] = [
    {},
    {"n": 3},
    {"n": 6, "dim": 0},
    {"norm": "ortho"},
    {"norm": "forward", "dim": -1},
    {"norm": "backward", "dim": 1},
    {"n": 0},
    {"norm": "x"},
    {"dim": 7},
    {"n": 1},
]
SEVERAL: list[dict[str, Any]] = [
    {},
    {"dim": (0,)},
    {"dim": (-1, 0)},
    {"s": (3,)},
    {"s": (3, 6), "dim": (0, 1)},
    {"s": (3, 6), "dim": (1, 0), "norm": "ortho"},
    {"dim": (0, 0)},
    {"s": (-1, 2)},
    {"s": (1, 2), "dim": (0,)},
    {"norm": "forward"},
    {"dim": ()},
    {"s": (0,)},
    {"dim": (2, 1)},
    {"dim": (0, 1, 2)},
    {"s": (5, -1), "dim": (0, 1)},
]


def array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    values = np.asarray(rng.integers(-8, 9, shape) / 4)
    if dtype.startswith("complex"):
        values = values + 1j * np.asarray(rng.integers(-8, 9, shape) / 4)
    return np.asarray(values.astype(dtype))


def places(tensor: Any) -> list[int]:
    """Return the strides of dims that have any."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def outcome(
    m: ModuleType, name: str, shape: tuple[int, ...], dtype: str, call: dict[str, Any], grad: bool
) -> tuple[Any, list[np.ndarray]]:
    """Return what a transform gives: what has to be the same, and numbers that have to be near."""
    x = m.from_numpy(array(shape, dtype))
    if len(shape) == 3:
        x = x.permute(2, 0, 1)
    x.requires_grad_(grad)
    try:
        y = getattr(m.fft, name)(x, **call)
    except (RuntimeError, IndexError) as error:
        return (type(error).__name__, str(error).splitlines()[0]), []
    node = None if y.grad_fn is None else y.grad_fn.name()
    numbers = [y.detach().resolve_conj().numpy()]
    if grad:
        sines = np.asarray(np.sin(np.arange(y.numel())).reshape(tuple(y.shape)))
        weights = m.from_numpy(sines).to(y.real.dtype)
        (weights * y.abs() ** 2).sum().backward()
        numbers.append(x.grad.resolve_conj().numpy())
    return (tuple(y.shape), places(y), str(y.dtype), node), numbers


CASES = [
    (name, shape, dtype, at, grad)
    for name in TRANSFORMS
    for shape, dtype in itertools.product(SHAPES, DTYPES)
    for at in range(len(ONE if name[-1] == "t" else SEVERAL))
    for grad in ((False, True) if dtype in DTYPES[:4] else (False,))
]


def calls(share: int) -> list[tuple[Any, ...]]:
    return random.Random(1).sample(CASES, len(CASES) // share)


@pytest.mark.sampled(0.018)
@pytest.mark.parametrize(("name", "shape", "dtype", "at", "grad"), calls(5), ids=str)
def test_transforms_are_pytorchs(
    torch: ModuleType, name: str, shape: tuple[int, ...], dtype: str, at: int, grad: bool
) -> None:
    call = (ONE if name[-1] == "t" else SEVERAL)[at]
    ours, found = outcome(ng, name, shape, dtype, call, grad)
    theirs, expected = outcome(torch, name, shape, dtype, call, grad)
    assert ours == theirs
    single = dtype in ("float32", "complex64", "int64", "bool")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-4 if single else 1e-11)


def matrix(n: int) -> np.ndarray:
    """Return the transform as a matrix, from its definition."""
    k = np.arange(n)
    return np.exp(-2j * np.pi * np.outer(k, k) / n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12, 17])
def test_transforms_are_what_they_are_defined_as(n: int) -> None:
    rng = np.random.default_rng(n)
    z = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    spectrum = matrix(n) @ z
    np.testing.assert_allclose(ng.fft.fft(ng.tensor(z)).numpy(), spectrum, atol=1e-12)
    np.testing.assert_allclose(ng.fft.ifft(ng.tensor(spectrum)).numpy(), z, atol=1e-12)
    x = z.real
    half = (matrix(n) @ x)[: n // 2 + 1]
    np.testing.assert_allclose(ng.fft.rfft(ng.tensor(x)).numpy(), half, atol=1e-12)
    np.testing.assert_allclose(ng.fft.irfft(ng.tensor(half), n=n).numpy(), x, atol=1e-12)
    whole = (matrix(n) @ x) / n
    mirrored = ng.tensor(whole[: n // 2 + 1].conj())
    np.testing.assert_allclose(ng.fft.ihfft(ng.tensor(x)).numpy(), mirrored.numpy(), atol=1e-12)
    np.testing.assert_allclose(ng.fft.hfft(mirrored, n=n).numpy(), x, atol=1e-12)


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_are_those_of_finite_differences(name: str, norm: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((3, 4))
    if name.startswith(("fft", "ifft", "irfft", "hfft")):
        x = x + 1j * rng.standard_normal((3, 4))
    operand = ng.tensor(x, requires_grad=True)

    def run(z: Any) -> Any:
        return getattr(ng.fft, name)(z, norm=norm)

    assert ng.autograd.gradcheck(run, operand, check_forward_ad=True)
    assert ng.autograd.gradgradcheck(run, operand)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("name", ["fft", "rfft", "irfftn", "hfft2", "ihfftn"])
def test_they_are_batched_and_compiled(name: str) -> None:
    rng = np.random.default_rng(4)
    x = ng.tensor(rng.standard_normal((2, 3, 4)))

    def loss(z: Any) -> Any:
        return getattr(ng.fft, name)(z).abs().square().sum()

    each = ng.stack([loss(one) for one in x])
    assert ng.allclose(ng.func.vmap(loss)(x), each)
    gradients = ng.stack([ng.func.grad(loss)(one) for one in x])
    assert ng.allclose(ng.func.vmap(ng.func.grad(loss))(x), gradients)
    compiled = ng.jit(ng.func.value_and_grad(loss))
    value, gradient = ng.func.value_and_grad(loss)(x[0])
    for got, expected in zip(compiled(x[0]), (value, gradient), strict=True):
        np.testing.assert_array_equal(got.numpy(), expected.numpy())


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (0, 2, 3)])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_of_nothing_there_is_nothing_or_an_error(name: str, shape: tuple[int, ...]) -> None:
    x = ng.ones(shape, dtype=ng.complex64 if name.startswith(("f", "if")) else ng.float32)
    empty = [size == 0 for size in shape]
    transformed = empty if name[-1] == "n" else empty[-2:] if name[-1] == "2" else empty[-1:]
    if name[-1] == "2" and len(shape) == 1:
        with pytest.raises(IndexError, match="Dimension out of range"):
            getattr(ng.fft, name)(x)
    elif any(transformed):
        with pytest.raises(RuntimeError, match="Invalid number of data points \\("):
            getattr(ng.fft, name)(x)
    else:
        y = getattr(ng.fft, name)(x)
        assert y.numel() == 0 and y.ndim == len(shape)


LINES = [
    "fft(3)",
    "fft(torch.ones(3), 'a')",
    "fft(torch.ones(3), 5, 0, 'ortho', None)",
    "fftn(torch.ones(3, 3), 'a')",
    "rfft(torch.ones(3) * 1j)",
    "ihfftn(torch.ones(3, 3) * 1j)",
    "fft(torch.ones(3), out=torch.ones(3))",
    "irfft(torch.ones(3), out=torch.ones(3) * 1j)",
    "rfft2(torch.ones(3, 3), out=torch.ones(3))",
    "irfft(torch.ones(3), out=torch.empty(0))",
    "fftfreq(5, d=2)",
    "fftfreq(0)",
    "fftfreq(4, 0.25, dtype=torch.float64)",
    "fftfreq(4, dtype=torch.int32)",
    "fftfreq(4, dtype=torch.complex64)",
    "fftfreq(2.5)",
    "rfftfreq(5)",
    "rfftfreq(6, 3.0, requires_grad=True)",
    "fftshift(torch.arange(5))",
    "fftshift(torch.arange(6).reshape(2, 3), 1)",
    "fftshift(torch.arange(5), 3)",
    "ifftshift(torch.arange(6).reshape(2, 3))",
    "ifftshift(torch.arange(5), dim=(0,))",
]


@pytest.mark.parametrize("line", LINES)
def test_lines_do_what_they_do_in_pytorch(torch: ModuleType, line: str) -> None:
    assert answer(ng, f"torch.fft.{line}") == answer(torch, f"torch.fft.{line}")
