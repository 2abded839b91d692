"""Python functions that are read as functions of the loop IR mean what they mean in Python."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import types

from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.compile.dispatchers import inline, part
from numgrad.codegen.function_reader import Unreadable, read_function, scope_of
from numgrad.codegen.llvm.pointers import element
from numgrad.codegen.loops import Call, Function, Name, Return
from numgrad.codegen.numba_private import HAS_PIPELINES
from numgrad.codegen.printer import print_module
from numgrad.math.arithmetic import sign

LIMIT = 12
TABLE = np.array([1.0, -2.5, 3.0, 0.125])


def steps(n):  # type: ignore[no-untyped-def]
    """How often 3n + 1 is done until there is 1."""
    count = 0
    while n != 1 and count < 500:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        count += 1
    return count


def divisor(a, b):  # type: ignore[no-untyped-def]
    while b:
        a, b = b, a % b
    return a


def early(x, y):  # type: ignore[no-untyped-def]
    if x > y:
        return 2
    if not x < y:
        return -x / 2
    low, high = min(1, 3), y
    return low + high if y > 0.5 else ~low


def lanes(x, y):  # type: ignore[no-untyped-def]
    found = 0.0
    for i in range(1, LIMIT, 2):
        for k in range(i):
            found += i * x - k
            if found > y:
                break
        found -= (i << 2) ^ 3
    return found


def rounded(x):  # type: ignore[no-untyped-def]
    return math.floor(x) + np.float64(np.abs(x))


def backward(n):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(n, 0, -2):
        total = (total * 3 + i) % 1001
    return total


def in_a_row(x):  # type: ignore[no-untyped-def]
    values = np.empty(3, np.float64)
    values[0] = x
    return values[0]


def of_a_table(n):  # type: ignore[no-untyped-def]
    found = TABLE[-1]
    for i in range(n % 4):
        found = found * 2.0 + TABLE[i]
    return found


def both(x):  # type: ignore[no-untyped-def]
    values = np.empty((2, 2), np.float64)
    values[0, 1], rest = _halved(x)
    given0 = values[0, -1]
    return given0 - rest


@inline
def _halved(x):  # type: ignore[no-untyped-def]
    return x / 2, x - x / 2


@inline
def _indexed(x):  # type: ignore[no-untyped-def]
    return x, 3


def quotients(n):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(-n, n):
        total = total * 3 + i // 4 - i % 4 + i // 7 * (i % 7)
        total = total % 1001
    return total


def passed_on(x):  # type: ignore[no-untyped-def]
    return _twice(x) + _once(x)


@inline
def _twice(x):  # type: ignore[no-untyped-def]
    return x + x


@inline
def _once(x):  # type: ignore[no-untyped-def]
    pass
    return x


INTEGERS = [1, 2, 7, 27, 96, 97]
NUMBERS = [-2.5, -1.0, 0.0, 0.25, 1.0, 3.75]
FUNCTIONS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (steps, [(n,) for n in INTEGERS]),
    (divisor, [(a, b) for a in INTEGERS for b in INTEGERS]),
    (early, [(x, y) for x in NUMBERS for y in NUMBERS]),
    (lanes, [(x, y) for x in NUMBERS for y in NUMBERS]),
    (rounded, [(x,) for x in NUMBERS]),
    (backward, [(n,) for n in INTEGERS]),
    (in_a_row, [(x,) for x in NUMBERS]),
    (both, [(x,) for x in NUMBERS]),
    (quotients, [(n,) for n in INTEGERS]),
    (of_a_table, [(n,) for n in INTEGERS]),
    (passed_on, [(n,) for n in INTEGERS]),
    (sign.py_func, [(x,) for x in NUMBERS]),
]


@pytest.fixture(autouse=True)
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no kernel from disk: some tests look at what Numba compiled."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")


def compiled(called: Any, count: int) -> Any:
    """Return a kernel of the loop IR that calls a function of this module."""
    globals()["_called"] = called
    given = [f"x{k}" for k in range(count)]
    call = Call(Name("_called", __name__), tuple(map(Name, given)))
    code = called.py_func.__code__  # which kernels do not go by: it is not numgrad's
    says = repr((code.co_code, code.co_consts, code.co_names))
    name = f"main_{hashlib.sha256(says.encode()).hexdigest()}"
    return compile_functions([Function(name, given, [Return(call)])])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each[0].__name__)
def test_a_function_that_is_read_gives_what_it_gives_in_python(function: Any) -> None:
    plain, cases = function
    made = part(plain)
    kernel = compiled(made, len(cases[0]))
    for case in cases:
        assert kernel(*case) == plain(*case)
    assert bool(made.overloads) != HAS_PIPELINES  # Numba saw nothing of it


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each[0].__name__)
def test_a_function_that_is_read_and_printed_is_the_function(function: Any) -> None:
    plain, cases = function
    read = read_function(plain)
    namespace = scope_of(plain)
    exec(print_module([read]), namespace)
    assert [namespace[read.name](*case) for case in cases] == [plain(*case) for case in cases]


def of_a_tuple(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for each in (x, 1.0):
        total += each
    return total


def chained(x):  # type: ignore[no-untyped-def]
    return 1.0 if 0.0 < x < 2.0 else 0.0


def of_a_function(x):  # type: ignore[no-untyped-def]
    own = math.sin
    return own(x)


def moved(x):  # type: ignore[no-untyped-def]
    values, k = np.zeros(4), 1
    values[k], k = _indexed(x)
    return values[1] + k


def by_a_power(x):  # type: ignore[no-untyped-def]
    return x**2


@pytest.mark.parametrize("plain", [of_a_tuple, chained, of_a_function, moved, by_a_power])
def test_a_function_that_is_not_read_is_compiled_by_numba(plain: Any) -> None:
    with pytest.raises(Unreadable):
        read_function(plain)
    made = part(plain)
    kernel = compiled(made, 1)
    assert [kernel(x) for x in NUMBERS] == [plain(x) for x in NUMBERS]
    assert made.overloads


def with_a_wide_index(n):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(np.uint64(n)):
        total += i
    return total


def of_two_types(x):  # type: ignore[no-untyped-def]
    y = 1
    z = 7 // (y + 2)
    y = x
    return y + z


def by_default(x):  # type: ignore[no-untyped-def]
    values = np.empty(3)  # whose dtype is left out
    values[0] = x
    return int(values[0])


def either(x):  # type: ignore[no-untyped-def]
    return int(x) or 5


@pytest.mark.parametrize("plain", [with_a_wide_index, by_default, either])
def test_what_has_other_types_than_in_python_is_compiled_by_numba(plain: Any) -> None:
    read_function(plain)
    made = part(plain)
    kernel = compiled(made, 1)
    for n in (1, 3, 6):
        assert kernel(n) == plain(n)
    assert made.overloads


def test_a_variable_that_gets_another_type_has_the_wider_one() -> None:
    made = part(of_two_types)
    kernel = compiled(made, 1)
    assert [kernel(x) for x in NUMBERS] == [of_two_types(x) for x in NUMBERS]


def test_elements_are_read_where_an_array_is_handed_on() -> None:
    def last(values, count):  # type: ignore[no-untyped-def]
        return element(values, count - 1) if count > 0 else element(values, 0)

    made = part(last)
    kernel = compiled(made, 2)
    assert kernel(np.array([1.0, 2.0, 4.0]), 3) == 4.0


def test_a_function_without_source_is_not_read() -> None:
    namespace: dict[str, Any] = {}
    exec("def hidden(x):\n    return x + 1.0\n", namespace)
    with pytest.raises(Unreadable):
        read_function(namespace["hidden"])
    assert compiled(part(namespace["hidden"]), 1)(1.5) == 2.5


def test_a_part_for_types_that_it_is_not_for_is_refused_as_by_numba() -> None:
    made = part(steps)
    with pytest.raises(Exception, match=r"(?s)steps|typ|str"):
        compiled(made, 1).compile((types.unicode_type,))
