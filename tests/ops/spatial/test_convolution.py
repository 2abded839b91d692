"""Convolutions beside PyTorch's and SciPy's: values, gradients of two orders, words."""

from __future__ import annotations

import itertools
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
import numgrad.nn.functional as F
from tests.ops.spatial.comparison import array, compare

NAMES = [f"conv{form}{dims}d" for form in ("", "_transpose") for dims in (1, 2, 3)]


def each_dim(random: Random, dims: int, choices: tuple[int, ...]) -> Any:
    if random.random() < 0.5:
        return random.choice(choices)
    return tuple([random.choice(choices) for _ in range(dims)])


def drawn(name: str, random: Random) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return the operands of a call and its keywords, few of which make no sense."""
    dims, transposed = int(name[-2]), "transpose" in name
    groups = random.choice((1, 1, 2, 3))
    inside, outside = (groups * random.choice((1, 2)) for _ in range(2))
    given: dict[str, Any] = {"groups": groups}
    for word, share, choices in (
        ("stride", 0.5, (1, 2, 3)),
        ("padding", 0.6, (0, 1)),
        ("dilation", 0.4, (1, 2)),
        ("output_padding", 0.5 * transposed, (0, 1)),
    ):
        if random.random() < share:
            given[word] = each_dim(random, dims, choices)
    if not transposed and random.random() < 0.2:
        given["padding"] = random.choice(("same", "valid"))
    if random.random() < 0.1:
        given[random.choice(("stride", "dilation"))] = random.choice((-1, (1,) * (dims + 1)))
    kernel = [random.choice((1, 2, 3)) for _ in range(dims)]
    weight = [inside, outside // groups] if transposed else [outside, inside // groups]
    if random.random() < 0.1:
        weight[1] += 1
    samples = [random.choice((1, 2))] if random.random() < 0.9 else []
    shape = [*samples, inside, *[random.choice((2, 3, 4, 6)) for _ in range(dims)]]
    shapes = [shape, [*weight, *kernel]]
    if random.random() < 0.5:
        shapes.append([outside + (random.random() < 0.1)])
    dtype = random.choice(("float64",) * 4 + ("float32", "int64", "float16"))
    return [array(each, dtype, seed) for seed, each in enumerate(shapes)], given


@pytest.mark.parametrize("name", NAMES)
def test_convolutions_are_pytorchs(torch: ModuleType, name: str) -> None:
    random = Random(name)
    for _ in range(25):
        arrays, given = drawn(name, random)
        if arrays[0].dtype == np.float32 and given.get("output_padding"):
            continue  # there oneDNN's words take the place of PyTorch's
        compare(
            torch, lambda m, *t, given=given: getattr(m.nn.functional, name)(*t, **given), arrays
        )


@pytest.mark.parametrize("name", NAMES)
def test_complex_convolutions_are_pytorchs(torch: ModuleType, name: str) -> None:
    random = Random(name)
    for _ in range(6):
        arrays, given = drawn(name, random)
        arrays = [each.astype(np.complex128) * (1 + 0.5j) for each in arrays]

        def call(m: Any, *operands: Any, given: Any = given) -> Any:
            return getattr(m.nn.functional, name)(*operands, **given)

        compare(torch, call, arrays, node=False)


ODD = [
    ([(1, 2, 4, 4), (3, 2, 2)], {}),
    ([(4, 4), (3, 2, 2, 2)], {}),
    ([(1, 2, 4, 4), (3, 2, 2)], {"padding": "same"}),
    ([(2, 4, 4), (3, 2, 2, 2, 2)], {"padding": "same"}),
    ([(1, 2, 4, 4), (3, 2, 2, 2)], {"padding": "full"}),
    ([(1, 2, 4, 4), (3, 2, 2, 2)], {"padding": "same", "stride": 2}),
    ([(1, 2, 4, 4), (3, 2, 2, 2)], {"groups": 0}),
    ([(1, 2, 4, 4), (3, 2, 2, 2)], {"groups": 5}),
    ([(1, 4, 4, 4), (3, 2, 2, 2)], {"groups": 2}),
    ([(1, 2, 4, 4), (3, 2, 2, 5)], {}),
    ([(1, 2, 4, 4), (3, 2, 2, 2)], {"padding": -1}),
    ([(0, 2, 4, 4), (3, 2, 2, 2)], {}),
    ([(1, 2, 0, 4), (3, 2, 1, 1)], {}),
]


def test_what_fits_nowhere_is_told_in_pytorchs_words(torch: ModuleType) -> None:
    for shapes, given in ODD:
        arrays = [array(each, "float64", seed) for seed, each in enumerate(shapes)]
        compare(torch, lambda m, *t, given=given: m.nn.functional.conv2d(*t, **given), arrays)
    for dtypes in itertools.permutations(("float64", "float32", "int64", "bool"), 2):
        arrays = [np.ones((1, 1, 3, 3), each) for each in dtypes]
        compare(torch, lambda m, *t: m.nn.functional.conv2d(*t), arrays)


@pytest.mark.parametrize("dilation", [(0, 1, 1), (2, 0, 1), (1, 3, 0), (0, 0, 0)])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("form", ["", "_transpose"])
def test_windows_without_an_extent_are_refused(
    form: str, dims: int, dilation: tuple[int, ...]
) -> None:
    given = dilation[3 - dims :]
    call = getattr(F, f"conv{form}{dims}d")
    operands = ng.ones(1, 1, *(5,) * dims), ng.ones(1, 1, *(2,) * dims)
    if 0 not in given:
        assert call(*operands, dilation=given).shape[:2] == (1, 1)
        return
    with pytest.raises(RuntimeError, match="dilation") as caught:
        call(*operands, dilation=given)
    names = ("dilation_depth", "dilation_height", "dilation_width")
    shown = list(zip(names, (1, 1, *given)[-3:], strict=True))[-max(dims, 2) :]
    if form:
        said = ", ".join(f"{name}: {each}" for name, each in shown)
        assert str(caught.value) == f"dilation should be greater than zero, but got {said}"


def test_a_convolution_is_the_sum_it_is_defined_as() -> None:
    random = np.random.default_rng(1)
    x, weight = random.standard_normal((2, 4, 7, 6)), random.standard_normal((6, 2, 3, 2))
    found = F.conv2d(ng.tensor(x), ng.tensor(weight), stride=(2, 1), dilation=(1, 2), groups=2)
    expected = np.zeros((2, 6, 3, 4))
    for n, o, i, j in np.ndindex(*expected.shape):
        part = x[n, o // 3 * 2 : o // 3 * 2 + 2, 2 * i : 2 * i + 3, j : j + 3 : 2]
        expected[n, o, i, j] = (part * weight[o]).sum()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_convolved_as_one_by_one(name: str) -> None:
    dims = int(name[-2])
    random = np.random.default_rng(2)
    function = getattr(F, name)
    for batched in itertools.product((True, False), repeat=3):
        if not any(batched):
            continue
        shapes = [(2, 4, *(4,) * dims), (4, 2, *(2,) * dims), (4,)]
        operands = [
            ng.tensor(random.standard_normal((3, *shape) if each else shape))
            for shape, each in zip(shapes, batched, strict=True)
        ]

        def gradients(*given: Any) -> Any:
            def loss(*moving: Any) -> Any:
                return (function(*moving, groups=2) ** 3).sum()

            return ng.func.grad(loss, argnums=(0, 1, 2))(*given)

        found = ng.func.vmap(gradients, in_dims=tuple([0 if b else None for b in batched]))(
            *operands
        )
        for k in range(3):
            one = [x[k] if b else x for x, b in zip(operands, batched, strict=True)]
            for whole, part in zip(found, gradients(*one), strict=True):
                np.testing.assert_allclose(whole[k].numpy(), part.numpy(), rtol=1e-9, atol=1e-9)


def test_many_samples_are_convolved_some_at_a_time(monkeypatch: Any) -> None:
    random = np.random.default_rng(3)
    x, weight = (ng.tensor(random.standard_normal(s)) for s in ((5, 2, 4, 4), (3, 2, 2, 2)))

    def all_of_them() -> list[Any]:
        x.requires_grad_()
        weight.requires_grad_()
        y = F.conv2d(x, weight)
        return [y.detach(), *ng.autograd.grad((y**2).sum(), [x, weight])]

    whole = all_of_them()
    monkeypatch.setattr("numgrad.kernels.spatial.convolutions.CONVOLUTION_BYTES", 1)
    for one, other in zip(whole, all_of_them(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)
