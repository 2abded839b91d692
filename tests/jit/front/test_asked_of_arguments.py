"""What a traced function asks of its arguments that no trace can tell: memory and history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng

pytestmark = pytest.mark.usefixtures("traced")

ADDRESSES: dict[str, Callable[[Any, Any], Any]] = {
    "compared": lambda x, y: x.data_ptr() == y.data_ptr(),
    "of a view": lambda x, y: x[1:].data_ptr() - x.data_ptr(),
    "of what is computed": lambda x, y: (x + y).data_ptr(),
    "of a constant": lambda x, y: ng.ones(2).data_ptr(),
    "not to be written to": lambda x, y: x.const_data_ptr(),
    "of the storage": lambda x, y: x.untyped_storage().data_ptr(),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_is_refused(name: str) -> None:
    x = ng.ones(2)
    with pytest.raises(ng.TraceError, match="this asks a traced tensor for"):
        ng.jit(lambda x, y: x * float(ADDRESSES[name](x, y)))(x, x)


@pytest.mark.parametrize("name", [each for each in ADDRESSES if "constant" not in each])
def test_an_address_of_a_batch_is_refused_in_pytorchs_words(name: str) -> None:
    with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor that doesn't"):
        ng.vmap(lambda x: x * float(ADDRESSES[name](x, x)))(ng.ones(2, 2))


ALWAYS = ["grad", "_version", "_base", "_is_view"]
OF_HISTORY = ["is_leaf", "grad_fn", "output_nr", "retains_grad"]


def asked(x: Any, name: str) -> Any:
    found = getattr(x, name)
    return found() if callable(found) else found


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", ALWAYS + OF_HISTORY)
def test_what_a_new_leaf_would_answer_is_refused_or_right(name: str, requires_grad: bool) -> None:
    x = ng.ones(2, requires_grad=requires_grad)
    found = []
    compiled = ng.jit(lambda x: (found.append(asked(x, name)), x * 2)[1])
    if requires_grad or name in ALWAYS:
        with pytest.raises(ng.TraceError, match="asks one of its arguments for .* ask outside"):
            compiled(x * 1)
    else:
        compiled(x * 1)
        assert set(found) == {asked(x * 1, name)}


@pytest.mark.parametrize("name", ALWAYS + OF_HISTORY)
def test_of_what_the_function_makes_all_is_told(name: str) -> None:
    found = []

    def function(x: Any) -> Any:
        made = (x * 2).detach().requires_grad_()
        found.append(asked(made, name))
        return ng.func.grad(lambda y: (asked(y, name), (y * made).sum())[1])(x)

    ng.jit(function)(ng.ones(2, requires_grad=True))
    assert set(found) == {asked(ng.ones(2, requires_grad=True), name)}


def set_gradient(x: Any) -> None:
    x.grad = None


def delete_gradient(x: Any) -> None:
    del x.grad


@pytest.mark.parametrize("change", [set_gradient, delete_gradient])
def test_a_gradient_that_is_set_is_refused(change: Callable[[Any], None]) -> None:
    with pytest.raises(ng.TraceError, match="sets the .grad of one of its arguments"):
        ng.jit(lambda x: (change(x), x)[1])(ng.ones(2, requires_grad=True))
