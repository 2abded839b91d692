"""Sorted rows, sets, counts and histograms beside PyTorch: dtypes, shapes, nan, wrong arguments."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32"),
    *("float16", "float32", "float64", "complex64"),
)


def operands(m: Any, dtype: str) -> dict[str, Any]:
    """Return sorted rows `s` and `B`, values `v`, a number `z`, nothing `e`, and a block `c`."""
    random = np.random.default_rng(3)
    arrays = {
        "s": np.sort(random.integers(0, 6, 9)),
        "B": np.sort(random.integers(0, 6, (2, 9)), -1),
        "v": random.integers(0, 7, (2, 9)),
        "z": np.array(3),
        "e": np.zeros(0),
        "c": random.integers(0, 3, (4, 3, 5)),
    }
    return {name: m.from_numpy(array.astype(dtype)) for name, array in arrays.items()}


def described(m: Any, found: Any) -> Any:
    """Return what there is to see of a result."""
    if isinstance(found, tuple):
        return [described(m, each) for each in found]
    node = found.grad_fn.name() if found.grad_fn is not None else None
    detached = found.detach()
    numbers = detached.tolist() if not detached.dtype.is_floating_point else None
    if numbers is None:  # edges of bins are computed in float64 here, halves elsewhere in halves
        digits = 2 if str(found.dtype) == "torch.float16" else 5
        numbers = np.round(detached.double().numpy(), digits).tolist()
    strides = found.stride() if found.numel() else None  # NumPy has its own, of nothing
    return [str(found.dtype), list(found.shape), strides, node, repr(numbers)]


OTHER_WORDS = {"ComplexHalf": "ComplexFloat", "in argument 1": "in argument 0", "-nan": "nan"}


def outcome(m: Any, call: str, **names: Any) -> Any:
    """Return what a call comes to, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(m, eval(call, {"torch": m, "nan": float("nan"), **names}))
        except (RuntimeError, TypeError, IndexError, NotImplementedError) as error:
            words = str(error).split(" but expected one of")[0]
            for theirs, ours in (
                ("ComplexHalf", "ComplexFloat"),
                ("in argument 1", "in argument 0"),
            ):
                words = words.replace(theirs, ours)
            return [type(error).__name__, words.replace("-nan", "nan")]


OF_ONE = [
    *(f"torch.bincount({x})" for x in ("s", "e", "z", "v", "s[::2]")),
    "torch.bincount(s, None, 12)",
    *(
        f"torch.{name}({x}, {options})"
        for name in ("unique", "unique_consecutive")
        for x in ("v", "B.t()", "z", "e", "c.permute(2, 0, 1)", "c[:, :0]")
        for options in ("", "return_inverse=True, return_counts=True", "return_counts=True, dim=0")
    ),
    *(f"c.{name}(dim={dim})" for name in ("unique", "unique_consecutive") for dim in (1, -1, 5)),
    *(f"torch.searchsorted(s, {number})" for number in ("3", "2.5", "True", "-1", "1j", "nan")),
    *(f"torch.bucketize({number}, s, right=True)" for number in ("3", "2.5", "300")),
    *(f"torch.isin({pair})" for pair in ("v, 3", "v, 2.5", "3, v", "True, v", "v, 1j")),
    *(f"torch.isin({x})" for x in ("0.1, v / 10", "0.1, v[0] / 10", "v / 10, 0.1", "3, v[0, :8]")),
    *(f"torch.histc(v, {options})" for options in ("4", "4, 0, 3", "0", "3, 5, 2", "3, 0, nan")),
    *(f"torch.histogram({x}, 4)" for x in ("v", "c", "e", "z")),
    "torch.histogram(v, 3, range=(0.0, 4.0), density=True)",
    "torch.histogram(v, 3, range=(4, 0))",
    "torch.histogram(v, 3, range=(1.0,))",
    "torch.histogram(v, s.unique(), weight=v)",
    "torch.histogram(v, -2)",
    "torch.histogramdd(c, 2)",
    "torch.histogramdd(c, [1, 2, 3, 4, 5], weight=c[:, :, 0], density=True)",
    "torch.histogramdd(c, [s.unique()] * 5)",
    "torch.histogramdd(v[:, :2], [2, 3], range=[0.0, 2.0, 0.0, 3.0])",
    "torch.histogramdd(v, [2])",
    "torch.histogramdd(s, [2])",
]


@pytest.mark.sampled(0.054, by="call")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", OF_ONE)
def test_every_dtype_is_searched_and_counted_as_in_pytorch(torch: Any, call, dtype):
    assert outcome(ng, call, **operands(ng, dtype)) == outcome(
        torch, call, **operands(torch, dtype)
    )


OF_TWO = [
    *(
        f"torch.searchsorted({rows}, {values}, {options})"
        for rows, values in (("s", "w"), ("B", "w"), ("s", "y"), ("s", "n"), ("n2", "w"))
        for options in ("", "right=True", "out_int32=True, side='right'")
    ),
    "torch.searchsorted(s, w, sorter=torch.arange(8, -1, -1))",
    "torch.bucketize(w, s)",
    *(f"torch.isin({pair})" for pair in ("v, w", "c, w", "v, n", "n, v", "z, y")),
    "torch.isin(v, w, invert=True, assume_unique=True)",
    "torch.bincount(s, w[0])",
    "torch.histogram(v, w[0])",
]


@pytest.mark.sampled(0.072, by="call")
@pytest.mark.parametrize("dtypes", list(itertools.product(DTYPES, DTYPES)))
@pytest.mark.parametrize("call", OF_TWO)
def test_two_dtypes_meet_as_in_pytorch(torch: Any, call, dtypes):
    def names(m: Any) -> dict[str, Any]:
        own, other = (operands(m, dtype) for dtype in dtypes)
        return {**own, "w": other["v"], "y": other["z"], "n": other["e"], "n2": own["e"]}

    assert outcome(ng, call, **names(ng)) == outcome(torch, call, **names(torch))


SPECIAL = [
    *(
        f"torch.{name}(x{options})"
        for name in ("unique", "unique_consecutive")
        for options in ("", ", True, True")
    ),
    # The order of rows with nan is left to chance there.
    "torch.unique_consecutive(x.reshape(9, 1), dim=0)",
    "torch.unique_consecutive(x.reshape(3, 3), dim=1)",
    "torch.unique(x[2:6].reshape(2, 2), dim=1)",
    "torch.searchsorted(x, x)",
    "torch.searchsorted(x, x, right=True)",
    "torch.searchsorted(torch.sort(x).values, x)",
    "torch.searchsorted(torch.sort(x).values, x, right=True)",
    "torch.isin(x, x)",
    "torch.histc(x, 4, 0, 5)",
    "torch.histc(x)",
    "torch.histogram(x, 3)",
    "torch.histogram(x, 3, range=(0.0, 2.0))",
    "torch.histogram(x, torch.tensor([0.0, 1.0, nan]))",
    "torch.histogram(x, torch.tensor([3.0, 3.0, 3.0]))",
]


def specials(m: Any) -> Any:
    return m.tensor([3.0, float("nan"), 1.0, -0.0, 0.0, float("inf"), float("nan"), 3.0, -1.0])


@pytest.mark.parametrize("call", SPECIAL)
def test_nan_and_infinities_are_found_where_pytorch_finds_them(torch: Any, call):
    ours, theirs = outcome(ng, call, x=specials(ng)), outcome(torch, call, x=specials(torch))
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("right", [None, False, True])
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_the_side_is_said_by_either_argument_or_both(side: str | None, right: bool | None) -> None:
    rows, values = ng.tensor([1.0, 2.0, 2.0, 3.0]), ng.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    said = {"side": side, "right": right}
    given = {name: value for name, value in said.items() if value is not None}
    if right and side == "left":
        with pytest.raises(RuntimeError, match="can't be set to opposites"):
            ng.searchsorted(rows, values, **given)
        return
    expected = [0, 1, 3, 4, 4] if right or side == "right" else [0, 0, 1, 3, 4]
    assert ng.searchsorted(rows, values, **given).tolist() == expected


WRONG = [
    "torch.searchsorted(s, s, side='x')",
    "torch.searchsorted(s, s, right=True, side='left')",
    "torch.searchsorted(s, s, sorter=torch.arange(3))",
    "torch.searchsorted(s, s, sorter=torch.arange(9.0))",
    "torch.searchsorted(s, s, sorter=torch.arange(1, 10))",
    "torch.searchsorted(z, s)",
    "torch.searchsorted(B, s)",
    "torch.searchsorted(B, v[:1])",
    "torch.searchsorted(B, z)",
    "torch.bucketize(s, B)",
    "torch.bucketize(s, 2)",
    "torch.searchsorted(s, 'a')",
    "torch.searchsorted(2, 2)",
    "torch.searchsorted(s, s, out=torch.zeros(9))",
    "torch.searchsorted(s, s, out=torch.zeros(2, dtype=torch.int64))",
    "torch.searchsorted(s, s, out_int32=True, out=torch.zeros(9, dtype=torch.int32))",
    "torch.isin(2, 2)",
    "torch.histogramdd(v[:, :2], True)",
    "torch.histogramdd(v[:, :2], [2, 'a'])",
    "torch.isin(s, [1])",
    "torch.isin(s, s, out=torch.zeros(9))",
    "torch.bincount(2)",
    "torch.bincount(-s.long())",
    "torch.bincount(s.long(), minlength=-1)",
    "torch.bincount(s.long(), s[:2])",
    "torch.histc(s, out=torch.zeros(9))",
    "torch.histc(s, 3, out=torch.zeros(9, dtype=torch.float64))",
    "torch.histogram(s, torch.zeros(0, dtype=torch.float64))",
    "torch.histogram(s, torch.zeros(1, dtype=torch.float64))",
    "torch.histogram(s, s[None])",
    "torch.histogram(s, s.float())",
    "torch.histogram(s, 3, weight=s.float())",
    "torch.histogram(s, 3, weight=s[:2])",
    "torch.histogram(s, 3, out=(s.new_zeros(3), s.new_zeros(4)))[1]",
    "torch.histogram(s, 3, range=('a', 1))",
    "torch.histogramdd(v, [2] * 9, weight=s)",
    "torch.histogramdd(v[:, :2], [s, 2])",
    "torch.histogramdd(v[:, :2], s)",
    "torch.histogramdd(v[:, :2], 2, range=[0.0, 1.0])",
]


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_are_refused_as_in_pytorch(torch: Any, call):
    ours, theirs = operands(ng, "float64"), operands(torch, "float64")
    assert outcome(ng, call, **ours) == outcome(torch, call, **theirs)


GRADED = [
    "torch.unique(x)",
    "torch.unique(x, dim=0)",
    "torch.unique_consecutive(x)",
    "torch.unique_consecutive(x, dim=0)",
    "torch.histc(x, 3)",
    "torch.histogram(x, 3).hist",
    "torch.histogram(x, 3).bin_edges",
    "torch.histogram(x.detach(), torch.tensor([1.0, 2.0]), weight=x).hist",
    "torch.histogramdd(x[:, None], 3).hist",
    "torch.histogramdd(x[:, None], 3).bin_edges[0]",
    "torch.histogramdd(x[:, None], [torch.tensor([1.0, 2.0])]).hist",
    "torch.bincount(torch.tensor([1, 2, 2]), x)",
    "torch.searchsorted(x, x)",
    "torch.isin(x, x)",
]


@pytest.mark.parametrize("call", GRADED)
def test_backward_says_that_there_is_no_derivative_as_pytorch_does(torch: Any, call):
    def passed(m: Any) -> Any:
        return outcome(m, f"{call}.sum().backward()", x=m.tensor([1.0, 3.0, 2.0]).requires_grad_())

    def node(m: Any) -> Any:
        return outcome(m, call, x=m.tensor([1.0, 3.0, 2.0]).requires_grad_())

    assert passed(ng) == passed(torch)
    assert node(ng) == node(torch)


# --- without PyTorch -----------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**32 - 1), st.booleans())
def test_places_are_those_that_a_count_gives(length, width, seed, right):
    """The place of a value is the number of elements less than it, or not greater than it."""
    random = np.random.default_rng(seed)
    row = np.sort(random.integers(-9, 9, length)).astype("f4")
    values = random.integers(-10, 10, width).astype("f4")
    found = ng.searchsorted(ng.from_numpy(row), ng.from_numpy(values), right=right)
    before = row[:, None] <= values if right else row[:, None] < values
    np.testing.assert_array_equal(found.numpy(), before.sum(0))


@pytest.mark.parametrize("right", [False, True])
def test_many_values_in_threads_are_found_as_by_numpy(right):
    random = np.random.default_rng(0)
    row, values = np.sort(random.random(1000)), random.random(100_003)
    values[::7] = row[random.integers(0, 1000, values[::7].size)]
    found = ng.searchsorted(ng.from_numpy(row), ng.from_numpy(values), right=right)
    wanted = np.searchsorted(row, values, "right" if right else "left")
    np.testing.assert_array_equal(found.numpy(), wanted)
    rows = np.sort(random.random((50, 40)), -1)
    table = random.random((50, 2000))
    found = ng.searchsorted(ng.from_numpy(rows), ng.from_numpy(table), right=right)
    wanted = (rows[:, None] <= table[..., None]).sum(-1)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("in_dims", [(0, 0), (None, 0), (0, None)])
def test_examples_side_by_side_are_searched_each_in_its_own_row(in_dims):
    random = np.random.default_rng(1)
    rows = ng.from_numpy(np.sort(random.random((3, 5)), -1))
    values = ng.from_numpy(random.random((3, 4)))
    given_rows = rows if in_dims[0] == 0 else rows[0]
    given_values = values if in_dims[1] == 0 else values[0]
    found = ng.func.vmap(ng.searchsorted, in_dims)(given_rows, given_values)
    for k in range(3):
        one = ng.searchsorted(
            rows[k if in_dims[0] == 0 else 0], values[k if in_dims[1] == 0 else 0]
        )
        assert found[k].tolist() == one.tolist()
    table = ng.from_numpy(random.random((3, 2, 4)))
    found = ng.func.vmap(ng.searchsorted)(rows, table)
    assert found.tolist() == [ng.searchsorted(rows[k], table[k]).tolist() for k in range(3)]
    found = ng.func.vmap(ng.searchsorted)(rows, values[:, 0])
    assert found.tolist() == [ng.searchsorted(rows[k], values[k, 0]).item() for k in range(3)]
    marked = ng.func.vmap(ng.isin, in_dims)(given_rows, given_values)
    assert marked.shape == (3, 5)
    assert not marked.any()


def test_nan_stands_behind_all_numbers_in_rows_and_equals_none():
    nan = float("nan")
    rows = ng.tensor([[nan, 1.0], [1.0, nan], [2.0, 0.0], [1.0, 3.0], [nan, 0.0], [2.0, 0.0]])
    values, inverse, counts = ng.unique(rows, True, True, True, dim=0)
    assert repr(values.tolist()) == repr(
        [[1.0, 3.0], [1.0, nan], [2.0, 0.0], [nan, 0.0], [nan, 1.0]]
    )
    assert inverse.tolist() == [4, 1, 2, 0, 3, 2]
    assert counts.tolist() == [1, 1, 2, 1, 1]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 60), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_unique_parts_are_those_that_numpy_finds(length, width, seed):
    rows = np.random.default_rng(seed).integers(0, 3, (length, width))
    wanted = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    found = ng.unique(ng.from_numpy(rows), True, True, True, dim=0)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.reshape(ours.shape))


@pytest.mark.parametrize("call", ["bincount", "unique", "unique_consecutive"])
def test_shapes_that_follow_from_numbers_are_refused_under_jit(call):
    with pytest.raises(ng.TraceError, match=call):
        ng.jit(getattr(ng, call))(ng.tensor([1, 2, 2]))


@pytest.mark.usefixtures("traced")
def test_what_has_a_shape_of_its_own_runs_under_jit():
    row, values = ng.tensor([1.0, 3.0, 5.0]), ng.tensor([0.5, 3.0, 7.0])

    def function(row: Any, values: Any) -> Any:
        inside = ng.isin(values, row)
        return ng.searchsorted(row, values), ng.bucketize(2.0, row), inside, ng.histc(values, 3)

    for _ in range(2):
        found = ng.jit(function)(row, values)
        assert [each.tolist() for each in found] == [
            each.tolist() for each in function(row, values)
        ]


@pytest.mark.parametrize("right", [False, True])
def test_rows_of_any_length_are_searched(right: bool) -> None:
    random = np.random.default_rng(0)
    values = random.integers(-2, 42, 100)
    for length in range(1, 70):
        row = np.sort(random.integers(0, 40, length))
        found = ng.searchsorted(ng.from_numpy(row), ng.from_numpy(values), right=right)
        expected = np.searchsorted(row, values, "right" if right else "left")
        np.testing.assert_array_equal(found, expected)
