"""Integers that floats can't hold, tensors without elements, and bools: for every function."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.declared import DECLARED
from numgrad.ops.signatures.signature import REQUIRED, Signature
from tests.ops.signatures.wrong_calls import GOOD
from tests.rows import names_of

# Two tensors, a mask, and numbers beside them.
GREAT = (
    "torch.tensor([2**60, 2**60 + 1, 2**53 + 1, -2**63, 2**63 - 1, 0, -1, 3, 2**53])",
    "torch.tensor([2**60 + 1, 2**60, 2**53, 2**63 - 1, -2**63, 5, 2**31, -3, 2**53 + 1])",
    "torch.tensor([True, False, True] * 3)",
    ("3", "2**53 + 1", "-1", "2**62 + 1"),
)
BOOLS = (
    "torch.tensor([True, False, True, False])",
    "torch.tensor([True, True, False, False])",
    "torch.tensor([True, True, False, False])",
    ("True", "False", "2", "0.5"),
)


def without_elements(dtype: str, shape: str) -> tuple[str, str, str, tuple[str, ...]]:
    tensor = f"torch.zeros({shape}, dtype=torch.{dtype})"
    return tensor, tensor, f"torch.zeros({shape}) > 0", ("1",)


KINDS = {"integers that floats can't hold": GREAT, "bools": BOOLS}
for _dtype in ("int8", "uint8", "bool", "int64", "float32", "float16", "complex64"):
    for _shape in ("0", "0, 3", "3, 0"):
        KINDS[f"no {_dtype} of ({_shape})"] = without_elements(_dtype, _shape)

# Results that are no two times the same, or that PyTorch has elsewhere or in other words.
NOT_COMPARED = {"softplus", "logsigmoid", "normal", "bernoulli", "uniform", "exponential", "cauchy"}
NOT_COMPARED |= {"geometric", "log_normal", "multinomial", "random", "from_dlpack", "tensor_split"}
NOT_COMPARED |= {"arange", "complex", "polar"} | names_of("NOT_COMPARED")
# Where two things are wrong, or there is nothing that could go wrong, PyTorch says another one;
# numgrad has no complex numbers of two float16.
OTHER_ERRORS = {"index_add", "index_copy", "index_fill", "repeat_interleave", "baddbmm", "addbmm"}
OTHER_ERRORS |= {"trace", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift"}
OTHER_ERRORS |= {"bitwise_right_shift", "max", "min", "argmax", "argmin", "cumsum", "cumprod"}
OTHER_ERRORS |= {"kthvalue", "topk", "view_as_complex"} | names_of("OTHER_ERRORS")
FEWER_WAYS = {"cummax", "cummin", "cumsum", "cumprod", "inner", "take_along_dim"}
FEWER_WAYS |= names_of("FEWER_WAYS")
FUNCTIONS = [
    pytest.param(each, id=f"{'Tensor.' * each.bound}{each.name}")
    for each in DECLARED.values()
    if (each.writes or not each.bound)
    and (each.bound or hasattr(ng, each.name))  # those of namespaces are tested with these
    and not each.rule.__module__.startswith("numgrad.ops.masked")
    and each.name.rstrip("_") not in NOT_COMPARED
    and not each.name.startswith(("rand", "empty", "_"))
]


def calls(declaration: Declaration, kind: str) -> list[str]:
    """Return one call for each signature, and for each number where it takes one."""
    one, other, mask, numbers = KINDS[kind]

    def call(signature: Signature, number: str) -> str:
        tensors = [one, other] * 2 if not declaration.bound else [other, one] * 2
        texts = {
            **GOOD,
            "int": "0",
            "int[]": "(0,)",
            "mask": mask,
            "number": number,
            "float": number,
        }
        texts["Tensor[]"] = f"({one}, {other})"
        arguments = []
        for each in signature.parameters:
            if each.default is REQUIRED:
                is_tensor = each.kind in ("Tensor", "operand")
                text = tensors.pop(0) if is_tensor else texts[each.kind]
                arguments.append(f"{each.name}={text}" if each.keyword_only else text)
        owner = one if declaration.bound else "torch"
        return f"{owner}.{declaration.name}({', '.join(arguments)})"

    found = [call(one, number) for one in declaration.signatures for number in numbers]
    return list(dict.fromkeys(found))


def outcome(module: Any, text: str) -> Any:
    """Return what a call gives, or the error that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, {"torch": module})
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as error:
        return error


def agree(ours: Any, theirs: Any) -> bool:
    """Whether two results are the same: of floats to the last digits, of others exactly."""
    if isinstance(ours, (tuple, list)):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if not isinstance(ours, ng.Tensor):
        return repr(ours) == repr(theirs)
    if repr(ours.dtype) != repr(theirs.dtype) or tuple(ours.shape) != tuple(theirs.shape):
        return False
    mine, reference = (each.numpy(force=True) for each in (ours, theirs))
    if mine.dtype.kind in "iub":
        return bool((mine == reference).all())
    return np.allclose(mine, reference, rtol=1e-6, atol=1e-6, equal_nan=True)


@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("declaration", FUNCTIONS)
def test_a_function_of_unusual_operands_is_pytorchs(
    torch: ModuleType, declaration: Declaration
) -> None:
    name = declaration.name.rstrip("_")
    for kind in KINDS:
        for text in calls(declaration, kind):
            ours, theirs = outcome(ng, text), outcome(torch, text)
            if isinstance(theirs, Exception):
                refused = type(ours) is type(theirs) or name in OTHER_ERRORS
                assert refused, f"{kind}: {text}\nours:    {ours!r}\nPyTorch: {theirs!r}"
                continue
            if isinstance(ours, Exception) and name in FEWER_WAYS:
                continue
            same = not isinstance(ours, Exception) and agree(ours, theirs)
            assert same, f"{kind}: {text}\nours:    {ours!r}\nPyTorch: {theirs}"


near = st.integers(-(2**63), 2**63 - 1).flatmap(
    lambda one: st.tuples(
        st.just(one), st.integers(max(one - 2, -(2**63)), min(one + 2, 2**63 - 1))
    )
)


@given(st.lists(near, min_size=1, max_size=5))
def test_without_tolerance_integers_are_close_if_they_are_equal(pairs: list[Any]) -> None:
    x, y = (ng.tensor(list(each), dtype=ng.int64) for each in zip(*pairs, strict=True))
    expected = [a == b for a, b in pairs]
    assert ng.isclose(x, y, rtol=0, atol=0).tolist() == expected
    assert ng.allclose(x, y, rtol=0, atol=0) is all(expected)
