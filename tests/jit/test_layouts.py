"""Strides in a traced function: what is a view, what results lie like, what a trace is for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.graph.tensor import Tensor, wrap
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.passes.simplify import simplify
from tests.cases import examples
from tests.jit.layout_programs import LAYOUTS, Program, laid_out, programs
from tests.jit.run_graph import run_graph
from tests.jit.test_jit_catalogue import ELEMENTWISE, SAMPLES, SHAPE_DEPENDS_ON_VALUES
from tests.ops.catalogue_strategies import as_tensors
from tests.ops.test_catalogue_derivatives import make_samples

SHAPES = [(3, 4), (2, 3, 2), (4,), (1, 4), (3, 1), (2, 1, 3), (2, 2), (), (0, 3), (2, 0, 2)]


def values_of(shape: tuple[int, ...]) -> Any:
    return np.linspace(0.125, 3, np.prod(shape, dtype=int)).reshape(shape)


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what does the work of ``jit(function)``, but that a graph is run in NumPy."""

    def call(*arguments: Any) -> list[Any]:
        leaves, spec = flatten((arguments, {}))
        trace = trace_function(function, spec, leaves)
        outputs = list(trace.graph.outputs)
        for output in trace.outputs:
            if output.laid is not None:
                outputs[output.which] = output.laid.in_memory(outputs[output.which])
        graph = simplify(Graph(trace.graph.inputs, outputs))
        validate(graph)
        computed = run_graph(graph, [leaves[k]._array for k in trace.traced])
        results: list[Any] = []
        for kind, which, _, laid, _ in trace.outputs:
            if kind == "computed":
                array = np.array(computed[which], order="C")
                results.append(wrap(array if laid is None else laid.place(array)))
            else:
                results.append(which if kind == "static" else leaves[which])
        return results

    return call


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the results, or the words of an error."""
    try:
        return flatten(function(*arguments))[0]
    except ng.TraceError:
        raise
    except (RuntimeError, ValueError) as error:
        return str(error)


def strides_of(tensor: Tensor) -> list[int]:
    """Return the strides, also those of dims of length 1; none where there are no elements."""
    if not tensor.numel():
        return []
    return list(tensor.stride())


def assert_same(ours: Any, eager: Any) -> None:
    if isinstance(eager, str):
        assert ours == eager
        return
    assert not isinstance(ours, str), ours
    for one, other in zip(ours, eager, strict=True):
        if not isinstance(other, Tensor):
            assert one == other
            continue
        assert one.shape == other.shape and one.dtype is other.dtype
        np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-12)
        assert strides_of(one) == strides_of(other)
        assert one.is_contiguous() == other.is_contiguous()


def with_gradient(program: Program) -> Callable[[Any], list[Any]]:
    """Return a function that returns a program's results and the gradient of a sum of them."""

    def derived(x: Any) -> list[Any]:
        leaf = x.detach().requires_grad_()
        results = program(leaf)
        total = sum((k + 1) * r.sum() for k, r in enumerate(results) if isinstance(r, Tensor))
        (gradient,) = ng.autograd.grad(total, leaf, create_graph=True)
        return [r.detach() if isinstance(r, Tensor) else r for r in (*results, gradient)]

    return derived


# What lies as its argument does, and whether something is then a view of it. Nothing else here
# depends on the argument's strides.
LIKE: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda x, made: made,
    "a copy": lambda x, made: made.clone(),
    "a sum": lambda x, made: made + x,
    "written to flat": lambda x, made: [made.reshape(-1).add_(1), made],
    "written to row by row": lambda x, made: [made.contiguous().add_(1), made],
    "asked": lambda x, made: [made.stride(), made.is_contiguous()],
}


@pytest.mark.sampled(0.5)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("after", LIKE)
@pytest.mark.parametrize("captured", [False, True])
def test_what_is_made_like_an_argument_lies_like_it(after: str, captured: bool) -> None:
    arrays = [wrap(laid_out(values_of((3, 4)), layout)) for layout in LAYOUTS]
    for make in (ng.zeros_like, lambda x: ng.full_like(x, 2.0), ng.empty_like):
        if captured:
            for array in arrays:

                def program(x: Any, array: Any = array, make: Any = make) -> list[Any]:
                    return flatten(LIKE[after](x, make(array).fill_(0.5)))[0]

                assert_same(ng.jit(program)(arrays[0]), program(arrays[0]))
        else:

            def program(x: Any, make: Any = make) -> list[Any]:
                return flatten(LIKE[after](x, make(x).fill_(0.5)))[0]

            compiled = ng.jit(program)
            for array in (*arrays, *reversed(arrays)):
                assert_same(compiled(array), program(array))


@settings(max_examples=examples(200))
@given(programs(), st.sampled_from(SHAPES), st.sampled_from(LAYOUTS))
def test_views_and_copies_are_those_of_eager_mode(
    program: Program, shape: tuple[int, ...], layout: str
) -> None:
    x = wrap(laid_out(values_of(shape), layout))
    assert_same(outcome(interpreted(program), x), outcome(program, x))


@settings(max_examples=examples(100))
@given(programs(), st.sampled_from(SHAPES), st.sampled_from(LAYOUTS))
def test_gradients_are_those_of_eager_mode(
    program: Program, shape: tuple[int, ...], layout: str
) -> None:
    derived = with_gradient(program)
    x = wrap(laid_out(values_of(shape), layout))
    assert_same(outcome(interpreted(derived), x), outcome(derived, x))


@pytest.mark.usefixtures("traced")
@settings(max_examples=examples(3))
@given(programs(), st.sampled_from(SHAPES[:6]))
def test_one_function_for_all_layouts(program: Program, shape: tuple[int, ...]) -> None:
    compiled = ng.jit(program)
    for layout in (*LAYOUTS, "contiguous", "fortran"):
        x = wrap(laid_out(values_of(shape), layout))
        assert_same(outcome(compiled, x), outcome(program, x))


@settings(max_examples=examples(3))
@given(programs(), st.sampled_from(SHAPES[:6]), st.sampled_from(LAYOUTS))
def test_a_dispatcher_goes_by_the_layout_of_its_example(
    program: Program, shape: tuple[int, ...], layout: str
) -> None:
    def tensors(x: Any) -> list[Any]:
        return [r for r in program(x) if isinstance(r, Tensor)]

    x = wrap(laid_out(values_of(shape), layout))
    expected = outcome(tensors, x)
    if isinstance(expected, str):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            ng.jit(tensors).lower(x)
        assert str(caught.value) == expected
        return
    dispatcher = ng.jit(tensors).lower(x).dispatcher
    for array in (x.numpy(), x.numpy().copy("C")):
        results = dispatcher(array)
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-12)
            assert np.asarray(one).flags.c_contiguous


# --- every operation -----------------------------------------------------------------------------

# Their gradient is found in one of two ways, by whether there is a zero, and lies accordingly.
BY_NUMBERS = {"prod", "prod_over_dim"}


def elementwise_call(primitive: Any) -> tuple[Any, list[Any]]:
    """Return a call of an elementwise operation, on operands that broadcast."""
    random = np.random.default_rng(3)
    values: list[Any] = []
    for domain, shape in zip(primitive.domains, cycle([(2, 3), (3,), (2, 1)]), strict=False):
        if domain.is_number:
            values.append(domain.intervals[0][0])
        elif domain.is_mask:
            values.append(random.random(shape) < 0.5)
        else:
            values.append(domain.draw(shape, random))
    return function_of_tensors(primitive, as_tensors(values))


def function_of_tensors(primitive: Any, operands: list[Any]) -> tuple[Any, list[Any]]:
    """Return a function that takes those operands that are tensors, and these."""

    def function(*tensors: Any) -> Any:
        rest = iter(tensors)
        return primitive(*[next(rest) if isinstance(v, Tensor) else v for v in operands])

    return function, [v for v in operands if isinstance(v, Tensor)]


def sample_call(sample: Any) -> tuple[Any, list[Any]]:
    function, tensors, keywords = sample(make_samples())
    return lambda *given: function(*given, **keywords), tensors


CALLS = [
    *(pytest.param(p.name, lambda p=p: elementwise_call(p), id=p.name) for p in ELEMENTWISE),
    *(
        pytest.param(case.values[0].name, lambda s=case.values[1]: sample_call(s), id=case.id)
        for case in SAMPLES
        if case.values[0].name not in SHAPE_DEPENDS_ON_VALUES
    ),
]


def results_and_gradients(function: Any, gradients: bool) -> Any:
    def derived(*tensors: Any) -> list[Tensor]:
        results = [r for r in flatten(function(*tensors))[0] if isinstance(r, Tensor)]
        moving = [r for r in results if r.requires_grad]
        inputs = [t for t in tensors if isinstance(t, Tensor) and t.requires_grad]
        if not moving or not inputs or not gradients:
            return results
        cotangents = [ng.ones_like(r, memory_format=ng.contiguous_format) for r in moving]
        found = ng.autograd.grad(moving, inputs, cotangents, create_graph=True, allow_unused=True)
        return [*results, *(g for g in found if g is not None)]

    return derived


def longer_strides_of(tensor: Tensor) -> list[int]:
    """Return the strides that lead from one element to another."""
    strides = zip(strides_of(tensor), tensor.shape, strict=False)
    return [step for step, length in strides if length > 1]


def traced_strides(
    function: Any, tensors: list[Any], told: Callable[[Tensor], list[int]] = strides_of
) -> tuple[list[list[int]], Any]:
    """Return how the results of a trace lie, and by which strides of arguments it goes."""
    leaves, spec = flatten((tuple(tensors), {}))
    trace = trace_function(function, spec, leaves)
    results = []
    for kind, which, _, laid, _ in trace.outputs:
        if kind != "computed":
            results.append(told(leaves[which] if kind == "argument" else which))
            continue
        array = np.zeros(trace.graph.outputs[which].shape, trace.graph.outputs[which].dtype)
        if laid is not None:
            array = np.zeros(laid.in_memory(trace.graph.outputs[which]).shape, array.dtype)
            array = laid.place(array)
        results.append(told(wrap(array)))
    return results, trace.strides


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize(("name", "call"), CALLS)
def test_results_lie_as_in_eager_mode(name: str, call: Any) -> None:
    function, tensors = call()
    derived = results_and_gradients(function, gradients=name not in BY_NUMBERS)
    known: dict[Any, Any] = {}
    for layout in ("contiguous", "fortran", "permuted", "stepped"):
        given = [
            wrap(laid_out(t.numpy(force=True), layout)).requires_grad_(t.requires_grad)
            if isinstance(t, Tensor)
            else t
            for t in tensors
        ]
        try:
            expected = [strides_of(r) for r in derived(*given)]
        except RuntimeError:  # not for all layouts, such as `view_as_complex`
            continue
        if name.startswith("as_strided") and layout == "stepped":
            continue  # what lies between is not passed to compiled code
        found, goes_by = traced_strides(derived, given)
        if name.startswith("convolution"):  # gradients of which lie elsewhere in dims of length 1
            assert [steps[-1:] for steps in found] == [steps[-1:] for steps in expected], layout
        else:
            assert found == expected, layout
        strides = [leaf._array.strides for leaf in flatten(given)[0] if isinstance(leaf, Tensor)]
        for others, (other, by) in known.items():  # the trace must not be used for these, then
            if other != found:
                assert any(others[k] != strides[k] for k, _ in by), "is it in FOLLOWS?"
        known[tuple(strides)] = found, goes_by


MIXED = [(3, 4), (1, 4), (3, 1), (4,), (2, 3, 4), (1, 3, 4), ()]


@settings(max_examples=examples(200))
@given(st.sampled_from(ELEMENTWISE), st.data())
def test_elementwise_results_of_operands_in_several_orders_lie_as_in_eager_mode(
    primitive: Any, data: st.DataObject
) -> None:
    """Which operands decide, and in which order, is for the operation to say."""
    random = np.random.default_rng(3)
    operands: list[Any] = []
    for domain in primitive.domains:
        if domain.is_number:
            operands.append(domain.intervals[0][0])
            continue
        shape = data.draw(st.sampled_from(MIXED))
        values = random.random(shape) < 0.5 if domain.is_mask else domain.draw(shape, random)
        if "c" in primitive.accepts and not domain.is_mask and data.draw(st.booleans()):
            values = values.astype(complex)
        operands.append(wrap(laid_out(np.asarray(values), data.draw(st.sampled_from(LAYOUTS)))))

    function, tensors = function_of_tensors(primitive, operands)
    expected = strides_of(function(*tensors))
    assert traced_strides(function, tensors)[0] == [expected]


POSITIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, at: x[at],
    lambda x, at: x[:, at],
    lambda x, at: ng.index_put(x, (at,), ng.zeros((), dtype=x.dtype)),
    lambda x, at: ng.index_put(x, (at,), ng.zeros((), dtype=x.dtype), accumulate=True),
    lambda x, at: ng.gather(x, 0, at),
    lambda x, at: ng.take(x, at),
]


@settings(max_examples=examples(100))
@given(st.sampled_from(POSITIONS), st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
def test_what_positions_pick_lies_as_in_eager_mode(
    function: Any, layout: str, of_positions: str
) -> None:
    x = wrap(laid_out(values_of((3, 4)), layout))
    at = wrap(laid_out(np.array([[0, 1], [2, 0], [1, 1]]), of_positions))
    assert traced_strides(function, [x, at])[0] == [strides_of(function(x, at))]


# --- examples ------------------------------------------------------------------------------------


def fill_a_flat_view(x: Any) -> Any:
    w = x.t().clone()
    w.reshape(-1).fill_(0.3)
    return w


def read_a_flat_view(x: Any) -> Any:
    w = x.t().clone()
    v = w.reshape(-1)
    w.zero_()
    return v


def write_to_a_flat_result(x: Any) -> Any:
    w = x * 2
    w.flatten().mul_(0.0)
    return w


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "function", [fill_a_flat_view, read_a_flat_view, write_to_a_flat_result, lambda x: x.view(-1)]
)
def test_whether_a_reshape_is_a_view_is_known_while_tracing(function: Any, order: Any) -> None:
    x = wrap(np.ones((2, 3), order=order))
    assert_same(outcome(ng.jit(function), x), outcome(function, x))


def test_a_write_to_what_is_an_argument_in_one_layout_only() -> None:
    compiled = ng.jit(lambda x: x.contiguous().mul_(2))
    x = wrap(np.ones((2, 3), order="F"))
    assert compiled(x).tolist() == [[2, 2, 2], [2, 2, 2]]
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(ng.TraceError, match="writes to one of its arguments"):
        compiled(ng.ones(2, 3, dtype=ng.float64))
    assert compiled(x).tolist() == [[2, 2, 2], [2, 2, 2]]


def test_what_lies_between_the_elements_of_an_argument_is_out_of_reach() -> None:
    x = wrap(np.arange(6.0)[::2])
    assert ng.jit(lambda x: x.as_strided((2,), (4,)))(x).tolist() == [0, 4]
    with pytest.raises(ng.TraceError, match="reads memory between the elements of an array"):
        ng.jit(lambda x: x.as_strided((2,), (1,)))(x)


@pytest.mark.usefixtures("traced")
def test_what_comes_back_may_be_written_to_as_in_eager_mode() -> None:
    functions: list[Any] = [
        lambda x: (x * 2)[:, ::2],
        lambda x: x[1:],
        lambda x: x.t() + 1,
        lambda x: x.sum(0).expand(3, 4),
    ]
    for function in functions:
        for order in "CF":
            x = wrap(np.ones((3, 4), order=order))
            found = [made(x) for made in (ng.jit(function), function)]
            for y in found:
                if y.is_contiguous() or not any(s == 0 for s in y.stride()):
                    y.reshape(-1)[:2] = 5
            assert found[0].tolist() == found[1].tolist()
            assert found[0].stride() == found[1].stride()


# What follows from no stride: values of views and copies that nobody writes to.
INDEPENDENT: list[Callable[..., Any]] = [
    lambda x: (x * 2).flatten().abs(),
    lambda x: (x * x).t().any(0),
    lambda x: x.reshape(-1).sin().sum(),
    lambda x: x.t().flatten() * 2,
    lambda x: (x.ravel() * 2).cumsum(0),
    lambda x: (x.exp() + ng.zeros_like(x)).contiguous().any(),
    lambda x: x.flatten().tanh(),
    lambda x: x @ x.t(),
    lambda x: x.softmax(0).log().sum(),
    lambda x: ng.func.grad(lambda y: (y.flatten() * 2).tanh().sum())(x).flatten(),
    lambda x: ng.func.hessian(lambda y: (y.flatten() ** 3).sum())(x).sum(),
    lambda x: ng.einsum("ij,kj->ik", x, x),
    lambda x: x.unsqueeze(0).squeeze().flatten() * 3,
]


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("function", INDEPENDENT)
def test_a_function_that_asks_for_no_stride_is_traced_once(function: Any) -> None:
    """But for arguments whose elements share memory, if such come first."""
    for first in ("contiguous", "fortran", "stepped", "expanded", "overlapping"):
        compiled = ng.jit(function)
        for layout in (first, *LAYOUTS):
            x = wrap(laid_out(values_of((3, 4)), layout))
            np.testing.assert_allclose(
                compiled(x).numpy(), function(x).numpy(), rtol=1e-12, err_msg=f"{first}, {layout}"
            )
        assert compiled.cache_info().misses == 1 + (first in ("expanded", "overlapping"))


@given(
    st.sampled_from(LAYOUTS),
    st.lists(st.sampled_from(["stride", "reshape", "sum", "clone"]), max_size=3),
)
def test_a_trace_runs_the_function_once(layout: str, asks: list[str]) -> None:
    calls: list[int] = []

    def function(x: Any) -> Any:
        calls.append(1)
        for each in asks:
            getattr(x, each)(*((-1,) if each == "reshape" else ()))
        return x * 2 + x.stride()[0] if "stride" in asks else x.t().clone()

    compiled = ng.jit(function)
    for _ in range(2):
        leaves, spec = flatten(((wrap(laid_out(values_of((3, 4)), layout)),), {}))
        calls.clear()
        trace_function(compiled.function, spec, leaves)
        assert len(calls) == 1


@pytest.mark.usefixtures("traced")
def test_a_trace_is_for_the_strides_of_the_arguments_that_decide() -> None:
    compiled = ng.jit(lambda x, y: ((x * 2).flatten() * 2, y.flatten() * 2))
    square = np.ones((3, 3))
    for x in (square, np.asfortranarray(square), square):
        for y in (square, np.asfortranarray(square), np.ones((6, 6))[::2, ::2]):
            compiled(x, y)
    assert compiled.cache_info().misses == 1
    compiled = ng.jit(lambda x, y: ((x * 2).stride(), y.flatten() * 2))
    for x in (square, np.asfortranarray(square)):
        for y in (square, np.asfortranarray(square), np.ones((6, 6))[::2, ::2]):
            assert compiled(x, y)[0] == (wrap(x) * 2).stride()
    assert compiled.cache_info().misses == 2
    for _ in range(300):  # in the quick way, too
        assert compiled(square, square)[0] == (3, 1)
        assert compiled(np.asfortranarray(square), square)[0] == (1, 3)
    assert compiled.cache_info().misses == 2


@pytest.mark.parametrize("reduce", [ng.sum, ng.mean, lambda x: x.sum(0)])
def test_a_sum_of_floats_is_for_the_order_in_memory_that_it_is_taken_in(reduce: Any) -> None:
    compiled = ng.jit(lambda x: reduce(x * 2))
    numbers = np.random.default_rng(3).standard_normal((65, 33))
    for x in (numbers, np.asfortranarray(numbers), numbers, np.asfortranarray(numbers)):
        assert compiled(x).numpy().tobytes() == reduce(wrap(x) * 2).numpy().tobytes()
    assert compiled.cache_info().misses == 2


def test_few_traces_are_kept_for_arguments_of_other_strides() -> None:
    compiled = ng.jit(lambda x: x.stride())
    for k in range(40):
        assert compiled(np.ones((3, 3 + k))[:, :3]) == (3 + k, 1)
    assert compiled.cache_info().currsize == 17
