"""``numgrad.exp_(x)`` and the like: what the method in place does, in PyTorch's words."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest

import numgrad as ng
from numgrad.ops.core.registry import FUNCTIONS, INPLACE
from numgrad.ops.signatures.in_place_names import IN_PLACE_FUNCTIONS
from tests.ops.lines import answer

BY_HAND = {"as_strided_", "detach_", "resize_as_"}
NAMES = sorted((IN_PLACE_FUNCTIONS & FUNCTIONS.keys()) | BY_HAND)
# What stands behind the tensor that they write to; nothing, if not said.
ARGUMENTS = {
    "addmv_": "torch.ones(3, 3), torch.ones(3)",
    "as_strided_": "(2,), (1,)",
    "clamp_": "0.2, 0.4",
    "clamp_max_": "torch.tensor([0.2, 0.5, 0.1])",
    "clamp_min_": "0.3",
    "clip_": "torch.tensor(0.2), None",
    "fill_": "2",
    "gcd_": "torch.tensor([4, 6, 9])",
    "index_put_": "(torch.tensor([2, 0]),), torch.tensor([3.0, 4.0])",
    "lcm_": "torch.tensor([4, 6, 9])",
    "ldexp_": "torch.tensor([1, 2, 3])",
    "logit_": "0.2",
    "resize_as_": "torch.ones(2)",
    "threshold_": "0.3, 2.0",
    "xlogy_": "torch.tensor([1.5, 2.0, 3.0])",
}
INTEGERS = ("gcd_", "lcm_")


def values(name: str) -> str:
    if name in INTEGERS:
        return "[6, 8, 12]"
    return "[1.5, 1.25, 2.0]" if name in ("acosh_", "arccosh_") else "[0.5, 0.25, 0.125]"


def call(name: str) -> str:
    return f"torch.{name}(x{', ' * (name in ARGUMENTS)}{ARGUMENTS.get(name, '')})"


@pytest.mark.sampled(0.18, by="name")
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_it_does_what_pytorchs_does(torch: ModuleType, name: str, requires_grad: bool) -> None:
    recorded = requires_grad and name not in INTEGERS
    line = f"x = torch.tensor({values(name)}, requires_grad={recorded})"
    line += f"{' * 1' * recorded}; n = x._version; y = {call(name)}"
    line += " -> (x, x.requires_grad, y is x, y._version - n)"
    for _ in range(3):  # later calls are remembered ones
        assert answer(ng, line) == answer(torch, line)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("name", sorted(set(NAMES) & INPLACE.keys() - BY_HAND - set(INTEGERS)))
def test_it_has_the_gradient_of_the_method(name: str) -> None:
    of_method = call(name).replace(f"torch.{name}(x", f"x.{name}(", 1).replace("(, ", "(", 1)
    gradients = [
        answer(
            ng,
            f"z = torch.tensor({values(name)}, requires_grad=True); x = z * 1; "
            f"{one}.sum().backward() -> z.grad",
        )
        for one in (call(name), of_method)
    ]
    assert gradients[0] == gradients[1] and gradients[0].startswith("tensor(")


@pytest.mark.sampled(0.09, by="name")
@pytest.mark.parametrize("arguments", ["", "3", "'x'", "None", "[1.0]", "x, x, x, x, x"])
# Of these two PyTorch lists signatures that it has for other libraries.
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"addmv_", "round_"}))
def test_wrong_calls_are_told_what_pytorch_tells_them(
    torch: ModuleType, name: str, arguments: str
) -> None:
    line = f"x = torch.tensor({values(name)}) -> torch.{name}({arguments})"
    assert answer(ng, line) == answer(torch, line)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_pickled_by_its_name(name: str) -> None:
    function = getattr(ng, name)
    assert pickle.loads(pickle.dumps(function)) is function is copy.deepcopy(function)
    assert function.__name__ == name and function.__doc__


@pytest.mark.usefixtures("traced")
def test_it_is_traced_and_transformed() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        ng.sin_(y)
        return ng.clamp_(y, max=0.9).sum()

    x = ng.tensor([0.5, 1.0])
    assert ng.jit(f)(x).item() == f(x).item()
    assert ng.jit(ng.func.grad(f))(x).equal(ng.func.grad(f)(x))
    assert ng.func.vmap(ng.func.grad(f))(x.reshape(2, 1)).reshape(2).equal(ng.func.grad(f)(x))
