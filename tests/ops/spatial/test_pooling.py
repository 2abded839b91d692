"""Pooling and sliding blocks beside PyTorch's: values, places, gradients of two orders, words."""

from __future__ import annotations

from random import Random
from types import ModuleType
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import numgrad as ng
import numgrad.nn.functional as F
from tests.ops.spatial.comparison import array, compare

KINDS = ("avg_pool", "max_pool", "lp_pool", "adaptive_avg_pool", "adaptive_max_pool")
NAMES = [f"{kind}{dims}d" for kind in KINDS for dims in (1, 2, 3)]


def each_dim(random: Random, dims: int, choices: tuple[Any, ...]) -> Any:
    if random.random() < 0.5:
        return random.choice([each for each in choices if each is not None])
    return tuple([random.choice(choices) for _ in range(dims)])


def drawn(name: str, random: Random) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the operand of a call and its keywords, few of which make no sense."""
    dims = int(name[-2])
    samples = [random.choice((0, 1, 2))] if random.random() < 0.7 else []
    shape = [*samples, random.choice((1, 2)), *[random.choice((2, 3, 5, 6)) for _ in range(dims)]]
    given: dict[str, Any] = {}
    if name.startswith("adaptive"):
        choices = (1, 2, 3, 5) if dims == 1 else (1, 2, 3, 5, None)
        given["output_size"] = each_dim(random, dims, choices)
    else:
        given["kernel_size"] = each_dim(random, dims, (1, 2, 3))
        if random.random() < 0.5:
            given["stride"] = each_dim(random, dims, (1, 2, 3))
        if random.random() < 0.5:
            given["ceil_mode"] = True
        if name.startswith(("avg", "max")) and random.random() < 0.5:
            given["padding"] = each_dim(random, dims, (0, 1))
        if random.random() < 0.1 and not name.startswith("lp"):
            given[random.choice(("kernel_size", "stride", "padding"))] = random.choice((-1, 0, 9))
    if name.startswith("avg") and random.random() < 0.5:
        given["count_include_pad"] = False
        if dims > 1:
            given["divisor_override"] = random.choice((None, 3, -2, 0))
    if name.startswith("max") and "padding" not in given and random.random() < 0.5:
        given["dilation"] = each_dim(random, dims, (1, 2))
    if "max" in name and random.random() < 0.5:
        given["return_indices"] = True
    if name.startswith("lp"):
        given["norm_type"] = random.choice((1.0, 2.0, float("inf")))
        given["kernel_size"] = given["kernel_size"] if dims > 1 else 2
    dtype = random.choice(("float64",) * 4 + ("float32", "int64", "bool"))
    return array(shape, dtype, 1), given


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("name", NAMES)
def test_pooling_is_pytorchs(torch: ModuleType, name: str) -> None:
    random = Random(name)
    for _ in range(30):
        x, given = drawn(name, random)
        if 0 in x.shape and name.startswith("adaptive"):
            x = x.astype(np.float64)  # of nothing, PyTorch asks for no dtype
        compare(torch, lambda m, t, given=given: getattr(m.nn.functional, name)(t, **given), [x])


def test_odd_inputs_are_told_in_pytorchs_words(torch: ModuleType) -> None:
    for name in NAMES:
        dims = int(name[-2])
        if name.startswith("lp"):
            continue
        for shape in [(4,) * dims, (1, 2, 0, *(4,) * (dims - 1))] if dims > 1 else [(2, 0)]:
            compare(torch, lambda m, t, n=name: getattr(m.nn.functional, n)(t, 2), [np.ones(shape)])


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_what_was_pooled_is_put_back_as_by_pytorch(torch: ModuleType, dims: int) -> None:
    size = tuple(range(4, 4 + 2 * dims, 2))

    def call(m: Any, t: Any, **given: Any) -> Any:
        f = m.nn.functional
        pooled, places = getattr(f, f"max_pool{dims}d")(t, 2, return_indices=True)
        return getattr(f, f"max_unpool{dims}d")(pooled, places, 2, **given) * 1

    for given in (
        {},
        {"output_size": size},
        {"output_size": (2, 2, *size)},
        {"output_size": tuple([each + 1 for each in size])},
        {"output_size": (2,) * dims},
        {"output_size": (3,) * (dims + 1)},
    ):
        compare(torch, lambda m, t, g=given: call(m, t, **g), [array((2, 2, *size), "float64", 1)])


def test_places_are_looked_at(torch: ModuleType) -> None:
    x = np.ones((1, 1, 2, 2))
    for places in (
        np.full((1, 1, 2, 2), 16),
        np.zeros((1, 1, 2, 2), np.int32),
        np.zeros((1, 2), int),
    ):

        def call(m: Any, t: Any, places: Any = places) -> Any:
            return m.nn.functional.max_unpool2d(t, m.from_numpy(places), 2)

        compare(torch, call, [x])


def test_not_a_number_is_greatest(torch: ModuleType) -> None:
    x = np.array([[1.0, np.nan, 2.0, -np.inf, -np.inf, -np.inf, np.nan, np.nan]])
    compare(
        torch, lambda m, t: m.nn.functional.max_pool1d(t.detach(), 2, 1, return_indices=True), [x]
    )


BLOCKS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 2, 4, 5), {"kernel_size": 2}),
    ((2, 2, 4, 5), {"kernel_size": (1, 1)}),
    ((2, 4, 5), {"kernel_size": (2, 3), "padding": 1, "stride": 2}),
    ((1, 2, 5, 6), {"kernel_size": (2, 3), "dilation": (2, 1), "stride": (1, 2)}),
    ((0, 2, 4, 5), {"kernel_size": 2}),
    ((2, 0, 4, 5), {"kernel_size": 2}),
    ((4, 5), {"kernel_size": 2}),
    ((1, 2, 4, 5), {"kernel_size": 6}),
    ((1, 2, 4, 5), {"kernel_size": (1, 2, 3)}),
    ((1, 2, 4, 5), {"kernel_size": 0}),
    ((1, 2, 4, 5), {"kernel_size": 2, "dilation": 0}),
    ((1, 2, 4, 5), {"kernel_size": 2, "padding": -1}),
    ((1, 2, 4, 5), {"kernel_size": 2, "stride": 0}),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_blocks_are_pytorchs(torch: ModuleType, dtype: str) -> None:
    for shape, given in BLOCKS:
        x = array(shape, dtype, 1)
        compare(torch, lambda m, t, g=given: m.nn.functional.unfold(t, **g), [x])

        def summed(m: Any, t: Any, given: Any = given) -> Any:
            f = m.nn.functional
            return f.fold(f.unfold(t, **given), t.shape[-2:], **given)

        compare(torch, summed, [x])
    columns = array((2, 12, 6), dtype, 1)
    for size, kernel in (
        ((3, 4), 2),
        ((3, 5), 2),
        ((3,), 2),
        ((2, 1), 2),
        ((4, 5), 5),
        ((3, 4), (2, 2, 2)),
    ):
        compare(torch, lambda m, t, s=size, k=kernel: m.nn.functional.fold(t, s, k), [columns])


def test_examples_are_pooled_as_one_by_one() -> None:
    x = ng.tensor(array((3, 2, 2, 5, 6), "float64", 1))
    for function in (
        lambda x: F.max_pool2d(x, 2, 1),
        lambda x: F.avg_pool2d(x, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
        lambda x: F.adaptive_max_pool2d(x, (3, 2)),
        lambda x: F.unfold(x, 2),
        lambda x: F.fold(F.unfold(x, 2), (5, 6), 2),
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    ):

        def gradient(x: Any, function: Any = function) -> Any:
            return ng.func.grad(lambda x: (function(x) ** 2).sum())(x)

        found = ng.func.vmap(gradient)(x)
        for k in range(3):
            np.testing.assert_allclose(found[k].numpy(), gradient(x[k]).numpy(), rtol=1e-12)


@pytest.mark.usefixtures("traced")
def test_pooling_is_compiled_as_it_stands() -> None:
    x = ng.tensor(array((1, 2, 6, 6), "float64", 1))

    def loss(x: Any) -> Any:
        return (F.max_pool2d(x.tanh(), 2) ** 2).sum() + F.adaptive_avg_pool2d(x * x, 4).sum()

    compiled, plain = ng.jit(ng.func.grad(loss))(x), ng.func.grad(loss)(x)
    np.testing.assert_allclose(compiled.numpy(), plain.numpy(), rtol=1e-12)


FRACTIONAL = """
2 | 2, output_size=3
2 | 2, 3, None, True
2 | (2, 3), (3, 4)
2 | 2, output_ratio=(0.5, 0.5)
2 | 2, output_ratio=(0.5, 0.5, 0.5)
2 | 2
2 | 2, output_size=7
2 | 9, output_size=3
2 | 2, output_size=-1
2 | 2, output_size=(3, 3, 3)
2 | (2, 2, 2), output_size=3
3 | 2, output_size=3
3 | (2, 3, 2), output_size=(3, 4, 2)
3 | 2, output_ratio=(0.5, 0.5, 0.5)
3 | 2
3 | 2, output_size=(3, 3)
3 | (2, 2), output_size=3
3 | 9, output_size=3
""".strip().splitlines()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64"])
def test_fractional_pooling_of_numbers_that_were_drawn_is_pytorchs(torch, dtype):
    for row in FRACTIONAL:
        dims, text = row.split(" | ")
        sizes = (2, 3, 7, 8, 6)[: int(dims) + 2]
        drawn = np.random.default_rng(len(text)).uniform(size=(2, 3, int(dims))).astype(dtype)
        for form in ("", "_with_indices"):
            name = f"fractional_max_pool{dims}d{form}"

            def call(m, x, text=text, name=name, drawn=drawn):
                arguments = {"m": m, "x": x, "drawn": m.from_numpy(drawn)}
                return eval(f"m.nn.functional.{name}(x, {text}, _random_samples=drawn)", arguments)

            compare(torch, call, [array(sizes, dtype, 1)])


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling_draws_windows_that_are_as_many_as_wanted(dims):
    ng.manual_seed(0)
    x = ng.arange(7.0**dims).reshape((1, 1, *[7] * dims))
    name = f"fractional_max_pool{dims}d"
    found = {str(getattr(F, name)(x, 2, 4).tolist()) for _ in range(20)}
    assert len(found) > 1
    whole = getattr(F, name)(x[0], 1, 7 if dims == 2 else 6)
    assert (
        (whole[0] == x[0, 0]).all() if dims == 2 else whole[..., -1, -1, -1] == x[..., -1, -1, -1]
    )
    values, places = getattr(F, f"{name}_with_indices")(x, 3, 2)
    assert (x.flatten()[places] == values).all()


@hypothesis.given(
    st.sampled_from([2, 3]),
    st.sampled_from([np.float32, np.float64]),
    st.tuples(*[st.integers(1, 9)] * 3),
    st.floats(width=32) | st.sampled_from([1.0, 3e8, -3e8, 2e7, 1e30]),
)
def test_fractional_windows_lie_in_the_plane_whatever_numbers_are_given(dims, dtype, sizes, number):
    size, kernel, count = sizes[0] + sizes[1] + sizes[2], sizes[1], sizes[2]
    x = ng.from_numpy(np.arange(size**dims, dtype=dtype)).reshape((1, *[size] * dims))
    drawn = ng.from_numpy(np.full((1, 1, dims), number, dtype))
    name = f"fractional_max_pool{dims}d_with_indices"
    values, places = getattr(F, name)(x, kernel, count, _random_samples=drawn)
    assert (values == places).all()
    # Every window holds what it begins with, and the last ends with the plane.
    assert places.min() >= 0 and places.max() == size**dims - 1


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_pooling_with_places_gives_these_whether_asked_for_or_not(dims):
    x = ng.arange(4.0**dims).reshape((1, 1, *[4] * dims))
    function = getattr(F, f"max_pool{dims}d_with_indices")
    for asked in (False, True):
        values, places = function(x, 2, None, 0, 1, False, asked)
        assert (x.flatten()[places] == values).all()
