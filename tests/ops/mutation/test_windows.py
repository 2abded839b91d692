"""Writes by an index or a mask to elements that share memory: to what they name, and nothing else.

Windows overlap; of what is expanded elements are shown several times, which PyTorch refuses for
some functions and warns of for others. float16 is left out: PyTorch writes back whole windows.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
x = torch.arange(12.0, dtype=torch.float64)
i = torch.tensor([2, 0])
j = torch.tensor([1])
k = torch.tensor([[2, 0, 1, 1], [0, 2, 2, 0]])
m = torch.tensor([True, False, False, True]) ^ torch.tensor([[True], [False], [True]])
f = torch.tensor([[31.0, 3, -2, 16], [2, 5, -4, 7], [9, 29, -8, 1]], dtype=torch.float64)
v = torch.tensor(50.0, dtype=torch.float64)
"""
WINDOWS = """
x.as_strided((3, 4), (1, 1))
x.as_strided((3, 4), (2, 1), 1)
x.as_strided((3, 4), (1, 2))
x[:8].unfold(0, 4, 2)
x[:9].unfold(0, 3, 2).t()
x[:4].expand(3, 4)
x[:3, None].expand(3, 4)
""".strip().splitlines()
WRITES = """
w.index_fill_(0, i, 50.0)
w.index_fill_(1, i, v)
w.index_copy_(0, i, f[:2])
w.index_copy_(1, i, f[:, :2])
w.index_add_(0, i, f[:2])
w.index_add_(1, i, f[:, :2], alpha=2)
w.index_reduce_(0, i, f[:2], "prod")
w.index_reduce_(1, i, f[:, :2], "mean")
w.index_reduce_(1, i, f[:, :2], "amax", include_self=False)
w.scatter_(0, k, f)
w.scatter_(1, k, 50.0)
w.scatter_(0, k, f, reduce="multiply")
w.scatter_add_(1, k, f)
w.scatter_reduce_(0, k, f, "sum", include_self=False)
w.scatter_reduce_(1, k, f, "mean")
w.put_(k, f[:2])
w.put_(k, f[:2], accumulate=True)
w.index_put_((i,), f[:2])
w.index_put_((i, j), v, accumulate=True)
w.masked_fill_(m, 50.0)
w.masked_fill_(m, v)
w.masked_scatter_(m, f)
w.tril_()
w.triu_(1)
w.fill_diagonal_(50.0)
w.fill_(v)
w[i] = 50.0
w[i] = f[:2]
w[:, i] = f[:, :2]
w[i, j] = v
w[m] = 50.0
w[m] = f.reshape(-1)[:6]
""".strip().splitlines()


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize(("window", "write"), [*itertools.product(WINDOWS, WRITES)])
def test_what_is_named_is_written_as_in_pytorch(torch: Any, window: str, write: str) -> None:
    line = f"w = {window}; {write} -> x"
    assert answer(ng, line, SETUP) == answer(torch, line, SETUP)


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize(("window", "write"), [*itertools.product(WINDOWS[:5], WRITES)])
@pytest.mark.usefixtures("traced")
def test_traced_functions_write_the_same(window: str, write: str) -> None:
    names: dict[str, Any] = {"torch": ng}
    lines = f"def f_of(x):\n    x = x * 1\n    w = {window}\n    {write}\n    return x\n"
    exec(SETUP + lines, names)
    expected = names["f_of"](names["x"])
    for _ in range(2):
        assert ng.jit(names["f_of"])(names["x"]).tolist() == expected.tolist()


def test_a_write_that_is_met_often_names_the_same_elements() -> None:
    for _ in range(6):
        x = ng.arange(5.0)
        x.unfold(0, 3, 1).index_add_(0, ng.tensor([0, 1]), ng.ones(2, 3))
        assert x.tolist() == [1.0, 3.0, 4.0, 4.0, 4.0]
