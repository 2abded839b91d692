"""Variances, deviations and norms under `jit`: loops of their own, with eager bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng

CASES: list[tuple[tuple[int, ...], Any]] = [
    ((5,), 0),
    ((10, 7), 1),
    ((10, 70), 0),
    ((40, 3), -1),  # written out
    ((3, 40, 5), (0, 1)),
    ((3, 40, 5), (0, 2)),  # with dims in between: a call of eager mode's kernel
    ((70_000,), 0),  # of several parts: the same
    ((2, 1, 9), (1,)),  # of one element each
]


def _all_of(dims: Any) -> Any:
    def found(x: Any) -> Any:
        y = x * 2
        return (
            y.var(dims),
            x.std(dims, keepdim=True),
            *ng.var_mean(x.mT if x.ndim == 2 else x, dims, correction=0),
            *ng.std_mean(y, dims, keepdim=True, correction=0.5),
            ng.linalg.vector_norm(y, 2, dims),
            ng.linalg.vector_norm(y, 1, dims, keepdim=True),
        )

    return found


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize(("shape", "dims"), CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("special", [False, True])
def test_values_have_eager_bits(
    shape: tuple[int, ...], dims: Any, dtype: str, special: bool
) -> None:
    numbers = 3 * np.random.default_rng(0).standard_normal(shape)
    if special:
        numbers.flat[0], numbers.flat[-1] = np.inf, -0.0
    x = ng.from_numpy(numbers.astype(dtype))
    function = _all_of(dims)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of no degrees of freedom
        pairs = list(zip(ng.jit(function)(x), function(x), strict=True))
    for compiled, eager in pairs:
        assert compiled.dtype == eager.dtype and compiled.stride() == eager.stride()
        assert np.array_equal(compiled.numpy(), eager.numpy(), equal_nan=True)


def test_gradients_are_eager_ones() -> None:
    x = ng.from_numpy(np.random.default_rng(1).standard_normal((6, 9)))

    def loss(x: Any) -> Any:
        return sum((each.sin().sum() for each in _all_of(1)(x)), x.norm())

    gradient = ng.func.grad(loss)
    np.testing.assert_allclose(ng.jit(gradient)(x), gradient(x), rtol=1e-12, atol=1e-13)


def test_they_are_fused_where_they_are_one_part() -> None:
    def calls(x: Any) -> bool:
        graph = ng.jit(lambda x: ng.nn.functional.layer_norm(x * x, x.shape[-1:])).lower(x).graph
        return any(value.operation == "call" for value in graph.values())

    assert not calls(np.ones((4, 100)))
    assert calls(np.ones((2, 70_000)))


@pytest.mark.parametrize(
    ("shape", "dims", "is_one"),
    [
        ((64, 5000), 0, True),  # as many rows as are added up in one go
        ((65, 5000), 0, False),
        ((1000, 40), 0, True),  # these rows are shorter
        ((30, 1, 50), (0, 2), True),  # nothing lies in between
        ((30, 2, 50), (0, 2), False),
    ],
)
def test_one_part_is_what_is_added_up_in_one_go(
    shape: tuple[int, ...], dims: Any, is_one: bool
) -> None:
    for name in ("var", "logsumexp"):
        graph = ng.jit(lambda x, name=name: getattr(x * x, name)(dims)).lower(np.ones(shape)).graph
        assert any(value.operation == "call" for value in graph.values()) != is_one


ODD: dict[str, Any] = {
    "nothing": lambda x: [getattr(x[:0], f)(0) for f in ("var", "std", "logsumexp", "norm")],
    "of nothing": lambda x: [getattr(x[:0], f)(1) for f in ("var", "std", "logsumexp")],
    "permuted": lambda x: [getattr(x.mT, f)((0, 1)) for f in ("var", "logsumexp")],
    "permuted together": lambda x: [getattr(x.mT, f)((0, 2)) for f in ("var", "logsumexp")],
    "no degrees of freedom": lambda x: (x.var(0, correction=9), x.std(0, correction=3)),
    "complex": lambda x: (ng.complex(x, x + 1).var(0), ng.complex(x, x).std(1)),
    "complex norms": lambda x: [ng.linalg.vector_norm(ng.complex(x, x * 3), p, 0) for p in (1, 2)],
    "norm in another dtype": lambda x: [ng.linalg.vector_norm(x, 2, 0, dtype=ng.float64)],
    "norms of a number": lambda x: [ng.linalg.vector_norm(x[0, 0, 0] * 1e20, p) for p in (1, 2)],
    "norms over no dims": lambda x: [ng.linalg.vector_norm(x, p, ()) for p in (1, 2)],
}


@pytest.mark.sampled(0.24)
@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_odd_operands_have_eager_bits(name: str) -> None:
    x = ng.from_numpy(np.random.default_rng(3).standard_normal((3, 40, 5)).astype(np.float32))
    for compiled, eager in zip(ng.jit(ODD[name])(x), ODD[name](x), strict=True):
        assert compiled.dtype == eager.dtype and compiled.stride() == eager.stride()
        assert np.array_equal(compiled.numpy(), eager.numpy(), equal_nan=True)


def test_what_is_left_to_kernels_is_given_as_it_lies_in_eager_mode() -> None:
    """A copy that a program reads backwards, or out of other memory, has rows of its own there."""
    x = ng.from_numpy(np.random.default_rng(2).standard_normal((300, 300)))
    functions: list[Any] = [
        lambda x: x.flip(0).std(0),
        lambda x: x.flip(0).logsumexp(0),
        lambda x: ng.linalg.vector_norm(x.flip(0), 3, 0),
        lambda x: ng.std_mean(ng.complex(x.flip(0), x), 0)[1],
        lambda x: x.flip(1).nansum(1),
        lambda x: x.roll(3, 0).var(0),
    ]
    for function in functions:
        assert ng.equal(ng.jit(function)(x), function(x))


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min"])
def test_complex_numbers_have_no_extremes(name: str) -> None:
    z = ng.complex(ng.ones(1, 40), ng.ones(1, 40))
    dims = (0,) if name.startswith("a") else ()

    def extreme(z: Any) -> Any:
        return getattr(z, name)(*dims)

    messages = []
    for function in (extreme, ng.jit(extreme)):
        with pytest.raises(NotImplementedError) as error:
            function(z)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["row by row", "column by column", "backwards"])
def test_equal_numbers_have_no_variance(dtype: str, layout: str) -> None:
    random = np.random.default_rng(3)
    values = np.array(np.broadcast_to(random.standard_normal(30), (100, 30)), dtype)
    values[1:-1, 20:] += random.standard_normal((98, 10)).astype(dtype)
    if layout == "column by column":
        values = np.asfortranarray(values)
    x = ng.from_numpy(values)
    if layout == "backwards":
        x = x.flip(0)

    def moments(x: Any) -> Any:
        return ng.std_mean(x * 1, 0, correction=0)

    lowered = ng.jit(moments).lower(x)
    eager = [each.numpy().tobytes() for each in moments(x)]
    for deviation, mean in (ng.jit(moments)(x), map(ng.from_numpy, lowered.dispatcher(x.numpy()))):
        assert not deviation[:20].any()
        assert [deviation.numpy().tobytes(), mean.numpy().tobytes()] == eager
    assert not ng.jit(ng.func.grad(lambda x: moments(x)[0].sum()))(x)[:, :20].any()
