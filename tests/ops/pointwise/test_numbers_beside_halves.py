"""A number beside float16 is rounded as PyTorch rounds it: for every function that takes one."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.signatures.declared import DECLARED
from numgrad.ops.signatures.signature import REQUIRED, Parameter, Signature
from tests.ops.signatures.wrong_calls import GOOD, NUMBER_FIRST, NUMBERS_TOO

VALUES = [1.5, 0.5, 1.0, -1.0, -1.5, 0.1, 1e-3, -1e-7, 0.0, 600.0, 60000.0, np.inf]
NUMBERS = [0.1, 1e-10, 1e-6, 65519.0, 65520.0, 70000, -1e5, 1e10, 1e39, 10**10]
# Dtypes of results of numbers alone, places in memory, random numbers.
OTHERS = {"result_type", "full", "full_like", "new_full", "scalar_tensor", "arange", "range"}
OTHERS |= {"linspace", "logspace", "set_", "normal", "normal_", "uniform_", "random_", "randint"}
OTHERS |= {"bernoulli", "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_"}
# PyTorch multiplies by factors one after the other here, rounding each time, and shows 0 for
# 0 * ln(0); of the last the parameter is no operand but the order of a norm.
OTHERS |= {"addr", "addr_", "xlogy", "xlogy_", "norm"}
OTHERS |= {"interp", "dist"}  # PyTorch has not the first; of the other it is an order, too
OTHERS |= {"softplus", "std_mean", "var_mean"}  # elsewhere in PyTorch, and several results
OTHERS |= {"triplet_margin_loss"}  # which looks at its margin here


def places() -> list[Any]:
    """Return where functions and methods in place take a number."""
    found = {}
    for declaration in DECLARED.values():
        if declaration.name in OTHERS or (declaration.bound and not declaration.writes):
            continue
        if not declaration.bound and not hasattr(ng, declaration.name):
            continue  # a function of `linalg` or another module
        if declaration.rule.__module__.startswith("numgrad.ops.masked"):
            continue
        for signature in declaration.signatures:
            for each in signature.parameters:
                first = declaration.name in (*NUMBER_FIRST, *NUMBERS_TOO) and not declaration.bound
                if each.kind in ("number", "operand") and not (first and each.kind == "operand"):
                    name = f"{'Tensor.' * declaration.bound}{declaration.name}-{each.name}"
                    values = (declaration.name, declaration.bound, signature, each)
                    found.setdefault(f"{name}-{each.kind}", pytest.param(*values, id=name))
    return list(found.values())


def result(
    module: Any, name: str, bound: bool, signature: Signature, place: Parameter, number: Any
) -> Any:
    """Return what a function gives of float16 and of a number in one place, or its complaint."""
    tensor = "torch.tensor(VALUES, dtype=torch.float16)"
    texts = {
        **GOOD,
        "int": "0",
        "Tensor": tensor,
        "operand": tensor,
        "mask": "torch.tensor([True, False] * 6)",
    }
    arguments, keywords = [], {}
    for each in signature.parameters:
        if each is not place and each.default is not REQUIRED:
            continue
        value = number if each is place else eval(texts[each.kind], {"torch": module, **globals()})
        if each.keyword_only or each.default is not REQUIRED:
            keywords[each.name] = value
        else:
            arguments.append(value)
    owner = module.tensor(VALUES, dtype=module.float16) if bound else module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = getattr(owner, name)(*arguments, **keywords)
    except (RuntimeError, TypeError, IndexError) as error:
        return str(error)
    return found


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize(("name", "bound", "signature", "place"), places())
def test_a_number_is_rounded_as_pytorch_rounds_it(
    torch: ModuleType, name: str, bound: bool, signature: Signature, place: Parameter
) -> None:
    for number in NUMBERS:
        call = (name, bound, signature, place, number)
        ours, theirs = result(ng, *call), result(torch, *call)
        if isinstance(theirs, str):
            # Of the arguments something else is wrong, or it is a number that does not fit.
            assert isinstance(ours, str) or "overflow" not in theirs or "float without" in theirs
            continue
        assert not isinstance(ours, str), (number, ours)
        assert repr(ours.dtype) == repr(theirs.dtype)
        np.testing.assert_allclose(
            ours.numpy().astype(float),
            theirs.numpy().astype(float),
            rtol=2e-3,
            atol=1e-7,
            err_msg=f"{name} of {number}",
        )


def test_the_gradient_goes_by_the_rounded_number(torch: ModuleType) -> None:
    for function in (
        lambda x: 0.1 * x,
        lambda x: x / 0.3,
        lambda x: x**3.1,
        lambda x: 1.7**x,
        lambda x: x % 0.3,
        lambda x: 0.7 - x,
    ):
        found = []
        for module in (ng, torch):
            x = module.tensor([1.5, 0.25, 2.0], dtype=module.float16).requires_grad_()
            function(x).sum().backward()
            found.append(x.grad.numpy().astype(float))
        np.testing.assert_allclose(*found, rtol=2e-3)
