"""Remembered calls under grad modes: what any of them gives is what the long way gives there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.modes.state import intercept, stop_intercepting
from numgrad.ops.core.primitive import CATALOGUE, Primitive
from tests.cases import examples

MODES: dict[str, Callable[[], Any]] = {
    "grad": contextlib.nullcontext,
    "no_grad": ng.no_grad,
    "inference": ng.inference_mode,
}
SAMPLES = [
    (name, number)
    for name, primitive in CATALOGUE.items()
    for number in range(len(primitive.samples))
]


@contextlib.contextmanager
def the_long_way() -> Any:
    token = object()
    intercept(token)
    try:
        yield
    finally:
        stop_intercepting(token)


def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Any:
    values = np.linspace(low, high, int(np.prod(shape)) + 2)[1:-1] if shape else np.array(0.7)
    return ng.from_numpy(values.reshape(shape).astype(np.float32))


def outcome(name: str, number: int, mode: str, made_in: str, leaf: bool) -> Any:
    """Return what tells of the results of a sample's call, or of its error."""
    with MODES[made_in]():
        function, operands, keywords = CATALOGUE[name].samples[number](make)
        operands = [each.clone() for each in operands]
    if leaf and made_in != "inference":
        operands = [each.requires_grad_() for each in operands]
    try:
        with MODES[mode]():
            result = function(*operands, **keywords)
    except RuntimeError as error:
        return str(error)
    return [
        (
            each.numpy(force=True).tobytes(),
            each.stride(),
            each.dtype,
            type(each.grad_fn),
            each.requires_grad,
            each.is_inference(),
            each._view_origin,
            None if each._base is None else [each._base is operand for operand in operands],
            [np.shares_memory(each._array, operand._array) for operand in operands],
            [each._counter is operand._counter for operand in operands],
        )
        for each in ([result] if isinstance(result, ng.Tensor) else result)
    ]


@settings(max_examples=examples(300))
@given(
    st.sampled_from(SAMPLES),
    st.lists(st.tuples(*[st.sampled_from(list(MODES))] * 2), min_size=1, max_size=3),
    st.booleans(),
)
def test_remembered_calls_do_what_the_long_way_does(
    sample: tuple[str, int], modes: list[tuple[str, str]], leaf: bool
) -> None:
    for _ in range(3):  # first the long way, then noting its steps, then by what that came to
        for mode, made_in in modes:
            with the_long_way():
                expected = outcome(*sample, mode, made_in, leaf)
            assert outcome(*sample, mode, made_in, leaf) == expected


CALLS: list[Callable[[Any], Any]] = [
    lambda x: x[1:],
    lambda x: x.T,
    lambda x: x.sum(0),
    lambda x: x.std(),
    lambda x: x @ x,
    lambda x: ng.stack((x, x)),
    lambda x: x.unbind(),
    lambda x: x * x[0],
    lambda x: ng.where(x > 0, x, 1.0),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("made_in", ["no_grad", "inference"])
def test_calls_in_inference_mode_are_remembered(
    call: Callable[[Any], Any], made_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MODES[made_in]():
        x = ng.tensor([[1.0, -2.0, 4.0], [0.5, 8.0, 3.0], [2.0, 1.0, -1.0]])
    settle, long_ways = Primitive._settle, []

    def counted(primitive: Any, *arguments: Any, **keywords: Any) -> None:
        long_ways.append(primitive.name)
        settle(primitive, *arguments, **keywords)

    monkeypatch.setattr(Primitive, "_settle", counted)
    with ng.inference_mode():
        for _ in range(3):
            long_ways.clear()
            call(x)
    assert long_ways == []
