"""Copies of tensors: `copy`, `deepcopy` and pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import numgrad as ng
from numgrad.graph.storage import array_within, compact, span_of


@pytest.fixture(params=["numgrad", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request: pytest.FixtureRequest) -> Any:
    """Return numgrad, then PyTorch: what a test says of one has to hold for the other."""
    return ng if request.param == "numgrad" else request.getfixturevalue("torch")


def leaf(lib: Any) -> Any:
    """Return a leaf with a gradient and an attribute."""
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x * 2).sum().backward()
    x.note = ["note"]
    return x


def test_a_shallow_copy_lies_in_the_same_memory(lib: Any) -> None:
    x = leaf(lib)
    y = copy.copy(x)
    assert y is not x and y.is_leaf and y.requires_grad and y.grad is None
    assert y.data_ptr() == x.data_ptr() and y.note is x.note
    transposed = x.detach().t()
    assert copy.copy(transposed).data_ptr() == transposed.data_ptr()
    result = copy.copy(x * 2)
    assert result.is_leaf and result.requires_grad


def test_a_deep_copy_lies_in_its_own_memory(lib: Any) -> None:
    x = leaf(lib)
    y = copy.deepcopy(x)
    assert y.is_leaf and y.requires_grad and y.data_ptr() != x.data_ptr()
    assert y.grad.tolist() == x.grad.tolist() and y.grad.data_ptr() != x.grad.data_ptr()
    assert y.note == x.note and y.note is not x.note
    (y * 3).sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]] and y.grad.tolist() == [[5, 5], [5, 5]]


def test_deep_copies_share_memory_where_the_tensors_do(lib: Any) -> None:
    x = lib.arange(6.0).reshape(2, 3)
    whole, row, alias, again = copy.deepcopy([x, x[1], x.detach(), x])
    row.zero_()
    assert whole.tolist() == alias.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert again is whole and not row._is_view()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    row, whole = copy.deepcopy([x[1], x])
    row.zero_()
    assert whole[1].tolist() == [0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=2, max_size=4))
def test_deep_copies_of_parts_of_one_array_hold_what_those_hold(
    parts: list[tuple[int, int]],
) -> None:
    """A part that lies within one that was copied before it stays a part of it."""
    whole = np.arange(16.0)
    tensors = [ng.from_numpy(whole[start : start + length]) for start, length in parts]
    copies = copy.deepcopy(tensors)
    assert [each.tolist() for each in copies] == [each.tolist() for each in tensors]
    for copied in copies:
        copied.add_(100)
    assert whole.tolist() == np.arange(16.0).tolist()
    (first, length), (second, shorter) = parts[:2]
    if first <= second and second + shorter <= first + length:
        assert copies[1].tolist() == copies[0][second - first :][:shorter].tolist()


def test_results_are_not_copied_deeply(lib: Any) -> None:
    for result in (leaf(lib) * 2, leaf(lib)[0]):
        with pytest.raises(RuntimeError) as error:
            copy.deepcopy(result)
        assert str(error.value) == (
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )


@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_strides_are_copied(lib: Any, way: Any) -> None:
    x = lib.arange(24.0).reshape(2, 3, 4)
    for view in (x.t() if x.ndim == 2 else x.permute(2, 0, 1), x[0].t(), x[0, 0].expand(3, 4)):
        y = way(view)
        assert y.stride() == view.stride() and y.tolist() == view.tolist()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("shape", [(), (2,), (0, 3), (2, 1, 3)])
def test_pickles_of_any_protocol(protocol: int, shape: tuple[int, ...]) -> None:
    x = ng.ones(shape, dtype=ng.float64).requires_grad_()
    x.note = "note"
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.shape == x.shape and y.tolist() == x.tolist()
    assert y.dtype is x.dtype and y.requires_grad and y.is_leaf and y.note == "note"


def test_results_and_gradients_in_pickles(lib: Any) -> None:
    x = leaf(lib)
    assert pickle.loads(pickle.dumps(x)).grad is None
    y = pickle.loads(pickle.dumps(x * 2))
    assert y.is_leaf and y.requires_grad and y.tolist() == [[2, 4], [6, 8]]


def test_hooks_are_not_pickled_and_that_is_told(lib: Any) -> None:
    x = leaf(lib)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="backward hook <built-in function print> on tensor will"):
        pickle.dumps(x)


def test_a_small_part_of_a_large_tensor_makes_a_small_pickle() -> None:
    assert len(pickle.dumps(ng.zeros(100_000)[10:20])) < 1000


@given(
    array=hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=4, max_side=4)),
    data=st.data(),
)
def test_compact_elements_are_seen_as_the_array_was(array: Any, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(array.ndim)))
    steps = tuple(slice(None, None, data.draw(st.integers(1, 2))) for _ in range(array.ndim))
    view = array.transpose(order)[(*steps, ...)]
    if view.ndim and data.draw(st.booleans()):
        view = np.broadcast_to(view[:1], (3, *view.shape[1:]))
    flat, strides = compact(view)
    assert flat.size <= view.size
    seen = array_within(flat, flat.dtype, view.shape, strides, 0)
    np.testing.assert_array_equal(seen, view)


def test_a_span_is_the_memory_between_the_outermost_elements() -> None:
    x = ng.from_numpy(np.arange(12.0)[2:10:3])
    span = span_of(x)
    assert span.start == x.data_ptr() and span.stop - span.start == 7 * 8
    assert span.copy().view(np.float64).tolist() == [2, 3, 4, 5, 6, 7, 8]
