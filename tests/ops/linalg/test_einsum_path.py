"""einsum of several operands: values, gradients, and that it takes a path that costs little."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.linalg import einsum as module
from numgrad.ops.linalg.einsum_path import contraction_path

LETTERS = "abcdef"


@st.composite
def sums(draw: Any, most: int = 6) -> tuple[str, list[tuple[int, ...]]]:
    """Draw an equation of three or more operands and their shapes; some dims are broadcast."""
    lengths = {label: draw(st.integers(1, 3)) for label in LETTERS}
    terms = draw(
        st.lists(
            st.lists(st.sampled_from(LETTERS), max_size=3, unique=True), min_size=3, max_size=most
        )
    )
    used = sorted({label for term in terms for label in term})
    output = draw(st.lists(st.sampled_from(used), unique=True, max_size=3)) if used else []
    shapes = [
        tuple(1 if draw(st.integers(0, 9)) == 0 else lengths[label] for label in term)
        for term in terms
    ]
    return ",".join(map("".join, terms)) + "->" + "".join(output), shapes


def arrays_of(shapes: list[tuple[int, ...]]) -> list[Any]:
    random = np.random.default_rng(len(shapes))
    return [random.uniform(0.5, 1.5, shape) for shape in shapes]


def without_broadcast(equation: str, arrays: list[Any]) -> list[Any]:
    """Return arrays for NumPy, which does not broadcast every dim of length 1."""
    terms = equation.partition("->")[0].split(",")
    lengths: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        for label, length in zip(term, array.shape, strict=True):
            lengths[label] = max(length, lengths.get(label, 1))
    return [
        np.broadcast_to(array, [lengths[label] for label in term])
        for term, array in zip(terms, arrays, strict=True)
    ]


@given(drawn=sums())
def test_values_are_numpys(drawn: tuple[str, list[tuple[int, ...]]]) -> None:
    equation, shapes = drawn
    arrays = arrays_of(shapes)
    found = ng.einsum(equation, *map(ng.from_numpy, arrays))
    expected = np.einsum(equation, *without_broadcast(equation, arrays))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@settings(max_examples=20)
@given(drawn=sums(most=4))
def test_gradients_are_those_of_finite_differences(drawn: Any) -> None:
    equation, shapes = drawn
    operands = [ng.from_numpy(array).requires_grad_() for array in arrays_of(shapes)]
    assert ng.autograd.gradcheck(lambda *x: ng.einsum(equation, *x), operands)


def work_of(terms: list[str], output: str, lengths: dict[str, int], path: Any) -> int:
    """Return the multiplications that a path takes; its steps remove operands and append one."""
    left = [set(term) for term in terms]
    work = 0
    for step in path:
        chosen = [left[place] for place in step]
        left = [term for place, term in enumerate(left) if place not in step]
        while len(chosen) > 1:
            one, other, *chosen = chosen
            later = set(output).union(*left, *chosen)
            loops = {label for label in one | other if label in one & other or label in later}
            work += prod(lengths[label] for label in loops)
            chosen = [loops & later, *chosen]
        left.append(chosen[0])
    return work


def as_numpys(path: Any, count: int) -> list[tuple[int, int]]:
    """Return our path, whose products take their first operand's place, in NumPy's convention."""
    places = list(range(count))  # in NumPy's list, of what is in ours
    found = []
    for i, j in path:
        step = places[i], places[j]
        found.append(step)
        places = [place - sum(place > gone for gone in step) for place in places]
        places[i] = len(places) - 2
        del places[j]
    return found


@given(drawn=sums())
def test_the_path_is_as_short_as_numpys(drawn: Any) -> None:
    equation, shapes = drawn
    left, _, output = equation.partition("->")
    terms = left.split(",")
    arrays = without_broadcast(equation, arrays_of(shapes))
    lengths = {
        label: length
        for term, array in zip(terms, arrays, strict=True)
        for label, length in zip(term, array.shape, strict=True)
    }
    path = as_numpys(contraction_path(terms, output, lengths), len(terms))
    ours = work_of(terms, output, lengths, path)
    in_order = [(0, 1), *[(0, count - 1) for count in range(len(terms) - 1, 1, -1)]]
    if len(terms) <= 5:
        best = np.einsum_path(equation, *arrays, optimize=("optimal", 1e12))[0][1:]
        assert ours <= work_of(terms, output, lengths, best)
        assert ours <= work_of(terms, output, lengths, in_order)
    else:
        assert len(path) == len(terms) - 1


@pytest.mark.parametrize("order", range(3))
def test_no_order_of_operands_makes_large_products(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(function: Any) -> Any:
        def count(*operands: Any) -> Any:
            product = function(*operands)
            sizes.append(product.numel())
            return product

        return count

    for name in ("bmm", "mul"):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    terms = ["pi", "qj", "rk", "sl", "ijkl"]
    terms = terms[order:] + terms[:order]
    operands = [ng.rand(*[4] * len(term), requires_grad=True) for term in terms]
    ng.einsum(",".join(terms) + "->pqrs", *operands).sum().backward()
    assert len(sizes) == 4 and max(sizes) <= 4**4


@pytest.mark.usefixtures("traced")
def test_a_path_is_taken_under_jit() -> None:
    operands = [ng.rand(3, 4), ng.rand(5, 2), ng.rand(4, 5)]
    equation = "ij,kl,jk->il"
    found = ng.jit(lambda *x: ng.einsum(equation, *x))(*operands)
    assert ng.allclose(found, operands[0] @ operands[2] @ operands[1])
