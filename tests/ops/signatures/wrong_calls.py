"""Calls with something wrong in them, for every way to call a declared function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.signature import REQUIRED, Parameter, Signature

# What a parameter of a kind takes, and what some or none of them do.
GOOD = {
    "Tensor": "torch.ones(2, 2)",
    "Tensor[]": "(torch.ones(2, 2), torch.ones(2, 2))",
    "bool": "True",
    "device": "'cpu'",
    "dtype": "torch.float64",
    "float": "0.5",
    "float[]": "(0.5, 1.5)",
    "generator": "torch.Generator()",
    "index[]": "(torch.tensor([0]), torch.tensor([1]))",
    "int": "1",
    "int[]": "(0, 1)",
    "layout": "torch.strided",
    "mask": "torch.ones(2, 2, dtype=torch.bool)",
    "memory_format": "torch.contiguous_format",
    "number": "2",
    "number[]": "(2.0, 1.5)",
    "object": "[1.0]",
    "operand": "torch.ones(2, 2)",
    "pinning": "False",
    "size": "(2, 3)",
    "str": "'a'",
}
ODD = (
    "'a'",
    "None",
    "1.5",
    "True",
    "2",
    "1j",
    "('a', 1)",
    "(1, 'a')",
    "[1.5]",
    "torch.ones(3)",
    "torch.float32",
    "np.float32(1)",
    "np.int32(1)",
)
PARSER = "received an invalid combination of arguments"


class Call(NamedTuple):
    """A call, and whether what is wrong with it was given by name, and could be by position."""

    text: str
    by_name: bool = False


def wrong_calls(declaration: Declaration) -> list[Call]:
    """Return calls of a function or method with all that can be wrong with one argument."""
    start = f"torch{'.ones(2, 2)' * declaration.bound}.{declaration.name}"
    found = [
        Call(f"{start}({call.text})", call.by_name)
        for signature in declaration.signatures
        for call in _of_signature(signature)
    ]
    return list(dict.fromkeys(found))


def _of_signature(signature: Signature) -> Iterator[Call]:
    positional = signature.positional
    good = [GOOD[each.kind] for each in positional]
    names = [named(each, GOOD[each.kind]) for each in positional]
    least = sum(each.default is REQUIRED for each in positional)
    required = [
        f"{each.name}={GOOD[each.kind]}"
        for each in signature.parameters
        if each.keyword_only and each.default is REQUIRED
    ]

    def call(*arguments: str, by_name: bool = False) -> Call:
        return Call(", ".join([*arguments, *required]), by_name)

    for count in range(least):
        yield call(*good[:count])
    yield call(*good, "1")
    yield call(*good, "1", "2")
    yield call(*good[:least], "unknown=1")
    for at, parameter in enumerate(positional):
        for odd in ODD:
            if parameter.kind == "object":
                continue
            yield call(*good[:at], odd, *good[at + 1 : least])
            rest = names[at + 1 : least]
            yield call(*good[:at], named(parameter, odd), *rest, by_name=True)
        yield call(*good[: max(at + 1, least)], names[at])
    for parameter in signature.parameters:
        if parameter.keyword_only and parameter.name != "out":
            yield from (call(*good[:least], f"{parameter.name}={odd}") for odd in ODD)


def named(parameter: Parameter, value: str) -> str:
    """Return an argument by name, which may be none that Python has."""
    if parameter.word != parameter.name:
        return f"**{{{parameter.word!r}: {value}}}"
    return f"{parameter.name}={value}"


def complaint(module: Any, call: Call) -> str | None:
    """Return what a TypeError says of a call; None if there is none."""
    try:
        eval(call.text, {"torch": module, "np": np})
    except TypeError as error:
        text = str(error)
    except Exception:
        return None
    else:
        return None
    if PARSER in text:
        return f"{text.partition(' ')[0]} {PARSER}"
    text = re.sub(r"in argument \d", "in an argument", text)  # counted with the tensor itself there
    if call.by_name and "**" in call.text:  # which doesn't say what was given by name
        text = re.sub(r" \(position \d\)|, but found element.*|, not (tuple|list)$", "", text)
    return text


# PyTorch takes more ways to call these (with `out_dtype`, factors first, dims' names), and says so;
# or tells what is given by position from what is given by name.
MORE_WAYS = ("addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "baddbmm", "bmm", "mm")
MORE_WAYS += ("kthvalue", "topk", "sort", "argsort", "repeat_interleave", "copy")
MORE_WAYS += ("floor_divide", "true_divide", "type")
MORE_WAYS += ("add", "div", "divide", "multiply", "sub", "subtract")
MORE = f"{PARSER}|takes 3 positional|takes from 3"
# Where PyTorch takes tensors alone, these take a number for one of them; what it calls `self` where
# it takes a number is `input` here.
NUMBERS_TOO = ("arctan2", "atan2", "conj", "fmax", "fmin", "hypot", "logaddexp", "logaddexp2")
NUMBERS_TOO += ("logical_and", "logical_or", "logical_xor", "maximum", "minimum")
NUMBER_FIRST = ("bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift")
NUMBER_FIRST += ("copysign", "fmod", "eq", "ge", "greater", "greater_equal", "gt", "le", "less")
NUMBER_FIRST += (
    "less_equal",
    "lt",
    "ne",
    "not_equal",
    "bitwise_xor",
    "float_power",
    "pow",
    "remainder",
    "xlogy",
)
# A bool tells rules which of two is meant; a default is as good as nothing, wherever it stands.
NUMBER_FIRST += ("where", "rsub")
NUMBER_FIRST += ("searchsorted", "bucketize")


def agree(ours: str | None, theirs: str | None, name: str) -> bool:
    """Whether two complaints say the same, or Python sees to it what the parser does not take."""
    if theirs is None and ours is not None and name in MORE_WAYS and PARSER in ours:
        return True
    if ours is None and theirs is not None:
        if name.removesuffix("_") in NUMBERS_TOO:
            return re.search("be Tensor, not (float|int|bool|complex|numpy)", theirs) is not None
        return name in NUMBER_FIRST and re.search(f"{PARSER}|not bool", theirs) is not None
    if ours is not None and theirs is None:  # numbers alone
        return name in ("true_divide", "floor_divide") and "must be Tensor, not" in ours
    if ours is None or theirs is None or ours == theirs:
        return ours is theirs or ours == theirs
    if name.removesuffix("_") in MORE_WAYS and re.search(MORE, theirs):
        return True
    if "takes no " in theirs:  # functions without arguments are not parsed
        return "takes 0" in ours or "unexpected keyword" in ours
    seen_first = re.search("unexpected keyword|multiple values", ours)
    return seen_first is not None and re.search(f"{PARSER}|must be|takes from", theirs) is not None
