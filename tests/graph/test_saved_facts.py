"""What nodes say of the call that made them: dims, sizes and numbers, for many calls of each kind.

`test_node_names` has one call for each node; here dims, shapes and positions go through what they
can be. Facts that PyTorch keeps as they were given, as negative dims, are left to it.
"""

from __future__ import annotations

import itertools
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

import numgrad as ng
from numgrad.graph.saved_tensors import PackedValues, _order, _with_values
from tests.graph.test_node_names import NOT_KEPT, OTHER_VALUES

# Calls of a tensor `x` of shape (2, 3, 4), by a dim, by two, and by a shape that expands to that.
BY_DIM = """
x.sum({0})|x.sum({0},keepdim=True)|x.mean({0})|x.mean({0},True)|x.prod({0})|x.prod({0},True)
x.amax({0})|x.amin({0})|m.aminmax(x,dim={0})|x.logsumexp({0})|x.softmax({0})|x.log_softmax({0})
x.cumsum({0})|x.cumprod({0})|x.logcumsumexp({0})|x.cummax({0})|x.unbind({0})|x.sort({0})
x.median({0})|x.mode({0})|x.max({0})|x.min({0})|x.kthvalue(1,{0})|x.topk(1,{0})|x.std({0})
x.var({0})|x.nansum({0})|x.flip({0})|x.unsqueeze({0})|x.sum({0},True).squeeze({0})|x.select({0},1)
x.narrow({0},1,1)|x.index_select({0},i)|x.chunk(2,{0})[1]|x.split(1,{0})[1]|x.unfold({0},2,1)
x.tensor_split(2,{0})[1]|m.stack([x,x],{0})|m.cat([x,x*1],{0})|x.scatter({0},j,0.5)
x.scatter_add({0},j,x)|x.index_fill({0},i,2.0)|x.roll(1,{0})|x.unflatten({0},(-1,1))
x.swapaxes({0},0)|x.movedim(0,{0})|x.gather({0},j)|x.repeat_interleave(2,{0})
"""
BY_TWO = """
x.sum(({0},{1}))|x.mean(({0},{1}))|x.amax(({0},{1}))|x.logsumexp(({0},{1}))|x.nansum(({0},{1}))
x.std(({0},{1}))|x.flip(({0},{1}))|x.roll((1,2),({0},{1}))|x.rot90(1,({0},{1}))
x.diagonal(1,{0},{1})|x.transpose({0},{1})|x.permute({0},{1},{2})
"""
BY_SHAPE = """
x.sum_to_size({0})|m.ones({0},requires_grad=True).expand(5,2,3,4)
m.ones({0},requires_grad=True).repeat(2,1,3)|m.ones({0},requires_grad=True)*x.detach()
m.ones({0},requires_grad=True).broadcast_to((2,3,4))|m.where(x>0,m.ones({0},requires_grad=True),x)
"""
SHAPES = "4,|3,1|1,4|3,4|2,1,4|1,3,1|2,3,1|1,1,1|2,3,4|1,1,4|1,|2,1,1"
OTHERS = """
x[1]|x[0:1]|x[...,1]|x[:,1]|x[:,:,1:3]|x[0:2:2]|x[None]|x[1,None]|x[0,1,2]|x[:,[0,1]]|x[[1,0]]
x[...,[0,2]]|x.as_strided((2,2),(1,2),0)|x.as_strided((3,),(4,),1)|x.as_strided((2,3),(12,1),2)
x.reshape(6,4)|x.view(4,6)|x.flatten(0,1)|x.flatten(1)|x[0].t()|x.clamp(0.5)|x.clamp(0.5,2.0)
x.clamp(max=2.5)|x**2|x**0.5|x.addcmul(x,x,value=0.5)|x.lerp(x*1,0.25)|x.masked_fill(x>1,3.0)
x.tril(1)|x.triu(2)|x[0,:,:3].trace()|x.to(m.float64)|x.var(1,correction=0)|x.mT@x|x@x.mT
m.nn.functional.pad(x,(1,2))|m.nn.functional.pad(x,(1,0,2,1))|m.nn.functional.pad(x,(0,1,1,2,3,3))
m.nn.functional.leaky_relu(x,0.2)|m.nn.functional.softplus(x,2.,10.)|x.logit(0.1)
m.nn.functional.hardtanh(x,-1.,2.)|m.nn.functional.gelu(x,approximate='tanh')|m.bmm(x,x.mT)
m.nn.functional.threshold(x,1.,2.)|x.sub(x,alpha=2.5)|x.nan_to_num(1.)|m.cumsum(x,1,dtype=m.float64)
"""


def lines(table: str) -> list[str]:
    """Return the calls of a table."""
    return [each for row in table.split("\n") for each in row.split("|") if each]


CALLS = {
    "dim": [call.format(dim) for call in lines(BY_DIM) for dim in range(3)],
    "two dims": [call.format(*dims) for call in lines(BY_TWO) for dims in permutations(range(3))],
    "shape": [call.format(f"({s})") for call in lines(BY_SHAPE) for s in SHAPES.split("|")],
    "others": lines(OTHERS),
}


def facts(m: Any, call: str) -> dict[str, dict[str, Any]]:
    """Return what the nodes of a call saved, by their names: of tensors, the shapes."""
    x = (m.arange(24.0) / 8 + 0.1).reshape(2, 3, 4).requires_grad_()
    names = {"m": m, "x": x, "i": m.tensor([0, 1]), "j": m.zeros(2, 3, 4, dtype=m.int64)}
    result = eval(call, names)
    node = (result if hasattr(result, "grad_fn") else result[0]).grad_fn
    found: dict[str, dict[str, Any]] = {}
    while node is not None and node.name() not in found and len(found) < 4:
        saved = {}
        for name in dir(node):
            if name.startswith("_saved_"):
                value = getattr(node, name)
                several = isinstance(value, (tuple, list))
                shown = [
                    tuple(each.shape) if hasattr(each, "grad_fn") else repr(each)
                    for each in (value if several else [value])
                ]
                saved[name] = shown if several else shown[0]
        found[node.name()] = saved
        below = [each for each, _ in node.next_functions if each is not None]
        node = below[0] if below else None
    return found


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("by", CALLS)
def test_nodes_say_of_their_calls_what_pytorchs_say(torch: Any, by: str) -> None:
    for call in CALLS[by]:
        ours, theirs = facts(ng, call), facts(torch, call)
        assert list(ours)[:1] == list(theirs)[:1] or by == "shape", call
        for name in ours.keys() & theirs.keys():
            for fact, value in theirs[name].items():
                word = fact.removeprefix("_saved_")
                if word in NOT_KEPT.get(name, "").split() or (name, word) in OTHER_VALUES:
                    continue
                assert ours[name][fact] == value, (call, name, fact)


class Unpacking(PackedValues):
    """Values that lie as those that were packed, or otherwise."""

    def __init__(self, alike: bool) -> None:
        super().__init__([], ())
        self.alike = alike

    def unpacked(self) -> tuple[tuple[Any, ...], bool]:
        return ("values",), self.alike


def test_values_that_lie_otherwise_than_those_packed_go_the_other_way() -> None:
    node: Any = SimpleNamespace()

    def way(name: str) -> Any:
        return lambda node, *arguments: (name, node.saved, *arguments)

    for alike, both in itertools.product((True, False), repeat=2):
        run = _with_values(way("first"), way("second") if both else None)
        node.saved = packed = Unpacking(alike)
        assert run(node, 1) == ("second" if both and not alike else "first", ("values",), 1)
        assert node.saved is packed
        node.saved = ("its own",)
        assert run(node, 2) == ("first", ("its own",), 2)
        node.saved = None
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            run(node)
    node.saved = packed
    with pytest.raises(ZeroDivisionError):
        _with_values(lambda node: 1 // 0)(node)
    assert node.saved is packed


def test_hooks_get_operands_by_their_names_and_results_behind() -> None:
    def order(*names: str, count: int | None = None) -> list[int]:
        node: Any = SimpleNamespace(saved_names=lambda: names)
        return list(_order(node, len(names) if count is None else count))

    assert order("self", "other") == [1, 0] and order("other", "self") == [0, 1]
    assert order("result", "self", "mat2") == [2, 1, 0] and order("z", "result", "a") == [2, 0, 1]
    assert order("b", "a", count=3) == [0, 1, 2] and order("result") == [0]
    assert order(count=2) == [0, 1] and order() == []
