"""A record of what a library answered takes its place: shown with a small library of our own."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.answers import archive
from tests.answers.plugin import differs
from tests.answers.stand_in import OutOfStep, Player, Recorder, StandIn


class Number:
    """Something that a library computes with."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.same = self

    def __add__(self, other: Any) -> Number:
        return Number(self.value + (other.value if isinstance(other, Number) else other))

    __radd__ = __add__

    def __iter__(self) -> Any:
        return iter([Number(self.value), Number(-self.value)])

    def data_ptr(self) -> int:
        return id(self)

    def array(self) -> np.ndarray:
        return np.full((2, 2), self.value)


class RefusedError(ValueError):
    """An exception of the library's own."""


def _refuse(words: str) -> None:
    raise RefusedError(words)


def _warn() -> int:
    warnings.warn("take care", UserWarning, stacklevel=1)
    return 3


def _apply(function: Callable[..., Any], value: float) -> Number:
    result: Number = function(Number(value), scale=2.0)
    return result + 1


def library() -> types.ModuleType:
    module = types.ModuleType("library")
    for name, member in {
        "Number": Number,
        "RefusedError": RefusedError,
        "refuse": _refuse,
        "warn": _warn,
        "apply": _apply,
        "pairs": lambda: {"a": (Number(1.0), [2, 3.5]), "b": None},
    }.items():
        setattr(module, name, member)
    return module


def arithmetic(lib: Any) -> list[Any]:
    total = 1 + lib.Number(2.0) + lib.Number(0.5)
    total += 1
    return [total.value, total.array(), [each.value for each in total], total.same is total]


def addresses(lib: Any) -> list[Any]:
    one, other = lib.Number(1.0), lib.Number(2.0)
    first, second = one.data_ptr(), other.data_ptr()
    assert [type(each) for each in (first, second)] in ([int] * 2, [StandIn] * 2)
    return [
        first == second,
        first == one.same.data_ptr(),
        first + 8 - one.data_ptr(),
        first < first + 1,
        bool(first),
    ]


def containers(lib: Any) -> list[Any]:
    found = lib.pairs()
    return [list(found), found["a"][0].value, found["a"][1], found["b"]]


def classes(lib: Any) -> list[Any]:
    return [isinstance(lib.Number(1.0), lib.Number), isinstance(3, lib.Number)]


def exceptions(lib: Any) -> list[Any]:
    with pytest.raises(ValueError, match="no, never") as caught:
        lib.refuse("no, never")
    kind = lib.RefusedError
    return [type(caught.value).__name__, kind.__name__, hasattr(lib, "nothing")]


def caught_warnings(lib: Any) -> list[Any]:
    with pytest.warns(UserWarning, match="take care"):
        return [lib.warn()]


def functions(lib: Any) -> list[Any]:
    seen: list[Any] = []

    def double(number: Any, scale: float) -> Any:
        seen.append(number.value)
        return lib.Number(number.value * scale)

    return [lib.apply(double, 4.0).value, seen]


def refusing_functions(lib: Any) -> list[Any]:
    def fail(number: Any, scale: float) -> Any:
        raise ZeroDivisionError("in the function")

    with pytest.raises(ZeroDivisionError, match="in the function"):
        lib.apply(fail, 4.0)
    return []


PROGRAMS = [
    arithmetic,
    addresses,
    containers,
    classes,
    exceptions,
    caught_warnings,
    functions,
    refusing_functions,
]


def plain(values: Any) -> Any:
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in values]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_record_answers_as_the_library_did(program: Callable[..., Any], tmp_path: Any) -> None:
    expected = plain(program(library()))
    recorder = Recorder(library())
    assert plain(program(recorder.root)) == expected
    player = Player(recorder.entries, recorder.arrays)
    assert plain(program(player.root)) == expected
    assert player.position == len(player.entries)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_file_gives_back_what_was_written(
    program: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    archive.load.cache_clear()
    recorder = Recorder(library())
    expected = plain(program(recorder.root))
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    arrays = [*recorder.arrays, columns]
    archive.write("tests/ops/test_x.py", {"one": (recorder.entries, arrays)}, "AVX2")
    assert archive.instructions("tests/ops/test_x.py") == "AVX2"
    entries, read = archive.read("tests/ops/test_x.py")["one"]
    archive.load.cache_clear()
    assert plain(program(Player(entries, read).root)) == expected
    assert read[-1].strides == columns.strides and (read[-1] == columns).all()


@pytest.mark.parametrize(
    "other",
    [
        lambda lib: lib.Number(2.0) * 1,
        lambda lib: lib.Number("2"),
        lambda lib: (lib.Number(2.0) + 1.0).value,
        lambda lib: lib.warn(),
    ],
)
def test_another_question_is_noticed(other: Callable[..., Any]) -> None:
    recorder = Recorder(library())
    _ = (recorder.root.Number(2.0) + 1).value
    with pytest.raises(OutOfStep, match="records the answers anew"):
        other(Player(recorder.entries, recorder.arrays).root)


def test_more_questions_than_answers_are_noticed() -> None:
    recorder = Recorder(library())
    assert isinstance(recorder.root.Number(2.0), StandIn)
    player = Player(recorder.entries, recorder.arrays)
    number = player.root.Number(2.0)
    with pytest.raises(OutOfStep, match="after the last answer"):
        number.array()


def test_records_differ_by_numbers_words_and_length_but_not_by_roundings() -> None:
    array = np.array([1.0, np.nan, np.inf])
    record = ([[1, "data", 2.0], [2, "raise", "ValueError", "ValueError", ["no"]]], [array])

    def changed(at: int, where: int, value: Any) -> Any:
        entries = [list(each) for each in record[0]]
        entries[at][where] = value
        return entries, record[1]

    assert not differs(record, record)
    assert not differs(record, changed(0, 2, 2.0 + 1e-13))
    assert not differs(record, ([[0, "warn", "UserWarning", "once"], *record[0]], record[1]))
    assert not differs(record, changed(0, 2, float(np.float32(2.0 + 1e-6))))
    assert differs(record, changed(0, 2, 2.0 + 1e-6))
    assert differs(record, changed(0, 2, 1e300))
    said = changed(1, 4, ["is 0.5000 of 0.16646719195167448"])
    for words in ("is 0.5001 of 0.16646719195167453", "is 0.5000 of 0.16646719195167448"):
        assert not differs(said, changed(1, 4, [words]))
    for words in ("is 0.5004 of 0.16646719195167448", "is 0.5000 of 0.1664672", "is 0.5000 in 0.1"):
        assert differs(said, changed(1, 4, [words]))
    assert differs(record, changed(0, 2, math.nan))
    assert differs(record, changed(0, 2, 2.1))
    assert differs(record, changed(0, 2, 2))
    assert differs(record, changed(1, 4, ["yes"]))
    assert differs(record, (record[0][:1], record[1]))
    assert differs(record, (record[0], [np.array([1.0, np.nan, 1.0])]))
    assert differs(record, (record[0], [array.astype(np.float32)]))
    # Other instructions, other numbers: what is no number is compared all the same.
    assert not differs(record, changed(0, 2, 2.1), compare_values=False)
    assert not differs(record, (record[0], [np.array([1.0, np.nan, 1.0])]), compare_values=False)
    assert differs(record, changed(0, 2, 2), compare_values=False)
    assert differs(record, changed(1, 4, ["yes"]), compare_values=False)
    assert differs(record, (record[0], [array.astype(np.float32)]), compare_values=False)
