"""Calls of compiled functions: whatever way they go, they do what the function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base.pytree import flatten, map_tree
from numgrad.jit.front import api, compiled
from numgrad.jit.run import program
from tests.cases import examples
from tests.jit.run_source import Uncompiled

OUTSIDE = {"scale": 2.0}


class Pair(NamedTuple):
    first: Any
    second: Any


def combine(*args: Any, **kwargs: Any) -> Any:
    """Return results of several kinds that depend on every argument and on what is outside."""
    leaves, _ = flatten((args, kwargs))
    total: Any = OUTSIDE["scale"]
    for leaf in leaves:
        if isinstance(leaf, str):
            total = total * len(leaf)
        elif leaf is not None:
            leaf = ng.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf
            total = leaf * total
    if not isinstance(total, ng.Tensor):
        total = ng.tensor(total, dtype=ng.float64)
    total = (total * total).sin()
    turned = total.permute(tuple(reversed(range(total.dim()))))
    return {"total": total, "turned": [total * 2, turned], "what": "combined"}


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape)


def tensor(*shape: int, requires_grad: bool = False) -> Any:
    return ng.from_numpy(numbers(*shape)).requires_grad_(requires_grad)


def matrix_view(requires_grad: bool) -> Any:
    return tensor(2, 6, requires_grad=requires_grad)[:, ::2]


# Each makes its argument anew: what counts is its kind.
LEAVES: list[Callable[[], Any]] = [
    lambda: 1.5,
    lambda: 2,
    lambda: True,
    lambda: None,
    lambda: "four",
    lambda: np.float64(0.5),
    lambda: numbers(2, 3),
    lambda: numbers(1, 3),
    lambda: np.asfortranarray(numbers(2, 3)),
    lambda: numbers(4, 3)[::2],
    lambda: numbers(2, 3).astype(np.float32),
    lambda: tensor(2, 3),
    lambda: tensor(2, 3).T.contiguous().T,
    lambda: tensor(2, 3, requires_grad=True),
    lambda: tensor(3, requires_grad=True) * 2,
    lambda: matrix_view(False),
    lambda: matrix_view(True),
]
TREES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inside: st.one_of(
        st.tuples(inside),
        st.lists(inside, max_size=2),
        st.builds(Pair, inside, inside),
        st.dictionaries(st.sampled_from("ab"), inside, max_size=2),
    ),
    max_leaves=3,
)
ARGUMENTS = st.tuples(
    st.lists(TREES, max_size=3).map(tuple), st.dictionaries(st.sampled_from("xy"), TREES)
)


def made(arguments: Any) -> Any:
    """Return the arguments of a call, from what makes their leaves."""
    return map_tree(lambda make: make(), arguments)


def outcome(function: Any, arguments: Any) -> Any:
    """Return all that can be seen of a call, and of the gradients of what it returns."""
    args, kwargs = arguments
    found, spec = flatten(function(*args, **kwargs))
    seen: list[Any] = [spec]
    for leaf in found:
        if not isinstance(leaf, ng.Tensor):
            seen.append(leaf)
            continue
        seen.append((leaf.dtype, leaf.shape, leaf.requires_grad, leaf.is_inference()))
        seen.append(leaf.detach().numpy().copy())
    roots = [leaf.sum() for leaf in found if isinstance(leaf, ng.Tensor) and leaf.requires_grad]
    leaves = [
        leaf
        for leaf in flatten(arguments)[0]
        if isinstance(leaf, ng.Tensor) and leaf.requires_grad and roots
    ]
    for gradient in ng.autograd.grad(roots, leaves, allow_unused=True) if roots else ():
        seen.append(None if gradient is None else gradient.numpy().copy())
    return seen


def assert_same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=1e-5 if other.dtype.itemsize < 8 else 1e-12)
        else:
            assert one == other


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls find out themselves whether they fit from the third one on."""
    monkeypatch.setattr(api, "SPECIALISED_AFTER_CALLS", 3)
    monkeypatch.setattr(compiled, "SPECIALISED_AFTER_CALLS", 3)
    monkeypatch.setattr(compiled, "UNSPECIALISED_OPERATIONS", 0)
    monkeypatch.setattr(program, "compile_functions", Uncompiled)  # nothing is compiled


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ARGUMENTS, min_size=1, max_size=2), st.data())
def test_calls_of_all_kinds_in_any_order(soon: None, kinds: Any, data: Any) -> None:
    jitted = ng.jit(lambda *args, **kwargs: combine(*args, **kwargs))
    modes: dict[str, Any] = {
        "record": ng.enable_grad,
        "no_grad": ng.no_grad,
        "inference": ng.inference_mode,
    }
    calls = st.tuples(st.sampled_from(kinds), st.sampled_from([*modes]), st.booleans())
    always = [(kinds[0], "record", False)] * 4
    for arguments, mode, changes in always + data.draw(st.lists(calls, max_size=5)):
        OUTSIDE["scale"] = 3.0 if changes else 2.0
        made_of = made(arguments)
        with modes[mode]():
            expected = outcome(combine, made_of)
            assert_same(outcome(jitted, made_of), expected)


FRONTS = {
    "a tensor that requires grad": lambda: ((tensor(3, requires_grad=True),), {}),
    "a dict": lambda: (({"w": numbers(3), "b": (1.5, tensor(3))},), {}),
    "a keyword": lambda: ((numbers(3),), {"y": tensor(3, requires_grad=True)}),
    "a static number": lambda: ((numbers(3), 2, None, "four"), {}),
    "other strides": lambda: ((np.asfortranarray(numbers(3, 2)),), {}),
    "nothing": lambda: ((), {}),
}


@pytest.mark.parametrize("kind", FRONTS)
def test_calls_of_every_kind_find_out_themselves_whether_they_fit(soon: None, kind: str) -> None:
    jitted = ng.jit(lambda *args, **kwargs: combine(*args, **kwargs))
    OUTSIDE["scale"] = 2.0
    for _ in range(5):
        outcome(jitted, FRONTS[kind]())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api.Jitted, "_find", None)  # nobody looks the trace up any more
        arguments = FRONTS[kind]()
        assert_same(outcome(jitted, arguments), outcome(combine, arguments))
    assert jitted.cache_info()[:2] == (5, 1)


def test_who_calls_with_other_arguments_from_now_on_is_served_first(soon: None) -> None:
    jitted = ng.jit(lambda x: x * 2)
    classes = set()
    for size in (3, 4, 3):
        for _ in range(5):
            jitted(numbers(size))
        classes.add(type(jitted))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(api.Jitted, "_find", None)
            assert jitted(numbers(size)).shape == (size,)
    assert len(classes) == 2


def test_results_in_inference_mode_are_inference_tensors() -> None:
    jitted = ng.jit(lambda x: x * 2)
    with ng.inference_mode():
        assert [jitted(ng.ones(3)).is_inference() for _ in range(3)] == [True] * 3


def test_a_backward_pass_goes_by_its_own_program_too(soon: None) -> None:
    jitted = ng.jit(lambda x, y: (x * y).sin())
    x, y = tensor(3, requires_grad=True), tensor(3)
    for _ in range(6):
        (gradient,) = ng.autograd.grad(jitted(x, y).sum(), x)
        expected = y * (x * y).detach().cos()
        np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=1e-14)
