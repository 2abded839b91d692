"""Positions where there is nothing to take or to put, and arrays of any dtype as positions."""

from __future__ import annotations

from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng

# With `i` a vector of positions, and `j` one of as many, that lead anywhere; `x` has no elements,
# and `p` is a part of it with as many rows.
CALLS = """
x[i] | x[i, :] | x[i, ..., j] | x[:, i] | x[None, i] | written(x, i, 1.0)
written(x, (i, ..., j), 1.0) | x.index_put((i,), one)
x.index_add(0, i, p) | x.index_copy(0, i, p) | x.index_fill(0, i, 1.0) | x[0:0][:, i]
x[i[:0], j[:0]] | x.index_fill(0, i, one)
x.take(i) | x.gather(0, i.reshape(-1, 1, 1).expand(p.shape))
x[i, j[:0, None]]
"""
LINES = [line for row in CALLS.strip().splitlines() for line in row.split(" | ")]


def written(x: Any, key: Any, value: Any) -> Any:
    x = x.clone()
    x[key] = value
    return x


def outcome(library: Any, line: str, shape: tuple[int, ...], first: Any, second: Any) -> Any:
    """Return shape and whether it took part in a gradient, or the class and words of the error."""
    x = library.zeros(shape, requires_grad=True)
    part = library.zeros((len(first), *shape[1:]))
    names = {"x": x, "i": library.tensor(first), "j": library.tensor(second), "p": part}
    try:
        y = eval(line, {"torch": library, "one": library.tensor(1.0), "written": written, **names})
        y.sum().backward()
    except (RuntimeError, IndexError) as error:
        return type(error).__name__, str(error).partition("\n")[0]
    return tuple(y.shape), x.grad.tolist()


def test_no_position_is_looked_at_where_nothing_is(torch: ModuleType) -> None:
    random = Random(8)
    for line in LINES:
        for _ in range(6):
            shape = random.choice(
                [(3, 0, 2), (3, 2, 0), (0, 3, 2), (0, 3, 0), (3, 0, 0), (2, 3, 1)]
            )
            count = random.choice([1, 2, 3])
            first, second = ([random.choice([-9, -1, 0, 1, 7]) for _ in range(count)] for _ in "ij")
            expected = outcome(torch, line, shape, first, second)
            assert outcome(ng, line, shape, first, second) == expected, (line, shape, first, second)


def test_positions_in_a_vector_or_a_number_have_words_of_their_own(torch: ModuleType) -> None:
    for shape in ((), (2,), (0,), (2, 3), (0, 2), (2, 0)):
        for position in (-1, 0, 1, 2, 5):
            for line in (
                "x.index_add(0, i, p)",
                "x.index_select(0, i)",
                "x.index_fill(0, i, 1.0)",
                "x.index_copy(0, i, p)",
                "x.index_reduce(0, i, p, 'prod')",
            ):
                if (shape == (2, 0) and "select" in line) or (shape == (0, 2) and "reduce" in line):
                    continue  # which have words from further inside in PyTorch
                found = []
                for library in (torch, ng):
                    x = library.ones(shape)
                    p = library.ones((1, *shape[1:]) if shape else ())
                    names = {"x": x, "p": p, "i": library.tensor([position])}
                    try:
                        found.append(eval(line, names).tolist())
                    except (RuntimeError, IndexError) as error:
                        found.append((type(error).__name__, str(error)))
                assert found[0] == found[1], (line, shape, position)


@pytest.mark.filterwarnings("ignore")  # of bytes as masks, and of imaginary parts
@pytest.mark.parametrize("code", "?bhilqBHILQefdFD")
def test_arrays_of_any_dtype_are_positions(torch: ModuleType, code: str) -> None:
    random = Random(code)
    for key in ("a", "(a, 0)", "(0, a)", "(slice(None), a)", "(..., a)", "(a, a)"):
        for _ in range(4):
            # Of a mask of one number PyTorch counts a dim that it has not, if it is an array.
            whole = code == "B" or (code == "?" and "..." in key)
            shape = random.choice([(3,)] if whole else [(), (3,), (2, 1)])
            numbers = np.reshape([random.choice([-3.7, -1, 0, 1.5, 2]) for _ in range(6)], 6)
            array = np.resize(numbers if code not in "?BHILQ" else abs(numbers), shape).astype(code)
            found = []
            for library in (torch, ng):
                x = library.arange(9.0).reshape(3, 3)
                try:
                    taken = x[eval(key, {"a": array})].tolist()
                    x[eval(key, {"a": array})] = 7.0
                    found.append([taken, x.tolist()])
                except (IndexError, RuntimeError, TypeError) as error:
                    found.append(type(error).__name__)
            if found[0] != "TypeError":  # of an array of one unsigned number, which we take
                assert found[0] == found[1], (key, array)
