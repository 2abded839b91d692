"""What is taken for a list of ints, for a float, for a size: what PyTorch takes for it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.signature import ABSENT, REQUIRED
from tests.ops.signatures.test_declared import PARSED
from tests.ops.signatures.wrong_calls import GOOD, named

KINDS = ("float", "int[]", "size")
VALUES = (
    "True",
    "np.bool_(True)",
    "np.float32(1)",
    "np.int64(1)",
    "np.array(1)",
    "np.array([1])",
    "torch.tensor(1)",
    "torch.tensor(1.5)",
    "torch.tensor(True)",
    "torch.tensor([1])",
    "torch.tensor([True])",
    "torch.tensor([1.5])",
    "torch.tensor([1, 1])",
    "[torch.tensor([1])]",
    "[np.array(1)]",
    "[np.array([1])]",
    "None",
    "1",
    "1.5",
    "float('nan')",
    "'a'",
    "()",
    "(1.0,)",
)
# PyTorch stumbles over no dims; takes a NumPy array for an int, of which this test says nothing.
NOT_COMPARED = (
    "logsumexp(torch.ones(2, 2), ())",
    ".logsumexp(())",
    "tensor_split(torch.ones(2, 2), np.array(1))",
)
NOT_COMPARED += (".tensor_split(np.array(1))",)


def _calls(declaration: Declaration) -> list[str]:
    """Return calls of a function or a method, each with one argument of these values."""
    start = f"torch{'.ones(2, 2)' * declaration.bound}.{declaration.name}"
    found: dict[str, None] = {}
    for signature in declaration.signatures:
        positional = signature.positional
        good = [GOOD[each.kind] for each in positional]
        least = sum(each.default is REQUIRED for each in positional)
        required = {
            each.name: named(each, GOOD[each.kind])
            for each in signature.parameters
            if each.keyword_only and each.default is REQUIRED
        }
        for at, each in enumerate(signature.parameters):
            if each.kind in KINDS:
                for value in VALUES:
                    if each.keyword_only:
                        others = {**required, each.name: named(each, value)}
                        given = [*good[:least], *others.values()]
                    else:
                        given = [*good[:at], value, *good[at + 1 : least], *required.values()]
                    found[f"{start}({', '.join(given)})"] = None
    return [call for call in found if not call.endswith(NOT_COMPARED)]


def _takes(library: Any, call: str) -> bool | None:
    """Return whether a library takes a call; None where it stumbles over itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(call, {"torch": library, "np": np})
        except Exception as error:
            asserted = "INTERNAL ASSERT" in str(error) or "scalar.isIntegral" in str(error)
            return None if asserted else False
    return True


def _refuses(library: Any, call: str) -> bool:
    """Return whether a call fits no signature, whatever else is wrong with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(call, {"torch": library, "np": np})
        except TypeError:
            return True
        except Exception:  # it was taken, and what it was given was wrong
            return False
    return False


def _with_defaults(declaration: Declaration) -> list[str]:
    """Return the least calls of each signature, with a default that some signature has, given."""
    start = f"torch{'.ones(2, 2)' * declaration.bound}.{declaration.name}"
    defaults = {
        f"{each.name}={each.default!r}": None
        for signature in declaration.signatures
        for each in signature.parameters
        if each.default is not REQUIRED and each.default is not ABSENT
    }
    found: dict[str, None] = {}
    for signature in declaration.signatures:
        least = [each for each in signature.parameters if each.default is REQUIRED]
        needed = [
            named(each, GOOD[each.kind]) if each.keyword_only else GOOD[each.kind] for each in least
        ]
        for default in defaults:
            found[f"{start}({', '.join([*needed, default])})"] = None
    return list(found)


@pytest.mark.parametrize(
    "declaration", [each for each in PARSED if len(each.values[0].signatures) > 1]
)
def test_what_is_given_is_given_were_it_the_default(torch: Any, declaration: Declaration) -> None:
    wrong = []
    for call in _with_defaults(declaration):
        answers = [_refuses(library, call) for library in (torch, ng)]
        if answers[0] is not answers[1]:
            wrong.append((call, answers[0]))
    assert wrong == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("x.sum(keepdim=False)", r"sum\(\) received an invalid combination .* \(keepdim=bool, \)"),
        ("torch.sum(x, out=None)", r"sum\(\) received an invalid combination .* out=NoneType\)"),
        ("torch.max(x, keepdim=False)", r"max\(\) received an invalid .* keepdim=bool\)"),
        ("torch.trapezoid(x, x, dx=1)", r"trapezoid\(\) received an invalid combination .*"),
        ("x.std([0], dim=None)", r"std\(\) received an invalid combination .* dim=NoneType\)"),
    ],
)
def test_defaults_that_no_signature_takes_together(call: str, message: str) -> None:
    for _ in range(4):
        with pytest.raises(TypeError, match=message):
            eval(call, {"torch": ng, "x": ng.ones(2, 2)})


def test_defaults_that_are_taken() -> None:
    x = ng.tensor([[1.0, 2.0], [3.0, 5.0]])
    for _ in range(4):
        assert ng.sum(x, 0, keepdim=False, out=None).tolist() == [4.0, 7.0]
        assert ng.sum(x, None, out=None).item() == ng.max(x, out=None).item() + 6 == 11
        assert x.std(keepdim=False, dim=None, correction=None).item() == x.std().item()
        assert ng.trapezoid(x, dx=1).tolist() == ng.trapezoid(x).tolist() == [1.5, 4.0]


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("declaration", PARSED)
def test_what_is_taken(torch: Any, declaration: Declaration) -> None:
    wrong = []
    for call in _calls(declaration):
        theirs = _takes(torch, call)
        if theirs is not None and _takes(ng, call) is not theirs:
            wrong.append((call, theirs))
    assert wrong == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("x.sum(torch.tensor([1]))", [2.0, 2.0]),
        ("x.sum(torch.tensor([[1]]))", [2.0, 2.0]),
        ("x.sum(torch.tensor(True))", [2.0, 2.0]),
        ("x.sum([np.array(1)])", [2.0, 2.0]),
        ("x.amax(torch.tensor([0]))", [1.0, 1.0]),
        ("torch.zeros(np.array(2))", [0.0, 0.0]),
        ("torch.isclose(x[0], x[0] + 0.5, np.bool_(True))", [True, True]),
    ],
)
def test_values(call: str, expected: Any) -> None:
    assert eval(call, {"torch": ng, "np": np, "x": ng.ones(2, 2)}).tolist() == expected


def test_arrays_are_told_apart_once_a_call_is_known() -> None:
    x = ng.ones(2, 2)
    for _ in range(4):
        assert x.flip(np.array(1)).tolist() == x.tolist()
        for other in (np.array([1]), np.array(1.0), np.array([[0, 1]])):
            with pytest.raises(TypeError):
                x.flip(other)


@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_a_tolerance_that_is_no_number(name: str) -> None:
    x = ng.ones(2)
    with pytest.raises(RuntimeError, match=f"{name} must be greater than or equal to zero, but"):
        ng.allclose(x, x, **{name: float("nan")})


def test_a_negative_eps_of_a_cosine() -> None:
    x = ng.ones(2, 2)
    with pytest.raises(RuntimeError, match="eps must be non-neg"):
        ng.cosine_similarity(x, x, eps=-1)
