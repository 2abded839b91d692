"""Padding, interpolation, shuffling and sampling beside PyTorch's: values, gradients, words."""

from __future__ import annotations

from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
import numgrad.nn.functional as F
from tests.ops.spatial.comparison import array, compare

MODES = {
    **{"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)},
    **dict.fromkeys(("nearest", "nearest-exact", "area"), (1, 2, 3)),
}


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_is_pytorchs(torch: ModuleType, mode: str) -> None:
    random = Random(mode)
    for _ in range(40):
        dims = random.choice((1, 2, 3))
        ndim = dims + (random.choice((1, 2)) if random.random() < 0.9 else 3)
        shape = [random.choice((1, 2, 3, 5)) for _ in range(ndim)]
        choices = (0, 1, 2, 2, 5) if mode[0] == "c" else (0, 1, 2, 2, -1, -2, 5)
        widths = tuple([random.choice(choices) for _ in range(2 * dims)])
        given: dict[str, Any] = {"mode": mode}
        if random.random() < 0.2:
            given["value"] = random.choice((0, 1.5))
        dtype = random.choice(("float64", "float64", "float32", "complex128", "int64", "bool"))

        def call(m: Any, t: Any, widths: Any = widths, given: Any = given) -> Any:
            return m.nn.functional.pad(t, widths, **given)

        # PyTorch copies slices to pad with what goes round, and so has other nodes.
        compare(torch, call, [array(shape, dtype, 1)], node=mode != "circular")


def test_circular_padding_goes_round_what_is_left() -> None:
    x = ng.arange(5.0).reshape(1, 5)
    for before, behind in ((2, 3), (-1, 2), (2, -1), (-2, -1)):
        kept = x.numpy()[:, max(-before, 0) : 5 - max(-behind, 0)]
        expected = np.pad(kept, ((0, 0), (max(before, 0), max(behind, 0))), mode="wrap")
        found = F.pad(x, (before, behind), mode="circular")
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("mode", MODES)
def test_interpolation_is_pytorchs(torch: ModuleType, mode: str) -> None:
    random = Random(mode)
    for _ in range(30):
        dims = random.choice(MODES[mode])
        # No image comes to be one element wide: there PyTorch's smooth ones are wrong.
        shape = [1, random.choice((1, 2)), *[random.choice((4, 5, 6)) for _ in range(dims)]]
        given: dict[str, Any] = {"mode": mode}
        if random.random() < 0.5:
            given["size"] = tuple([random.choice((2, 3, 5, 9)) for _ in range(dims)])
        else:
            given["scale_factor"] = random.choice((2, 0.5, 1.3, 0.7, (2.5,) * dims, 0.1))
            given["recompute_scale_factor"] = random.choice((None, True))
        if mode.endswith(("linear", "cubic")):
            given["align_corners"] = random.choice((None, False, True))
        if random.random() < 0.3:
            given["antialias"] = True
        dtype = random.choice(("float64",) * 4 + ("float32", "int64"))

        def call(m: Any, t: Any, given: Any = given) -> Any:
            return m.nn.functional.interpolate(t, **given)

        compare(torch, call, [array(shape, dtype, 1)])


ODD: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 4), {}),
    ((1, 2, 4), {"size": 2, "scale_factor": 2}),
    ((1, 2, 4), {"size": (2, 3)}),
    ((1, 2, 4), {"scale_factor": (2, 3)}),
    ((1, 2, 4), {"size": 0}),
    ((1, 2, 4), {"size": 3, "mode": "bilinear"}),
    ((1, 2, 4), {"size": 3, "mode": "sinc"}),
    ((1, 2, 4), {"size": 3, "align_corners": True}),
    ((1, 2, 4), {"size": 3, "antialias": True}),
    ((1, 2, 4), {"size": 3, "recompute_scale_factor": True}),
    ((2, 4), {"size": 3}),
    ((1, 0, 4), {"size": 3}),
    ((0, 2, 4), {"size": 3}),
]


def test_odd_interpolation_is_told_in_pytorchs_words(torch: ModuleType) -> None:
    for shape, given in ODD:
        x = array(shape, "float64", 1)
        compare(torch, lambda m, t, g=given: m.nn.functional.interpolate(t, **g), [x])


def test_shuffling_is_pytorchs(torch: ModuleType) -> None:
    for shape in ((2, 4, 2, 4), (4, 2, 3), (1, 6, 4, 4), (4, 4)):
        for factor in (1, 2, 3, 0):
            for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"):

                def call(m: Any, t: Any, name: str = name, factor: int = factor) -> Any:
                    return getattr(m.nn.functional, name)(t, factor)

                compare(torch, call, [array(shape, "float64", 1)])


def test_grids_are_pytorchs(torch: ModuleType) -> None:
    for shape, size in (
        ((2, 2, 3), (2, 1, 3, 4)),
        ((1, 3, 4), (1, 2, 2, 3, 2)),
        ((2, 2, 3), (1, 1, 3, 4)),
        ((2, 2, 3), (2, 1, 0, 4)),
        ((2, 3, 3), (2, 1, 3, 4)),
        ((2, 2, 3), (2, 1, 3)),
    ):
        for aligned in (True, False):

            def call(m: Any, t: Any, size: Any = size, aligned: bool = aligned) -> Any:
                return m.nn.functional.affine_grid(t, size, align_corners=aligned) + 0.1

            compare(torch, call, [array(shape, "float64", 1)], node=False)


def sampled(m: Any, x: Any, grid: Any, weights: np.ndarray | None, **given: Any) -> list[Any]:
    found = m.nn.functional.grid_sample(x, grid, **given)
    gradients = m.autograd.grad((found * m.from_numpy(weights)).sum(), [x, grid])
    return [each.detach().numpy() for each in (found, *gradients)]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples_are_pytorchs(torch: ModuleType, mode: str) -> None:
    random, numbers = Random(mode), np.random.default_rng(1)
    for padding in ("zeros", "border", "reflection"):
        for aligned in (True, False):
            for dims in (2, 2, 3) if mode != "bicubic" else (2, 2):
                sizes = [random.choice((1, 2, 4)) for _ in range(dims)]
                places = [random.choice((1, 2, 3)) for _ in range(dims)]
                arrays = [
                    numbers.standard_normal((2, 2, *sizes)),
                    numbers.standard_normal((2, *places, dims)) * 1.5,
                ]
                weights = numbers.standard_normal((2, 2, *places))
                given = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
                ours, theirs = (
                    sampled(
                        m,
                        *[m.from_numpy(a.copy()).requires_grad_() for a in arrays],
                        weights,
                        **given,
                    )
                    for m in (ng, torch)
                )
                for one, other in zip(ours, theirs, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_samples_have_second_derivatives() -> None:
    numbers = np.random.default_rng(2)
    x = ng.tensor(numbers.standard_normal((1, 1, 4, 4)), requires_grad=True)
    grid = ng.tensor(numbers.uniform(-0.9, 0.9, (1, 2, 2, 2)), requires_grad=True)
    for mode in ("bilinear", "bicubic"):

        def call(x: Any, grid: Any, mode: str = mode) -> Any:
            return F.grid_sample(x, grid, mode=mode, align_corners=False)

        assert ng.autograd.gradcheck(call, (x, grid), check_forward_ad=True)
        assert ng.autograd.gradgradcheck(call, (x, grid), fast_mode=True)


def test_odd_samples_are_told_in_pytorchs_words(torch: ModuleType) -> None:
    for shapes, given in (
        (((2, 1, 3, 3), (2, 2, 2, 2)), {"mode": "cubic"}),
        (((2, 1, 3, 3), (2, 2, 2, 2)), {"padding_mode": "edge"}),
        (((2, 1, 3, 3), (1, 2, 2, 2)), {}),
        (((2, 1, 3, 3), (2, 2, 2, 3)), {}),
        (((2, 1, 0, 3), (2, 2, 2, 2)), {}),
        (((2, 1, 2, 2, 3), (2, 2, 2, 2, 3)), {"mode": "bicubic"}),
    ):
        arrays = [array(each, "float64", 1) for each in shapes]

        def call(m: Any, x: Any, grid: Any, given: Any = given) -> Any:
            return m.nn.functional.grid_sample(x, grid, align_corners=False, **given)

        compare(torch, call, arrays)


def test_responses_are_normalised_as_by_pytorch(torch: ModuleType) -> None:
    for shape in ((2, 4, 3), (1, 3, 2, 2), (1, 3, 2, 1, 2), (4, 3)):
        for size in (1, 2, 3):

            def call(m: Any, t: Any, size: int = size) -> Any:
                return m.nn.functional.local_response_norm(t, size, alpha=0.5, beta=0.6, k=2.0)

            compare(torch, call, [array(shape, "float64", 1)])


def test_examples_are_resampled_as_one_by_one() -> None:
    x = ng.tensor(array((3, 1, 4, 4, 5), "float64", 1))
    for function in (
        lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"),
        lambda x: F.interpolate(x, size=(3, 7), mode="bicubic"),
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.channel_shuffle(x, 2),
    ):

        def gradient(x: Any, function: Any = function) -> Any:
            return ng.func.grad(lambda x: (function(x) ** 2).sum())(x)

        found = ng.func.vmap(gradient)(x)
        compiled = ng.jit(gradient)(x[0])
        np.testing.assert_allclose(compiled.numpy(), gradient(x[0]).numpy(), rtol=1e-12)
        for k in range(3):
            np.testing.assert_allclose(found[k].numpy(), gradient(x[k]).numpy(), rtol=1e-12)


@pytest.mark.parametrize("place", range(4))
def test_blocks_of_lengths_beyond_int64_are_refused_in_pytorchs_words(place: int) -> None:
    given = [2, 1, 0, 1]
    given[place] = 2**64
    name = ("kernel_size", "dilation", "padding", "stride")[place]
    words = rf"\(\): argument '{name}' failed to unpack the object at pos 1 with error \"Overflow"
    with pytest.raises(TypeError, match="im2col" + words):
        F.unfold(ng.ones(1, 1, 4, 4), *given)
    with pytest.raises(TypeError, match="col2im" + words):
        F.fold(ng.ones(1, 4, 9), (4, 4), *given)
