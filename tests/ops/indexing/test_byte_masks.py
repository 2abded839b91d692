"""Masks of bytes: deprecated, they stand for masks of bools; no single value is filled in there."""

from __future__ import annotations

from types import ModuleType

import pytest

import numgrad as ng
from tests.ops.lines import answer

BYTES = "torch.tensor({}, dtype=torch.uint8)"
ROWS, COLUMN, FLAG = (BYTES.format(each) for each in ("[1,0,2]", "[0,1]", "1"))
WHOLE = BYTES.format("[[1,0],[0,0],[1,1]]")
OTHERS = ["torch.tensor([True,False,True])", "torch.tensor([0,2])"]
KEYS = [ROWS, WHOLE, FLAG, f"{ROWS},0", f"{ROWS},:", f":,{COLUMN}", f"1,{COLUMN}", f"None,{ROWS}"]
KEYS += [f"...,{COLUMN}", f"{ROWS},{COLUMN}"]
KEYS += [f"{each},{BYTES.format([1, 1])}" for each in OTHERS]
VALUES = ["2.", "torch.tensor(2.)", "torch.tensor([2.])", "torch.tensor([[2.]])"]
VALUES += ["torch.tensor([2.,3.])", "torch.tensor(2)", "torch.tensor([2,3])"]


def compare(torch: ModuleType, line: str) -> None:
    assert answer(ng, line) == answer(torch, line), line


@pytest.mark.parametrize("key", KEYS)
def test_they_are_read_and_written_as_in_pytorch(torch: ModuleType, key: str) -> None:
    compare(torch, f"torch.arange(6.).reshape(3,2)[{key}]")
    for value in VALUES:
        compare(torch, f"x=torch.zeros(3,2); x[{key}]={value} -> x")


@pytest.mark.parametrize("keys", [ROWS, WHOLE, f"{ROWS},{COLUMN}", f"{OTHERS[1]},{COLUMN}"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_they_are_put_as_in_pytorch(torch: ModuleType, keys: str, accumulate: bool) -> None:
    for value in VALUES[1:]:
        compare(torch, f"torch.ones(3,2).index_put(({keys},),{value},{accumulate})")


@pytest.mark.parametrize("mask", [f"{BYTES.format([1, 0])}", "torch.tensor([1,0])"])
@pytest.mark.usefixtures("every_warning")
def test_a_scatter_by_them_is_refused_as_in_pytorch(torch: ModuleType, mask: str) -> None:
    compare(torch, f"torch.ones(2).masked_scatter({mask},torch.zeros(2))")
