"""What may stand for a length, in each place of a call that takes several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "first": lambda m, x, a: m.zeros(a, 2),
    "later": lambda m, x, a: m.zeros(2, a),
    "in a tuple": lambda m, x, a: m.zeros((2, a)),
    "first in a tuple": lambda m, x, a: m.zeros((a, 2)),
    "alone": lambda m, x, a: m.zeros(a),
    "reshape": lambda m, x, a: x.reshape(4, a),
    "reshape, first": lambda m, x, a: x.reshape(a, 4),
    "view": lambda m, x, a: x.view(4, a),
    "expand": lambda m, x, a: x.expand(a, 4),
    "repeat": lambda m, x, a: x.repeat(2, a),
    "permute": lambda m, x, a: x.view(2, 2).permute(0, a),
    "permute, first": lambda m, x, a: x.view(2, 2).permute(a, 0),
    "flip": lambda m, x, a: x.view(2, 2).flip(0, a),
    "sum": lambda m, x, a: x.view(2, 2).sum((0, a)),
    "tile": lambda m, x, a: x.tile(2, a),
    "full": lambda m, x, a: m.full((2, a), 1.0),
    "as_strided": lambda m, x, a: x.as_strided((2, a), (1, 1)),
    "size": lambda m, x, a: x.size(a),
}
VALUES: dict[str, Callable[[Any], Any]] = {
    "True": lambda m: True,
    "False": lambda m: False,
    "1": lambda m: 1,
    "1.0": lambda m: 1.0,
    "None": lambda m: None,
    "'a'": lambda m: "a",
    "(1,)": lambda m: (1,),
    "NumPy's 1": lambda m: np.int64(1),
    "NumPy's True": lambda m: np.bool_(True),
    "NumPy's 1.0": lambda m: np.float64(1),
    "tensor(1)": lambda m: m.tensor(1),
    "tensor([1])": lambda m: m.tensor([1]),
    "tensor(1.0)": lambda m: m.tensor(1.0),
}
# Where PyTorch's words are those of another function, or of no use.
OTHER_WORDS = {("size", "None"), ("alone", "None")}


def outcome(m: Any, call: str, value: str) -> Any:
    try:
        result = CALLS[call](m, m.arange(4.0), VALUES[value](m))
    except (TypeError, RuntimeError, IndexError) as error:
        return type(error).__name__, str(error).split(" (function")[0]
    parts = result if isinstance(result, tuple) else (result,)
    return [each.tolist() if hasattr(each, "tolist") else each for each in parts]


@pytest.mark.parametrize("call", CALLS)
def test_lengths_are_read_as_pytorch_reads_them(torch: Any, call: str) -> None:
    for value in VALUES:
        if (call, value) not in OTHER_WORDS:
            assert outcome(numgrad, call, value) == outcome(torch, call, value), value
