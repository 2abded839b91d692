"""Transforms of many numbers by two rounds of short ones, beside NumPy's in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.kernels import fourier, long_fourier

EPSILON = {"complex64": 2e-7, "complex128": 4e-16}


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    random = np.random.default_rng(len(shape))
    values = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def distance(found: Any, expected: Any) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("bits", [8, 9, 10, 13])
def test_rows_are_transformed_there_and_back(bits: int, dtype: str) -> None:
    x = drawn((2, 1 << bits), dtype)
    double = x.astype(np.complex128)
    spectrum = long_fourier.transform(x, True, 1.0)
    assert spectrum.dtype == x.dtype
    assert distance(spectrum, np.fft.fft(double)) < 2 * EPSILON[dtype]
    inverse = long_fourier.transform(x, False, 2.0 ** (1 - bits))
    assert distance(inverse, 2 * np.fft.ifft(double)) < 2 * EPSILON[dtype]


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_functions_use_them_for_lengths_that_are_powers_of_two(
    monkeypatch: pytest.MonkeyPatch, name: str, norm: str
) -> None:
    monkeypatch.setattr(long_fourier, "LONG_FOURIER", 256)
    x = drawn((3, 512, 2), "complex128")
    asked: list[Any] = []
    transform = long_fourier.transform
    monkeypatch.setattr(
        fourier, "transform", lambda *given: asked.append(given) or transform(*given)
    )

    def run(z: Any) -> Any:
        return getattr(ng.fft, name)(z, dim=1, norm=norm)

    operand = ng.tensor(x, requires_grad=True)
    result = run(operand)
    expected = getattr(np.fft, name)(x, axis=1, norm=norm)
    assert distance(result.detach().numpy(), expected) < 1e-15
    weights = drawn(x.shape, "complex128")
    (gradient,) = ng.autograd.grad(result, operand, ng.tensor(weights))
    adjoint = np.fft.ifft if name == "fft" else np.fft.fft
    way = {"backward": "forward", "forward": "backward"}.get(norm, norm)
    assert distance(gradient.numpy(), adjoint(weights, axis=1, norm=way)) < 1e-15
    assert len(asked) == 2
    np.testing.assert_array_equal(ng.jit(run)(operand).detach().numpy(), result.detach().numpy())
    asked.clear()
    run(operand[:, :500])
    assert not asked


def test_threads_leave_the_bits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_fourier, "THREAD_ELEMENTS_GATHER", 1)
    monkeypatch.setattr(long_fourier, "FOURIER_ROUND_BYTES", 1)
    x, found = drawn((1, 4096), "complex64"), []
    long_fourier._plan.cache_clear()
    for threads in (1, 2):
        before = ng.get_num_threads()
        ng.set_num_threads(threads)
        found.append(long_fourier.transform(x, True, 1.0))
        ng.set_num_threads(before)
    long_fourier._plan.cache_clear()
    np.testing.assert_array_equal(*found)
