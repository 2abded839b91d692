"""What a pass frees can't be passed again, node by node; what saved nothing can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import examples

SAVING: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda m, x: x * x,
    "multiple": lambda m, x: x * 2,
    "exponential": lambda m, x: x.exp(),
    "power": lambda m, x: x**2,
    "matrices": lambda m, x: x @ x.t(),
    "maximum": lambda m, x: x.max(1)[0],
    "sort": lambda m, x: x.sort()[0],
    "softmax": lambda m, x: x.softmax(1),
    "clamp": lambda m, x: x.clamp(0.2, 0.4),
    "norm": lambda m, x: x.norm(),
    "product of all": lambda m, x: x.prod(),
    "logsumexp": lambda m, x: x.logsumexp(0),
    "where": lambda m, x: m.where(x > 0.2, x, x),
    "positions": lambda m, x: x[m.tensor([0, 1])],
    "mask": lambda m, x: x[x > 0.2],
    "gather": lambda m, x: x.gather(0, m.tensor([[0, 1, 0]])),
    "index_select": lambda m, x: x.index_select(0, m.tensor([0])),
    "take": lambda m, x: x.take(m.tensor([0])),
    "masked_fill": lambda m, x: x.masked_fill(x > 0.2, 0.0),
    "masked_select": lambda m, x: x.masked_select(x > 0.2),
    "masked_scatter": lambda m, x: x.masked_scatter(x > 0.2, x),
    "index_fill": lambda m, x: x.index_fill(0, m.tensor([0]), 0.0),
    "index_add": lambda m, x: x.index_add(0, m.tensor([0]), x[:1]),
    "index_copy": lambda m, x: x.index_copy(0, m.tensor([0]), x[:1]),
    "index_put": lambda m, x: x.index_put((m.tensor([0]),), x[:1]),
    "scatter": lambda m, x: x.scatter(0, m.tensor([[0, 1, 0]]), x[:1]),
    "scatter_add": lambda m, x: x.scatter_add(0, m.tensor([[0, 1, 0]]), x[:1]),
    "take_along_dim": lambda m, x: x.take_along_dim(m.tensor([[0]]), 1),
    "a write at positions": lambda m, x: write_at(m, x),
}
SAVING_NOTHING: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda m, x: x + x,
    "reduction": lambda m, x: x.sum(0),
    "mean": lambda m, x: x.mean(),
    "view": lambda m, x: x.view(-1),
    "row": lambda m, x: x[1],
    "part": lambda m, x: x[:, 1:],
    "join": lambda m, x: m.cat([x, x]),
    "copy": lambda m, x: x.clone(),
    "flip": lambda m, x: x.flip(0),
    "cumulative sum": lambda m, x: x.cumsum(0),
    "diagonal": lambda m, x: x.diagonal(),
    "strided": lambda m, x: x.as_strided((2,), (1,)),
    "rounded": lambda m, x: x.round(),
    "cast": lambda m, x: x.double(),
    "scaled sum": lambda m, x: x.add(x, alpha=2),
    "scaled difference": lambda m, x: x.sub(x, alpha=2),
    "scaled rsub": lambda m, x: m.rsub(x, x, alpha=0.5),
    "interpolation": lambda m, x: x.lerp(x, 0.5),
}
# What has a factor that is a number in any case, with two operands and the factor.
SCALED: dict[str, Callable[..., Any]] = {
    "add": lambda m, x, y, k: m.add(x, y, alpha=k),
    "add_": lambda m, x, y, k: (x * 1).add_(y, alpha=k),
    "sub": lambda m, x, y, k: x.sub(y, alpha=k),
    "sub_ of a part": lambda m, x, y, k: (x * 1)[:].sub_(y, alpha=k),
    "rsub": lambda m, x, y, k: m.rsub(x, y, alpha=k),
    "rsub of a number": lambda m, x, y, k: m.rsub(x, 3.0, alpha=k),
    "lerp": lambda m, x, y, k: m.lerp(x, y, k),
    "lerp_": lambda m, x, y, k: (x * 1).lerp_(y, k),
    "addcmul": lambda m, x, y, k: m.addcmul(x, y.detach(), y.detach(), value=k),
    "addcmul of what requires grad": lambda m, x, y, k: m.addcmul(x, y, x, value=k),
    "addcdiv": lambda m, x, y, k: m.addcdiv(x, x, y + 2, value=k),
    "multiple": lambda m, x, y, k: x * k,
    "quotient": lambda m, x, y, k: x / k,
    "power": lambda m, x, y, k: x**k,
    "index_add": lambda m, x, y, k: x.index_add(0, m.tensor([0]), y[:1], alpha=k),
    "sum": lambda m, x, y, k: (x + k) - y,
}
FREED = "^Trying to backward through the graph a second time"


def write_at(m: Any, x: Any) -> Any:
    written = m.zeros(2, 3)
    written[m.tensor([1])] = x[:1]
    return written


def made(m: Any) -> Any:
    return (m.arange(1.0, 7.0).reshape(2, 3) / 10).requires_grad_()


@pytest.mark.sampled(0.18, by="name")
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", [*SAVING, *SAVING_NOTHING])
def test_a_second_pass_fails_where_the_first_freed(lib: Any, name: str, create_graph: bool) -> None:
    x = made(lib)
    y = (SAVING.get(name) or SAVING_NOTHING[name])(lib, x)
    ones = lib.ones(y.shape, dtype=y.dtype)

    def run(keep: bool) -> list[float]:
        (g,) = lib.autograd.grad(y, x, ones, retain_graph=keep, create_graph=create_graph)
        found: list[float] = g.tolist()
        return found

    first = run(True)
    assert run(True) == first
    assert run(False) == first
    if name in SAVING:
        with pytest.raises(RuntimeError, match=FREED):
            run(False)
    else:
        assert run(False) == first


@settings(max_examples=examples(200), deadline=None)
@given(
    name=st.sampled_from(sorted(SCALED)),
    k=st.sampled_from([2, 0.5, -1, 1]),
    calls=st.integers(1, 4),
    row=st.booleans(),
    y_requires=st.booleans(),
)
def test_factors_are_freed_where_pytorch_frees_them(
    torch: Any, name: str, k: float, calls: int, row: bool, y_requires: bool
) -> None:
    import numgrad

    def outcome(m: Any) -> Any:
        x, y = made(m), m.tensor([[0.25, 0.5, 1.0]] * (1 if row else 2))
        y.requires_grad_(y_requires)
        for _ in range(calls):
            result = SCALED[name](m, x, y, k)
        found = []
        for _ in range(2):
            try:
                found.append(m.autograd.grad(result.sum(), x)[0].tolist())
            except RuntimeError as error:
                found.append(str(error))
        return found

    assert outcome(numgrad) == outcome(torch)


def test_a_pass_frees_the_nodes_it_went_through_only(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    nodes = [x]
    for name in ("exp", "sin", "cos", "tanh"):
        nodes.append(getattr(nodes[-1], name)())
    for above, below in zip(reversed(nodes[1:]), reversed(nodes[:-1]), strict=True):
        lib.autograd.grad(above.sum(), below)
        with pytest.raises(RuntimeError, match=FREED):
            lib.autograd.grad(above.sum(), below)
        with pytest.raises(RuntimeError, match=FREED):
            lib.autograd.grad(nodes[-1].sum(), x, retain_graph=True)


def test_a_function_that_saved_nothing_has_its_tensors_freed_too(lib: Any) -> None:
    class Double(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert ctx.saved_tensors == ()
            return g * 2

    x = lib.ones(2, requires_grad=True)
    y = Double.apply(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match=FREED):
        y.sum().backward()
    with pytest.raises(RuntimeError, match=FREED):
        _ = y.grad_fn.saved_tensors
