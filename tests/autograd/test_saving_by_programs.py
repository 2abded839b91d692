"""Remembered calls under hooks on saved tensors: as the first, which goes the long way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.tensor import wrap
from numgrad.ops.core.primitive import Primitive
from tests.ops.catalogue_strategies import elementwise_primitives

CALLS = 4  # the long way, that way with its steps noted, and twice what these came to
INDEX = ng.tensor([1])


def written(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


STEPS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x * y,
    lambda x, y: x * 1.5,
    lambda x, y: x / (y * y + 1),
    lambda x, y: x.tanh(),
    lambda x, y: ng.stack((x, y, x)).prod(0),
    lambda x, y: x * y.exp().sum(),
    lambda x, y: (x @ y) + x,
    lambda x, y: x.std(0) * y,
    lambda x, y: x.softmax(1),
    lambda x, y: x.T.exp(),
    lambda x, y: x[:1] * y,
    lambda x, y: ng.where(x > 0, x, y).sigmoid(),
    lambda x, y: (x * 2).mul_(y),
    lambda x, y: written(x * 2, INDEX, y[:1]),
    lambda x, y: written(x * 2, y.detach() > 0, y[0, 0]) * x,
    lambda x, y: (x * 2).index_put_((INDEX,), y[:1]) * ng.fill(x, 2.0),
    lambda x, y: (x * 2).masked_fill_(y.detach() > 0, 0.5),
    lambda x, y: x.max(1).values + y,
    lambda x, y: ng.tensordot(x, y, 1),
]
UNPACKED: list[Callable[[Any], Any]] = [
    lambda value: value,
    lambda value: value.clone(),
    lambda value: value.T.contiguous().T if value.dim() == 2 else value.clone(),
    lambda value: (value * 2 + value) / 3,  # by calls that are remembered themselves
]


def leaves() -> tuple[Any, Any]:
    x = ng.tensor([[0.5, -1.5], [1.25, 2.0]], dtype=ng.float64, requires_grad=True)
    y = ng.tensor([[3.0, 0.25], [-0.75, 1.0]], dtype=ng.float64, requires_grad=True)
    return x, y


def run(
    steps: list[Callable[[Any, Any], Any]],
    packs: Callable[[Any], Any] | None = None,
    unpacks: Any = None,
) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
    """Return what hooks were handed, and the result with the gradients of both leaves."""
    x, y = leaves()
    handed: list[Any] = []

    def pack(tensor: Any) -> Any:
        which = next((name for name, each in (("x", x), ("y", y)) if each is tensor), None)
        node, bits = type(tensor.grad_fn).__name__, tensor.numpy(force=True).tobytes()
        handed.append((which, node, tensor.requires_grad, tensor.stride(), bits))
        return packs(tensor.detach()) if packs else tensor.detach()

    def forward() -> Any:
        z = x
        for step in steps:
            z = step(z, y)
        return z

    if packs is None and unpacks is None:
        z = forward()
    else:
        with ng.autograd.graph.saved_tensors_hooks(pack, unpacks):
            z = forward()
    z.backward(ng.ones_like(z))
    return handed, [each.numpy(force=True) for each in (z, x.grad, y.grad) if each is not None]


@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    st.sampled_from([None, lambda value: value * 1]),
    st.sampled_from(UNPACKED),
)
def test_remembered_calls_pack_what_the_first_packs(
    steps: list[Callable[[Any, Any], Any]], packs: Any, unpacks: Any
) -> None:
    _, plain = run(steps)
    handed, arrays = run(steps, packs, unpacks)
    for _ in range(CALLS):
        again, same = run(steps, packs, unpacks)
        assert again == handed
        for array, first, known in zip(same, arrays, plain, strict=True):
            np.testing.assert_array_equal(array, first)
            np.testing.assert_allclose(array, known, 1e-5, 1e-12)


@pytest.mark.parametrize("step", STEPS)
def test_no_remembered_call_goes_the_long_way(
    step: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = leaves()
    settle, long_ways = Primitive._settle, []

    def counted(primitive: Any, *arguments: Any, **keywords: Any) -> None:
        long_ways[-1].append(primitive.name)
        settle(primitive, *arguments, **keywords)

    monkeypatch.setattr(Primitive, "_settle", counted)

    def long_ways_of(call: Callable[[], Any]) -> list[str]:
        for _ in range(CALLS):
            long_ways.append([])
            call()
        return long_ways[-1]

    with ng.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda value: value):
        hooked = long_ways_of(lambda: step(x, y))
    assert hooked == long_ways_of(lambda: step(x, y))


SEVERAL = [each for each in elementwise_primitives() if each.tensor_count > 2 and not each.masks]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("primitive", SEVERAL, ids=lambda each: each.name)
def test_several_tensors_that_hooks_packed_come_back_in_their_places(primitive: Any) -> None:
    random = np.random.default_rng(5)
    operands = [
        domain.intervals[0][0] if domain.is_number else wrap(domain.draw((3,), random))
        for domain in primitive.domains
    ]
    tensors = [each.requires_grad_() for each in operands if isinstance(each, ng.Tensor)]
    if not primitive(*operands).requires_grad:
        return

    def gradients() -> list[Any]:
        found = ng.autograd.grad(primitive(*operands).sum(), tensors, allow_unused=True)
        return [None if each is None else each.tolist() for each in found]

    expected = gradients()
    for _ in range(3):
        with ng.autograd.graph.saved_tensors_hooks(
            lambda tensor: (tensor,), lambda value: value[0]
        ):
            assert gradients() == expected
