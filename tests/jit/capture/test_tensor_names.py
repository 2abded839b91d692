"""What gives tensors only, and what is of Python's and may decide, over all that is public."""

from __future__ import annotations

import ast
import functools
import pathlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit.capture.library_calls import OF_ARRAYS
from numgrad.jit.capture.tensor_names import gives_tensors, is_of_tensors

pytestmark = pytest.mark.usefixtures("traced")

FUNCTIONS = sorted(
    name
    for name, function in vars(ng).items()
    if not name.startswith("_") and callable(function) and not isinstance(function, type)
)
ATTRIBUTES = sorted(name for name in dir(ng.Tensor) if not name.startswith("_"))
REFUSED = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, AttributeError)


def said(owner: str) -> Iterator[tuple[str, str]]:
    """Yield names, of the module or of a class, and what the stub says that each gives."""
    assert ng.__file__ is not None
    body = ast.parse(pathlib.Path(ng.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if owner:
        body = next(each for each in body if getattr(each, "name", "") == owner).body  # type: ignore[attr-defined]
    for each in body:
        if isinstance(each, ast.FunctionDef) and each.returns and not each.name.startswith("_"):
            if len(each.args.args) > 1 and each.decorator_list:  # of a property
                continue
            yield each.name, ast.unparse(each.returns)


@pytest.mark.parametrize("owner", ["", "_Methods"])
def test_what_the_stub_says_to_be_something_else_gives_no_tensors(owner: str) -> None:
    words = ("Tensor", "Any", "Callable", "_P", "_Core", "_ValuesIndices", "_MinMax")
    others = [name for name, gives in said(owner) if not any(each in gives for each in words)]
    assert len(others) > 10
    for name in others:
        assert not (is_of_tensors(name) if owner else gives_tensors(getattr(ng, name))), name


def ways(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield what a function gives of some arguments."""
    given = ng.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=ng.float64)
    more = [(), (given,), (0,), (0, 1), (given, given), ((2, 2),), (2,)]
    for rest in more:
        for first in (given.clone(), ng.tensor([1, 0]), ng.tensor([[1.0 + 1j]])):
            try:
                yield function(first, *rest)
            except REFUSED:
                continue


def leaves(found: Any) -> Iterator[Any]:
    if isinstance(found, (tuple, list)):
        for each in found:
            yield from leaves(each)
    elif found is not None:
        yield found


@pytest.mark.filterwarnings("ignore")  # of what is computed of such numbers
@pytest.mark.sampled(0.036)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if gives_tensors(getattr(ng, n))])
def test_functions_that_are_said_to_give_tensors_do(name: str) -> None:
    for found in ways(getattr(ng, name)):  # a transformation gives a function, which does
        given = ng.Tensor if name != "vmap" else types.FunctionType
        assert all(isinstance(each, given) for each in leaves(found))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(0.036)
@pytest.mark.parametrize("name", [n for n in ATTRIBUTES if is_of_tensors(n)])
def test_attributes_that_are_said_to_be_of_tensors_are(name: str) -> None:
    attribute = getattr(ng.Tensor, name)
    if isinstance(attribute, property):
        attribute = attribute.fget
    for found in ways(functools.partial(_asked, attribute=attribute, name=name)):
        assert all(isinstance(each, ng.Tensor) for each in leaves(found))


def _asked(owner: Any, *given: Any, attribute: Any, name: str) -> Any:
    found = getattr(owner, name)
    return found if isinstance(found, ng.Tensor) and not given else found(*given)


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize(
    "name",  # an address is another one in every call
    [n for n in ATTRIBUTES if not is_of_tensors(n) and "data_ptr" not in n],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_number_of_a_tensor_leaves_an_array_noticed(name: str) -> None:
    """What NumPy makes of an array and a number that is asked of a tensor is still NumPy's."""
    w = np.array([1.0, 2.0])

    def function(x: Any) -> Any:
        c, number = w, getattr(x, name)
        number = number() if callable(number) else number
        return x * c * float((c + number).max())

    compiled, x = ng.jit(function), ng.ones((3, 2), dtype=ng.float64)
    for given in ([1.0, 2.0], [5.0, 7.0]):
        w[:] = given
        try:
            wanted = function(x)
            found = compiled(x)
        except REFUSED:  # it is no number, or not to be asked while a function is traced
            return
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


ARRAY_NAMES = sorted(name for name in dir(np.ndarray) if not name.startswith("_"))


@pytest.mark.parametrize("name", ARRAY_NAMES)
def test_methods_of_arrays_that_are_said_to_give_arrays_do(name: str) -> None:
    if name not in OF_ARRAYS:
        return  # Python may go by it, and is taken to
    for rest in ((), (0,), (1.0,), ("f8",), ([0],), (2,)):
        array = np.array([1.0, 2.0])
        try:
            found = getattr(array, name)
            found = found(*rest) if callable(found) else found
        except REFUSED:
            continue
        kinds = (np.ndarray, np.generic, np.flatiter)
        assert all(isinstance(each, kinds) for each in leaves(found))


# --- what Python goes by in places of its own --------------------------------------------------


def test_a_number_within_an_index_is_noticed() -> None:
    w = np.array([0.0, 9.0, 1.0])

    def function(x: Any) -> Any:
        c = w
        return x[:, c.argmax() :] * c.sum()

    compiled, x = ng.jit(function), ng.ones((2, 3))
    for given in ([0.0, 9.0, 1.0], [9.0, 0.0, 1.0], [0.0, 1.0, 9.0]):
        w[:] = given
        assert compiled(x).tolist() == function(x).tolist()


@pytest.mark.parametrize("kind", ["plain", "static", "partial"])
def test_a_cache_that_is_emptied_is_noticed(kind: str) -> None:
    held = [2.0]

    @functools.lru_cache
    def kept(_: int = 0) -> float:
        return held[0]

    class Owner:
        way = staticmethod(kept)

    ask = {"plain": kept, "static": Owner().way, "partial": functools.partial(kept, 0)}[kind]
    compiled, x = ng.jit(lambda x: x * ask()), ng.ones(2)
    assert compiled(x).tolist() == [2.0, 2.0]
    held[0] = 3.0
    assert compiled(x).tolist() == [2.0, 2.0]  # as eager: the cache has it
    kept.cache_clear()
    assert compiled(x).tolist() == [3.0, 3.0]
