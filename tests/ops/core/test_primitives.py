"""What a primitive does with what it was declared with: rules, halves, and quick forwards."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.halves import HALF
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import wrap
from numgrad.ops.calls.steps import Steps
from numgrad.ops.core.declare import NotDifferentiablePrimitive
from numgrad.ops.core.domains import NONZERO, POSITIVE, REAL, Domain, apart, away_from, number
from numgrad.ops.core.elementwise.number_operands import NumberForms, number_forms
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.elementwise.spare import spare_of
from numgrad.ops.core.places import relaid
from numgrad.ops.core.primitive import CATALOGUE, Primitive, require_tensor
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.core.sample_calls import SampleCall


def declared(forward: Any, inputs: Any = ("a",), vjp: Any = (None,), **options: Any) -> Primitive:
    return Primitive("made here", "MadeBackward0", forward, inputs, vjp, listed=False, **options)


def test_what_is_no_tensor_is_refused_by_its_place() -> None:
    x = ng.ones(2)
    assert require_tensor(x, "f", "input", 1) is x
    with pytest.raises(TypeError) as error:
        require_tensor(2.0, "f", "input", 3)
    assert str(error.value) == "f(): argument 'input' (position 3) must be Tensor, not float"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mul(x, 'a')", "mul(): argument 'other' (position 2) must be Tensor, not str"),
        ("mul('a', x)", "mul(): argument 'input' (position 1) must be Tensor, not str"),
        ("mul(x, None)", "mul(): argument 'other' (position 2) must be Tensor, not NoneType"),
        ("lerp(x, x, 'a')", "lerp(): argument 'weight' (position 3) must be Tensor, not str"),
        ("mul(2, 3)", "mul(): argument 'input' (position 1) must be Tensor, not int"),
        ("sin(2.0)", "sin(): argument 'input' (position 1) must be Tensor, not float"),
        ("sin([1])", "sin(): argument 'input' (position 1) must be Tensor, not list"),
    ],
)
def test_operands_of_elementwise_primitives_are_tensors_and_numbers(line: str, words: str) -> None:
    name, _, rest = line.partition("(")
    operands = eval(f"({rest[:-1]},)", {"x": ng.ones(2)})
    for call in (CATALOGUE[name], CATALOGUE[name].apply):
        with pytest.raises(TypeError) as error:
            call(*operands)
        assert str(error.value) == words


def test_parameters_that_are_no_inputs_are_known_as_far_as_python_knows_them() -> None:
    with pytest.raises(ValueError, match="a parameter can't be called 'g'"):
        declared(lambda a, b, *, g: a, ("a", "b"), (None, None))
    with pytest.raises(ValueError, match="a parameter can't be called 'y'"):
        declared(lambda *tensors, y=2: tensors[0], ("*tensors",))
    with pytest.raises(ValueError, match="a parameter can't be called 'a_shape'"):
        declared(lambda a, a_shape: a)
    names = declared(np.add)._static_names
    assert names(lambda a, b, c, *d, e, **f: a, 2) == ["c", "e"]
    assert names(lambda a, b, c: a, 0) == ["a", "b", "c"] and names(lambda a: a, 1) == []
    assert names(max, 1) == []  # which Python does not know
    variadic = declared(lambda *tensors, k: tensors[0], ("*tensors",))
    assert variadic._static_names(lambda *tensors, k=1, **more: 0, 1) == ["k"]
    assert variadic.input_names(3) == ["tensors0", "tensors1", "tensors2"]
    assert variadic.rules_for(3) == (None,) * 3 and declared(np.sin).rules_for(1) == (None,)
    assert declared(np.sin).input_names(1) == ("a",)


def test_a_rule_for_any_number_of_inputs_is_told_them_and_which_it_is_for() -> None:
    product = declared(
        lambda *tensors: np.prod(tensors, 0),
        ("*tensors",),
        [
            lambda g, position, inputs, shapes: (
                g * ng.stack([x for at, x in enumerate(inputs) if at != position]).prod(0)
            ).reshape(shapes[position])
        ],
    )
    values = [ng.tensor([float(k), k + 2.0], requires_grad=k != 3) for k in range(1, 5)]
    result = product.apply(*values)
    assert result.tolist() == [24.0, 3.0 * 4 * 5 * 6]
    result.sum().backward()
    for value in values:
        if value.requires_grad:
            assert value.grad.tolist() == (result / value).tolist()
    assert values[2].grad is None
    lengths: list[Any] = []
    joined = declared(
        lambda *tensors: np.concatenate(tensors),
        ("*tensors",),
        [
            lambda g, position, shapes: (
                lengths.append((position, shapes)),
                g[: shapes[position][0]],
            )[1]
        ],
    )
    x, y = ng.ones(1, requires_grad=True), ng.ones(2, requires_grad=True)
    joined.apply(x, y).sum().backward()
    assert lengths == [(0, [(1,), (2,)]), (1, [(1,), (2,)])]


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("takes_half", [False, True])
def test_who_takes_halves_is_given_them(view: bool, takes_half: bool) -> None:
    seen: list[Any] = []

    def forward(a: Any) -> Any:
        seen.append(a.dtype)
        return a[...]

    made = declared(forward, view=view, takes_half=takes_half)
    assert made.takes_half == (view or takes_half)
    x = ng.ones(3, dtype=ng.float16)
    result = made.apply(x)
    assert seen == [HALF if view or takes_half else np.float32] and result.dtype == ng.float16
    assert np.shares_memory(result.numpy(), x.numpy()) == (view or takes_half)


def test_halves_are_computed_in_float32_and_rounded_if_nothing_is_wider() -> None:
    seen: list[Any] = []

    def forward(a: Any, b: Any, **parameters: Any) -> Any:
        seen.append((a.dtype.name, b.dtype.name, *parameters.values()))
        return a + b, (a * 0.1).astype("float32"), (a > 0)

    made = declared(forward, ("a", "b"), (None, None), outputs=("p", "q", "r"))
    half, wide = ng.ones(2, dtype=ng.float16), ng.ones(2)
    double, ints = ng.ones(2, dtype=ng.float64), ng.ones(2, dtype=ng.int32)
    for b, names, found in (
        (half, ("float32", "float32"), ("float16", "float16", "bool")),
        (wide, ("float32", "float32"), ("float32", "float32", "bool")),
        (ints, ("float32", "int32"), ("float64", "float16", "bool")),
        (double, ("float32", "float64"), ("float64", "float32", "bool")),
    ):
        results = made.apply(half, b)
        assert seen.pop() == names
        assert tuple([each.numpy().dtype.name for each in results]) == found
    cast = declared(lambda a, *, dtype: a.astype(dtype))
    for start, wanted in itertools.product((half, wide), (HALF, np.dtype("float32"))):
        assert cast.apply(start, dtype=wanted).numpy().dtype == wanted
    assert cast.apply(half, dtype=np.dtype("float64")).dtype == ng.float64
    kept = declared(lambda a, k: a + k)
    assert kept.apply(half, k=np.ones(2, HALF)).dtype == ng.float16


def function_for(made: Primitive, arrays: Any, **parameters: Any) -> Any:
    before, modes.steps = modes.steps, Steps([parameters.get("known")])
    try:
        return made.function_for(arrays, parameters)
    finally:
        modes.steps = before


def test_quick_forwards_are_asked_for_where_they_are_for() -> None:
    def forward(*arrays: Any, **parameters: Any) -> Any:
        return "forward"

    asked: list[str] = []

    def offer(name: str, answer: Any) -> Any:
        return lambda *arrays, **parameters: (asked.append(name), answer)[1]

    x = np.ones(4)
    for few, quick in itertools.product(("few", None), ("quick", None)):
        made = declared(
            forward, ("a", "b"), (None, None), few=offer("few", few), quick=offer("quick", quick)
        )
        wanted = few or quick or forward
        assert function_for(made, [x, x]) is wanted
        for arrays in (
            [x, x.astype("float32")],
            [x[:0], x[:0]],
            [x, x[::2]],
            [x.reshape(2, 2), x.reshape(2, 2).T],
            [x, np.ones(FEW_ELEMENTS + 1)],
        ):
            asked.clear()
            assert function_for(made, arrays) is (quick or forward) and asked == ["quick"]
        asked.clear()
        assert function_for(made, [np.ones(FEW_ELEMENTS)] * 2) is wanted and asked[0] == "few"
        half = np.ones(4, HALF)
        asked.clear()
        assert function_for(made, [half, half]).__func__ is Primitive._forward_of_halves
        if few is None:
            found = function_for(made, [x, x], dtype=HALF)
            assert found.func.__func__ is Primitive._forward_of_halves
            assert asked == ["few"]
            found = function_for(made, [x, x], dtype=np.dtype("float32"))
            assert found is quick or found.func is forward
        asked.clear()
        numbers = np.arange(3)
        found = function_for(made, [x, x], known=numbers, k=2)
        assert asked == ["quick"] and (found is quick or found.keywords == {"k": 2})
        made.takes_half = True
        assert function_for(made, [half, half]) is (quick or forward)
    plain = declared(forward, ("a", "b"), (None, None))
    assert function_for(plain, [x, x]) is forward
    assert function_for(plain, [x, x], k=3).keywords == {"k": 3}


def test_a_node_takes_no_gradients_of_outputs_at_the_end_that_have_none() -> None:
    for kinds in itertools.product((True, False), repeat=3):
        dtypes = ["float64" if differentiable else "int64" for differentiable in kinds]
        made = declared(
            lambda a, dtypes=tuple(dtypes): tuple([a.astype(dtype) for dtype in dtypes]),
            vjp=[lambda g: g[0]],
            outputs=("p", "q", "r"),
        )
        outputs = made.apply(ng.ones(2, dtype=ng.float64, requires_grad=True))
        assert [output.requires_grad for output in outputs] == list(kinds)
        if any(kinds):
            node = outputs[kinds.index(True)].grad_fn
            last = max(at for at, differentiable in enumerate(kinds) if differentiable)
            assert node is not None and node.count_of_gradients() == last + 1
    constant = declared(
        lambda a: (a, a, a), vjp=[lambda g: g[0]], outputs=("p", "q", "r"), constant=("q", "r")
    )
    outputs = constant.apply(ng.ones(2, requires_grad=True))
    assert outputs[0].grad_fn.count_of_gradients() == 1
    assert [output.requires_grad for output in outputs] == [True, False, False]


def test_checks_at_run_time_read_the_array() -> None:
    @at_run_time
    def _checked(array: Any, *, most: int) -> Any:
        if array.max() > most:
            raise IndexError("too large")
        return array

    array = np.arange(3)
    assert _checked(array, most=2) is array
    with pytest.raises(IndexError, match="too large"):
        _checked(array, most=1)


def test_without_operands_there_is_no_dtype() -> None:
    with pytest.raises(ValueError, match="result_dtype needs at least one operand"):
        result_dtype([])
    assert result_dtype([2]) == ng.int64 and result_dtype([True, 2.0]) == ng.get_default_dtype()


def test_bools_and_unsigned_numbers_of_64_bits_do_not_meet() -> None:
    flag, flags, whole = ng.tensor(True), ng.tensor([True]), ng.tensor([1])
    for operands in ([flag, 2**63], [flags, 2**63], [flag, flags, 2**63]):
        with pytest.raises(RuntimeError, match="attempted to promote Bool and UInt64"):
            result_dtype(operands)
    for operands in ([flag, whole, 2**63], [whole, 2**63], [2**63], [flags, 2**63 - 1]):
        assert result_dtype(operands) == ng.int64
    assert result_dtype([ng.ones(1), 2**63]) == ng.float32


def test_gaps_between_points_are_as_wide_as_is_said() -> None:
    assert away_from(0.0).intervals == ((-3.0, -0.1), (0.1, 3.0))
    assert away_from(1.0, -1.0, within=2.0, gap=0.25).intervals == (
        (-2.0, -1.25),
        (-0.75, 0.75),
        (1.25, 2.0),
    )
    assert away_from(0.0, 0.1).intervals == ((-3.0, -0.1), (0.2, 3.0))
    assert away_from(3.0).intervals == ((-3.0, 2.9),)
    assert NONZERO.intervals == ((-3.0, -0.3), (0.3, 3.0))
    first, second = apart(POSITIVE)
    assert first is POSITIVE and second == Domain(POSITIVE.intervals, apart=0.1)
    assert apart(REAL, 0.5)[1].apart == 0.5 and first.apart == 0.0
    assert number(2.5) == Domain(((2.5, 2.5),), is_number=True)


def test_forms_for_numbers_have_the_numbers_and_rules_of_their_places() -> None:
    rules = (lambda g, other: g * other, lambda g, input: g * input * 2)
    own = lambda g, other: g * other * 3  # noqa: E731
    for by_number in (None, own):
        forms: NumberForms = number_forms(
            "made_form",
            "MadeForm",
            lambda input, other: input * other,
            rules,
            (POSITIVE, NONZERO),
            (0.5, 0.75),
            by_number=by_number,
            doc=".",
            listed=False,
        )
        numbers = [forms.of_number.domains[1], forms.by_number.domains[1]]
        assert numbers == [number(0.5), number(0.75)]
        assert forms.of_number.domains[0] is NONZERO and forms.by_number.domains[0] is POSITIVE
        assert forms.of_tensors.domains == (POSITIVE, NONZERO)
        made = (forms.of_tensors, forms.of_number, forms.by_number)
        for at, form in enumerate(made):
            assert form.node_class.__name__ == f"MadeForm{at}" and form.kernel.wide == frozenset()
        assert [form.tensor_count for form in made] == [2, 1, 1]
        x = ng.tensor([3.0], requires_grad=True)
        results = [forms(x, ng.tensor([2.0]), None), forms(4.0, x, None), forms(x, 5.0, None)]
        assert [result.item() for result in results] == [6.0, 12.0, 15.0]
        nodes = [type(result.grad_fn).__name__ for result in results]
        assert nodes == ["MadeForm0", "MadeForm1", "MadeForm2"]
        slopes = [ng.autograd.grad(result, x)[0].item() for result in results]
        assert slopes == [2.0, 8.0, 5.0 if by_number is None else 15.0]


def test_an_operand_beside_what_was_saved_is_there_until_it_is_written_to() -> None:
    array, counter = np.ones(2), [3]
    saved = (0, 1, 2, 3, 4, 5)
    assert spare_of(saved, 2) is None and spare_of((), 0) is None
    assert spare_of((*saved, array, counter, 3), 2) is array
    assert spare_of((array, counter, 3), 0) is array
    counter[0] += 1
    assert spare_of((*saved, array, counter, 3), 2) is None


def test_a_gradient_that_goes_to_memory_with_gaps_is_not_remembered() -> None:
    values = np.arange(6.0).reshape(2, 3)
    gaps = np.zeros((2, 6))[:, ::2]
    for memory, fails in ((gaps, True), (np.zeros((3, 2)).T, False)):
        steps = Steps()
        before, modes.steps = modes.steps, steps
        try:
            laid = relaid(wrap(values.copy()), memory, ())
        finally:
            modes.steps = before
        assert laid._array is memory and laid.tolist() == values.tolist()
        assert steps.failed == fails and len(steps.steps) == (not fails)


def test_ints_of_more_than_63_bits_are_what_their_bits_are_in_a_trace_too(traced: None) -> None:
    x = ng.tensor([1, 2, -3])
    for k in (2**63, 2**64 - 1, 2**63 - 1, -(2**63)):
        found = ng.jit(lambda x, k=k: (x + k, k * x))(x)
        assert [each.tolist() for each in found] == [(x + k).tolist(), (k * x).tolist()]
    for k in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError):
            ng.jit(lambda x, k=k: x + k)(x)


def test_what_an_output_is_saved_as_is_no_operands() -> None:
    x, y = ng.ones(2, requires_grad=True), ng.ones(2, requires_grad=True)
    for result, kinds in (((x * y), "tt"), (x.exp(), "n"), (x**2, "t")):
        node: Any = result.grad_fn
        found = [node.takes_tensor(at) for at in range(len(node.plan.saved))]
        assert found == [kind == "t" for kind in kinds]


def test_an_example_is_a_part_of_what_is_told_of_an_operation() -> None:
    options: dict[str, Any] = {"formula": lambda input: input, "listed": False}
    told = ElementwisePrimitive("told", ("input",), (None,), (REAL,), doc="Return it.", **options)
    assert told.doc == "Return it."
    options["example"] = "ng.ones(1)"
    told = ElementwisePrimitive("told", ("input",), (None,), (REAL,), doc="Return it.", **options)
    assert told.doc == "Return it.\n\n>>> import numgrad as ng\n>>> ng.ones(1)\n"


def test_views_have_their_history_where_an_operation_goes_the_long_way(traced: None) -> None:
    def written(x: Any) -> Any:
        base = ng.ones(3)
        view = base[:2]
        base.mul_(x)
        return (view * 2).sum()

    x = ng.tensor([1.0, 2.0, 3.0])
    assert ng.jit(ng.func.grad(written))(x).tolist() == [2.0, 2.0, 0.0]
    target = ng.tensor([1.0, 2.0], requires_grad=True)
    base = ng.ones(2)
    view = base[:]
    base.mul_(target)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        CATALOGUE["atan2"](view, ng.ones(2), out=ng.ones(2))


def test_a_sample_call_runs_back_to_what_requires_grad() -> None:
    seen: list[Any] = []
    for spread in (False, True):
        x = ng.ones(3, dtype=ng.float64, requires_grad=True)
        x.register_hook(lambda gradient: seen.append((gradient.tolist(), gradient.stride())))
        call = SampleCall(lambda x, k: [x * k, 2.0, x.detach()], [x, 2.0], spread=spread)
        call.run()
        SampleCall(lambda x: x.detach(), [x]).run()
        SampleCall(lambda y: x * y, [ng.ones(3)]).run()
    assert [gradient for gradient, _ in seen] == [[2.0] * 3] * 2


def test_what_has_no_derivative_says_so_if_somebody_asks() -> None:
    made = NotDifferentiablePrimitive("underived", "its_name", lambda a: a * 2, ("a",), (None,))
    assert made.apply(ng.ones(2)).grad_fn is None
    result = made.apply(ng.ones(2, requires_grad=True))
    assert result.grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for aten::its_name is not implemented"):
        result.sum().backward()
    for moving in (0, 1):
        output = ng.ones(2)
        made.record([ng.ones(2), 3.0], [output], {}, moving)
        assert (output.grad_fn is not None) == bool(moving)
        if moving:
            node: Any = output.grad_fn
            assert node.num_outputs == 1 and node.targets == (None, None)
