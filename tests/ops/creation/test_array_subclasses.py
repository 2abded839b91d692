"""Arrays of classes of their own, at every door: taken as the plain array they are, or refused.

Kernels go by an array's memory, so what a class makes of ``[]``, ``*`` or ``len`` must not count.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.registry import FUNCTIONS
from tests.cases import examples


class Perverse(np.ndarray):
    """Answers nothing as an array does."""

    def __getitem__(self, key: Any) -> Any:
        return "nothing"

    def __iter__(self) -> Any:
        return iter("nothing")

    def __len__(self) -> int:
        return 10**6

    def __array_ufunc__(self, *arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("asked")

    def __array_function__(self, *arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("asked")

    def astype(self, *arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("asked")

    def copy(self, *arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("asked")


KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "matrix": lambda array: array.view(np.matrix) if array.ndim == 2 else array.view(np.memmap),
    "masked": np.ma.MaskedArray,
    "records": lambda array: array.view(np.recarray),
    "memmap": lambda array: array.view(np.memmap),
    "perverse": lambda array: array.view(Perverse),
}
NUMBERS = np.linspace(0.5, 2.0, 6).reshape(2, 3)
POSITIONS = np.array([1, 0, 1])
MASK = np.array([[True, False, True], [False, True, True]])


def _x() -> Tensor:
    return ng.arange(6, dtype=ng.float64).reshape(2, 3)


def _set(key: Any, value: Any) -> Tensor:
    x = _x()
    x[key] = value
    return x


def _saved(tensor: Tensor) -> Tensor:
    file = io.BytesIO()
    ng.save(tensor, file)
    file.seek(0)
    return ng.load(file)


def _cube(x: Any) -> Any:
    return (x * x * x).sum()


# What takes an array, and which one.
DOORS: dict[str, tuple[np.ndarray, Callable[[Any], Any]]] = {
    "tensor": (NUMBERS, ng.tensor),
    "tensor of another dtype": (NUMBERS, lambda a: ng.tensor(a, dtype=ng.float32)),
    "tensor of a list": (NUMBERS, lambda a: ng.tensor([a, a])),
    "tensor of lists": (NUMBERS, lambda a: ng.tensor([[a], [a]])),
    "as_tensor": (NUMBERS, ng.as_tensor),
    "as_tensor of a list": (NUMBERS, lambda a: ng.as_tensor([a, a], dtype=ng.float32)),
    "asarray": (NUMBERS, ng.asarray),
    "asarray, copied": (NUMBERS, lambda a: ng.asarray(a, copy=True)),
    "from_numpy": (NUMBERS, ng.from_numpy),
    "Tensor": (NUMBERS.astype(np.float32), ng.Tensor),
    "new_tensor": (NUMBERS, lambda a: _x().new_tensor(a)),
    "pickle": (NUMBERS, lambda a: _saved(ng.from_numpy(a))),
    "x * a": (NUMBERS, lambda a: _x() * a),
    "x - a": (NUMBERS, lambda a: _x() - a),
    "x < a": (NUMBERS, lambda a: _x() < a),
    "x @ a": (NUMBERS.T, lambda a: _x() @ a),
    "x[i]": (POSITIONS % 2, lambda a: _x()[a]),
    "x[:, i]": (POSITIONS, lambda a: _x()[:, a]),
    "x[[i]]": (POSITIONS % 2, lambda a: _x()[[a]]),
    "x[mask]": (MASK, lambda a: _x()[a]),
    "x[i] = 9": (POSITIONS, lambda a: _set(a, 9.0)),
    "x[mask] = 9": (MASK, lambda a: _set(a, 9.0)),
    "x[...] = a": (NUMBERS, lambda a: _set(..., ng.as_tensor(a))),
    "x.data = a": (NUMBERS, lambda a: setattr(x := _x(), "data", ng.from_numpy(a)) or x * 2),
    "the state of a generator": (
        ng.get_rng_state().numpy(),
        lambda a: ng.Generator().set_state(ng.from_numpy(a)).get_state(),
    ),
    "an argument of grad": (NUMBERS, lambda a: ng.func.grad(_cube)(a)),
    "an argument of jvp": (NUMBERS, lambda a: ng.func.jvp(_cube, (a,), (a,))),
    "a cotangent": (NUMBERS, lambda a: ng.func.vjp(lambda x: x * x, _x())[1](a)),
    "an argument of jit": (NUMBERS, lambda a: ng.jit(lambda x: x.exp() * x)(a)),
    "what jit returns as it is": (NUMBERS, lambda a: ng.jit(lambda x: (x, x + 1))(a)),
    "captured by jit": (NUMBERS, lambda a: ng.jit(lambda x: x + ng.as_tensor(a))(_x())),
    "an index in jit": (POSITIONS, lambda a: ng.jit(lambda x: x[:, a])(_x())),
    "an argument of a dispatcher": (
        NUMBERS,
        lambda a: ng.jit(lambda x: x.exp() * x).lower(NUMBERS).dispatcher(a),
    ),
}


def _attempt(function: Callable[[], Any]) -> Any:
    """Return what a call gives, as plain arrays and types; or how it ends."""
    try:
        return _told(function())
    except (TypeError, RuntimeError, ValueError, IndexError, AttributeError) as error:
        return type(error)


def _told(value: Any) -> Any:
    if isinstance(value, Tensor):
        assert type(value._array) is np.ndarray
        array = value.detach().resolve_conj().numpy()
        assert type(array) is np.ndarray
        return "tensor", array.dtype.str, array.shape, array.tobytes()
    if isinstance(value, np.ndarray):
        value = np.asarray(value)  # some functions hand on what is no tensor as it is
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return [_told(each) for each in value]
    return repr(value)


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.11, by="door")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
def test_is_taken_as_the_array_that_it_is(door: str, kind: str) -> None:
    if door == "an argument of a dispatcher" and kind == "masked":
        return  # Numba refuses it, unless it has seen another class with the same memory before
    array, take = DOORS[door]
    assert _told(take(KINDS[kind](array.copy()))) == _told(take(array.copy()))


# Numba takes every class for what it is derived from, and asks nobody.
@pytest.mark.parametrize("door", sorted(DOORS.keys() - {"an argument of a dispatcher"}))
def test_masked_elements_are_refused(door: str) -> None:
    array, take = DOORS[door]
    masked = np.ma.MaskedArray(array.copy(), np.arange(array.size).reshape(array.shape) == 1)
    with pytest.raises(TypeError, match=r"[Mm]asked"):
        take(masked)


@pytest.mark.parametrize("share", [ng.from_numpy, ng.as_tensor, ng.asarray])
@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_is_shared(kind: str, share: Callable[[Any], Tensor]) -> None:
    array = NUMBERS.copy()
    tensor = share(KINDS[kind](array))
    tensor.zero_()
    assert not array.any()


@settings(max_examples=examples(150))
@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.sampled_from(sorted(KINDS)),
    st.lists(st.sampled_from(["array", "tensor", "number"]), max_size=2),
    st.integers(0, 2),
)
def test_every_function_does_with_one_what_it_does_with_an_array(
    name: str, kind: str, others: list[str], place: int
) -> None:
    def call(array: np.ndarray) -> Any:
        ng.manual_seed(3)
        made = {"array": lambda: NUMBERS.copy(), "tensor": _x, "number": lambda: 1}
        arguments: list[Any] = [made[other]() for other in others]
        arguments.insert(place, array)
        with np.errstate(all="ignore"):
            return FUNCTIONS[name](*arguments)

    if name.startswith(("empty", "new_empty", "seed", "set_", "manual_seed", "load", "save")):
        return  # what they give is nobody's, or they change what other tests rely on
    assert _attempt(lambda: call(KINDS[kind](NUMBERS.copy()))) == _attempt(
        lambda: call(NUMBERS.copy())
    )


@pytest.mark.parametrize("door", sorted(name for name in DOORS if DOORS[name][0].itemsize > 1))
def test_numbers_in_the_other_byte_order_are_refused_or_read_as_they_are(door: str) -> None:
    array, take = DOORS[door]
    found = _attempt(lambda: take(array.astype(array.dtype.newbyteorder())))
    assert found in (ValueError, TypeError, IndexError, _told(take(array.copy())))


GRADIENTS: list[Callable[[Tensor, Any], Any]] = [
    lambda x, array: (x * 2).sum(0).backward(array),
    lambda x, array: ng.autograd.backward([(x * 2).sum(0)], array),
    lambda x, array: ng.autograd.grad((x * 2).sum(0), x, array),
    lambda x, array: ng.autograd.grad((x * 2).sum(), array),
    lambda x, array: ng.autograd.grad(array, x),
]


@pytest.mark.parametrize("call", GRADIENTS, ids=range(len(GRADIENTS)))
def test_no_gradient_is_looked_for_in_what_a_class_iterates_over(call):
    class Endless(np.ndarray):
        def __iter__(self) -> Any:
            raise AssertionError("asked")

    plain = np.ones(3)
    for array in (plain, plain.view(Endless), *[make(plain) for make in KINDS.values()]):
        with pytest.raises((TypeError, RuntimeError, AssertionError)) as caught:
            call(ng.ones(2, 3, requires_grad=True), array)
        assert "asked" not in str(caught.value)
        assert "float64" in str(caught.value) or "Expected output" in str(caught.value)
