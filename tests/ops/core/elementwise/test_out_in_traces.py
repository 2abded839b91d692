"""What is written to an `out` in a trace is what is written to it outside of one."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng
from numgrad.autograd import forward_ad
from numgrad.ops.core.sample_calls import sample_calls
from tests.ops.catalogue_strategies import elementwise_primitives

# Shapes of the output, of which a part is the `out`: as the result, others, and one with gaps.
OUTS: dict[str, tuple[tuple[int, ...], Any]] = {
    "as the result": ((4,), ...),
    "other elements": ((6,), slice(0, 6, 2)),
    "with gaps": ((8,), slice(0, 8, 2)),
    "without elements": ((0,), ...),
    "more dims": ((2, 4), ...),
}


def written(kind: str, *tensors: Any) -> Any:
    """Return what some operations write, and what they say where they do not."""
    shape, part = OUTS[kind]
    results: list[Any] = []
    words: list[str] = []
    for primitive in elementwise_primitives()[list(OUTS).index(kind) :: 50]:
        operands = next(iter(sample_calls(primitive.name, ng.float32))).operands
        given = iter(tensors)
        operands = [next(given) if isinstance(x, ng.Tensor) else x for x in operands]
        for dtype in (ng.float32, ng.float64, ng.complex64, ng.int64, ng.bool):
            whole = ng.ones(shape, dtype=dtype)
            out = whole if part is ... else whole[part]
            try:
                assert primitive(*operands, out=out) is out
            except RuntimeError as error:
                words.append(str(error))
                continue
            words.append(f"{primitive.name} {out.dtype} {out._version}")
            results += [whole, out * 1]
    return results, words


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("kind", OUTS)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_operations_write_in_a_trace_what_they_write_outside(kind: str) -> None:
    said: list[list[str]] = []

    def call(*tensors: Any) -> Any:
        results, words = written(kind, *tensors)
        said.append(words)
        return results

    tensors = [ng.tensor([0.25, 0.5, 0.625, 0.75]) + number / 8 for number in range(3)]
    found = [ng.jit(call)(*tensors), call(*tensors)]
    traced, outside = [[(each.dtype, each.tolist()) for each in results] for results in found]
    assert traced == outside
    assert said[0] == said[-1]
    assert len(outside) > 10


def refused(x: Any, tangent: Any) -> Any:
    with forward_ad.dual_level():
        return ng.sin(forward_ad.make_dual(x, tangent), out=ng.zeros(2))


def beside(x: Any, tangent: Any) -> Any:
    with forward_ad.dual_level():
        dual = ng.sin(forward_ad.make_dual(x, tangent))
        plain = ng.sin(x, out=ng.zeros(2))
        return plain * 1, forward_ad.unpack_dual(dual).tangent


def of_a_view(x: Any, y: Any) -> Any:
    base = ng.zeros(3)
    view = base[1:]
    base.mul_(x.sum())
    return ng.add(view, y, out=ng.zeros(2))


def tangent_of_a_view(x: Any, tangent: Any) -> Any:
    with forward_ad.dual_level():
        base = ng.ones(3)
        view = base[1:]
        base.mul_(forward_ad.make_dual(x, tangent).sum())
        return forward_ad.unpack_dual(ng.atan2(view, x)).tangent


def test_forward_mode_and_histories_decide_as_outside_of_traces() -> None:
    x, y = ng.tensor([0.5, 2.0]), ng.tensor([1.0, -1.0])
    for call in (ng.jit, lambda function: function):
        with pytest.raises(NotImplementedError, match="does not support it because it is an out="):
            call(refused)(x, y)
        plain, tangent = call(beside)(x, y)
        assert plain.tolist() == x.sin().tolist()
        assert tangent.tolist() == (x.cos() * y).tolist()
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            call(of_a_view)(x.clone().requires_grad_(), y)
        tangents = call(tangent_of_a_view)(x, 2 * y + 1)
        assert ng.allclose(tangents, 2 * x / (2.5**2 + x**2))
