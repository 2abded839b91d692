"""NumPy's functions and operators on tensors: what they compute on arrays, with gradients."""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import numgrad as ng
from numgrad.ops.numpy.names import FACTS, NAMES, REDUCTIONS, UFUNCS, WRITERS

Array = np.ndarray[Any, Any]
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"}
EVERY_UFUNC = sorted({f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)})
OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.matmul,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
AUGMENTED = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow]


def positive(shape: Any) -> st.SearchStrategy[Array]:
    return hnp.arrays(np.float64, shape, elements=st.floats(0.125, 0.875, width=16))


shapes = hnp.array_shapes(min_dims=1, max_dims=2, max_side=3)
pairs = shapes.flatmap(lambda shape: st.tuples(positive(shape), positive(shape)))


def leaf(array: Any) -> ng.Tensor:
    return ng.tensor(array, requires_grad=np.asarray(array).dtype.kind == "f")


def assert_is(found: Any, expected: Any, recorded: bool = False) -> None:
    """Assert that what a call gave is tensors with NumPy's numbers, which can be differentiated."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_is(one, other, recorded)
        return
    if isinstance(expected, bool):
        assert found is expected
        return
    assert isinstance(found, ng.Tensor)
    if recorded and found.is_floating_point():
        assert found.requires_grad
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("name", EVERY_UFUNC)
@settings(max_examples=4)
@given(drawn=pairs)
def test_every_ufunc_gives_a_tensor_or_says_that_it_is_not_there(name: str, drawn: Any) -> None:
    ufunc = getattr(np, name)
    arrays = [(8 * array).astype(np.int64) for array in drawn] if name in BITS else list(drawn)
    if name == "matmul":
        arrays[1] = arrays[1].T
    arrays = arrays[: ufunc.nin]
    if name not in UFUNCS:
        with pytest.raises(TypeError, match=f"numgrad has no numpy.{name} for tensors"):
            ufunc(*map(leaf, arrays))
        return
    with np.errstate(all="ignore"):
        expected = ufunc(*arrays)
    for tensors in itertools.product([False, True], repeat=len(arrays)):
        if any(tensors):
            operands = [leaf(a) if made else a for a, made in zip(arrays, tensors, strict=True)]
            assert_is(ufunc(*operands), expected)
    if len(arrays) > 1 and name != "matmul":
        number = arrays[0].flat[0].item()
        for operands in ([number, leaf(arrays[1])], [leaf(arrays[0]), number]):
            plain = [o.detach().numpy() if isinstance(o, ng.Tensor) else o for o in operands]
            with np.errstate(all="ignore"):
                assert_is(ufunc(*operands), ufunc(*plain))


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("name", sorted(set(UFUNCS) - BITS))
def test_a_ufunc_is_the_tensors_operation_under_jit_too(name: str) -> None:
    ufunc = getattr(np, name)
    arrays = [np.array([0.25, 0.75]), np.array([0.5, 0.875])][: ufunc.nin]

    def call(x: Any, *others: Any) -> Any:
        return ufunc(x, *others)

    for swap in (False, True)[: ufunc.nin]:
        operands = [leaf(arrays[0]), *arrays[1:]]
        function = functools.partial(lambda s, x, *o: call(*o, x) if s else call(x, *o), swap)
        found = function(*operands)
        wanted = getattr(ng, UFUNCS[name])
        tensors = [operands[0], *map(ng.tensor, operands[1:])]
        expected = wanted(*(tensors[::-1] if swap else tensors))
        assert ng.equal(found, expected) or bool(found.isnan().all() & expected.isnan().all())
        compiled = ng.jit(lambda x, function=function: function(x, *arrays[1:]))(operands[0])
        assert_is(compiled, expected.detach().numpy())
        if found.requires_grad and name not in ("floor_divide", "heaviside"):
            gradients = [
                ng.autograd.grad(each.sum(), operands[0])[0].numpy()
                for each in (found, expected, compiled)
            ]
            np.testing.assert_allclose(gradients[0], gradients[1])
            np.testing.assert_allclose(gradients[2], gradients[1])


@pytest.mark.parametrize("apply", OPERATORS, ids=lambda f: f.__name__)
@settings(max_examples=10)
@given(drawn=pairs, number=st.sampled_from([np.float64(0.5), np.float32(2), np.int64(3)]))
def test_operators_of_an_array_and_a_tensor(apply: Any, drawn: Any, number: Any) -> None:
    array, other = drawn
    if apply is operator.matmul:
        other = other.T
    else:
        assert_is(apply(number, leaf(other)), apply(number, other))
        assert_is(apply(leaf(other), number), apply(other, number))
    recorded = apply(array, leaf(other)).dtype is ng.float64 and apply is not operator.floordiv
    assert_is(apply(array, leaf(other)), apply(array, other), recorded)
    assert_is(apply(leaf(array), other), apply(array, other), recorded)
    if recorded:
        x = leaf(other)
        apply(array, x).sum().backward()
        y = leaf(other)
        apply(ng.tensor(array), y).sum().backward()
        assert ng.equal(x.grad, y.grad)


@pytest.mark.parametrize("apply", AUGMENTED, ids=lambda f: f.__name__)
@settings(max_examples=10)
@given(drawn=pairs)
def test_augmented_assignment_to_an_array_writes_to_it_and_is_recorded(
    apply: Any, drawn: Any
) -> None:
    array, other = drawn
    expected = apply(array.copy(), other)
    memory = array.copy()
    x = leaf(other)
    found = apply(memory, x)
    assert_is(found, expected, recorded=True)
    assert np.array_equal(memory, found.detach().numpy())
    assert np.shares_memory(memory, found.detach().numpy())
    (gradient,) = ng.autograd.grad(found.sum(), x)
    y = leaf(other)
    (wanted,) = ng.autograd.grad(apply(ng.tensor(array), y).sum(), y)
    assert ng.equal(gradient, wanted)
    tensor = ng.tensor(array)
    assert_is(apply(tensor, other), expected)
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-12)


# `x`, `y` of shape (3,), `m`, `n` of (3, 3), `b` bools, `i` positions; all may be tensors.
CALLS = """
np.sum(m) np.sum(m, 0) np.sum(m, axis=(0, 1), keepdims=True) np.sum(m, 1, float)
np.prod(m, axis=1) np.mean(m, axis=-1) np.mean(m, dtype=np.float64) np.nanmean(m, 0)
np.std(m) np.std(m, axis=0, ddof=1) np.var(m, 1, keepdims=True)
np.amax(m, 0) np.amin(m) np.max(m, axis=1, keepdims=True) np.min(m) np.ptp(m, 0) np.ptp(m)
np.argmax(m) np.argmin(m, 1) np.any(b) np.all(b, axis=0) np.count_nonzero(m)
np.cumsum(m) np.cumsum(m, axis=1) np.cumprod(m, 0) np.trace(m) np.trace(m, 1, 1, 0)
np.linalg.norm(x) np.linalg.norm(m) np.linalg.norm(m, axis=1) np.linalg.norm(x, 1)
np.linalg.norm(m, 'fro') np.linalg.norm(m, axis=0, ord=np.inf)
np.dot(x, y) np.dot(m, x) np.dot(m, n) np.dot(m, n[None]) np.vdot(m, n) np.inner(x, y)
np.outer(m, x) np.tensordot(m, n) np.tensordot(m, n, 1) np.tensordot(m, n, axes=([0], [1]))
np.kron(m, n) np.einsum('ij,kj,i->k', m, n, x) np.einsum('ii', m, optimize=True)
np.reshape(x, (3, 1)) np.reshape(m, -1) np.ravel(m) np.squeeze(x[None]) np.squeeze(x[None], 0)
np.expand_dims(x, 1) np.expand_dims(m, (0, -1)) np.moveaxis(m[None], 0, -1)
np.swapaxes(m, 0, 1) np.transpose(m) np.transpose(m[None], (1, 0, 2))
np.broadcast_to(x, (2, 3)) np.broadcast_arrays(x, m) np.atleast_1d(x) np.atleast_2d(x, m)
np.atleast_3d(x) np.tile(x, 2) np.tile(m, (2, 1)) np.repeat(m, 2) np.repeat(m, 2, axis=1)
np.flip(m) np.flip(m, 0) np.flip(m, (0, 1)) np.fliplr(m) np.flipud(m) np.rot90(m)
np.rot90(m, 2, (1, 0)) np.roll(m, 1) np.roll(m, (1, 2), (0, 1)) np.diagonal(m, 1) np.diag(x)
np.diag(m, -1) np.diagflat(x, 1) np.tril(m) np.triu(m, 1)
np.concatenate([x, y]) np.concatenate((m, n), 1) np.concatenate([m, n], axis=None)
np.stack([x, y]) np.stack((x, y), axis=1) np.vstack([x, m]) np.hstack([x, y]) np.dstack([x, y])
np.column_stack([x, m]) np.split(m, 3) np.split(m, [1], axis=1) np.array_split(x, 2)
np.hsplit(m, 3) np.vsplit(m, [1]) np.dsplit(m[None], 3) np.meshgrid(x, y)
np.meshgrid(x, y, indexing='ij')
np.where(b, m, n) np.where(b, m, 0.5) np.where(m > .5, 0.5, n) np.where(b)
np.clip(m, .2, .6) np.clip(m, None, .6) np.clip(x, y, 1.) np.round(m, 1) np.around(m) np.fix(8 * m)
np.nan_to_num(m, nan=1.) np.sinc(m) np.real(m) np.imag(m + 1j) np.angle(m + 1j) np.isposinf(m)
np.isneginf(m) np.isreal(m) np.isclose(m, n) np.isclose(m, .5) np.allclose(m, n) np.allclose(m, m)
np.array_equal(m, n) np.array_equal(m, m) np.array_equal(m, x)
np.take(m, i) np.take(m, i, axis=1) np.take(m, 1, axis=0) np.take_along_axis(m, i[:, None], 1)
np.nonzero(b) np.argwhere(b) np.sort(m) np.sort(m, 0) np.sort(m, axis=None) np.argsort(m, axis=0)
np.copy(m) np.zeros_like(m) np.ones_like(m, dtype=np.float32) np.full_like(m, 3.)
np.full_like(m, 3, shape=(2,)) np.empty_like(m) * 0
np.add.reduce(m) np.add.reduce(m, axis=None) np.multiply.reduce(m, 1, keepdims=True)
np.maximum.reduce(m) np.minimum.reduce(m, axis=1) np.logical_and.reduce(b) np.logical_or.reduce(b)
np.add.accumulate(m) np.multiply.accumulate(m, 1) np.subtract.outer(x, y) np.add.outer(m, x)
np.add(m, n, out=m.copy()) np.multiply(m, [1., 2., 3.]) np.add(m, 2, casting='same_kind')
"""
LINES = [f"np.{call.strip()}" for call in CALLS.replace("\n", " ").split(" np.") if call.strip()]
LINES[0] = LINES[0].removeprefix("np.")
LINES += ["np.matrix_transpose(m)"] * hasattr(np, "matrix_transpose")
LINES += ["np.unstack(m, axis=1)"] * hasattr(np, "unstack")
CONSTANT = ("arg", "any", "all", "count", "zeros", "ones", "full", "empty", "nonzero", "out=")


def names_in(line: str) -> list[str]:
    """Return the names of a line's operands."""
    return sorted(set(re.findall(r"\b[xymnbi]\b", line)))


def operands(tensors: bool) -> dict[str, Any]:
    random = np.random.default_rng(0)
    arrays = {name: random.uniform(0.1, 0.9, 3) for name in "xy"}
    arrays |= {name: random.uniform(0.1, 0.9, (3, 3)) for name in "mn"}
    arrays |= {"b": arrays["m"] > 0.5, "i": np.array([2, 0, 2])}
    return {name: leaf(array) if tensors else array for name, array in arrays.items()}


def run(line: str, given: dict[str, Any]) -> Any:
    return eval(line, {"np": np}, given)


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("line", [line for line in LINES if "copy()" not in line])
def test_a_function_gives_tensors_with_numpys_numbers(line: str) -> None:
    given = operands(tensors=True)
    expected = run(line, operands(tensors=False))
    found = run(line, given)
    recorded = not any(word in line for word in CONSTANT) and "like" not in line
    assert_is(found, expected, recorded=recorded)
    if any(word in line for word in ("array_equal", "allclose", "nonzero(b", "where(b)")):
        return  # these need numbers
    names = names_in(line)
    traced = ng.jit(lambda *tensors: run(line, dict(zip(names, tensors, strict=True))))
    lowered = traced.lower(*[given[name] for name in names])
    assert len(lowered.graph.outputs) == len(found if isinstance(found, (tuple, list)) else [found])


@pytest.mark.parametrize(
    "line", [line for line in LINES if len(names_in(line)) > 1 and "copy()" not in line]
)
@settings(max_examples=5)
@given(data=st.data())
def test_arrays_among_tensors_are_operands(line: str, data: st.DataObject) -> None:
    names = names_in(line)
    # NumPy does not ask the positions that it takes at, but what it takes from.
    tensors = data.draw(st.lists(st.sampled_from(names), min_size=1))
    tensors += ["m"] * ("i" in names)
    given = operands(tensors=False)
    expected = run(line, given)
    given |= {name: operands(tensors=True)[name] for name in tensors}
    assert_is(run(line, given), expected)


def test_every_name_is_tried() -> None:
    tried = " ".join(LINES)
    for name in [*NAMES, *(f"{name}.{method}" for name, method in REDUCTIONS)]:
        top = functools.reduce(lambda o, part: getattr(o, part, None), name.split("."), np)
        assert top is None or f"np.{name}(" in tried, name


@pytest.mark.parametrize(
    "line",
    [
        "np.percentile(m, 50)",
        "np.fft.fft(x)",
        "np.linalg.inv(m)",
        "np.add.at(m, [0], x)",
        "np.divmod(m, n)",
        "np.add(m, n, dtype=np.float32)",
        "np.add(m, n, where=b)",
        "np.mean(m, dtype=int)",
        "np.reshape(m, -1, order='F')",
        "np.copy(m, order='F')",
        "np.linalg.norm(m, 2)",
        "np.add(m, object())",
        "np.histogram(x)",
    ],
)
def test_what_is_not_there_is_a_type_error_that_says_so(line: str) -> None:
    with pytest.raises(TypeError, match="numgrad|can't be combined"):
        run(line, operands(tensors=True))


def test_arrays_come_out_where_they_are_asked_for() -> None:
    t = ng.ones(2, 3)
    x = ng.ones(2, 3, requires_grad=True)
    for found in (np.asarray(t), np.array(t), np.asarray(t, dtype=np.float64)):
        assert type(found) is np.ndarray
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert np.shares_memory(x, x.detach().numpy()) and np.may_share_memory(x, x)
    assert np.result_type(x, np.float64) == np.float64 and np.isrealobj(x)
    assert np.array_repr(t) == np.array_repr(t.numpy())
    target = np.zeros((2, 3))
    np.copyto(target, t)
    assert target.sum() == 6
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.copyto(target, x)
    assert not set(FACTS.split()) & set(WRITERS.split())


def test_out_may_be_a_tensor_or_an_array() -> None:
    t, out, array = ng.tensor([1.0, 2.0]), ng.zeros(2), np.zeros(2, np.float32)
    assert np.add(t, 1, out=out) is out and out.tolist() == [2.0, 3.0]
    assert np.add(t, 1, out=array).tolist() == [2.0, 3.0] == array.tolist()
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        np.multiply(t.requires_grad_(), 2, out=out)


def test_lists_of_tensors_keep_their_gradients() -> None:
    a, b = ng.tensor(1.0, requires_grad=True), ng.tensor(2.0, requires_grad=True)
    np.multiply([a, b], ng.tensor([3.0, 4.0])).sum().backward()
    assert (a.grad.item(), b.grad.item()) == (3.0, 4.0)


def test_an_array_is_not_written_to_while_a_function_is_traced() -> None:
    def f(x: Any) -> Any:
        total = np.zeros(2)
        total += x
        return total

    with pytest.raises(ng.TraceError, match="Return the new value instead"):
        ng.jit(f)(ng.ones(2))
    assert ng.jit(lambda x: np.zeros(2) + x)(ng.ones(2)).tolist() == [1, 1]
