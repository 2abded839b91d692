"""Questions about tensors have PyTorch's answers, and errors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import numgrad as ng
from tests.ops.layouts import LAYOUTS, Layout, place

CALLS = """
torch.is_tensor(torch.ones(2)); torch.is_tensor(3.0); torch.is_tensor(None)
torch.numel(torch.ones(2, 3)); torch.numel(torch.ones(0)); torch.numel(3)
torch.is_floating_point(torch.ones(2)); torch.is_floating_point(torch.tensor([1j]))
torch.is_floating_point(torch.tensor(1)); torch.is_floating_point(2.0)
torch.is_signed(torch.tensor(1)); torch.is_signed(torch.tensor(True)); torch.is_signed(3)
torch.is_signed(torch.tensor(1, dtype=torch.uint8)); torch.is_signed(torch.ones(1))
torch.is_nonzero(torch.ones(1)); torch.is_nonzero(torch.zeros(1, 1)); torch.is_nonzero(3)
torch.is_nonzero(torch.ones(2)); torch.is_nonzero(torch.ones(0)); torch.tensor(2j).is_nonzero()
torch.is_same_size(torch.ones(2), torch.zeros(2)); torch.ones(2).is_same_size(torch.ones(2, 1))
torch.is_same_size(torch.ones(2), 3)
torch.result_type(torch.ones(2), 3); torch.result_type(3, 3.5); torch.result_type(True, 1j)
torch.result_type(torch.ones(2), torch.tensor(3.0, dtype=torch.float64))
torch.result_type(torch.tensor(1), torch.tensor(1, dtype=torch.uint8))
torch.result_type(torch.tensor([1]), 0.5); torch.result_type(2, torch.tensor([True]))
torch.broadcast_shapes(); torch.broadcast_shapes((2, 1), (3,)); torch.broadcast_shapes(3, (2, 1))
torch.broadcast_shapes((2, 3), (1,), (5, 1, 1)); torch.broadcast_shapes((0,), (1,))
torch.broadcast_shapes((2,), (3,)); torch.broadcast_shapes((3,), (0,))
torch.broadcast_shapes((-2,)); torch.broadcast_shapes(torch.ones(2, 1).shape, [4])
torch.ones(2, 3).is_shared(); torch.ones(2).dim_order(ambiguity_check="a")
torch.ones(2).dim_order(ambiguity_check=["a"]); torch.ones(()).dim_order()
torch.ones(0).dim_order()
"""
EXPRESSIONS = [part for line in CALLS.strip().splitlines() for part in line.split("; ")]


def answer(library: Any, expression: str) -> str:
    try:
        return repr(eval(expression, {"torch": library}))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_answers_are_pytorchs(torch: ModuleType, expression: str) -> None:
    assert answer(ng, expression) == answer(torch, expression)


ORDERS = [
    "x.dim_order()",
    "x.dim_order(ambiguity_check=True)",
    "x.dim_order(ambiguity_check=[torch.contiguous_format])",
    "x.dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])",
    "x.dim_order(ambiguity_check=[])",
]


@pytest.mark.parametrize("shape", [(2, 3, 4, 2), (2, 3, 4), (4, 2), (3,), (2, 1, 3, 2), (1, 3, 1)])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_order_of_dims_is_pytorchs(
    torch: ModuleType, layout: Layout, shape: tuple[int, ...]
) -> None:
    strides, room = place(layout, shape)
    found = []
    for library in (ng, torch):
        x = library.zeros(room).as_strided(shape, strides)
        found.append([])
        for expression in ORDERS:
            try:
                found[-1].append(eval(expression, {"torch": library, "x": x}))
            except RuntimeError as error:
                found[-1].append(str(error))
    assert found[0] == found[1]
