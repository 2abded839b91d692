"""Calls and rules that no source is written for: what they did is not told whole by their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.graph.node import Node, node_type
from numgrad.graph.tensor import wrap
from numgrad.ops.calls.programs import compile_call, number_source
from numgrad.ops.calls.rule_programs import _compile_rules, _fits_any_count
from numgrad.ops.calls.steps import READING, Step, Steps, arrays_in, step_of
from numgrad.ops.calls.write_programs import compile_write

PRIMITIVE: Any = SimpleNamespace(view=False, multiple_views=False, writes=None, counts=False)
VIEW: Any = SimpleNamespace(view=True, multiple_views=False, writes=None, counts=False)


def doubled(array: Any, **parameters: Any) -> Any:
    return array * 2 + sum([np.sum(each) for each in parameters.values()])


class Recorded(Node):
    """A node of a primitive, which saves nothing."""

    call: Any = SimpleNamespace(saved_places=(), remember=lambda: None)


class Call:
    """Steps that were put together by hand, from two arguments to a result."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.arguments = [ng.ones(3), ng.ones(2)]
        self.result = wrap(np.full(3, 2.0, np.float32))
        self.operands: list[Any] = [self.arguments[0]]
        self.outputs = [self.result]
        self.parameters: dict[str, Any] = {}
        self.more: dict[str, Any] = {}
        self.primitive = PRIMITIVE

    def step(self) -> Step:
        made = step_of(self.primitive, self.operands, self.parameters, self.outputs, doubled)
        return made._replace(**self.more)

    def compiled(self) -> Any:
        self.steps.steps.append(self.step())
        return compile_call(self.arguments, self.steps, self.result)

    def node(self) -> Any:
        node = node_type("Made", Node)([])
        self.result._edge = (node, 0)
        return node


def test_a_call_whose_steps_tell_all_has_a_program() -> None:
    for parameters in ({}, {"k": 3.0}):
        call = Call()
        call.parameters = parameters
        program = call.compiled()
        assert program(ng.ones(3) * 5, ng.ones(2)).tolist() == [10.0] * 3
    call = Call()
    call.result._edge = (Recorded([]), 0)
    made = call.compiled()(ng.ones(3), ng.ones(2))
    assert type(made.grad_fn) is Recorded and made.grad_fn.call is Recorded.call
    call = Call()
    call.steps = Steps([np.arange(2)])
    numbers = call.arguments[1]._array
    call.parameters, call.more = {"k": numbers}, {"numbers": ("k",)}
    assert call.compiled()(ng.ones(3), ng.full((2,), 4.0)).tolist() == [10.0] * 3


def _unknown_operand(call: Call) -> None:
    call.operands = [ng.ones(3)]


def _no_output(call: Call) -> None:
    call.outputs = []


def _argument_among_parameters(call: Call) -> None:
    call.parameters = {"k": call.arguments[1]._array}


def _numbers_of_nobody(call: Call) -> None:
    call.parameters, call.more = {"k": np.ones(2)}, {"numbers": ("k",)}


def _some_numbers_of_nobody(call: Call) -> None:
    call.parameters = {"k": (call.arguments[1]._array, np.ones(2))}
    call.more = {"numbers": ("k",)}


def _numbers_of_two(call: Call) -> None:
    call.arguments.append(wrap(call.arguments[1]._array))
    call.parameters = {"k": call.arguments[1]._array}
    call.more = {"numbers": ("k",)}


def _failed(call: Call) -> None:
    call.steps.failed = True


def _written_since(call: Call) -> None:
    call.steps.note(PRIMITIVE, [call.arguments[1]], {}, [], doubled)
    call.steps.steps.clear()
    call.arguments[1]._counter[0] += 1


def _unknown_result(call: Call) -> None:
    call.result = ng.ones(3)


def _other_node(call: Call) -> None:
    call.node()


def _node_without_call(call: Call) -> None:
    node = node_type("Without", Node, call=None)([])
    call.result._edge = (node, 0)


def _counted(call: Call) -> None:
    node = Recorded([])
    call.result._edge = (node, 0)
    array = call.arguments[0]._array
    call.steps.counted[id(array)] = array


def _held_by_nobody(call: Call) -> None:
    node = Recorded([])
    call.result._edge = (node, 0)
    call.more = {"held": (ng.ones(1),)}


def _read_from_nobody(call: Call) -> None:
    array = np.arange(3)
    read = Step(READING, (), {}, (), doubled, False, (array,), (array * 2,))
    call.steps.steps.append(read)


WHY: list[Callable[[Call], None]] = [
    _unknown_operand,
    _no_output,
    _argument_among_parameters,
    _numbers_of_nobody,
    _some_numbers_of_nobody,
    _numbers_of_two,
    _failed,
    _written_since,
    _unknown_result,
    _other_node,
    _node_without_call,
    _counted,
    _held_by_nobody,
    _read_from_nobody,
]


@pytest.mark.parametrize("why", WHY)
def test_a_call_whose_steps_do_not_has_none(why: Callable[[Call], None]) -> None:
    call = Call()
    why(call)
    assert call.compiled() is None


def test_numbers_are_given_by_the_names_of_their_arrays() -> None:
    known, unknown = np.ones(1), np.ones(1)

    def name_of(array: Any) -> str:
        return "known" if array is known else ""

    assert number_source(known, name_of) == "known" and number_source(unknown, name_of) == ""
    assert number_source((known, None), name_of) == "(known, None,)"
    assert number_source([known], name_of) == "(known,)"
    assert number_source((known, unknown, None), name_of) == ""
    assert arrays_in((known, None, 1.0, [known])) == [known] and arrays_in(known) == [known]
    assert arrays_in(1.0) == []


def rules(
    step: Step | None = None,
    result: Any = None,
    parameters: dict[str, Any] | None = None,
    gradients: Sequence[Any] = (),
    counted: Sequence[Any] = (),
) -> Any:
    """Return the program of a rule that doubles the first gradient, or does another step."""
    given = gradients or [np.ones(3)]
    steps = Steps((), counted)
    output = wrap(np.full(3, 2.0))
    steps.steps.append(step or step_of(PRIMITIVE, [wrap(given[0])], {}, [output], doubled))
    made = steps.steps[0].outputs[0]
    node = SimpleNamespace(saved=(), parameters=parameters or {})
    found = [made if result is None else result, None]
    return _compile_rules(node, given, steps, found, [True, None])  # type: ignore[arg-type]


def test_rules_whose_steps_tell_all_have_a_program() -> None:
    node = SimpleNamespace(saved=())
    results, owned = rules()(node, [np.arange(3.0)])
    assert results[0].tolist() == [0.0, 2.0, 4.0] and results[1] is None and owned == (True, None)
    gradient = np.ones(3)
    same = wrap(gradient)
    assert rules(result=same, gradients=[gradient])(node, [gradient])[0][0] is gradient
    numbered = rules(gradients=[np.ones(3), None, np.ones(3)])
    assert numbered(node, [np.full(3, 4.0), None, np.zeros(3)])[0][0].tolist() == [8.0] * 3


def test_rules_whose_steps_do_not_have_none() -> None:
    gradient = np.ones(3)
    assert rules(parameters={"k": gradient}, gradients=[gradient]) is None
    assert rules(parameters={"k": (np.ones(1), gradient)}, gradients=[gradient]) is None
    assert rules(result=ng.ones(3)) is None
    output = wrap(np.ones(3))
    assert rules(step_of(PRIMITIVE, [ng.ones(3)], {}, [output], doubled)) is None
    numbers = step_of(PRIMITIVE, [wrap(gradient)], {"k": np.ones(2)}, [output], doubled)
    assert rules(numbers._replace(numbers=("k",)), gradients=[gradient]) is None
    assert rules(gradients=[gradient], counted=[gradient]) is None
    assert rules(gradients=[gradient], counted=[np.ones(3)]) is not None


def test_steps_of_counted_arrays_fit_only_if_they_take_numbers() -> None:
    array, other = np.ones(3), np.ones(3)
    steps = Steps((), [array])
    step = step_of(PRIMITIVE, [wrap(array), wrap(other)], {}, [wrap(other)], doubled)
    assert not _fits_any_count(step, steps)
    assert _fits_any_count(step._replace(numbers=("k",)), steps)
    assert _fits_any_count(step._replace(primitive=READING), steps)
    assert _fits_any_count(step._replace(read=(other, other)), steps)


def test_a_rule_that_saved_what_was_written_to_goes_the_long_way() -> None:
    node = SimpleNamespace(
        saved=(np.ones(3), [4], 4, 2.0, None, 0),
        parameters={},
        plan=SimpleNamespace(saved=(("input", 0), ("number", 1))),
        run_rules=lambda gradients: ("the long way", gradients),
    )
    steps = Steps()
    output = wrap(np.ones(3))
    operands = [wrap(node.saved[0]), "a1"]
    steps.steps.append(step_of(PRIMITIVE, operands, {}, [output], lambda a, b: a * b))
    program: Any = _compile_rules(node, [None], steps, [output], [True])  # type: ignore[arg-type]
    assert program(node, [None])[0][0].tolist() == [2.0] * 3
    node.saved = (np.full(3, 5.0), [1], 1, 7.0, None, 0)
    assert program(node, [None])[0][0].tolist() == [35.0] * 3
    node.saved[1][0] += 1
    assert program(node, [None]) == ("the long way", [None])
    node.saved = None
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        program(node, [None])


def written(steps: Steps, target: Any, result: Any, *more: Any) -> Any:
    return compile_write([target, *more], steps, None)


def write_steps(target: Any, primitive: Any = PRIMITIVE, more: Sequence[Any] = ()) -> Any:
    """Return the steps of doubling in place, what stood in for the target, and the result."""
    steps, stand_in = Steps(), wrap(target._array)
    result = wrap(target._array * 2)
    steps.steps.append(step_of(primitive, [stand_in, *more], {}, [result], lambda a, *_: a * 2))
    steps.note_write(stand_in, result, lambda view, node: None)
    return steps, stand_in, result


def test_writes_whose_steps_tell_all_have_a_program() -> None:
    target = ng.ones(3)
    steps, _, _ = write_steps(target)
    program = compile_write([target], steps, None)
    assert program is not None
    other = ng.full((3,), 5.0)
    assert program(other) is other and other.tolist() == [10.0] * 3 and other._version == 1
    beside = ng.ones(1)
    steps, _, _ = write_steps(target, more=[beside])
    assert compile_write([target, beside], steps, None) is not None


def test_writes_whose_steps_do_not_have_none() -> None:
    target, beside = ng.ones(3), ng.ones(1)
    steps, _, _ = write_steps(target)
    assert compile_write([target, beside], steps, None) is None  # it was not taken
    assert compile_write([target, 2.0], steps, None) is not None
    read = step_of(PRIMITIVE, [], {}, [wrap(np.ones(1))], doubled)
    steps.steps.insert(0, read._replace(read=(beside._array,)))
    assert compile_write([target, beside], steps, None) is None  # a step came behind the write
    steps, _, _ = write_steps(target, VIEW)
    assert compile_write([target], steps, None) is None
    steps, stand_in, _ = write_steps(target)
    steps.write = steps.write._replace(result=ng.ones(3))
    assert compile_write([target], steps, None) is None  # nobody computed it
    assert compile_write([target], Steps(), None) is None  # nothing was written
    steps, stand_in, result = write_steps(target)
    assert not steps.failed
    steps.note_write(stand_in, result, lambda view, node: None)
    assert steps.failed and compile_write([target], steps, None) is None
