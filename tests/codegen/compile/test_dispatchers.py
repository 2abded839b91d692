"""Functions that are parts of kernels: built in, not called from Python, cached with the kernel."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba.core.caching import NullCache

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.dispatchers import inline, part


@part
def cubed(x):  # type: ignore[no-untyped-def]
    return x * x * x


@part
def cubed_and_one(x):  # type: ignore[no-untyped-def]
    return cubed(x) + 1


def numbers() -> np.ndarray:
    return np.linspace(-2, 2, 9)


def test_a_part_of_a_part_is_built_into_the_kernel() -> None:
    @kernel
    def fill(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = cubed_and_one(x[i])

    x, out = numbers(), np.empty(9)
    fill(x, out)
    np.testing.assert_array_equal(out, x**3 + 1)


def test_an_inlined_part_leaves_no_call_and_no_other_code() -> None:
    # Its own dispatcher, for what comes from the disk cache can't be inspected.
    def add_one(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = cubed_and_one(x[i])

    dispatcher = kernel(add_one)
    dispatcher._cache = NullCache()
    dispatcher(numbers(), np.empty(9))
    (code,) = dispatcher.inspect_llvm().values()
    assert not re.search(r"(call|define)[^\n]*cubed", code)


def test_python_cannot_call_a_part_before_or_after_it_was_compiled() -> None:
    @part
    def halved(x):  # type: ignore[no-untyped-def]
        return x * 0.5

    with pytest.raises(TypeError, match="halved is a part of kernels"):
        halved(1.0)

    @kernel
    def quarter(x):  # type: ignore[no-untyped-def]
        return halved(halved(x))

    assert quarter(1.0) == 0.25
    with pytest.raises(TypeError, match="halved is a part of kernels"):
        halved(1.0)


def test_what_is_marked_inline_can_be_handed_on() -> None:
    @inline
    def doubled(x):  # type: ignore[no-untyped-def]
        return 2 * x

    @inline
    def twice(function, x):  # type: ignore[no-untyped-def]
        return function(function(x))

    @kernel
    def fourfold(x):  # type: ignore[no-untyped-def]
        return twice(doubled, x)

    assert fourfold(1.5) == 6.0
    assert doubled(1.5) == 3.0  # in Python it is what it was


def test_arrays_that_a_glance_does_not_tell_are_looked_at_once(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Read-only ones; those of another byte order are refused all the same."""

    @kernel
    def add(x, y):  # type: ignore[no-untyped-def]
        return x[0] + y

    x = numbers()
    x.setflags(write=False)
    for _ in range(2):
        assert add(x, 1) == add(x, 1.0) == -1
    with monkeypatch.context() as patched:
        patched.setattr(type(add), "typeof_pyval", None)
        assert add(x, 2) == add(x, 2.0) == 0
    foreign = x.astype(x.dtype.newbyteorder())
    foreign.setflags(write=False)
    for _ in range(2):
        with pytest.raises(TypeError, match="foreign byte order"):
            add(foreign, 1)
    assert add(x.astype(np.float32), 2**63) == 2.0**63 - 2
    assert add(x, 2) == 0
