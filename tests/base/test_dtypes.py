"""What is taken for a dtype, and what is not."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base import dtypes
from tests.ops.lines import answer

CALLS = ["torch.set_default_dtype({})", "torch.promote_types({}, torch.half)"]
CALLS += ["torch.promote_types(torch.half, {})", "torch.can_cast({}, torch.half)"]
CALLS += ["torch.can_cast(torch.half, {})"]
GIVEN = ["'a'", "'float64'", "1", "None", "float", "np.float64", "[1]", "torch.int32", "torch.bool"]
GIVEN += ["torch.complex64", "torch.float32"]


@pytest.mark.parametrize("given_", GIVEN)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_dtype_is_refused_as_in_pytorch(
    torch: ModuleType, call: str, given_: str
) -> None:
    code = f"r = {call.format(given_)} -> r, torch.get_default_dtype()"
    assert answer(ng, code) == answer(torch, code)


@given(
    st.one_of(
        st.text("abcdefilqSUV?<>=|248", max_size=3),
        st.none(),
        st.integers(),
        st.just([]),
        st.sampled_from("abcSUV"),
    )
)
def test_nothing_else_is_taken_for_a_dtype(value: Any) -> None:
    """NumPy takes None for float64, and one-letter names; of some it warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="dtype must be a numgrad dtype"):
            dtypes.to_dtype(value)


@pytest.mark.parametrize("name", sorted(dtypes.DTYPES))
def test_names_and_numpys_dtypes_are_taken(name: str) -> None:
    dtype = dtypes.DTYPES[name]
    for value in (dtype, name, dtype.numpy, dtype.numpy.type):
        assert dtypes.to_dtype(value) is dtype
    assert [dtypes.to_dtype(each) for each in (bool, int, float, complex)] == [
        ng.bool,
        ng.int64,
        ng.float64,
        ng.complex128,
    ]
    assert dtypes.to_dtype(np.dtype(name)) is dtype
