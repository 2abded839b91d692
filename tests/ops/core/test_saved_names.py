"""What nodes tell of their calls under PyTorch's names: dims and widths that have to be found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.saved_names import (
    _presented,
    _summed_dims,
    _widths,
    fact_properties,
    saved_name,
)

SHAPES = st.lists(st.sampled_from([1, 2, 3]), max_size=4)


def node(shape: Any, /, **parameters: Any) -> Any:
    return SimpleNamespace(shapes=[(tuple(shape), None)], parameters=parameters)


@given(shape=SHAPES, ahead=SHAPES, ones=st.lists(st.booleans(), min_size=4, max_size=4))
def test_dims_that_were_summed_are_those_ahead_and_those_that_became_one(
    shape: list[int], ahead: list[int], ones: list[bool]
) -> None:
    target = tuple([1 if one else length for length, one in zip(shape, ones, strict=False)])
    found = _summed_dims(node([*ahead, *shape], shape=target))
    assert found[: len(ahead)] == (*range(len(ahead)),)
    changed = [len(ahead) + k for k, (a, b) in enumerate(zip(shape, target, strict=True)) if a != b]
    assert found[len(ahead) :] == tuple(changed)


def test_widths_of_a_pad_are_from_the_last_dim_to_the_first_padded() -> None:
    assert _widths(node((), widths=[(0, 0), (1, 2), (0, 0), (3, 0)])) == (3, 0, 0, 0, 1, 2)
    assert _widths(node((), widths=[(0, 1), (2, 3)])) == (2, 3, 0, 1)
    assert _widths(node((), widths=[(1, 0)])) == (1, 0) and _widths(node((), widths=[(0, 0)])) == ()
    assert _widths(node((), widths=[])) == ()


def test_parameters_are_told_as_users_see_them() -> None:
    found = _presented([np.arange(3), (1, None)])
    assert type(found) is tuple and found[0].tolist() == [0, 1, 2] and found[1] == (1, None)
    assert isinstance(found[0], ng.Tensor) and _presented(2.0) == 2.0


def read(primitive: str, name: str, of: Any) -> Any:
    return fact_properties(primitive)[f"_saved_{name}"].fget(of)  # type: ignore[misc]


def test_facts_are_read_off_nodes() -> None:
    assert saved_name("input") == "self" and saved_name("y", "exp") == "result"
    assert saved_name("base", "pow_of_number") == "self" and saved_name("base", "exp") == "base"
    assert fact_properties("exp") == {}
    summed = node((2, 3, 4), dims=(1,), keepdim=True)
    assert read("sum_over_dims", "dim", summed) == (1,) and read("amax", "keepdim", summed)
    assert read("mean", "self_sym_numel", summed) == 24
    assert read("prod_over_dim", "dim", summed) == 1
    assert read("prod_over_dim", "dim", node((2, 3), dims=(0, 1))) is None
    spread = node((2,), dims=(1,), shape=(2, 3))
    assert read("spread", "self_sym_sizes", spread) == (2, 1)
    for primitive, parameter in (("as_strided", "layout"), ("as_strided_scatter", "inner")):
        strided = node((6,), **{parameter: ((2, 3), (3, 1), 5)})
        parts = [read(primitive, name, strided) for name in ("size", "stride", "storage_offset")]
        assert parts == [(2, 3), (3, 1), 5]
    product = SimpleNamespace(shapes=[((3, 5), 0), ((2, 3, 4), 0), ((2, 4, 5), 0)])
    names = ("batch1_sym_argsize_0", "batch1_sym_argsize_1", "batch2_sym_argsize_2")
    assert [read("addbmm", name, product) for name in names] == [2, 3, 5]
    assert read("index_add", "source_dim", product) == 3
    assert read("unsqueeze", "dim", node((2,), dim=1)) == 1
    assert read("squeeze_dim", "dim", node((2, 1), dims=(1,))) == 1
    assert read("squeeze_dims", "dim", node((1, 2, 1), dims=(0, 2))) == (0, 2)
    assert read("split", "split_size", node((5,), sizes=(2, 2, 1))) == 2
    of_sum = node((2, 3), shape=(1, 3))
    told = [read("sum_to_size", name, of_sum) for name in ("dim", "keepdim", "self_sym_sizes")]
    assert told == [(0,), True, (2, 3)]
    assert read("add", "alpha", None) == 1 and read("logit", "eps", None) is None
    assert read("index_backward", "accumulate", None) is True
    assert read("index_put", "accumulate", None) is False
    assert read("gather", "sparse_grad", None) is False
    assert read("threshold_backward", "threshold", None) == 0 == read("drop_first_dim", "dim", None)
