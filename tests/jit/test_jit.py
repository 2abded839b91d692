"""``jit``: the same results as without it, whatever the function does and is given."""

from __future__ import annotations

import dataclasses
import functools
import math
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import grad


def tensor(*numbers: float, requires_grad: bool = False) -> Any:
    return ng.tensor(numbers, dtype=ng.float64, requires_grad=requires_grad)


def assert_equal(ours: Any, expected: Any) -> None:
    assert ours.dtype is expected.dtype
    np.testing.assert_allclose(
        ours.numpy(force=True), expected.numpy(force=True), rtol=1e-14, atol=1e-300
    )


# --- arguments and results ------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Model:
    weight: Any
    bias: Any


@pytest.mark.usefixtures("traced")
def test_arguments_and_results_nest():
    def function(model, pair, *, extra):
        hidden = model.weight * pair.left + model.bias
        return {"out": [hidden, (hidden.sum(), extra["n"])], "pair": Pair(pair.right, None)}

    arguments = (Model(tensor(1, 2), tensor(3)), Pair(tensor(4, 5), tensor(6)))
    result = ng.jit(function)(*arguments, extra={"n": 7})
    expected = function(*arguments, extra={"n": 7})
    assert_equal(result["out"][0], expected["out"][0])
    assert_equal(result["out"][1][0], expected["out"][1][0])
    assert result["out"][1][1] == 7
    assert isinstance(result["pair"], Pair)
    assert result["pair"].left is arguments[1].right  # an argument, returned as it is
    assert result["pair"].right is None


def test_arrays_and_floats_are_taken_as_they_are():
    result = ng.jit(lambda x, factor: x * factor)(np.array([1.0, 2.0]), 3.0)
    assert_equal(result, tensor(3, 6))


def test_float32_stays_float32_beside_a_float():
    result = ng.jit(lambda x, factor: x * factor)(ng.ones(2), 0.1)
    assert result.dtype is ng.float32
    assert_equal(result, ng.ones(2) * 0.1)


def test_another_float_needs_no_other_trace():
    scaled = ng.jit(lambda x, factor: x * factor)
    assert scaled(tensor(1), 2.0).item() == 2.0
    assert scaled(tensor(1), 3.0).item() == 3.0
    assert scaled.cache_info()[:2] == (1, 1)


@pytest.mark.usefixtures("traced")
def test_ints_bools_and_strings_are_static():
    def power(x, n, negate=False, how="sum"):
        for _ in range(n - 1):
            x = x * x
        return getattr(-x if negate else x, how)()

    compiled = ng.jit(power)
    assert compiled(tensor(2, 3), 2).item() == 13
    assert compiled(tensor(2, 3), 3).item() == 97
    assert compiled(tensor(2, 3), 2, negate=True, how="amax").item() == -4
    assert compiled.cache_info().misses == 3


def test_static_arguments_by_number_and_by_name():
    def scaled(x, factor):
        return x * (10 if factor > 1 else factor)

    for compiled in (
        ng.jit(scaled, static_argnums=1),
        ng.jit(scaled, static_argnames="factor"),
        ng.jit(static_argnums=(1,))(scaled),
    ):
        assert compiled(tensor(1), 2.0).item() == 10
        assert compiled(tensor(1), 0.5).item() == 0.5
        assert compiled(tensor(1), factor=0.25).item() == 0.25


def test_compile_is_another_name():
    assert ng.compile is ng.jit


def test_methods_are_bound():
    class Scaler:
        factor = 3.0

        @ng.jit
        def __call__(self, x):
            return x * self.factor

        __hash__ = object.__hash__

    assert Scaler()(tensor(2)).item() == 6


def test_a_tensor_that_depends_on_nothing_is_returned():
    outer = tensor(5, 6)
    made, kept = ng.jit(lambda x: (ng.full((2,), 2.5), outer))(tensor(1))
    assert_equal(made, ng.full((2,), 2.5))
    assert kept is outer


# --- what functions do ----------------------------------------------------------------------------


def in_place(x):
    y = x.clone()
    y[0] = 10
    y.mul_(2)
    row = y[1:]
    row += x[:-1]
    y.view(-1)[2] = row.sum()
    return y, row


def on_views(x):
    y = ng.zeros(3, 4, dtype=x.dtype)
    y[1] = x
    y.T[2] += 1
    y.diagonal().copy_(x[:3])
    return y.flip(0), y.reshape(2, 6)[:, ::2]


def with_modes(x):
    with ng.no_grad():
        scale = x.exp()
    y = (scale * x * x.detach()).sum()
    return grad(y, x)[0] if x.requires_grad else y


def own_backward(x):
    w = x.detach().clone().requires_grad_()
    (w.sin() * w).sum().backward()
    return w.grad * 2


def second_order(x):
    w = x.detach().requires_grad_()
    (first,) = grad((w**3).sum(), w, create_graph=True)
    return grad(first.sum(), w)[0]


def reductions(x):
    m = x.reshape(2, 2)
    return m.sum(0), m.mean(1), m.amax(), m.softmax(1), m.log_softmax(0), m.logsumexp(1), m.var(0)


def shapes(x):
    a = ng.cat([x, x[:2]])
    b = ng.stack([x, -x], dim=1)
    return a, b, b @ b.T, x.outer(x), ng.where(x > 2, x, -x), x.cumsum(0)


def dtypes(x):
    whole = x.to(ng.int32) + 1
    return whole * 2, (x > 1) & (x < 4), whole.to(ng.float32) / 3, whole // 2


def complexes(x):
    z = ng.complex(x, -x)
    return z.exp(), z.real * z.imag, z.abs(), ng.view_as_real(z)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize(
    "function",
    [
        in_place,
        on_views,
        with_modes,
        own_backward,
        second_order,
        reductions,
        shapes,
        dtypes,
        complexes,
    ],
    ids=lambda function: function.__name__,
)
def test_compiled_is_as_eager(function):
    x = tensor(1, 2, 3, 4)
    expected = function(x)
    results = ng.jit(function)(x)
    if not isinstance(expected, tuple):
        results, expected = (results,), (expected,)
    assert len(results) == len(expected)
    for ours, theirs in zip(results, expected, strict=True):
        assert_equal(ours, theirs)


def test_arguments_are_not_written_to():
    x = tensor(1, 2)
    result = ng.jit(lambda x: x.clone().add_(1))(x)
    assert x.tolist() == [1, 2]
    assert result.tolist() == [2, 3]


def test_strided_and_transposed_arguments():
    x = ng.arange(24, dtype=ng.float64).reshape(4, 6)
    compiled = ng.jit(lambda x: (x.exp() / 2).sum(0) + x[0])
    for view in (x, x.T, x[::2].flip(1), x[:, :1].expand(4, 5)):
        assert_equal(compiled(view), (view.exp() / 2).sum(0) + view[0])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (1, 1)])
def test_sizes_0_and_1(shape):
    def function(x):
        return (x * 2 + x.sum()).exp(), x.sum(-1) if x.ndim else x

    x = ng.ones(shape, dtype=ng.float64)
    for ours, expected in zip(ng.jit(function)(x), function(x), strict=True):
        assert ours.shape == expected.shape
        assert_equal(ours, expected)


def test_a_row_times_a_matrix_is_no_call():
    graph = ng.jit(lambda x, m: x @ m).lower(ng.ones(3), ng.ones(3, 2)).graph
    assert [v.operation for v in graph.values()].count("call") == 0
    x, m = tensor(1, 2), ng.ones(2, 3, dtype=ng.float64)
    assert_equal(ng.jit(lambda x, m: x @ m)(x, m), x @ m)


# --- derivatives ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("traced")
def test_results_are_differentiable_to_any_order():
    def function(x, y):
        return (x.sin() * y.exp()).sum(), x * y

    compiled = ng.jit(function)
    found = []
    for each in (compiled, function):
        x, y = tensor(0.3, 0.7, requires_grad=True), tensor(1.1, -0.4, requires_grad=True)
        total, product = each(x, y)
        results = [total, product]
        for _ in range(3):
            result = sum((r * r).sum() for r in results)
            results = list(grad(result, (x, y), create_graph=True))
            found.append(results)
    for ours, expected in zip(found[:3], found[3:], strict=True):
        for one, other in zip(ours, expected, strict=True):
            np.testing.assert_allclose(one.tolist(), other.tolist(), rtol=1e-12)


@pytest.mark.usefixtures("traced")
def test_gradients_pass_finite_differences():
    compiled = ng.jit(lambda x, y: (x.tanh() * y).sum(0) / (1 + x.exp().sum()))
    x = ng.linspace(-1, 1, 6, dtype=ng.float64).reshape(2, 3).requires_grad_()
    y = ng.linspace(1, 2, 3, dtype=ng.float64).requires_grad_()
    assert ng.autograd.gradcheck(compiled, (x, y))
    assert ng.autograd.gradgradcheck(compiled, (x, y))


@pytest.mark.usefixtures("traced")
def test_gradients_reach_captured_tensors():
    weight = tensor(2, 3, requires_grad=True)
    hidden = weight * 2  # not a leaf
    compiled = ng.jit(lambda x: (x * weight * hidden).sum())
    x = tensor(5, 7, requires_grad=True)
    compiled(x).backward()
    assert x.grad.tolist() == [8, 18]
    assert weight.grad.tolist() == [40, 84]


def test_a_saved_argument_that_was_written_to_is_found():
    x = tensor(1, 2, requires_grad=True)
    y = x * 1
    result = ng.jit(lambda y: (y * y).sum())(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_the_graph_is_freed_after_backward():
    x = tensor(1, 2, requires_grad=True)
    result = ng.jit(lambda x: (x * x).sum())(x)
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_nothing_is_recorded_without_grad_mode():
    x = tensor(1, 2, requires_grad=True)
    compiled = ng.jit(lambda x: x * 2)
    with ng.no_grad():
        assert not compiled(x).requires_grad
    assert compiled(x).requires_grad


def test_compiled_functions_nest():
    inner = ng.jit(lambda x: x.sin())
    outer = ng.jit(lambda x: grad(inner(x).sum(), x)[0] * 2)
    x = tensor(1, 2, requires_grad=True)
    assert_equal(outer(x), x.cos() * 2)


# --- when it traces again -------------------------------------------------------------------------


def test_shapes_dtypes_and_modes_have_traces_of_their_own():
    compiled = ng.jit(lambda x: x * 2)
    for x in (tensor(1), tensor(1, 2), tensor(1).float(), tensor(1)):
        compiled(x)
    assert compiled.cache_info() == (1, 3, 256, 3)


def test_numbers_of_captured_tensors_are_read_at_every_call():
    weight = tensor(2)
    compiled = ng.jit(lambda x: x * weight)
    assert compiled(tensor(3)).item() == 6
    weight.mul_(10)
    assert compiled(tensor(3)).item() == 60


factor = 2.0


def test_a_changed_global_is_seen():
    global factor
    compiled = ng.jit(lambda x: x * factor)
    assert compiled(tensor(3)).item() == 6
    factor = 5.0
    try:
        assert compiled(tensor(3)).item() == 15
    finally:
        factor = 2.0


def test_a_changed_variable_of_the_enclosing_function_is_seen():
    scale = 2.0
    compiled = ng.jit(lambda x: x * scale)
    assert compiled(tensor(3)).item() == 6
    scale = 7.0
    assert compiled(tensor(3)).item() == 21


def test_the_reason_for_a_trace_is_told(monkeypatch, caplog):
    monkeypatch.setenv("NUMGRAD_LOG", "recompiles")
    compiled = ng.jit(lambda x: x * 2)
    arguments = (tensor(1), tensor(1, 2), tensor(1, requires_grad=True), np.ones((2, 3)), 1.5, 7)
    for argument in arguments:
        compiled(argument)
    assert [record.message.partition(": ")[2] for record in caplog.records] == [
        "it is called for the first time",
        "argument leaf 0 was float64[1] and is float64[2]",
        "argument leaf 0 was float64[2] and is float64[1] that requires grad",
        "argument leaf 0 was float64[1] that requires grad and is float64[2, 3]",
        "argument leaf 0 was float64[2, 3] and is a float",
        "argument leaf 0 was a float and is 7",
    ]


def test_traces_are_bounded():
    compiled = ng.jit(lambda x: x * 2)
    for n in range(300):
        compiled(ng.ones(n))
    assert compiled.cache_info().currsize == 256


def test_other_sizes_need_no_other_code():
    compiled = ng.jit(lambda x: (x.exp() / x.numel()).mean())
    sources = {compiled.lower(ng.ones(n)).source for n in (5, 6, 1000)}
    assert len(sources) == 1


def test_threads_share_a_compiled_function():
    compiled = ng.jit(lambda x: (x.sin() * x).sum())
    arguments = [ng.full((50,), n / 10, dtype=ng.float64) for n in range(32)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(compiled, arguments))
    for x, result in zip(arguments, results, strict=True):
        assert_equal(result, (x.sin() * x).sum())


def test_a_function_that_is_called_often_notices_every_change():
    """Its sizes are compiled in by then; what does not fit goes another way."""
    scale = 2.0

    def function(x, factor):
        return (x * factor).sum(), x * scale

    compiled = ng.jit(function)
    array = np.array([1.0, 2.0, 3.0])
    for _ in range(120):
        compiled(array, 2.0)
    assert type(compiled) is not type(ng.jit(abs))
    others = [
        (array, 2.0),
        (array[::-1], 3.0),
        (np.array([1.0, 2.0]), 2.0),
        (array.astype(np.float32), 2.0),
        (tensor(1, 2, 3), 2.0),
        (tensor(1, 2, 3, requires_grad=True), 2.0),
        (array, tensor(5)),
    ]
    for arguments in others:
        x, factor = arguments
        eager = function(ng.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x, factor)
        for ours, expected in zip(compiled(*arguments), eager, strict=True):
            assert_equal(ours, expected)
            assert ours.requires_grad == expected.requires_grad
    scale = 10.0
    assert compiled(array, 2.0)[1].tolist() == [10, 20, 30]
    with pytest.raises(TypeError, match="argument"):
        compiled(array)
    with pytest.raises(TypeError, match="argument"):
        compiled(array, 2.0, 3.0)


def test_sines_that_are_kept_and_sines_that_are_not():
    def function(x):
        return x.cos() * x.sin().prod() / x.sin()

    x = tensor(1, 2, 3)
    assert_equal(ng.jit(function)(x), function(x))


def test_results_have_memory_of_their_own():
    outside = tensor(7, 8)

    def function(x):
        y = x * 2
        return x.clone(), x * 1, outside.clone(), y, y.clone()

    compiled = ng.jit(function)
    x = tensor(1, 2)
    for _ in range(120):  # the quick way too
        results = compiled(x)
    for result in results:
        result.add_(100)
    assert x.tolist() == [1, 2]
    assert outside.tolist() == [7, 8]
    assert [result.tolist() for result in results] == [
        [101, 102],
        [101, 102],
        [107, 108],
        [102, 104],
        [102, 104],
    ]


def test_arrays_of_other_types_are_refused():
    with pytest.raises(TypeError, match="can't convert np.ndarray"):
        ng.jit(lambda x: x)(np.array(["a"]))


# --- what a reviewer broke ------------------------------------------------------------------------


@pytest.mark.usefixtures("traced")
def test_numpy_scalars_are_traced():
    compiled = ng.jit(lambda x, s: x * s)
    for number in (np.float32(2), np.float32(3), np.int64(4), np.int64(5), np.float64(6)):
        assert compiled(tensor(1), number).item() == number


@pytest.mark.usefixtures("traced")
def test_static_numbers_of_other_types_and_signs_are_others():
    product = ng.jit(lambda x, n: x * n, static_argnums=1)
    whole = ng.tensor([1, 2])
    assert product(whole, 1).dtype is ng.int64
    assert product(whole, 1.0).dtype is ng.float32
    ratio = ng.jit(lambda x, n: x / n, static_argnums=1)
    assert ratio(tensor(1), 0.0).item() == np.inf
    assert ratio(tensor(1), -0.0).item() == -np.inf


def test_gradients_are_those_of_the_call():
    power = 2
    compiled = ng.jit(lambda x: (x**power).sum())
    x = tensor(3, requires_grad=True)
    y = compiled(x)
    power = 3
    y.backward()
    assert x.grad.item() == 6


@pytest.mark.usefixtures("traced")
def test_batches_that_a_loop_captures():
    w = tensor(1, 1, requires_grad=True)
    total: Any = 0
    compiled = ng.jit(lambda w: (w * batch).sum())
    for batch in (tensor(1, 2), tensor(10, 20)):  # noqa: B007 - the function takes it
        total = total + compiled(w)
    total.backward()
    assert w.grad.tolist() == [11, 22]


def test_a_captured_tensor_that_was_written_to_is_found():
    c, x = tensor(2), tensor(3, requires_grad=True)
    y = ng.jit(lambda x: (x * c).sum())(x)
    c.mul_(10)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_gradient_of_another_kind_after_a_change_is_refused():
    power = 2
    compiled = ng.jit(lambda x: (x**power).sum())
    x = tensor(3, requires_grad=True)
    y = compiled(x)
    power = 3
    with pytest.raises(RuntimeError, match="is not what it was in the call"):
        grad(y, x, create_graph=True)


@pytest.mark.usefixtures("traced")
def test_captured_tensors_that_change_as_objects():
    w, x = tensor(2), tensor(3)
    compiled = ng.jit(lambda x: (x * w).sum())
    assert compiled(x).item() == 6
    w.data = tensor(10, 20)
    assert compiled(x).item() == 90
    w.requires_grad_()
    assert compiled(x).requires_grad


def test_functions_behind_partials_tuples_and_arguments_are_watched():
    k = 2.0

    def scaled(x):
        return x * k

    functions = (scaled,)
    ways = [
        ng.jit(functools.partial(lambda n, x: n * scaled(x), 1.0)),
        ng.jit(lambda x: functions[0](x)),
        functools.partial(ng.jit(lambda f, x: f(x)), scaled),
    ]
    for each in ways:
        assert each(tensor(1)).item() == 2
    k = 5.0
    for each in ways:
        assert each(tensor(1)).item() == 5


def test_a_name_that_is_gone_is_a_name_error():
    k = 2.0
    compiled = ng.jit(lambda x: x * k)  # noqa: F821 - deleted below
    compiled(tensor(1))
    del k
    with pytest.raises(NameError):
        compiled(tensor(1))


def test_results_of_dispatchers_have_memory_of_their_own():
    function = ng.jit(lambda x: (x * 1, x[:], x * 2, x * 2)).lower(np.zeros(2)).dispatcher
    x = np.ones(2)
    results = function(x)
    for result in results:
        result += 7
    assert x.tolist() == [1, 1]
    assert [result.tolist() for result in results] == [[8, 8], [8, 8], [9, 9], [9, 9]]


@pytest.mark.usefixtures("traced")
def test_results_whose_graph_is_gone_raise_when_their_gradient_is_asked_for():
    @ng.jit
    def step(w):
        loss = (w * w).sum()
        (gradient,) = grad(loss, w)
        return loss, gradient

    w = tensor(1, 2, requires_grad=True)
    for _ in range(3):
        loss, gradient = step(w)
        assert (loss.item(), gradient.tolist()) == (5, [2, 4])
        for _ in range(2):
            with pytest.raises(RuntimeError, match="through the graph a second time"):
                loss.backward(retain_graph=True)
    assert w.grad is None


def test_arguments_are_not_kept_alive():
    compiled = ng.jit(lambda x: (x * 2).sum())
    x = tensor(1, 2, requires_grad=True)
    array = weakref.ref(x)
    compiled(x).backward()
    x.grad = None
    del x
    assert array() is None


@pytest.mark.usefixtures("traced")
def test_captured_views_are_read_where_they_are():
    """A transposed view is no array of its own, so writes to the tensor are seen."""
    weights = tensor(1, 2, 3, 4, 5, 6).reshape(2, 3)
    transposed, part = weights.T, weights[1:, ::2]

    def function(x):
        return transposed @ x + part.sum(), (weights * x.unsqueeze(1)).sum()

    compiled = ng.jit(function)
    x = tensor(1, -1, requires_grad=True)
    for factor in (1, 3):
        weights.mul_(factor)
        for ours, expected in zip(compiled(x), function(x), strict=True):
            assert_equal(ours, expected)
    captured = [v for v in compiled.lower(x).graph.values() if v.operation == "array"]
    assert len(captured) == 1


def test_a_captured_view_that_changed_before_backward_is_an_error():
    weights = tensor(1, 2)
    part = weights[1:]
    x = tensor(3, requires_grad=True)
    result = ng.jit(lambda x: x * part)(x)
    weights.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


@pytest.mark.parametrize("dim", [0, 1])
def test_joined_tensors_need_no_interpreter(dim):
    def function(x, y):
        joined = ng.cat([x, y.float(), ng.zeros(0), x * 2], dim)
        return joined.exp(), ng.stack([x, x.sin()], dim) * 2

    x, y = ng.rand(2, 3, dtype=ng.float64), ng.ones(2, 3)
    compiled = ng.jit(function)
    for ours, expected in zip(compiled(x, y), function(x, y), strict=True):
        assert_equal(ours, expected)
    assert all(value.operation != "call" for value in compiled.lower(x, y).graph.values())


def test_compiled_functions_pickle():
    by_name, inside = pickle.loads(pickle.dumps((cubed, ng.jit(math.sqrt, static_argnums=0))))
    assert by_name is cubed
    assert inside.function is math.sqrt
    assert inside.static_numbers == frozenset({0})


@ng.jit
def cubed(x):
    return x**3


def test_a_new_size_compiles_nothing(monkeypatch):
    compiled = ng.jit(lambda x: (x.exp() * x).sum())
    compiled(ng.ones(3))
    monkeypatch.setattr("numba.core.compiler.compile_extra", None)
    monkeypatch.setattr("numgrad.codegen.compile.cache.KernelCache.load_overload", None)
    for size in range(4, 40):
        compiled(ng.ones(size))
    assert compiled.cache_info().misses == 37


def test_writes_at_listed_positions():
    where = ng.tensor([0, 1])

    def function(x):
        y = x * 1
        y[[2, 0]] = 7.0
        y[where] = x[2:]
        y[np.array([1])] += 2.0
        y.view(2, 2)[:, where[:1]] *= 3.0
        return y

    compiled = ng.jit(function)
    x = np.arange(4.0)
    for _ in range(2):
        assert_equal(compiled(x), function(ng.from_numpy(x)))
        where.add_(1)


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.14)
@pytest.mark.parametrize(
    "take",
    [
        lambda x, where, _: x[where],
        lambda x, where, _: x[where[0]],
        lambda x, where, _: x.index_select(0, where),
        lambda x, where, _: x.gather(0, where),
        lambda x, where, _: x.take(where),
        lambda x, where, _: x.clone().index_add_(0, where, x[:2]),
        lambda x, where, _: x * where.tolist()[1],
        lambda x, where, _: x * float(where.numpy().sum()),
        lambda x, _, mask: x[mask],
        lambda x, _, mask: x.masked_fill(mask, 9.0),
        lambda x, _, mask: ng.where(mask, x, -x),
    ],
)
def test_captured_indices_and_masks_may_change(take):
    where, mask = ng.tensor([0, 1]), ng.tensor([True, False, True, False])
    compiled = ng.jit(lambda x: take(x, where, mask))
    for requires_grad in (False, True):
        x = tensor(1, 2, 3, 4, requires_grad=requires_grad)
        for _ in range(2):
            for _ in range(120):  # the quick way too
                compiled(x)
            assert_equal(compiled(x), take(x, where, mask))
            where.add_(1)
            mask.logical_not_()
            assert_equal(compiled(x), take(x, where, mask))
        where.sub_(2)


@pytest.mark.usefixtures("traced")
def test_traces_that_go_by_the_same_numbers_watch_them_once():
    mask = ng.tensor([True, False])
    compiled = ng.jit(lambda x: x[mask].sum() + x[mask].prod() * mask.tolist()[0])
    for size in range(1, 20):
        compiled(ng.ones(2, size))
    held = [pair[1] for each in compiled._compiled.values() for pair in each.watch.baked.values()]
    assert len({id(array) for array in held}) == 1


def test_a_captured_index_that_leads_outside_is_an_error():
    where = ng.tensor([0, 1])
    compiled = ng.jit(lambda x: x[where])
    compiled(tensor(1, 2))
    where.add_(1)
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        compiled(tensor(1, 2))


def test_products_of_nothing_have_gradients():
    def function(a, b):
        return ((a @ b) ** 2).sum()

    for left, right in [((0, 3), (3, 4)), ((2, 3), (3, 0)), ((2, 0), (0, 4))]:
        a, b = np.ones(left), np.ones(right)
        gradients = ng.func.grad(function, argnums=(0, 1))
        for ours, expected in zip(ng.jit(gradients)(a, b), gradients(a, b), strict=True):
            assert_equal(ours, expected)


def test_dispatchers_return_all_arrays_and_numbers():
    captured = tensor(5, 6)

    def function(x, y):
        return y, captured, x * y, "no array", 3, True, None, x

    x = np.array([1.0, 2.0])
    found = ng.jit(function).lower(x, 2.0).dispatcher(x, 2.0)
    assert [np.asarray(each).tolist() for each in found] == [2, [5, 6], [2, 4], 3, True, [1, 2]]
    assert ng.jit(lambda x: ()).lower(x).dispatcher(x) == ()


@pytest.mark.usefixtures("traced")
def test_results_are_differentiated_one_by_one():
    compiled = ng.jit(lambda x: (x * 2, x.sin()))
    x = tensor(1, 2, requires_grad=True)
    first, second = compiled(x)
    first.sum().backward()
    second.sum().backward()
    assert_equal(x.grad, 2 + x.detach().cos())
    with pytest.raises(RuntimeError, match="through the graph a second time"):
        second.sum().backward()


def test_an_argument_can_be_made_to_require_grad():
    def function(x):
        x.requires_grad_()
        return x * 2

    compiled = ng.jit(function)
    for _ in range(2):
        x = tensor(1, 2)
        compiled(x).sum().backward()
        assert x.grad.tolist() == [2, 2]


def test_functions_that_write_to_what_they_return_have_pullbacks():
    def function(x):
        y = ng.zeros(2, dtype=ng.float64)
        y[0] = x[1] * 3
        y.add_(1)
        return y.mul_(x)

    x = tensor(0.5, -2)
    expected = ng.func.jacfwd(function)(x)
    assert_equal(ng.func.jacrev(function)(x), expected)
    assert_equal(ng.jit(ng.func.jacrev(function))(x), expected)


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.072, by="dtype")
@pytest.mark.parametrize("number", [0.1, 0.1 + 2j])
@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [ng.bool, ng.int64, ng.float32, ng.float64, ng.complex64])
def test_a_number_is_a_tensor_of_double_precision_unless_it_is_static(dtype, shape, number):
    x = ng.ones(shape).to(dtype)
    double = ng.complex128 if isinstance(number, complex) else ng.float64
    assert_equal(ng.jit(ng.mul)(x, number), x * ng.tensor(number, dtype=double))
    assert_equal(ng.jit(ng.mul, static_argnums=1)(x, number), x * number)
