"""Integers and the numbers they meet: shifts, numbers that do not fit, and `alpha`."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from tests.ops.calls.same_call import assert_same_call, assert_same_error

TENSORS = (
    "u=torch.tensor([1,2,250],dtype=torch.uint8); i=torch.tensor([5,-5,127],dtype=torch.int8); "
    "w=torch.tensor([5,-5,2**62]); b=torch.tensor([True,False,True]) -> "
)
CALLS = [
    *(f"{name} {shift} {by}" for name in "uiw" for shift in ("<<", ">>") for by in (1, 7, 8, -1)),
    "w << 63",
    "w >> 65",
    "1 << i",
    "100 >> u",
    "i << w",
    "i >> u",
    "b << 1",
    "i << b",
    "torch.bitwise_left_shift(i, 2)",
    "torch.bitwise_right_shift(2, i)",
    "i.bitwise_left_shift_(1)",
    "w.bitwise_right_shift(torch.tensor([[1], [2]]))",
    "i.__ilshift__(1)",
    "i.__irshift__(1)",
    "torch.where(b, u, -1)",
    "torch.where(b, u, 200)",
    "torch.where(b, 300, 400)",
    "torch.where(b, u, 300.)",
    "u ** 200",
    "u // 257",
    "u % 511",
    "i // -257",
    "torch.add(i, i, alpha=np.int64(2))",
    "torch.add(b, b, alpha=True)",
    "torch.add(b, b, alpha=False)",
    "torch.add(b, b, alpha=2)",
    "torch.add(i.float(), i, alpha=np.float32(2))",
    "torch.isclose(i, i)",
]
ERRORS = [
    "torch.where(b, u, 300)",
    "torch.where(b, 300, u)",
    "torch.where(b, i, -129)",
    "u ** 300",
    "i ** 128",
    "u // 256",
    "u % 256",
    "u // 0",
    "i // 256",
    "torch.add(i, i, alpha=True)",
    "torch.add(i.float(), i, alpha=True)",
    "torch.sub(i, i, alpha=True)",
    "torch.add(i, i, alpha='a')",
    "torch.add(i, i, alpha=2.5)",
    "torch.isclose(i, 1)",
    "u << 1.5",
    "u.float() >> 1",
    "b << b",
]


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("line", CALLS)
def test_call(torch: ModuleType, line: str) -> None:
    assert_same_call(torch, TENSORS + line)


@pytest.mark.parametrize("line", ERRORS)
def test_error(torch: ModuleType, line: str) -> None:
    assert_same_error(torch, TENSORS + line)


@pytest.mark.parametrize("name", ["remainder", "floor_divide"])
def test_a_divisor_that_no_integer_holds_is_called_too_big(name: str) -> None:
    with pytest.raises(OverflowError, match="too big"):
        getattr(ng, name)(ng.tensor([1, 2]), 2**64)


@pytest.mark.usefixtures("traced")
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.integers(-70, 70),
    st.sampled_from(["int8", "int16", "int32", "int64", "uint8"]),
)
def test_shifts_are_products_and_quotients_by_powers_of_two(
    numbers: list[int], places: int, name: str
) -> None:
    dtype = np.dtype(name)
    array = np.array(numbers).astype(dtype)
    bits, exact = 8 * dtype.itemsize, [int(number) for number in array]
    inside = 0 <= places < bits
    left = [number << places if inside else 0 for number in exact]
    right = [number >> (places if inside else 2 * bits) for number in exact]
    modulo = [(number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for number in left]

    def both(x: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
        return x << places, x >> places

    for run in (both, ng.jit(both)):
        up, down = run(ng.from_numpy(array))
        assert up.dtype is down.dtype is getattr(ng, name)
        assert up.numpy().astype(f"int{bits}").tolist() == modulo
        assert down.tolist() == right


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "bool_"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32"])
def test_numpys_integers_divide_as_pythons(kind: str, dtype: str) -> None:
    x = ng.tensor([7, 100, 3], dtype=getattr(ng, dtype))
    number = getattr(np, kind)(1 if kind == "bool_" else 3)
    plain = int(number)
    assert (x // number).tolist() == (x // plain).tolist()
    assert (x % number).tolist() == (x % plain).tolist()
    assert x.clone().floor_divide_(number).tolist() == (x // plain).tolist()
    for mode in ("floor", "trunc"):
        found = ng.div(x, number, rounding_mode=mode)
        assert found.tolist() == ng.div(x, plain, rounding_mode=mode).tolist()


def test_bools_are_added_with_a_bool_alpha() -> None:
    yes = ng.tensor([True, False])
    assert ng.add(yes, True, alpha=True).tolist() == [True, True]
    assert ng.add(yes, True, alpha=False).tolist() == [True, False]
    assert yes.add(False, alpha=2).tolist() == [True, False]
