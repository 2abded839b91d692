"""Operands of different dtypes: gradients of PyTorch's numbers, and the same bits on every way.

A rule of derivatives computes in the dtypes of what was saved, so that PyTorch squares each operand
of atan2 in its own. One fused kernel would compute all of it in the widest.
"""

from __future__ import annotations

import warnings
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from tests.cases import examples
from tests.jit.run_graph import run_traced
from tests.ops.catalogue_strategies import elementwise_primitives

DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "int64")
OF_SEVERAL = [
    pytest.param(primitive, id=primitive.name)
    for primitive in elementwise_primitives()
    if primitive.tensor_count > 1 and not primitive.masks and hasattr(ng, primitive.function_name)
]
UNITS = st.floats(0.125, 1.5, width=16)


def operands(library: Any, dtypes: Any, columns: Any) -> list[Any]:
    made = []
    for dtype, column in zip(dtypes, columns, strict=True):
        numbers = [complex(x, x / 2) if "complex" in dtype else x for x in column]
        tensor = library.tensor(numbers, dtype=getattr(library, dtype))
        made.append(tensor.requires_grad_() if tensor.dtype.is_floating_point else tensor)
    return made


def gradients(library: Any, name: str, given: Any, create_graph: bool) -> list[Any]:
    """Return the gradients of a function's sum weighted by .7, or the class of its error."""
    inputs = [each for each in given if each.requires_grad]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of imaginary parts that are cast away
        result = getattr(library, name)(*given)
        weights = library.full_like(result, 0.7).detach()
        return list(library.autograd.grad(result, inputs, weights, create_graph=create_graph))


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("primitive", OF_SEVERAL)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_gradients_have_the_bits_of_their_rules(primitive: Any, data: st.DataObject) -> None:
    count = primitive.tensor_count
    dtypes = data.draw(st.sampled_from([*product(DTYPES, repeat=count)]))
    columns = data.draw(st.lists(st.tuples(UNITS, UNITS), min_size=count, max_size=count))
    given = operands(ng, dtypes, columns)
    name = primitive.function_name
    try:
        found = gradients(ng, name, given, create_graph=False)
    except (RuntimeError, NotImplementedError, TypeError):  # it does not take those, or none moves
        return
    by_rules = gradients(ng, name, given, create_graph=True)
    traced = found
    if "float16" not in dtypes:  # which is not traced
        traced = run_traced(lambda *them: gradients(ng, name, them, create_graph=False), *given)
    for ours, expected, third in zip(found, by_rules, traced, strict=True):
        assert ours.dtype is expected.dtype
        if {*dtypes} <= {"float16", "int64"}:  # kernels round these once, PyTorch in every step
            continue
        assert ours.numpy().tobytes() == expected.numpy(force=True).tobytes()
        assert third.numpy().tobytes() == ours.numpy().tobytes()


@pytest.mark.parametrize("name", ["atan2", "pow", "xlogy", "hypot", "true_divide", "logaddexp"])
def test_gradients_of_mixed_operands_are_pytorchs(torch: ModuleType, name: str) -> None:
    columns = [(0.375, 1.25), (0.75, 1.0)]
    for dtypes in product(("float32", "float64", "float16"), repeat=2):
        found = [
            [each.detach().numpy() for each in gradients(library, name, given, create_graph=False)]
            for library in (ng, torch)
            for given in [operands(library, dtypes, columns)]
        ]
        for ours, theirs in zip(*found, strict=True):
            assert ours.dtype == theirs.dtype
            few = 4 * np.finfo(ours.dtype).eps
            np.testing.assert_allclose(ours, theirs, rtol=few, err_msg=f"{name} of {dtypes}")


def test_no_weight_is_given_to_an_undefined_logarithm(torch: ModuleType) -> None:
    columns = [(2.0, 0.0, 0.0, 1.0, 0.0, 3.0), (0.0, 0.0, 1.0, -2.0, -1.0, np.inf)]
    for create_graph, weight in product((False, True), (0.0, 1.0)):
        found = []
        for library in (ng, torch):
            x, y = operands(library, ("float64", "float32"), columns)
            for other in (y.detach(), 0.0):
                weights = library.full((6,), weight, dtype=library.float64)
                result = library.xlogy(x, other)
                (gradient,) = library.autograd.grad(
                    result, (x,), weights, create_graph=create_graph
                )
                found.append(gradient.detach().numpy())
        for ours, theirs in zip(found[:2], found[2:], strict=True):
            np.testing.assert_array_equal(ours, theirs)


COMPLEX = [
    pytest.param(primitive, id=primitive.name)
    for primitive in elementwise_primitives()
    if len(primitive.inputs) == primitive.tensor_count == 2
    and "c" in primitive.accepts
    and not primitive.masks
]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("primitive", COMPLEX)
@pytest.mark.parametrize("number", [2, 0.5, 1 - 2j])
def test_a_number_beside_a_complex_tensor_is_complex_in_a_trace(
    primitive: ElementwisePrimitive, number: complex
) -> None:
    for shape in ((), (3,)):
        tensor = ng.full(shape, 0.75 - 0.5j, dtype=ng.complex128)
        for beside in (lambda x: (x, number), lambda x: (number, x)):
            expected = primitive(*beside(tensor))
            found = run_traced(lambda x, beside=beside: primitive(*beside(x)), tensor)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-14)


PARTS = [0.0, -0.0, 1.5, -2.0, np.nan, np.inf, -np.inf, 1e-310]


@given(
    st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(PARTS)), max_size=4),
    st.lists(st.sampled_from([None, 0.5, -1.0, np.inf, 1e300]), max_size=3),
    st.sampled_from(["complex64", "complex128"]),
)
def test_both_parts_of_complex_numbers_are_replaced(
    pairs: list[tuple[float, float]], replacements: list[float | None], dtype: str
) -> None:
    tensor = ng.tensor([complex(*pair) for pair in pairs], dtype=getattr(ng, dtype))
    narrow = {"complex64": np.float32, "complex128": np.float64}[dtype]
    parts = tensor.numpy().view(narrow).copy()
    largest = np.finfo(narrow).max
    defaults = (0.0, largest, -largest)
    with np.errstate(over="ignore"):
        nan, posinf, neginf = [
            narrow(usual if number is None else number)
            for usual, number in zip(defaults, [*replacements, None, None, None][:3], strict=True)
        ]
    expected = np.select(
        [np.isnan(parts), parts == np.inf, parts == -np.inf], [nan, posinf, neginf], parts
    )
    with np.errstate(over="ignore"):
        ours = [
            tensor.nan_to_num(*replacements),
            run_traced(lambda x: x.nan_to_num(*replacements), tensor),
            tensor.clone().nan_to_num_(*replacements),
        ]
    for found in ours:
        assert found.numpy().view(narrow).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["atan2", "pow", "xlogy", "hypot", "true_divide", "logaddexp"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_wider_operand_without_dims_counts_as_in_the_rules(name: str, place: int) -> None:
    """It does not widen the result, but what the rule computes of it alone."""
    random = np.random.default_rng(0)
    row = ng.from_numpy(random.uniform(0.1, 3, 400).astype(np.float32)).requires_grad_()
    number = ng.tensor(1.2345678912345, dtype=ng.float64, requires_grad=True)
    given = [row, number] if place else [number, row]
    by_rules = gradients(ng, name, given, create_graph=True)
    for _ in range(4):  # on the long way, and by what is remembered
        found = gradients(ng, name, given, create_graph=False)
        for ours, expected in zip(found, by_rules, strict=True):
            assert ours.dtype is expected.dtype
            assert ours.numpy().tobytes() == expected.numpy(force=True).tobytes()
