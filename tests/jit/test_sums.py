"""Sums have the same bits under `jit`, in dispatchers and without, with any number of threads.

They are added in one order, which `numgrad.kernels.reduce.order` describes. What is drawn here are
programs that end in reductions: which, over which dims of arrays of which shape, layout and dtype,
alone or fused with what computes their operand.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import Tensor
from tests.cases import thinned

# Below and above all that the order goes by: lanes, blocks, blocks of blocks.
SIZES = [0, 1, 2, 7, 16, 17, 31, 33, 63, 64, 65, 100, 513, 1023, 1025, 4097]
LONG = [300_000, 70_000]
MOST = 300_000  # elements
DTYPES = ["float32", "float64", "complex64", "float32", "float64"]


def elements(x: Tensor, y: Tensor) -> Tensor:
    return x


def products(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def rows_added(x: Tensor, y: Tensor) -> Tensor:
    return x + y[..., :1, :] if y.ndim > 1 else x + y


def columns_added(x: Tensor, y: Tensor) -> Tensor:
    return (x - y[..., :1]) * y


def exchanged(x: Tensor, y: Tensor) -> Tensor:
    return (x + y).transpose(0, -1)


OPERANDS = [elements, products, rows_added, columns_added, exchanged]


def added(x: Tensor, dims: Any) -> Any:
    return x.sum() if dims is None else x.sum(dims)


def averaged(x: Tensor, dims: Any) -> Any:
    return x.mean() if dims is None else x.mean(dims, keepdim=True)


def twice(x: Tensor, dims: Any) -> Any:
    return x.sum(), x.sum(-1), x.sum(0), (x * x).sum(0 if dims is None else dims)


def of_sums(x: Tensor, dims: Any) -> Any:
    sums = x.sum(-1, keepdim=True)
    return (x * sums).sum(dims) if dims is not None else (x - sums).sum()


def normalised(x: Tensor, dims: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred, (centred * centred).mean(-1)


def multiplied(x: Tensor, dims: Any) -> Any:
    return x.prod() if dims is None else x.prod(dims[0])


def norms(x: Tensor, dims: Any) -> Any:
    return x.norm(dim=dims), x.norm(1, dim=dims), x.norm(3, dim=dims)


def without_nans(x: Tensor, dims: Any) -> Any:
    x = x.abs() if x.is_complex() else x
    return x.nansum(dims), x.nanmean(dims)


def spread(x: Tensor, dims: Any) -> Any:
    return x.var(dims), x.std(dims, keepdim=True)


def exponentials(x: Tensor, dims: Any) -> Any:
    every = tuple(range(x.ndim))
    return x.logsumexp(every if dims is None else dims)


def shares(x: Tensor, dims: Any) -> Any:
    x = x.abs() if x.is_complex() else x
    dim = -1 if not dims else dims[0]
    return x.softmax(dim), x.log_softmax(dim)


FOLDS = [added, added, averaged, twice, of_sums, normalised]
OTHER_FOLDS = [multiplied, norms, without_nans, spread, exponentials, shares]


def draw_shape(rng: random.Random, *, small: bool) -> tuple[int, ...]:
    """Draw a shape, of few elements or of any number."""
    if small:
        return tuple(rng.choice([1, 2, 3, 5, 8, 17]) for _ in range(rng.randint(1, 3)))
    if rng.random() < 0.15:
        return (rng.choice(LONG),)
    shape = [rng.choice(SIZES)]
    while len(shape) < 4 and rng.random() < 0.6:
        shape.insert(rng.randint(0, len(shape)), rng.choice(SIZES))
    while np.prod(shape) > MOST:
        shape[rng.randrange(len(shape))] = rng.choice([2, 3, 5])
    return tuple(shape)


def draw_array(rng: random.Random, shape: Sequence[int], dtype: str) -> Tensor:
    """Draw an array that is contiguous, transposed, or a part of another one."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    layout = rng.choice(["whole", "permuted", "columns", "steps", "backwards"])
    order = list(range(len(shape)))
    wider = list(shape)
    if layout == "permuted" or (layout == "backwards" and rng.random() < 0.5):
        rng.shuffle(order)
    elif layout == "columns":
        wider[-1] += 3
    elif layout == "steps":
        at = rng.randrange(len(shape))
        wider[at] *= 2
    there = [wider[dim] for dim in order]
    values = numbers.standard_normal(there)
    if dtype.startswith("complex"):
        values = values + 1j * numbers.standard_normal(there)
    x = ng.tensor(values.astype(dtype)).permute(*np.argsort(order).tolist())
    if layout == "backwards":
        return ng.from_numpy(x.numpy()[backwards(rng, len(shape))])
    if layout == "columns":
        return x[..., : shape[-1]]
    if layout == "steps":
        return x[(slice(None),) * at + (slice(None, None, 2),)]
    return x


def backwards(rng: random.Random, rank: int) -> tuple[slice, ...]:
    """Draw dims that are read from the last index to the first."""
    return tuple(slice(None, None, rng.choice([-1, -1, 1])) for _ in range(rank))


def draw_program(
    rng: random.Random, rank: int, folds: Sequence[Callable[..., Any]] = FOLDS
) -> tuple[Callable[..., Any], str]:
    """Draw what is computed, and how it is reduced over which dims."""
    operand, fold = rng.choice(OPERANDS), rng.choice(folds)
    dims = None
    if rng.random() < 0.7:
        dims = tuple(sorted(rng.sample(range(rank), rng.randint(1, rank))))

    def program(x: Tensor, y: Tensor) -> Any:
        return fold(operand(x, y), dims)

    return program, f"{fold.__name__} over {dims} of {operand.__name__}"


def bits(results: Any, like: Any = None) -> list[bytes]:
    """Return the bytes of all results, as the arrays of others where they are plain numbers."""
    found = results if isinstance(results, tuple) else (results,)
    dtypes = [None] * len(found) if like is None else [x.numpy().dtype for x in like]
    return [
        np.ascontiguousarray(x.numpy() if isinstance(x, Tensor) else np.asarray(x, dtype)).tobytes()
        for x, dtype in zip(found, dtypes, strict=True)
    ]


@pytest.mark.sampled(0.036)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("size", ["small", "any"])
def test_sums_have_the_bits_that_they_have_without_jit(size: str, seed: int) -> None:
    rng = random.Random(f"{size} {seed}")
    shape, dtype = draw_shape(rng, small=size == "small"), rng.choice(DTYPES)
    x, y = draw_array(rng, shape, dtype), draw_array(rng, shape, dtype)
    program, name = draw_program(rng, len(shape))
    name = f"{name}: {dtype}{list(shape)}, strides {x.stride()} and {y.stride()}"
    eager = program(x, y)
    expected = bits(eager)
    compiled = ng.jit(program)
    assert bits(compiled(x, y)) == expected, name
    if seed % 3 == 0:
        dispatcher = compiled.lower(x, y).dispatcher
        found = dispatcher(np.ascontiguousarray(x.numpy()), np.ascontiguousarray(y.numpy()))
        contiguous = program(x.contiguous(), y.contiguous())
        like = contiguous if isinstance(contiguous, tuple) else (contiguous,)
        if all(own.is_contiguous() for own in (x, y)):
            assert bits(found if len(like) > 1 else found[0], like) == expected, name


@pytest.mark.sampled(0.09)
@pytest.mark.filterwarnings("ignore")  # of too few degrees of freedom, of overflow
@pytest.mark.parametrize("seed", range(30))
def test_other_reductions_have_the_bits_that_they_have_without_jit(seed: int) -> None:
    rng = random.Random(f"other {seed}")
    shape, dtype = draw_shape(rng, small=seed % 3 == 0), rng.choice(DTYPES)
    x, y = draw_array(rng, shape, dtype), draw_array(rng, shape, dtype)
    program, name = draw_program(rng, len(shape), [OTHER_FOLDS[seed % len(OTHER_FOLDS)]])
    name = f"{name}: {dtype}{list(shape)}, strides {x.stride()} and {y.stride()}"
    assert bits(ng.jit(program)(x, y)) == bits(program(x, y)), name


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "dim"), [((200_000,), 0), ((2, 70_000), 1), ((700, 100), 0)])
def test_shares_of_long_rows_have_the_bits_that_they_have_without_jit(
    shape: tuple[int, ...], dim: int, dtype: str
) -> None:
    x = ng.tensor(np.random.default_rng(0).standard_normal(shape).astype(dtype))
    assert bits(ng.jit(lambda x: shares(x, (dim,)))(x)) == bits(shares(x, (dim,)))


@pytest.mark.sampled(0.072)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("fold", [added, averaged, multiplied, spread], ids=lambda f: f.__name__)
def test_reductions_of_reversed_arrays(fold: Callable[..., Any], dtype: str) -> None:
    rng = random.Random(f"{fold.__name__} {dtype}")
    for shape in thinned([(600,), (130, 17), (7, 33), (9, 3, 40)], 3):
        x = draw_array(rng, shape, dtype).numpy()
        x = ng.from_numpy(x[(slice(None, None, -1), *backwards(rng, len(shape) - 1))])
        dims = tuple(sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))
        compiled = ng.jit(functools.partial(fold, dims=dims))
        for y in (x.contiguous(), x, x.mT if x.ndim > 1 else x):  # a trace of the first won't do
            found, expected = bits(compiled(y)), bits(fold(y, dims))
            assert found == expected, f"{list(y.shape)}, strides {y.stride()}, over {dims}"


PARTS = {
    "columns": lambda x: x[:, :700],
    "few columns": lambda x: x[:, 5:70],
    "rows": lambda x: x[::2],
    "backwards": lambda x: x.flip(0)[:, 3:],
    "every other": lambda x: x[:, ::2],
    "a column again and again": lambda x: x[:, :1].expand(*x.shape),
}


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "bool"])
@pytest.mark.parametrize("part", PARTS)
def test_totals_of_parts_are_those_of_copies(part: str, dtype: str) -> None:
    numbers = np.random.default_rng(0).standard_normal((330, 1000)) * 3
    x = PARTS[part](ng.tensor(numbers.astype(dtype)))
    if part == "a column again and again" and dtype == "complex64":
        x = x.real
    assert bits(x.sum()) == bits(x.clone(memory_format=ng.contiguous_format).sum())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(70, 900), (300, 1025), (4097, 64), (40_000, 5)])
def test_sums_of_one_row_again_and_again_are_those_of_copies(
    shape: tuple[int, ...], dtype: str
) -> None:
    row = ng.tensor(np.random.default_rng(0).standard_normal((1, shape[1])).astype(dtype))
    x = row.expand(*shape)
    assert bits(x.sum(0)) == bits(x.T.clone(memory_format=ng.contiguous_format).sum(1))


@pytest.mark.parametrize("shape", [(600_000,), (3, 400_001), (1200, 1100), (70_000, 11)])
def test_sums_do_not_depend_on_the_number_of_threads(shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x, row = ng.tensor(numbers), ng.tensor(numbers[..., :1] * 3)

    def program(x: Tensor, row: Tensor) -> Any:
        return (x * row).sum(), (x + row).sum(-1), (x + row).sum(0)

    compiled = ng.jit(program)
    threads = ng.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            ng.set_num_threads(count)
            found += [bits(program(x, row)), bits(compiled(x, row))]
    finally:
        ng.set_num_threads(threads)
    assert all(each == found[0] for each in found)


# --- gradients of what was broadcast --------------------------------------------------------------

BROADCASTS: dict[str, Callable[..., Tensor]] = {
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - y,
    "div": lambda x, y: x / y,
    "expand": lambda x, y: x * y.expand(np.broadcast_shapes(x.shape, y.shape)),
    "addcmul": lambda x, y: ng.addcmul(y, x, y, value=0.5),
    "maximum": lambda x, y: ng.maximum(x, y) if not x.is_complex() else x * y * y,
    "where": lambda x, y: ng.where(x.abs() > 0.5, x * y, y),
    "pointwise": lambda x, y: (x * y).sin() if not x.is_complex() else (x * y) * x,
}
LENGTHS = [0, 1, 2, 7, 33, 64, 100, 257, 1025, 4097, 300_000]


def draw_broadcast(rng: random.Random) -> list[tuple[int, ...]]:
    """Draw two shapes that are broadcast to one another, and what they are broadcast to."""
    full = [rng.choice(LENGTHS) for _ in range(rng.randint(1, 4))]
    while np.prod([max(1, n) for n in full]) > MOST:
        full[rng.randrange(len(full))] = rng.choice([1, 2, 3, 5])
    pair = [[n if rng.random() < 0.6 else 1 for n in full] for _ in range(2)]
    if rng.random() < 0.5:
        pair[0] = full
    pair[1] = pair[1][rng.choice([0, 0, 1, len(full)]) :]
    shapes = [tuple(shape) for shape in pair]
    return [*shapes, tuple(np.broadcast_shapes(*shapes))]


@pytest.mark.sampled(0.03)
@pytest.mark.parametrize("seed", range(32))
def test_gradients_of_what_was_broadcast_have_the_same_bits_everywhere(seed: int) -> None:
    rng = random.Random(f"broadcast {seed}")
    shapes, dtype = draw_broadcast(rng), rng.choice(["float32", "float64", "complex64"])
    x, y, g = (draw_array(rng, shape, dtype) if shape else ng.tensor(1.25) for shape in shapes)
    y = y.to(x.dtype)
    if rng.random() < 0.3 and g.ndim:
        g = g[..., :1].expand(*g.shape)  # as behind a mean
    operation = rng.choice(list(BROADCASTS))
    program = BROADCASTS[operation]

    def gradients(x: Tensor, y: Tensor, g: Tensor) -> Any:
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        return ng.autograd.grad(program(x, y), (x, y), g)

    strides = [each.stride() for each in (x, y, g)]
    name = f"{operation} of {dtype}, {list(x.shape)} and {list(y.shape)}, strides {strides}"
    expected = bits(gradients(x, y, g))
    compiled = ng.jit(gradients)
    threads = ng.get_num_threads()
    try:
        for count in (1, 2):
            ng.set_num_threads(count)
            assert bits(gradients(x, y, g)) == expected, name
            assert bits(compiled(x, y, g)) == expected, f"jit: {name}"
    finally:
        ng.set_num_threads(threads)
    if seed % 3 == 0:
        operands = [v.contiguous() for v in (x, y, g)]
        expected = bits(gradients(*operands))
        dispatcher = compiled.lower(*operands).dispatcher
        found = dispatcher(*[v.numpy() for v in operands])
        assert bits(found, gradients(*operands)) == expected, f"dispatcher: {name}"


# --- products of matrices, which BLAS adds up -----------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_products_of_contiguous_matrices_are_the_same_calls_under_jit(seed: int) -> None:
    rng, numbers = random.Random(f"products {seed}"), np.random.default_rng(seed)
    dtype = rng.choice(["float32", "float64", "complex64"])
    for kind in ("matrices", "matrix and vector", "vector and matrix", "batches"):
        m, k, n = (rng.choice([2, 3, 7, 16, 33, 100, 257]) for _ in range(3))
        shapes = {
            "matrices": [(m, k), (k, n)],
            "matrix and vector": [(m, k), (k,)],
            "vector and matrix": [(k,), (k, n)],
            "batches": [(3, m, k), (3, k, n)],
        }[kind]
        x, y = (ng.tensor(numbers.standard_normal(shape).astype(dtype)) for shape in shapes)
        compiled = ng.jit(lambda x, y: x @ y)
        assert bits(compiled(x, y)) == bits(x @ y), f"{kind}: {shapes} of {dtype}"
