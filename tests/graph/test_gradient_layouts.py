"""How gradients lie in memory where several uses of a tensor add up, drawn, against PyTorch.

A leaf's ``.grad`` lies as the leaf does, the first time and after it was added to; what a hook or
`autograd.grad` gets, or a tensor in between retains, lies as the sum of what its uses gave.
"""

from __future__ import annotations

import warnings
from itertools import permutations, product
from random import Random
from typing import Any, NamedTuple

import pytest

import numgrad as ng
from tests.cases import examples

SHAPES = [(2, 3, 4), (4, 6)]
# By what a tensor is used for, where `k` lies in an order of its own.
USES = [
    "x * k",
    "x * x * k",
    "x + k",
    "m.where(k > 3, x, 0.0)",
    "x.permute(order).contiguous() * 2",
    "x.permute(order).clone().sin()",
    "x.reshape(-1) * m.arange(24.0, dtype=dtype)",
    "x.flatten(0, -2) @ m.ones(x.shape[-1], 2, dtype=dtype)",
    "x.select(order[0], 0).exp()",
    "x.sum(order[0]) * 2",
    "x.exp()",
]
SEEDS = 40


class Program(NamedTuple):
    """How a leaf lies, by what it is used for, and where gradients are taken."""

    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    in_between: bool
    uses: list[tuple[str, tuple[int, ...]]]
    weighed: bool
    how: str


def drawn(seed: int) -> Program:
    """Return a program."""
    random = Random(seed)
    how = random.choice(["backward", "twice", "grad", "create_graph"])
    dtype = random.choice(["float32", "float64"])  # sums of halves lie row by row here
    shape = random.choice(SHAPES)
    orders = list(permutations(range(len(shape))))
    uses = [(random.choice(USES), random.choice(orders)) for _ in range(random.choice([1, 2, 3]))]
    return Program(
        dtype, shape, random.choice(orders), random.random() < 0.4, uses, random.random() < 0.5, how
    )


def laid(m: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Any:
    """Return a tensor of a shape of which memory has the dims in an order."""
    lengths = [shape[dim] for dim in order]
    back = [order.index(dim) for dim in range(len(shape))]
    return m.arange(24.0).reshape(lengths).permute(back)


def strides(m: Any, program: Program) -> list[Any]:
    """Return the strides of all gradients that are to be seen."""
    dtype = getattr(m, program.dtype)
    leaf = laid(m, program.shape, program.order).to(dtype).requires_grad_()
    found: list[Any] = []
    x = leaf
    if program.in_between:
        x = leaf * 1
        x.retain_grad()
        x.register_hook(lambda gradient: found.append(gradient.stride()))
    loss = m.zeros((), dtype=dtype)
    for use, order in program.uses:
        names = {"m": m, "x": x, "order": order, "dtype": dtype}
        names["k"] = laid(m, program.shape, order).to(dtype)
        used = eval(use, names)
        loss = loss + (used * used.detach() if program.weighed else used).sum()
    if program.how == "grad":
        return [*found, m.autograd.grad(loss, leaf)[0].stride()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a graph that refers to itself
        for _ in range(1 + (program.how != "backward")):
            loss.backward(retain_graph=True, create_graph=program.how == "create_graph")
            found += [leaf.grad.stride(), x.grad.stride()]
    return found


@pytest.mark.parametrize("start", range(0, examples(5 * SEEDS), SEEDS))
def test_sums_of_gradients_lie_as_in_pytorch(torch: Any, start: int) -> None:
    for seed in range(start, start + SEEDS):
        program = drawn(seed)
        found = [strides(m, program) for m in (ng, torch)]
        assert found[0] == found[1], program


def test_sums_of_any_two_gradients_of_matrices_lie_as_in_pytorch(torch: Any) -> None:
    """Whichever of the two the engine may write into."""
    uses = [*product(USES[:-3], permutations(range(2)))]
    for pair in product(uses, repeat=2):
        program = Program("float32", (4, 6), (0, 1), True, list(pair), True, "grad")
        found = [strides(m, program) for m in (ng, torch)]
        assert found[0] == found[1], program
