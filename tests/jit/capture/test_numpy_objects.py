"""Captured objects of NumPy's with arrays in them: masked ones, polynomials, one's own class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

pytestmark = pytest.mark.usefixtures("traced")

Change = Callable[[Any, float], Any]


def number(value: Any) -> float:
    return -1.0 if value is np.ma.masked else float(value)


MASKED_READS: dict[str, Callable[[Any], Any]] = {
    "filled": lambda a: number(a.filled(0.5)[0]),
    "filled by itself": lambda a: ng.as_tensor(a.filled()),
    "filled by a function": lambda a: number(np.ma.filled(a)[1]),
    "sum": lambda a: number(a.sum()),
    "count": lambda a: a.count(),
    "mask": lambda a: number(np.ma.getmaskarray(a)[1]),
    "one of the mask": lambda a: 9.0 if a.mask is np.ma.nomask else number(a.mask[1]),
    "mask as a tensor": lambda a: ng.where(ng.as_tensor(np.ma.getmaskarray(a)), 1.0, 2.0),
    "fill value": lambda a: number(a.fill_value),
    "data": lambda a: ng.as_tensor(a.data),
    "element": lambda a: number(a[0]),
    "computed": lambda a: number((a * a).filled(3.0)[1]),
    "hardness": lambda a: number(a.hardmask),
    "tensor": lambda a: ng.as_tensor(a),
}
MASKED_CHANGES: dict[str, Change] = {
    "mask one": lambda a, v: a.__setitem__(int(v), np.ma.masked),
    "unmask all": lambda a, v: setattr(a, "mask", np.ma.nomask),
    "mask some": lambda a, v: setattr(a, "mask", [v > 0, v > 1, False]),
    "in the mask": lambda a, v: np.ma.getmaskarray(a).__setitem__(int(v), True),
    "fill value": lambda a, v: setattr(a, "fill_value", v),
    "data": lambda a, v: a.data.__setitem__(1, v),
    "element": lambda a, v: a.__setitem__(1, v),
    "harden": lambda a, v: a.harden_mask(),
    "soften": lambda a, v: a.soften_mask(),
}
KINDS: dict[str, Callable[[], Any]] = {
    "poly1d": lambda: np.poly1d([1.0, 2.0]),
    "Polynomial": lambda: np.polynomial.Polynomial([1.0, 2.0]),
    "Chebyshev": lambda: np.polynomial.Chebyshev([1.0, 2.0], domain=[-3.0, 3.0]),
}
POLYNOMIAL_READS: dict[str, Callable[[Any], Any]] = {
    "value": lambda p: p(2.0),
    "coefficient": lambda p: coefficients(p)[0],
    "as a tensor": lambda p: ng.as_tensor(coefficients(p)).sum(),
    "product": lambda p: (p * p)(1.0),
    "derivative": lambda p: p.deriv()(1.0),
}


def coefficients(polynomial: Any) -> Any:
    return polynomial.coeffs if isinstance(polynomial, np.poly1d) else polynomial.coef


def set_first(polynomial: Any, value: float) -> None:
    if isinstance(polynomial, np.poly1d):
        polynomial[0] = value
    else:
        polynomial.coef = np.array([value, 3.0, 4.0])


def set_domain(polynomial: Any, domain: Any) -> None:
    if not isinstance(polynomial, np.poly1d):  # which has none
        polynomial.domain = domain


POLYNOMIAL_CHANGES: dict[str, Change] = {
    "first": set_first,
    "in the array": lambda p, v: coefficients(p).__setitem__(1, v),
    "domain": lambda p, v: set_domain(p, np.array([-v - 1, v + 1])),
}


def check(
    read: Callable[[Any], Any], changes: dict[str, Change], value: Any, data: st.DataObject
) -> None:
    """Draw changes of an object, and compare after each."""
    x = ng.ones(1, dtype=ng.float64)
    compiled = ng.jit(lambda x: x * read(value))
    for _ in range(3):
        wanted, found = (_outcome(each, x) for each in (lambda x: x * read(value), compiled))
        np.testing.assert_array_equal(found, wanted)
        misses = compiled.cache_info().misses
        np.testing.assert_array_equal(_outcome(compiled, x), wanted)
        if isinstance(wanted, np.ndarray):
            assert compiled.cache_info().misses == misses
        change = changes[data.draw(st.sampled_from(sorted(changes)))]
        change(value, data.draw(st.sampled_from([0.0, 1.0, 2.0])))


def _outcome(function: Callable[[Any], Any], x: Any) -> Any:
    try:
        return function(x).numpy()
    except TypeError as error:  # a tensor has no mask
        return type(error).__name__


@pytest.mark.parametrize("read", MASKED_READS)
@given(st.data())
@settings(max_examples=examples(12))
def test_changes_of_masked_arrays_are_noticed(read: str, data: st.DataObject) -> None:
    mask = data.draw(st.sampled_from([np.ma.nomask, [False, True, False]]))
    value = np.ma.array([1.0, 2.0, 4.0], mask=mask)
    check(MASKED_READS[read], MASKED_CHANGES, value, data)


@pytest.mark.parametrize("change", MASKED_CHANGES)
def test_every_change_of_a_masked_array_is_noticed(change: str) -> None:
    matters = False
    for read in MASKED_READS.values():
        value = np.ma.array([1.0, 2.0, 4.0], mask=[False, True, False])
        if change == "soften":
            value.harden_mask()
        x = ng.ones(1, dtype=ng.float64)
        compiled = ng.jit(lambda x, read=read, value=value: x * read(value))
        before = _outcome(compiled, x)
        MASKED_CHANGES[change](value, 2.5)
        wanted = _outcome(lambda x, read=read, value=value: x * read(value), x)
        np.testing.assert_array_equal(_outcome(compiled, x), wanted)
        matters |= not np.array_equal(before, wanted)
    assert matters


@pytest.mark.parametrize("read", POLYNOMIAL_READS)
@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=examples(8))
def test_changes_of_polynomials_are_noticed(kind: str, read: str, data: st.DataObject) -> None:
    check(POLYNOMIAL_READS[read], POLYNOMIAL_CHANGES, KINDS[kind](), data)


def test_what_a_vectorized_function_reads_is_noticed() -> None:
    weight = np.array([2.0])
    function = np.vectorize(lambda number: number * weight[0])
    compiled = ng.jit(lambda x: x * float(function(1.0)))
    assert compiled(ng.ones(1)).item() == 2
    weight[0] = 5.0
    assert compiled(ng.ones(1)).item() == 5


def test_attributes_and_methods_of_arrays_of_ones_own_class_are_noticed() -> None:
    class Scaled(np.ndarray):
        factor = 2.0

        def number(self) -> Any:
            return float(self[0]) * self.factor * getattr(self, "more", 1.0)

    array: Any = np.ones(2).view(Scaled)
    compiled = ng.jit(lambda x: x * array.number())
    changes: list[tuple[Callable[[], Any], float]] = [
        (lambda: None, 2.0),
        (lambda: array.__setitem__(0, 3.0), 6.0),
        (lambda: setattr(array, "more", 4.0), 24.0),
        (lambda: setattr(Scaled, "factor", 5.0), 60.0),
        (lambda: setattr(Scaled, "number", lambda self: 1.5), 1.5),
    ]
    for change, wanted in changes:
        change()
        assert compiled(ng.ones(1)).item() == wanted


def test_numpys_constant_for_what_is_masked_may_be_captured() -> None:
    masked, array = np.ma.masked, np.ma.array([1.0, 2.0])
    compiled = ng.jit(lambda x: x * (2.0 if array[0] is masked else 3.0))
    assert compiled(ng.ones(1)).item() == 3
    array[0] = masked
    assert compiled(ng.ones(1)).item() == 2
