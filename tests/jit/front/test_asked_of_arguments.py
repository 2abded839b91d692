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
