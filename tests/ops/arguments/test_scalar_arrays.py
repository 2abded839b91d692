"""Numbers that a dtype cannot hold: parameters, factors, and what is filled or assigned with."""

from __future__ import annotations

import itertools
from types import ModuleType

import pytest

import numgrad as ng
from tests.ops.lines import answer

SETUP = """
o = torch.ones(2, dtype=dtype)
row, column, m, i = o.view(1, 2), o.view(2, 1), torch.tensor([True, False]), torch.tensor([0])
"""
LINES = """
o.clone().fill_(v)
torch.full((2,), v, dtype=dtype)
torch.full_like(o, v)
o.new_full((2,), v)
torch.scalar_tensor(v, dtype=dtype)
torch.tensor(v, dtype=dtype)
o.masked_fill(m, v)
o.masked_fill(m, torch.tensor(v))
o.index_fill(0, i, v)
o.scatter(0, i, v)
o.clamp(max=v)
o.clamp(min=v)
o.clamp(0, v)
o.add(o, alpha=v)
o.sub(o, alpha=v)
torch.rsub(o, 1, alpha=v)
o.clone().add_(o, alpha=v)
o.index_add(0, i, o[:1], alpha=v)
torch.addcmul(o, o, o, value=v)
torch.lerp(o, o, v)
torch.where(m, o, v)
torch.linspace(0, v, 2, dtype=dtype)
torch.addmm(row, o[:1].view(1, 1), row, beta=v)
torch.addmm(row, o[:1].view(1, 1), row, alpha=v)
torch.addmv(o[:1], row, o, alpha=v)
torch.addmv(o[:1], row, o, beta=v)
torch.addr(row, o[:1], o, alpha=v)
torch.baddbmm(row[None], o[:1].view(1, 1, 1), row[None], beta=v)
o[0] = v -> o
o[m] = v -> o
o[i] = v -> o
o[:1] = v -> o
o * v
o == v
o < v
""".strip().splitlines()
VALUES = {
    "float16": [70000.0, -70000.0, 70000, 65504.0, float("inf")],
    "float32": [1e39, -1e39, 3.4e38, float("nan")],
    "float64": [1e300],
    "int8": [300, -129, 127, -127],
    "uint8": [256, -1, -255, 255],
    "int32": [2**40, 1 - 2**31],
    "int64": [2**62],
}
CASES = [
    (line, dtype, value)
    for dtype, found in VALUES.items()
    for line, value in itertools.product(LINES, found)
]


@pytest.mark.sampled(0.11, by="line")
@pytest.mark.parametrize(("line", "dtype", "value"), CASES)
def test_a_number_that_does_not_fit_is_what_it_is_in_pytorch(
    torch: ModuleType, line: str, dtype: str, value: float
) -> None:
    setup = f"dtype = torch.{dtype}\nv = float('{value}')\n"
    if isinstance(value, int):
        setup = f"dtype = torch.{dtype}\nv = {value}\n"
    assert answer(ng, line, setup + SETUP) == answer(torch, line, setup + SETUP)
