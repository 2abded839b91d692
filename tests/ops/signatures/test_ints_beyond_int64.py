"""Ints at the ends of int64 and beyond, for every int that a declared function takes.

What comes of them is what comes of them in PyTorch: an error of the same class in the same words,
or a result of the same shape.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import numgrad as ng
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.declared import DECLARED
from numgrad.ops.signatures.signature import REQUIRED
from tests.ops.signatures.wrong_calls import GOOD

HUGE = (2**63, -(2**63) - 1, 2**63 - 1, -(2**63))
# What PyTorch says of its own workings, of -2**63 in a list, and of what overflows in it.
INTERNAL = ("SymInt", "numel: integer multiplication overflow", "unexpected error", "dimension -2:")
# Where it goes on with what int64 does not hold: sums that went beyond it, strides that lead
# nowhere; and where it looks at what else it was given first.
OVERFLOWING = (
    *("as_strided", "as_strided_copy", "as_strided_scatter", "constant_pad_nd", "norm"),
    *("empty_strided", "new_empty_strided", "tril_indices", "triu_indices"),
    "from_file",  # which would make one
)
# Families that are functions of its namespace there, and not written in Python.
_FAMILIES = [
    "creation",
    "indexing",
    "linalg",
    "movement",
    "mutation",
    "pointwise",
    "reduction",
    "scattering",
]


def calls(declaration: Declaration) -> list[str]:
    """Return calls with ``n`` for each int that a function takes, alone and in lists."""
    start = f"torch{'.ones(2, 2)' * declaration.bound}.{declaration.name}"
    found = []
    for signature in declaration.signatures:
        positional = [*signature.positional]
        needed = [each for each in signature.parameters if each.default is REQUIRED]
        for parameter in signature.parameters:
            if parameter.kind not in ("int", "int[]", "size"):
                continue
            forms = ["n"] if parameter.kind == "int" else ["(n,)", "(1, n)"]
            for form in forms:
                upto = positional.index(parameter) if parameter in positional else -1
                given = [
                    f"{'' if each in positional else f'{each.name}='}"
                    f"{form if each is parameter else GOOD[each.kind]}"
                    for at, each in enumerate(signature.parameters)
                    if each is parameter or each in needed or at < upto
                ]
                found.append(f"{start}({', '.join(given)})")
    return list(dict.fromkeys(found))


def outcome(library: Any, call: str, n: int) -> tuple[str, Any]:
    """Return the shape of what a call gives, or the first line of the error."""
    try:
        found = eval(call, {"torch": library, "n": n})
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0].rstrip('"')
    return "", list(found.shape) if hasattr(found, "shape") else type(found).__name__


DECLARATIONS = {
    f"{'Tensor.' * each.bound}{each.name}": each
    for each in DECLARED.values()
    if each.rule.__module__.startswith(tuple([f"numgrad.ops.{name}." for name in _FAMILIES]))
    and each.name.rstrip("_") not in OVERFLOWING
    and calls(each)
}


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("name", DECLARATIONS)
def test_an_int_that_is_too_large_is_told_what_pytorch_tells_it(torch: Any, name: str) -> None:
    for call in calls(DECLARATIONS[name]):
        for n in HUGE:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = outcome(torch, call, n)
                ours = outcome(ng, call, n)
            if any(words in str(theirs[1]) for words in INTERNAL):
                assert ours[0] not in ("OverflowError", "MemoryError"), (call, n)
            else:
                assert ours == theirs, (call, n)
