"""The calls that warm the cache: every operation has some, and they meet all of its kernels."""

from __future__ import annotations

import numgrad as ng
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.sample_calls import sample_calls

DTYPES = (ng.float32, ng.complex64, ng.int64)


def test_every_operation_has_a_call_on_some_dtype() -> None:
    for name in CATALOGUE:
        calls = [call for dtype in DTYPES for call in sample_calls(name, dtype)]
        assert calls, name
        assert all(any(isinstance(x, ng.Tensor) for x in call.operands) for call in calls), name


def test_what_an_operation_does_not_accept_is_not_called() -> None:
    for primitive in CATALOGUE.values():
        if isinstance(primitive, ElementwisePrimitive):
            for dtype in DTYPES:
                calls = list(sample_calls(primitive.name, dtype))
                assert bool(calls) == (dtype.numpy.kind in primitive.accepts)


def test_a_call_compiles_each_pattern_and_choice_of_gradients() -> None:
    for call in sample_calls("mul", ng.float64):
        call.run()
    primitive = CATALOGUE["mul"]
    assert {"aa", "as", "sa"} <= set(primitive.kernel.loops)
    assert {(0b01, "tt"), (0b10, "tt"), (0b11, "tt"), (0b01, "tn")} <= set(primitive.plans)


def test_gradients_are_asked_for_where_there_are_any() -> None:
    for name, leaves in {"mul": 2, "where": 2, "isnan": 0}.items():
        call = next(iter(sample_calls(name, ng.float32)))
        wanted = [x for x in call.operands if isinstance(x, ng.Tensor) and x.requires_grad]
        assert len(wanted) == leaves
    integers = next(iter(sample_calls("mul", ng.int64)))
    assert not any(x.requires_grad for x in integers.operands)
