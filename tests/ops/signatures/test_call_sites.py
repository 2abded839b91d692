"""Words about wrong arguments tell what was given by name, however a function is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng

X = ng.ones(2, 2)
BY_NAME = "tril(): argument 'diagonal' must be int, not str"
BY_POSITION = "tril(): argument 'diagonal' (position 2) must be int, not str"
MANY = "\n".join([f"    c{k} = {k}.5" for k in range(300)])  # so that constants have large numbers
WAYS: dict[str, tuple[Callable[[], Any], str]] = {
    "by name": (lambda: ng.tril(X, diagonal="a"), BY_NAME),
    "all by name": (lambda: ng.tril(input=X, diagonal="a"), BY_NAME),
    "in another order": (lambda: ng.tril(diagonal="a", input=X), BY_NAME),
    "by position": (lambda: ng.tril(X, "a"), BY_POSITION),
    "within a call by name": (lambda: sorted([ng.tril(X, "a")], key=None), BY_POSITION),
    "by a partial": (lambda: functools.partial(ng.tril, X)(diagonal="a"), BY_NAME),
    "by C code": (lambda: list(map(ng.tril, [X], ["a"])), BY_POSITION),
    "by a mapping": (lambda: ng.tril(X, **{"diagonal": "a"}), BY_POSITION),  # can't be told
}


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_given_by_name_has_no_position(way: str) -> None:
    call, expected = WAYS[way]
    assert message(call) == message(call) == expected  # the first call of all, and later ones


def test_a_function_of_many_constants_says_the_same() -> None:
    names = {"ng": ng, "X": X}
    exec(f"def f():\n{MANY}\n    return ng.tril(X, diagonal='a')", names)
    assert message(names["f"]) == BY_NAME  # type: ignore[arg-type]


def test_plain_functions_say_it_too() -> None:
    for _ in range(2):
        assert message(lambda: ng.exp(input=3)) == "exp(): argument 'input' must be Tensor, not int"
        assert message(lambda: ng.add(X, other="a")).startswith("add(): argument 'other' must be")
        assert message(lambda: X.add(other="a")).startswith("add(): argument 'other' must be")


NAMES = {
    "where": ("condition", "input", "other"),
    "sum": ("input", "dim", "keepdim"),
    "clamp": ("input", "min", "max"),
    "linspace": ("start", "end", "steps"),
    "transpose": ("input", "dim0", "dim1"),
    "softmax": ("input", "dim"),
    "cat": ("tensors", "dim"),
    "gather": ("input", "dim", "index"),
    "std": ("input", "dim", "keepdim"),
}
VALUES = ("torch.ones(2, 2)", "'a'", "1", "None", "2.5")


@given(st.data())
def test_calls_by_name_are_told_what_pytorch_tells_them(
    torch: ModuleType, data: st.DataObject
) -> None:
    function = data.draw(st.sampled_from([*NAMES]))
    names = NAMES[function]
    by_position = data.draw(st.integers(0, 1))
    rest = data.draw(st.permutations(names[by_position:]))
    values = [data.draw(st.sampled_from(VALUES)) for _ in names]
    given = values[:by_position]
    given += [f"{name}={value}" for name, value in zip(rest, values[by_position:], strict=True)]
    said = []
    for library in (ng, torch):
        try:
            eval(f"torch.{function}({', '.join(given)})", {"torch": library})
        except TypeError as error:
            said.append(str(error).split("\n")[0].partition(" - got")[0])
        except Exception:
            said.append("another error")
        else:
            said.append("")
    if "another error" not in said:
        assert said[0] == said[1]
