"""What calls are remembered by may be one array in two places, and two arrays the next time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.signatures.declared import DECLARED, declare
from tests.cases import examples

RULES: dict[str, Any] = {
    "matmul": lambda x, y: x @ y,
    "broadcast": lambda x, y: x * y[0],
    "cumprod": lambda x, y: x.cumprod(0) * 1,
    "addmm": lambda x, y: ng.addmm(x, x, y),
    "atan2": lambda x, y: ng.atan2(x[:1], y),
    "kron": lambda x, y: ng.kron(x, y)[:2, :2],
    "where": lambda x, y: ng.where(x > 0, x, y) * y,
}


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=examples(15))
@given(st.lists(st.sampled_from(["x", "y", "result", "other"]), min_size=4, max_size=8))
def test_a_gradient_may_be_an_operand(name: str, which: list[str]) -> None:
    random = np.random.default_rng(0)
    for number, cotangent in enumerate(which):
        x, y, other = (ng.from_numpy(random.uniform(0.5, 1.5, (2, 2))) for _ in range(3))
        x.requires_grad_()
        y.requires_grad_()
        result = RULES[name](x, y)
        known = {"x": x, "y": y, "result": result, "other": other}
        given_one = known[cotangent].detach()
        # The rules on tensors, of arrays that are all different.
        expected = ng.autograd.grad(
            RULES[name](x, y), (x, y), given_one.clone(), create_graph=True, allow_unused=True
        )
        found = ng.autograd.grad(result, (x, y), given_one, allow_unused=True)
        for ours, by_rules in zip(found, expected, strict=True):
            assert (ours is None) == (by_rules is None)
            if ours is not None and by_rules is not None:
                np.testing.assert_allclose(
                    ours.numpy(), by_rules.detach().numpy(), rtol=1e-14, err_msg=f"call {number}"
                )


@declare(
    "_step_by_step(Tensor input, Tensor other)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def _step_by_step(input: Any, other: Any) -> Any:
    """Return input sin(input other), in three steps, two of which take the input."""
    return ng.mul(input, ng.sin(ng.mul(input, other)))


@declare(
    "_add_above(Tensor input, int count)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def _add_above(input: Any, count: int) -> Any:
    """Return each row with the one above it added: a step that may write takes a view."""
    return ng.slice_scatter(input, input[:-1] + input[1:], 0, 1, count)


@declare(
    "_shift_down(Tensor input, int count)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def _shift_down(input: Any, count: int) -> Any:
    """Return the rows, each in the place of the next: what is written is a view of where to."""
    return ng.slice_scatter(input, ng.narrow(input, 0, 0, count - 1), 0, 1, count)


@pytest.mark.parametrize("rule", [_add_above, _shift_down])
def test_what_is_written_may_be_a_view_of_where_to(rule: Any) -> None:
    name = f"{rule.__name__}_"
    (in_place,) = [each for each in _in_place_functions() if each.__name__ == name]
    for number in range(6):
        x = ng.arange(12.0, dtype=ng.float64).reshape(4, 3) + number
        x.requires_grad_()
        expected, written = rule(x * 1, 4), x * 1
        in_place(written, 4)
        np.testing.assert_array_equal(written.detach().numpy(), expected.detach().numpy())
        weights = ng.arange(12.0, dtype=ng.float64).reshape(4, 3)
        (found,) = ng.autograd.grad(written, x, weights)
        (wanted,) = ng.autograd.grad(expected, x, weights)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("of_view", [False, True])
def test_what_is_written_to_may_be_taken_by_several_steps(of_view: bool) -> None:
    (in_place,) = [each for each in _in_place_functions() if each.__name__ == "_step_by_step_"]
    for number in range(6):
        x = ng.tensor([0.5, -1.0, 2.0 + number], dtype=ng.float64, requires_grad=True)
        y = ng.tensor([1.5, 0.25, -1.0], dtype=ng.float64, requires_grad=True)
        expected = x * 1 * ng.sin(x * 1 * y)
        written = x * 1
        in_place(written[:] if of_view else written, y)
        np.testing.assert_array_equal(written.detach().numpy(), expected.detach().numpy())
        weights = ng.tensor([1.0, 2.0, 3.0], dtype=ng.float64)
        found = ng.autograd.grad(written, (x, y), weights)
        wanted = ng.autograd.grad(expected, (x, y), weights)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-14)


@declare(
    "_beside_detached(Tensor input, Tensor other)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def _beside_detached(input: Any, other: Any) -> Any:
    """Return input (sin(other) + other), where the gradient of the sine is left out."""
    return ng.mul(input, ng.sin(other.detach()) + other)


@declare(
    "_itself_detached(Tensor input, Tensor other)",
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def _itself_detached(input: Any, other: Any) -> Any:
    """Return sin(input) other, where no gradient goes to what is written to."""
    return ng.mul(ng.sin(input.detach()), other)


@pytest.mark.parametrize("rule", [_beside_detached, _itself_detached])
def test_what_a_step_detaches_is_remembered(rule: Any) -> None:
    """Of another operand, and of what is about to be written to."""
    name = f"{rule.__name__}_"
    (in_place,) = [each for each in _in_place_functions() if each.__name__ == name]
    for number in range(6):
        x = ng.tensor([0.5, -1.0, 2.0 + number], dtype=ng.float64, requires_grad=True)
        y = ng.tensor([1.5, 0.25, -1.0], dtype=ng.float64, requires_grad=True)
        factor = y * 1
        written, result = x * 1, rule(x * 1, y * 1)
        in_place(written, factor)
        assert written.tolist() == result.tolist()
        found = ng.autograd.grad(written.sum(), (x, y), allow_unused=True)
        wanted = ng.autograd.grad(result.sum(), (x, y), allow_unused=True)
        for ours, theirs in zip(found, wanted, strict=True):
            assert (None if ours is None else ours.tolist()) == (
                None if theirs is None else theirs.tolist()
            )


def _in_place_functions() -> list[Any]:
    return [each for each, one in DECLARED.items() if one.writes]
