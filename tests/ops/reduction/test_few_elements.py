"""Calls on few elements that are remembered do and refuse what the first one did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.tuning import FEW_ELEMENTS

REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "any",
    "all",
    "var",
    "std",
    "norm",
]
SCANS = ["cumsum", "cumprod", "softmax", "log_softmax", "logsumexp"]
# Of so many rows, all of them are too many to be remembered, and one alone is few enough.
ROWS = FEW_ELEMENTS // 4


def bits(result: Any) -> list[bytes]:
    tensors = result if isinstance(result, tuple) else (result,)
    return [tensor.detach().numpy().tobytes() for tensor in tensors]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(0, 3, shape).astype(np.float32)


@pytest.mark.parametrize("name", REDUCTIONS + SCANS)
def test_a_row_alone_gives_the_bits_that_it_gives_among_many(name: str) -> None:
    many = numbers(ROWS, 7)
    among = bits(getattr(ng.from_numpy(many), name)(dim=1))
    for row in (0, 1, ROWS - 1):
        one = ng.from_numpy(many[row : row + 1].copy())
        for _ in range(2):  # the first call on a shape, and one that is remembered
            alone = bits(getattr(one, name)(dim=1))
            expected = [
                all_of_them[row * len(part) : (row + 1) * len(part)]
                for all_of_them, part in zip(among, alone, strict=True)
            ]
            assert alone == expected


@pytest.mark.parametrize("name", ["var", "softmax", "log_softmax", "cumsum", "max", "norm", "prod"])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_are_those_that_are_recorded(name: str, dim: int) -> None:
    x = ng.from_numpy(numbers(3, 4)).requires_grad_()
    found = []
    for create_graph in (False, True):
        result = getattr(x, name)(dim=dim)
        y = result[0] if isinstance(result, tuple) else result
        weights = ng.arange(y.numel()).reshape(y.shape) + 0.5
        (gradient,) = ng.autograd.grad((y * weights).sum(), x, create_graph=create_graph)
        found.append(bits(gradient))
    assert found[0] == found[1]


def test_the_variance_of_transposed_elements_has_the_gradient_that_is_recorded() -> None:
    x = ng.from_numpy(numbers(9, 30).T).requires_grad_()
    found = [
        bits(ng.autograd.grad(x.var(), x, create_graph=create_graph)[0])
        for create_graph in (False, True)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_what_equals_a_remembered_argument_is_refused_all_the_same(name: str) -> None:
    x = ng.from_numpy(numbers(2, 3))
    method = getattr(x, name)
    for _ in range(2):
        method(dim=1)
        method(dim=1, keepdim=False)
    with pytest.raises(TypeError):
        method(dim=1, keepdim=0)
    if name not in ("var", "std"):  # a bool stands for something else there
        with pytest.raises(TypeError):
            method(dim=True)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_a_call_that_failed_fails_again(name: str) -> None:
    x = ng.tensor([True, False])
    for _ in range(3):
        with pytest.raises(RuntimeError, match="bool"):
            getattr(x, name)()


def test_other_strides_of_a_remembered_shape_are_seen() -> None:
    square = numbers(3, 3)
    for _ in range(2):
        straight = ng.from_numpy(square).softmax(1).numpy()
        across = ng.from_numpy(square).t().softmax(0).numpy()
    np.testing.assert_array_equal(across, straight.T)


def test_a_write_to_what_was_saved_is_found() -> None:
    x = ng.from_numpy(numbers(4)).requires_grad_()
    for _ in range(2):
        y = x.softmax(0)
        with ng.no_grad():
            y += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_modes_are_kept() -> None:
    x = ng.from_numpy(numbers(2, 3)).requires_grad_()
    for _ in range(2):
        assert x.sum(1).requires_grad
        with ng.no_grad():
            assert not x.sum(1).requires_grad
        with ng.inference_mode():
            values, indices = x.max(1)
            assert values.is_inference() and indices.is_inference() and x.sum(0).is_inference()


def test_a_variance_without_degrees_of_freedom_warns_every_time() -> None:
    x = ng.tensor([1.0])
    for _ in range(3):
        with pytest.warns(UserWarning, match="degrees of freedom"):
            assert np.isnan(x.var().item())


def test_infinite_and_missing_numbers_warn_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    x = ng.tensor([[np.inf, -np.inf, 1.0], [np.nan, 3e38, -3e38], [0.0, 0.0, 0.0]])
    for name in ("var", "std", "norm", "mean", "logsumexp", "softmax"):
        for dim in (0, 1):
            for _ in range(2):
                getattr(x, name)(dim=dim)
    x = x.requires_grad_()
    for _ in range(2):
        x.var(1).sum().backward()
    assert not recwarn.list
