"""Functions of the loop IR mean the same translated as printed and compiled by Numba."""

from __future__ import annotations

import gc
import pickle
import sys
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.codegen.compile import pipelines
from numgrad.codegen.compile.compile import compile_functions, compile_source
from numgrad.codegen.known_numbers import with_numbers
from numgrad.codegen.loop_distribution import on_stack
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Attribute,
    Break,
    Choice,
    Do,
    For,
    Function,
    If,
    Load,
    Name,
    Number,
    Prefix,
    Raise,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
    call,
    combine,
    names,
    type_code,
)
from numgrad.codegen.numba_private import HAS_PIPELINES
from numgrad.codegen.printer import print_module
from tests import children
from tests.cases import examples

X, Y = Name("x"), Name("y")
PART, STACK, RUN = (
    *names("numgrad.codegen.loop_runtime", "part", "stack"),
    *names("numgrad.codegen.fold_runtime", "run_sum"),
)
(EMPTY,) = names("numpy", "empty")
(EXP,) = names("numgrad.math.scalar", "exp")
DTYPES = [np.float32, np.float64]


@st.composite
def numbers(draw: Any, known: list[str], dtype: Any, depth: int = 2) -> Any:
    """Draw an expression for a float, of variables that are floats."""
    kind = draw(st.integers(0, 7 if depth else 1))
    of_type = type_code(np.dtype(dtype))

    def inner() -> Any:
        return draw(numbers(known, dtype, depth - 1))

    if kind == 0 or not known:
        return call(of_type, draw(st.sampled_from([0.5, 2.0, -1.5, 3.0])))
    if kind == 1:
        return Name(draw(st.sampled_from(known)))
    if kind <= 4:
        return combine(draw(st.sampled_from("+-*/")), inner(), inner())
    if kind == 5:
        condition = combine(draw(st.sampled_from(["<", ">=", "==", "!="])), inner(), inner())
        if draw(st.booleans()):
            other = combine("<=", inner(), inner())
            condition = combine(draw(st.sampled_from(["and", "or"])), condition, other)
        return Choice(condition, inner(), inner())
    if kind == 6:
        return Prefix("-", inner())
    return call(EXP, combine("-", inner(), call(of_type, 8.0)))


@st.composite
def bodies(draw: Any, dtype: Any) -> list[Statement]:
    """Draw what reads an array of 12 elements and writes another of as many."""
    shift = draw(st.integers(0, 3))
    counts = draw(st.integers(1, 12))
    known = ["v"]
    inside: list[Statement] = [Assign("v", Load(X, combine("%", combine("+", "i", shift), 12)))]
    for k in range(draw(st.integers(0, 4))):
        inside.append(Assign(f"t{k}", draw(numbers(known, dtype))))
        known.append(f"t{k}")
    value = draw(numbers(known, dtype))
    if draw(st.booleans()):
        then: list[Statement] = [Store(Y, Name("i"), value)]
        if draw(st.booleans()):
            then.append(Break())
        other = [Store(Y, Name("i"), draw(numbers(known, dtype)))]
        inside.append(If(combine(">", "v", draw(numbers(["v"], dtype))), then, other))
    else:
        inside.append(Store(Y, Name("i"), value))
    lines: list[Statement] = [
        Assign("n", Number(counts)),
        Assign("total", call(type_code(np.dtype(dtype)), 0)),
    ]
    step = draw(st.sampled_from([1, 2, -1]))
    first, last = (combine("-", "n", 1), Number(-1)) if step < 0 else (ZERO, Name("n"))
    lines.append(For("i", first, last, inside, Number(step)))
    at = draw(st.integers(0, 4))
    lines.append(
        Assign(
            "piece", call(PART, "y", at * np.dtype(dtype).itemsize, 8, type_code(np.dtype(dtype)))
        )
    )
    lines.append(on_stack("room", np.dtype(dtype), 4))
    lines.append(
        For("j", ZERO, Number(4), [Store(Name("room"), Name("j"), Load(Name("piece"), Name("j")))])
    )
    again = combine("<", "k", draw(st.integers(0, 3)))
    turn = [
        Assign(
            "total",
            combine("+", "total", call(RUN, "room", 0, "k", call(type_code(np.dtype(dtype)), 0))),
        ),
        Assign("k", combine("+", "k", 1)),
    ]
    lines += [Assign("k", ONE), While(again, turn), Store(Y, Number(11), Name("total"))]
    return lines


@pytest.mark.skipif(not HAS_PIPELINES, reason="this Numba compiles the printed source")
@settings(max_examples=examples(40), deadline=None)
@given(st.data(), st.sampled_from(DTYPES))
def test_what_is_translated_has_the_bits_of_what_numba_compiles(data: Any, dtype: Any) -> None:
    function = Function("f", ["x", "y"], data.draw(bodies(dtype)))
    x = np.linspace(-2, 3, 12, dtype=dtype)
    expected, found, simpler = (np.full(12, 7, dtype) for _ in range(3))
    compile_source("f", print_module([function]))(x, expected)
    compile_functions([function])(x, found)
    less = Function("f", ["x", "y"], with_numbers(function.body))
    compile_functions([less])(x, simpler)
    for other in (found, simpler):
        assert other.tobytes() == expected.tobytes(), print_module([function])


def test_functions_call_each_other_and_return_arrays() -> None:
    helper = Function(
        "scaled",
        ["a", "by", "out"],
        [
            For(
                "i",
                ZERO,
                Number(3),
                [Store(Name("out"), Name("i"), combine("*", Load(Name("a"), Name("i")), "by"))],
            )
        ],
    )
    fresh = Assign("made", call(EMPTY, Tuple((Number(3),)), Name("float64", "numpy")))

    main = Function(
        "main",
        ["x"],
        [
            If(combine("!=", Attribute(X, "size"), 3), [Raise("ValueError", "three of them")]),
            fresh,
            Do(call(Name("scaled"), "x", 2.5, "made")),
            Assign("y", Name("made")),
            Return(Tuple((Name("y"), Name("made"), call(Attribute(X, "copy")), Load(X, ONE)))),
        ],
    )
    run = compile_functions([helper, main])
    x = np.arange(3.0)
    for _ in range(3):
        first, second, third, one = run(x)
        np.testing.assert_array_equal(first, 2.5 * x)
        assert first is not second or first.base is None
        np.testing.assert_array_equal(third, x)
        assert one == 1.0
    del first, second, third
    gc.collect()
    with pytest.raises(ValueError, match="three of them"):
        run(np.arange(4.0))


def test_what_functions_return_is_unpacked() -> None:
    pair = Function("pair", ["a"], [Return(Tuple((combine("+", "a", 1), combine("*", "a", 2.5))))])
    main = Function(
        "main", ["a"], [Unpack(("b", "c"), call(Name("pair"), "a")), Return(combine("-", "c", "b"))]
    )
    assert compile_functions([pair, main])(3) == 3.5


def test_arrays_are_freed() -> None:
    """Nothing that a function makes stays, and nothing that it returns goes."""
    counts = numba.core.runtime._nrt_python
    made = Assign("made", call(EMPTY, Name("n"), Name("float64", "numpy")))
    filled = For(
        "i", ZERO, Name("n"), [Store(Name("made"), Name("i"), call(Name("float64", "numpy"), "i"))]
    )
    looped = For("k", ZERO, Number(5), [made, filled, Assign("kept", Name("made"))])
    main = Function("main", ["n"], [made, filled, looped, Return(Name("kept"))])
    run = compile_functions([main])
    run(4)
    was_on = counts.memsys_stats_enabled()
    counts.memsys_enable_stats()
    try:
        before = counts.memsys_get_stats_alloc() - counts.memsys_get_stats_free()
        for _ in range(10):
            np.testing.assert_array_equal(run(4), np.arange(4.0))
        gc.collect()
        after = counts.memsys_get_stats_alloc() - counts.memsys_get_stats_free()
    finally:
        if not was_on:
            counts.memsys_disable_stats()
    assert after == before


def test_arguments_may_be_returned() -> None:
    run = compile_functions([Function("both", ["x"], [Return(Tuple((X, X)))])])
    x = np.arange(3.0)
    run(x)
    before = sys.getrefcount(x)
    for _ in range(3):
        first, second = run(x)
    first[1] = 7.0
    assert second[1] == x[1] == 7.0
    del first, second
    assert sys.getrefcount(x) == before


@pytest.mark.skipif(not HAS_PIPELINES, reason="this Numba compiles the printed source")
def test_machine_code_counts_references_to_no_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")  # what comes from there has no LLVM to show
    stored = Store(X, ZERO, combine("+", Load(X, ZERO), 2.25))
    run = compile_functions([Function("counting", ["x"], [stored])])
    run(np.arange(3.0))
    assert "NRT_" not in run.inspect_llvm(run.signatures[0])


@pytest.mark.skipif(not HAS_PIPELINES, reason="this Numba compiles the printed source")
def test_a_kernel_that_was_pickled_runs_in_another_process() -> None:
    function = Function("sent", ["x"], [Return(combine("*", "x", 3))])
    sent = pickle.dumps(compile_functions([function])).hex()
    program = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1]))(2))"
    assert children.ended_well(program, sent).split() == ["6"]


def test_a_kernel_that_was_pickled_goes_on_when_the_copy_is_gone() -> None:
    function = Function("pickled", ["x"], [Return(combine("*", "x", 3))])
    run = compile_functions([function])
    copy = pickle.loads(pickle.dumps(run))
    assert copy(2) == 6
    del copy
    gc.collect()
    assert run(2.5) == 7.5


@pytest.mark.skipif(not HAS_PIPELINES, reason="Numba writes another")
def test_elements_cost_llvm_nothing_but_their_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs read a dozen numbers before their loops, and add up in several places."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    given: list[str] = []

    class Library(pipelines._LeanLibrary):  # type: ignore[misc]
        def add_ir_module(self, ir_module: Any) -> None:
            given.append(str(ir_module))
            super().add_ir_module(ir_module)

    monkeypatch.setattr(pipelines._UseLeanLibrary, "library", Library)
    function = Function(
        "numbers",
        ("x", "k"),
        [
            Assign("first", Load(X, Number(3), True)),
            Assign("last", Load(X, Prefix("-", Number(1)), True)),
            Assign("some", Load(X, Name("k"), True)),
            Assign("both", combine("+", Name("first"), Name("last"))),
            Store(X, Number(2), combine("+", Name("both"), Name("some")), "", True),
            Assign("one", call(RUN, X, ZERO, Number(3), Number(0.0))),
            Return(combine("+", Name("one"), call(RUN, X, ONE, Number(4), Number(0.0)))),
        ],
    )
    numbers = np.arange(8.0)
    compiled = compile_functions([function])
    assert compiled(numbers, -2) == (0 + 1 + 16) + (1 + 16 + 3 + 4)
    (text,) = [each for each in given if "define internal" in each]
    assert text.count("define internal") == 1  # one sum
    body = text[text.index("define") : text.index("define internal")]
    assert "alloca {" not in body and "undef" not in body.split("body:")[1]
    assert body.count("load double") == 5
