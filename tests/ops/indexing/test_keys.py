"""Keys of all kinds: what they show, where it lies, and which node it has."""

from __future__ import annotations

from itertools import permutations, product
from math import prod
from types import ModuleType

import pytest

import numgrad as ng
from tests.ops.lines import answer

SHOWN = "m=torch.arange(12.).reshape(3,4).requires_grad_()*1; p=m[{}] -> "
SHOWN += "p.tolist(), tuple(p.shape), p.numel() and (p.stride(), p.storage_offset()), "
SHOWN += "p.grad_fn.name()"
STARTS = ["", "0", "False", "1", "True", "-3", "-9", "np.int64(0)", "torch.tensor(0)"]
STOPS = ["", "3", "4", "2", "True", "-1", "99", "np.int64(3)", "torch.tensor(3)"]
STEPS = ["", "1", "True", "2", "np.int64(1)", "torch.tensor(1)"]
ITEMS = ["...", "None", "slice(0,1)", "[0,1]", "(0,1)", "range(2)", "np.array([0,1])", "1", "True"]
ITEMS += ["torch.tensor([0,1])", "torch.tensor(1)"]
MASKS = ["torch.ones(3,dtype=torch.bool)", "torch.ones(4,dtype=torch.bool)"]
MASKS += ["torch.ones(3,4,dtype=torch.bool)", "torch.ones(3,4,1,dtype=torch.bool)"]
MASKS += ["torch.ones(4,3,dtype=torch.bool)", "torch.ones(3,3,dtype=torch.bool)"]


NOT_WARNED_OF = " [Using a non-tuple sequence"  # see docs/if-you-know-pytorch.md


def compare(torch: ModuleType, line: str) -> None:
    assert answer(ng, line) == answer(torch, line).partition(NOT_WARNED_OF)[0], line


@pytest.mark.parametrize("step", STEPS)
def test_slices(torch: ModuleType, step: str) -> None:
    for start, stop in product(STARTS, STOPS):
        compare(torch, SHOWN.format(f"{start}:{stop}:{step}"))


@pytest.mark.parametrize("first", ITEMS)
def test_lists_of_more_than_numbers_are_tuples(torch: ModuleType, first: str) -> None:
    compare(torch, SHOWN.format(f"[{first}]"))
    for second in ITEMS:
        compare(torch, SHOWN.format(f"[{first}, {second}]"))
    if first in ("1", "True"):  # a long one is always one index
        compare(torch, SHOWN.format(f"[{first}, {', '.join(['0'] * 40)}]"))


@pytest.mark.parametrize("mask", MASKS)
def test_masks_have_the_dims_that_they_stand_for(torch: ModuleType, mask: str) -> None:
    for key in (mask, f"{mask},", f"[0],{mask}", f"{mask},[0]", f"{mask},{MASKS[1]}"):
        compare(torch, SHOWN.format(key))
    if mask in MASKS[:3:2]:  # the others are refused in other words
        for value in ("torch.tensor(5.)", "torch.arange(1.)", "torch.arange(2.)"):
            compare(torch, f"torch.zeros(3,4).index_put(({mask},),{value})")


@pytest.mark.parametrize("lies", list(permutations(range(3))))
@pytest.mark.parametrize("rest", [(), (4,), (4, 2)])
@pytest.mark.parametrize("pair", [False, True])
def test_what_is_taken_lies_as_the_positions_do(
    lies: tuple[int, ...], rest: tuple[int, ...], pair: bool
) -> None:
    """As in PyTorch: by permuted positions that is had which in order is had and then permuted."""
    positions = ng.arange(24).reshape(2, 3, 4) % 5
    x = ng.arange(float(5 * (5 if pair else 1) * prod(rest))).reshape(*[5] * (1 + pair), *rest)
    indices = (positions, positions.clone()) if pair else (positions,)
    in_order = x[indices].permute(*lies, *range(3, 3 + len(rest)))
    found = x[tuple([each.permute(lies) for each in indices])]
    assert found.tolist() == in_order.tolist() and found.stride() == in_order.stride()
