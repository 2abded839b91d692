"""Every operation on operands of every layout, in every way of running: the same numbers.

The reference is the operation, run eagerly on contiguous copies of the operands. Compared with it
are values, dtype, shape and gradients of the same call on operands that lie otherwise in memory:
eagerly, under `jit`, and by the dispatcher. Operations and layouts are drawn, and with
``--cases=tenfold`` all of them run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings

import numgrad as ng
from numgrad.autograd import grad
from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import Tensor
from tests.ops.catalogue_strategies import array_primitives, elementwise_primitives
from tests.ops.test_catalogue_derivatives import make_samples
from tests.rows import names_of

THOROUGH = settings.default.max_examples > 100
SIZES = (0, 1, 7, 4_097, 300_000)
ELEMENTWISE = {primitive.name: primitive for primitive in elementwise_primitives()}
SAMPLES = {
    f"{primitive.name}-{number}": (primitive, sample)
    for primitive in array_primitives()
    for number, sample in enumerate(primitive.samples)
}
# While a function is traced there are no values.
SHAPE_DEPENDS_ON_VALUES = {"masked_select"} | names_of("SHAPE_DEPENDS_ON_VALUES")
# What goes by where the elements lie: the parts of a complex number have to lie side by side, and
# `as_strided` and its like take what lies in between, which is other numbers in another layout.
GOES_BY_LAYOUT = {"view_as_complex", "as_strided", "as_strided_scatter"}


def _permuted(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.T).T


def _stepped(array: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * length for length in array.shape], array.dtype)
    part = wide[tuple([slice(None, None, 2)] * array.ndim)]
    part[...] = array
    return part


def _flipped(array: np.ndarray) -> np.ndarray:
    back = tuple([slice(None, None, -1)] * array.ndim)
    return np.ascontiguousarray(array[back])[back]


def _part_of_rows(array: np.ndarray) -> np.ndarray:
    wide = np.zeros([length + 1 for length in array.shape], array.dtype)
    part = wide[tuple([slice(1, None)] * array.ndim)]
    part[...] = array
    return part


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "permuted": _permuted,
    "stepped": _stepped,
    "flipped": _flipped,
    "part of longer rows": _part_of_rows,
    "stepped and permuted": lambda array: _stepped(array.T).T,
}


class Case(NamedTuple):
    """A function of tensors, and the arrays that it is called with."""

    function: Callable[..., Any]
    arrays: list[np.ndarray]


def shape_of_size(size: int) -> tuple[int, ...]:
    """Return a shape of two dims (of one for a prime) with so many elements."""
    rows = next((rows for rows in (500, 17, 7) if size % rows == 0 and size > rows), 1)
    return (rows, size // rows)


def elementwise_case(name: str, size: int, random: np.random.Generator) -> Case:
    """Return a call of an elementwise operation; a last operand may be a row or a column."""
    primitive = ELEMENTWISE[name]
    whole = shape_of_size(size)
    shapes = cycle([whole, (whole[0], 1), whole[1:]] if size > 7 else [whole])
    numbers: dict[int, Any] = {}
    arrays = []
    for position, (domain, shape) in enumerate(zip(primitive.domains, shapes, strict=False)):
        if domain.is_number:
            numbers[position] = domain.intervals[0][0]
        elif domain.is_mask:
            arrays.append(random.random(shape) < 0.5)
        else:
            arrays.append(domain.draw(shape, random))

    def function(*tensors: Any) -> Any:
        rest = iter(tensors)
        count = len(tensors) + len(numbers)
        return primitive(*[numbers[k] if k in numbers else next(rest) for k in range(count)])

    return Case(function, arrays)


def sample_case(name: str) -> Case:
    """Return a call of another operation, one of its samples."""
    _, sample = SAMPLES[name]
    function, tensors, keywords = sample(make_samples())
    arrays = [tensor.numpy(force=True) for tensor in tensors]
    return Case(lambda *given: function(*given, **keywords), arrays)


def with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns values and the gradients of their weighted sum."""

    def derived(*arrays: Any) -> list[Any]:
        given = [array if isinstance(array, Tensor) else ng.from_numpy(array) for array in arrays]
        inputs = [
            tensor.detach().requires_grad_(tensor.dtype.is_floating_point) for tensor in given
        ]
        result = function(*inputs)
        values = list(result) if isinstance(result, (tuple, list)) else [result]
        moving = [v for v in values if isinstance(v, Tensor) and v.requires_grad]
        leaves = [tensor for tensor in inputs if tensor.requires_grad]
        if not moving or not leaves:
            return values
        cotangents = [
            (ng.arange(v.numel(), dtype=ng.float64) % 7).reshape(v.shape).to(v.dtype) - 2.5
            for v in moving
        ]
        found = grad(moving, leaves, cotangents, allow_unused=True)
        return [v.detach() if isinstance(v, Tensor) else v for v in values] + [
            g for g in found if g is not None
        ]

    return derived


def assert_same(ours: Any, expected: list[Any], where: str) -> None:
    ours = list(ours) if isinstance(ours, (list, tuple)) else [ours]
    assert len(ours) == len(expected), where
    for mine, reference in zip(ours, expected, strict=True):
        if not isinstance(reference, Tensor):
            assert mine == reference, where
            continue
        array = mine.numpy() if isinstance(mine, Tensor) else np.asarray(mine)
        wanted = reference.numpy()
        assert array.dtype == wanted.dtype, where
        assert array.shape == wanted.shape, where
        scale = float(np.abs(wanted).max()) if wanted.size and wanted.dtype.kind in "fc" else 1.0
        scale = scale if np.isfinite(scale) else 1.0
        np.testing.assert_allclose(
            array, wanted, rtol=1e-13, atol=1e-13 * scale, err_msg=where, equal_nan=True
        )


def check(case: Case, layout: str, name: str) -> None:
    """Compare all ways of running a call on operands of a layout."""
    derived = with_gradients(case.function)
    expected = derived(*[np.ascontiguousarray(a).reshape(a.shape) for a in case.arrays])
    # An array without dims lies in one way only, and NumPy's functions would give it a dim.
    laid_out = [LAYOUTS[layout](array) if array.ndim else array.copy() for array in case.arrays]
    before = [array.copy() for array in laid_out]
    assert_same(derived(*laid_out), expected, "eager")
    if name.split("-")[0] in SHAPE_DEPENDS_ON_VALUES:
        with pytest.raises(TraceError):
            ng.jit(derived)(*laid_out)
        return
    compiled = ng.jit(derived)
    assert_same(compiled(*laid_out), expected, "jit")
    if all(isinstance(value, Tensor) for value in expected):
        assert_same(compiled.lower(*laid_out).dispatcher(*laid_out), expected, "dispatcher")
    for array, kept in zip(laid_out, before, strict=True):
        np.testing.assert_array_equal(array, kept)


def drawn() -> Iterator[Any]:
    """Yield an operation, a size and a layout each; all of them where that is wanted."""
    random = Random(11)
    for size in SIZES:
        names = sorted(ELEMENTWISE)
        for name in names if THOROUGH else random.sample(names, 3):
            for layout in LAYOUTS if THOROUGH else [random.choice(list(LAYOUTS))]:
                yield pytest.param(name, size, layout, id=f"{name}-{size}-{layout}")
    names = sorted(name for name in SAMPLES if name.split("-")[0] not in GOES_BY_LAYOUT)
    for name in names if THOROUGH else random.sample(names, 20):
        for layout in LAYOUTS if THOROUGH else [random.choice(list(LAYOUTS))]:
            yield pytest.param(name, None, layout, id=f"{name}-{layout}")


@pytest.mark.sampled(0.03)
@pytest.mark.parametrize(("name", "size", "layout"), list(drawn()))
def test_every_way_gives_what_contiguous_operands_give(
    name: str, size: int | None, layout: str
) -> None:
    if size is None:
        check(sample_case(name), layout, name)
    else:
        check(elementwise_case(name, size, np.random.default_rng(3)), layout, name)
