"""Layouts and memory formats as in PyTorch, of which the dense ones are here."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest

import numgrad as ng

CALLS = """
torch.strided; torch.contiguous_format; torch.preserve_format
str(torch.strided); isinstance(torch.strided, torch.layout)
isinstance(torch.contiguous_format, torch.memory_format); torch.layout(); torch.memory_format()
pickle.loads(pickle.dumps(torch.strided)) is torch.strided
copy.deepcopy(torch.preserve_format) is torch.preserve_format
x.layout; x.layout is torch.strided; x.t().clone().stride()
x.t().clone(memory_format=torch.preserve_format).stride()
x.t().clone(memory_format=torch.contiguous_format).stride(); x.clone(memory_format=3)
x.t().contiguous(memory_format=torch.contiguous_format).stride(); x.contiguous(memory_format=3)
x.t().contiguous(memory_format=torch.preserve_format)
x.contiguous(memory_format=torch.contiguous_format) is x
x.is_contiguous(memory_format=torch.contiguous_format); x.is_contiguous(memory_format=3)
x.t().is_contiguous(memory_format=torch.contiguous_format)
x.t().cpu(memory_format=torch.contiguous_format).stride()
x.t().to(torch.float64, memory_format=torch.contiguous_format).stride()
x.t().to(torch.float64, memory_format=torch.preserve_format).stride()
x.t().to(memory_format=torch.contiguous_format).stride()
torch.zeros(2, layout=torch.strided); torch.zeros(2, layout=3)
torch.zeros_like(x.t(), memory_format=torch.contiguous_format).stride()
torch.zeros_like(x.t(), memory_format=torch.preserve_format).stride()
torch.zeros_like(x, memory_format=3); torch.rand_like(x, layout=torch.strided).shape
"""
EXPRESSIONS = [part for line in CALLS.strip().splitlines() for part in line.split("; ")]


def answer(library: Any, expression: str) -> str:
    names = {"torch": library, "copy": copy, "pickle": pickle, "x": library.ones(2, 3)}
    try:
        return repr(eval(expression, names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_answers_are_pytorchs(torch: ModuleType, expression: str) -> None:
    assert answer(ng, expression) == answer(torch, expression)


def test_a_copy_in_another_order_has_the_gradient() -> None:
    x = ng.ones(2, 3, requires_grad=True)
    y = x.t().clone(memory_format=ng.contiguous_format)
    (y * ng.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
