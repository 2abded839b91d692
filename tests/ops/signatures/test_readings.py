"""Calls that the parser read once are read like that again, and told alike what is wrong."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.graph.modes.state import intercept, stop_intercepting
from numgrad.ops.signatures import declaration as declarations
from numgrad.ops.signatures.argument_parser import bind
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.declared import DECLARED
from numgrad.ops.signatures.declared_source import function_source
from numgrad.ops.signatures.kinds import NAMES
from numgrad.ops.signatures.readings import pattern_of
from numgrad.ops.signatures.signature import REQUIRED, Signature
from tests.ops.signatures.wrong_calls import GOOD

# Of each signature the function's and the method's; what writes is like these.
OF_EACH = {
    (each.name, each.bound): each
    for each in DECLARED.values()
    if not each.writes and not each.rule.__module__.startswith("tests.")
}
NUMBERS = [0, 1, -1, 2**63, True, 0.5, 1j, np.int64(2), np.float32(0.5), np.bool_(True)]
ONES = ["1", "2.0", "[1]", "[0.5]", "[[1.0]]", "1.0, requires_grad=True", "1j", "True"]
VALUES = [
    *NUMBERS,
    *[eval(f"ng.tensor({one})", {"ng": ng}) for one in ONES],
    *(ng.ones(3), ng.ones(2, 2, requires_grad=True), ng.ones(0), ng.ones(3) > 0, ng.arange(3)),
    *(None, "cpu", "sum", ng.float32, float, ng.strided, ng.device("cpu"), ng.ones(2, 3).shape),
    *((), [], (1,), [1, 2], (1, 2.0), (-1, 1), [True], (ng.tensor(1),), [ng.ones(2)], (None, 1)),
    *(np.ones(2), object()),
]


# Those of one type, in which calls of a pattern may differ, or seem to.
PAIRS = [
    (one, other)
    for one in VALUES
    for other in VALUES
    if type(one) is type(other) and one is not other
]
every_tenth = pytest.mark.parametrize("names", [sorted(OF_EACH)[start::10] for start in range(10)])


def handing_on(declaration: Declaration) -> Any:
    """Return the function that a declaration makes, with a rule that returns its arguments."""
    namespace = {**NAMES, "REQUIRED": REQUIRED, "read": declaration.read, "call_interceptors": [0]}
    namespace["rule"] = namespace["perform"] = lambda *given: given
    namespace["finish"] = lambda name, value, *options: (value, options)
    namespace["write"] = lambda name, value, out: (value, out)
    namespace["facts_of"] = lambda value: None
    namespace["find"] = {}.get
    namespace["check_out_overlap"] = lambda *given: None
    exec(function_source(declaration), namespace)
    namespace["again"] = namespace[declaration.name]
    return namespace[declaration.name]


def told(value: Any) -> str:
    """Return what a value is, a tensor the very one."""
    if type(value) is tuple or type(value) is list:
        return f"{type(value).__name__}({', '.join(map(told, value))})"
    is_array = isinstance(value, (ng.Tensor, np.ndarray))
    return f"{type(value).__name__} {id(value) if is_array else repr(value)}"


def outcome(function: Any, arguments: Any, keywords: Any) -> str:
    try:
        return told(function(*arguments, **keywords))
    except (TypeError, ValueError, RuntimeError, OverflowError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"


def plain_calls(signature: Signature) -> Any:
    """Yield calls that a signature takes: as few arguments as it can, and each of the others."""
    names = {"torch": ng}
    required = [each for each in signature.parameters if each.default is REQUIRED]
    for extra in [None, *[each for each in signature.parameters if each not in required]]:
        taken = [each for each in signature.parameters if each in required or each is extra]
        values = {each.name: eval(GOOD[each.kind], names) for each in taken}
        by_position = []
        for each in signature.positional:
            if each not in taken:
                break
            by_position.append(values[each.name])
        behind = [each.name for each in taken if each.keyword_only]
        behind += [each.name for each in signature.positional[len(by_position) :] if each in taken]
        yield by_position, {name: values[name] for name in behind}
        yield [], values


@pytest.mark.sampled(0.18)
@every_tenth
def test_calls_of_a_pattern_are_read_alike(names: Any) -> None:
    """What another call with arguments of the same types came to changes nothing."""
    for name in names:
        declaration = OF_EACH[name]
        function = handing_on(declaration)
        owner = [ng.ones(2)] * declaration.bound
        draw = random.Random(str(name))
        for signature in declaration.signatures:
            for each in signature.parameters:
                usual = draw.choice([*plain_calls(signature)])
                for first, second in [*draw.sample(PAIRS, 2), (..., each.default)]:
                    declaration.readings.clear()
                    for value in (first, second):
                        arguments, keywords = with_value(signature, *usual, each.name, value)
                        read = outcome(function, [*owner, *arguments], keywords)
                    declaration.readings.clear()
                    parsed = outcome(function, [*owner, *arguments], keywords)
                    assert read == parsed, (name, each.name, first, second)


def with_value(signature: Signature, arguments: Any, keywords: Any, name: str, value: Any) -> Any:
    """Return a call with another argument for a parameter; without it for an ellipsis."""
    names = [each.name for each in signature.positional[: len(arguments)]]
    others = {other: given for other, given in keywords.items() if other != name}
    if name in names:
        at = names.index(name)
        behind = [] if value is ... else [value, *arguments[at + 1 :]]
        return [*arguments[:at], *behind], others
    return arguments, others if value is ... else {**others, name: value}


@every_tenth
def test_a_call_that_was_met_is_not_parsed_again(names: Any, monkeypatch: Any) -> None:
    """Whatever its arguments are, of whichever signature."""
    for name in names:
        declaration = OF_EACH[name]
        function = handing_on(declaration)
        owner = [ng.ones(2)] * declaration.bound
        for signature in declaration.signatures:
            for arguments, keywords in plain_calls(signature):
                try:
                    bind(declaration.signatures, tuple(arguments), keywords)
                except TypeError:  # some kinds tell what they mean only together
                    continue
                met = outcome(function, [*owner, *arguments], keywords)
                with monkeypatch.context() as patched:
                    patched.setattr(declarations, "find", None)
                    assert outcome(function, [*owner, *arguments], keywords) == met


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("zeros", np.array(1), np.array([1])),
        ("zeros", np.array(1), np.array(1.0)),
        ("zeros", (ng.tensor(1),), (ng.tensor(1.0),)),
        ("zeros", [ng.tensor(1)], [ng.ones(2)]),
        ("empty", float, str),
    ],
)
def test_what_differs_within_a_type_is_told_apart(name: str, first: Any, second: Any) -> None:
    declaration = OF_EACH[name, False]
    function = handing_on(declaration)
    outcomes = []
    for calls in ((first, second), (second,)):
        declaration.readings.clear()
        for value in calls:
            arguments, keywords = ([2], {"dtype": value}) if name == "empty" else ([value], {})
            last = outcome(function, arguments, keywords)
        outcomes.append(last)
    declaration.readings.clear()
    assert outcomes[0] == outcomes[1]


def test_while_every_call_is_seen_none_is_read_by_another() -> None:
    assert pattern_of((1,), (0,)) is not None
    intercept(calls := object())
    try:
        assert pattern_of((1,), (0,)) is None
    finally:
        stop_intercepting(calls)
