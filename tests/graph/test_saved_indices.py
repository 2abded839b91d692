"""Indices and masks are saved as other tensors are: who writes to them before the pass is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import examples

# What is called with the library, a tensor that requires grad, and the index or the mask.
INDEXED: dict[str, Callable[..., Any]] = {
    "x[i]": lambda m, x, i: x[i],
    "x[:, i]": lambda m, x, i: x[:, i],
    "x[i, i]": lambda m, x, i: x[i, i],
    "gather": lambda m, x, i: x.gather(0, i[None]),
    "index_select": lambda m, x, i: x.index_select(1, i),
    "take": lambda m, x, i: x.take(i),
    "put": lambda m, x, i: x.put(i, m.ones(3)),
    "put_": lambda m, x, i: (x * 2).put_(i, m.ones(3)),
    "put into constants": lambda m, x, i: m.zeros(9).put(i, x[0]),
    "scatter": lambda m, x, i: x.scatter(0, i[None], m.ones(1, 3)),
    "scatter of a number": lambda m, x, i: x.scatter(0, i[None], 2.0),
    "scatter_": lambda m, x, i: (x * 2).scatter_(0, i[None], 2.0),
    "scatter_add": lambda m, x, i: m.zeros(3, 3).scatter_add(0, i[None], x[:1]),
    "scatter_add to what requires grad": lambda m, x, i: x.scatter_add(0, i[None], m.ones(1, 3)),
    "index_add": lambda m, x, i: m.zeros(3, 3).index_add(0, i, x, alpha=2),
    "index_copy": lambda m, x, i: x.index_copy(0, i, m.ones(3, 3)),
    "index_fill": lambda m, x, i: x.index_fill(0, i, 2.0),
    "index_fill_ by a tensor": lambda m, x, i: (x * 2).index_fill_(1, i, m.tensor(2.0)),
    "index_put": lambda m, x, i: x.index_put((i, i), m.ones(3)),
    "index_put, added": lambda m, x, i: x.index_put((i,), m.ones(3, 3), accumulate=True),
    "a write": lambda m, x, i: written(x * 2, i, m.ones(3, 3)),
    "a write of what requires grad": lambda m, x, i: written(m.zeros(3, 3), i, x),
    "a write of a number": lambda m, x, i: written(x * 2, i, 2.0),
    "take_along_dim": lambda m, x, i: x.take_along_dim(i[None], 0),  # which wraps it around
}
MASKED: dict[str, Callable[..., Any]] = {
    "x[m]": lambda m, x, mask: x[mask],
    "x[0, m]": lambda m, x, mask: x[0, mask[0]],
    "masked_select": lambda m, x, mask: x.masked_select(mask),
    "masked_fill": lambda m, x, mask: x.masked_fill(mask, 2.0),
    "masked_fill_": lambda m, x, mask: (x * 2).masked_fill_(mask, 2.0),
    "masked_fill by a tensor": lambda m, x, mask: x.masked_fill(mask, m.tensor(2.0)),
    "masked_scatter": lambda m, x, mask: x.masked_scatter(mask, m.ones(9)),
    "masked_scatter of a row": lambda m, x, mask: x.masked_scatter(mask[0], m.ones(9)),
    "where": lambda m, x, mask: m.where(mask, x, 2.0),
    "index_put": lambda m, x, mask: x.index_put((mask,), m.tensor(2.0)),
    "a write": lambda m, x, mask: written(x * 2, mask, 2.0),
    "a write of several": lambda m, x, mask: written(x * 2, mask, m.arange(6.0)),
    "a product": lambda m, x, mask: x * mask,
}
# How the index or the mask is written to, if it is.
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "not at all": lambda m, i: None,
    "copy_": lambda m, i: i.copy_(i.clone()),
    "fill_": lambda m, i: i.fill_(1),
    "a part": lambda m, i: i[:1].zero_(),
    "an element": lambda m, i: i.__setitem__(0, 1),
    "without grad mode": lambda m, i: without_grad(m, i),
}


def written(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def without_grad(m: Any, i: Any) -> None:
    with m.no_grad():
        i[...] = i.clone()


def outcome(m: Any, name: str, write: str, calls: int, second: bool) -> Any:
    """Return what a pass says after so many calls, or a second pass through the same nodes."""
    by_mask = (name in MASKED and name not in INDEXED) or name.endswith("(mask)")
    function = MASKED[name.removesuffix(" (mask)")] if by_mask else INDEXED[name]
    x = (m.arange(9.0).reshape(3, 3) / 10).requires_grad_()
    i = m.tensor([[True, False, True]] * 3) if by_mask else m.tensor([2, 0, 1])
    for _ in range(calls):
        y = function(m, x, i)
    WRITES[write](m, i)
    try:
        found = m.autograd.grad(y.sum(), x)[0].tolist()
        if second:
            m.autograd.grad(y.sum(), x)
    except RuntimeError as error:
        return str(error).split(" Hint")[0].split(". Saved")[0]
    return found


NAMES = sorted([*INDEXED, *[f"{name} (mask)" for name in MASKED]])


@settings(max_examples=examples(400), deadline=None)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(sorted(WRITES)),
    st.integers(1, 4),
    st.booleans(),
)
def test_a_write_to_an_index_is_noticed_where_pytorch_notices(
    torch: Any, name: str, write: str, calls: int, second: bool
) -> None:
    import numgrad

    expected = outcome(torch, name, write, calls, second)
    assert outcome(numgrad, name, write, calls, second) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_write_to_an_index_is_noticed(lib: Any, name: str) -> None:
    for calls in (1, 2, 3, 4):
        said = outcome(lib, name, "copy_", calls, False)
        if name in ("take_along_dim", "scatter_add to what requires grad"):
            assert isinstance(said, list)
        else:
            assert "modified by an inplace operation" in said
            assert "expected version 0 instead" in said


def test_a_node_made_of_an_index_from_a_list_is_freed_and_never_stale(lib: Any) -> None:
    x = lib.ones(3, requires_grad=True)
    positions = [0, 1]
    y = x[positions]
    positions[0] = 2
    assert lib.autograd.grad(y.sum(), x)[0].tolist() == [1, 1, 0]
    with pytest.raises(RuntimeError, match="second time"):
        lib.autograd.grad(y.sum(), x)
