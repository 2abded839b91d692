"""`scatter` with `reduce=`: elements are combined with what is there, and with each other."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad
from tests.cases import examples


def outcome(m: Any, case: dict[str, Any]) -> Any:
    dtype = getattr(m, case["dtype"])
    x = (m.arange(6.0).reshape(2, 3) + 1).to(dtype)
    if case["transposed"]:
        x = x.t().contiguous().t()
    index = m.tensor(case["index"])
    given_: Any = case["number"]
    if case["tensor"]:
        given_ = (m.arange(8.0).reshape(2, 4) + 2).to(dtype)
    name = "scatter_" if case["in place"] else "scatter"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns once in a process
        try:
            y = getattr(x, name)(case["dim"], index, given_, reduce=case["reduce"])
        except (RuntimeError, IndexError, TypeError) as error:
            return type(error).__name__
    return [y.tolist(), y.stride(), x.tolist(), x._version]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["float32", "float64", "int64", "int8", "bool", "complex64"]),
            "transposed": st.booleans(),
            "index": st.sampled_from([[[0, 0]], [[1, 0, 1]], [[0, 1], [1, 1]], [[5]], [0], [[]]]),
            "number": st.sampled_from([2, 2.5, True, -1, 300]),
            "tensor": st.booleans(),
            "in place": st.booleans(),
            "dim": st.sampled_from([0, 1, -1, 2]),
            "reduce": st.sampled_from(["add", "multiply", "add", "multiply", "sum"]),
        }
    )
)
def test_elements_are_combined_as_pytorch_combines_them(torch: Any, case: dict[str, Any]) -> None:
    if case["index"] == [[]]:
        case = {**case, "index": [[0]], "number": 1}
    assert outcome(numgrad, case) == outcome(torch, case)


def test_there_is_no_derivative() -> None:
    x = numgrad.ones(3, requires_grad=True)
    y = x.scatter(0, numgrad.tensor([0]), 2.0, reduce="add")
    with pytest.raises(RuntimeError, match="derivative for aten::scatter is not implemented"):
        y.sum().backward()
