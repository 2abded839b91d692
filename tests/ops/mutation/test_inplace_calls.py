"""Calls in place that are remembered do what the long way does: numbers, history, versions, errors.

The tables of programs live on between examples, so a key that lacked a fact would give one call the
program of another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.upward import upward
from numgrad.ops.calls import dispatch
from numgrad.ops.calls.dispatch import _go_the_long_way
from numgrad.ops.core.registry import INPLACE
from numgrad.ops.signatures.declared import DECLARED
from numgrad.ops.signatures.signature import REQUIRED
from tests.cases import examples
from tests.ops.calls.test_dispatch import the_long_way


@pytest.fixture(autouse=True, scope="module")
def every_call_is_remembered_soon() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "_OFTEN", 2)
        yield


# What a call does to a tensor `t` with an operand `x`.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda t, x: t.add_(x),
    "add_ with alpha": lambda t, x: t.add_(x, alpha=0.5),
    "add_ with another alpha": lambda t, x: t.add_(x, alpha=-2.5),
    "add_ with a whole alpha": lambda t, x: t.add_(x, alpha=2),
    "add_ with alpha by position": lambda t, x: t.add_(x, 3.0),
    "sub_": lambda t, x: t.sub_(x),
    "mul_": lambda t, x: t.mul_(x),
    "*=": lambda t, x: t.__imul__(x),
    "/=": lambda t, x: t.__itruediv__(x),
    "//=": lambda t, x: t.__ifloordiv__(x),
    "%=": lambda t, x: t.__imod__(x),
    "pow_": lambda t, x: t.pow_(2),
    "div_ rounded": lambda t, x: t.div_(x, rounding_mode="floor"),
    "atan2_": lambda t, x: t.atan2_(x),
    "exp_": lambda t, x: t.exp_(),
    "tanh_": lambda t, x: t.tanh_(),
    "square_": lambda t, x: t.square_(),
    "neg_": lambda t, x: t.neg_(),
    "abs_": lambda t, x: t.abs_(),
    "floor_": lambda t, x: t.floor_(),
    "acosh_": lambda t, x: t.acosh_(),
    "lt_": lambda t, x: t.lt_(x),
    "copy_": lambda t, x: t.copy_(x),
    "zero_": lambda t, x: t.zero_(),
    "fill_": lambda t, x: t.fill_(x),
    "fill_ 0.0": lambda t, x: t.fill_(0.0),
    "fill_ -0.0": lambda t, x: t.fill_(-0.0),
    "fill_ True": lambda t, x: t.fill_(True),
    "clamp_": lambda t, x: t.clamp_(-1, 1),
    "clamp_ by name": lambda t, x: t.clamp_(max=0.5),
    "clamp_ by tensors": lambda t, x: t.clamp_(x, x),
    "addcmul_": lambda t, x: t.addcmul_(x, x, value=0.5),
    "addcmul_ of two": lambda t, x: t.addcmul_(x, ng.ones(3, 4, dtype=ng.float64) * 2),
    "addcdiv_": lambda t, x: t.addcdiv_(x, ng.ones(4, dtype=ng.float64), value=-0.25),
    "lerp_": lambda t, x: t.lerp_(x, 0.25),
    "masked_fill_": lambda t, x: t.masked_fill_(x > 0, 1.5),
    "masked_fill_ with a tensor": lambda t, x: t.masked_fill_(t > 1, x),
    "pow_ by a half": lambda t, x: t.pow_(0.5),
    "pow_ of tensors": lambda t, x: t.pow_(x),
    "clamp_min_": lambda t, x: t.clamp_min_(x),
    "lerp_ by a tensor": lambda t, x: t.lerp_(x, x),
    "copysign_": lambda t, x: t.copysign_(x),
    "xlogy_": lambda t, x: t.xlogy_(x),
    "fmod_": lambda t, x: t.fmod_(1.5),
    "nan_to_num_": lambda t, x: t.nan_to_num_(0.5),
    "index_add_": lambda t, x: t.index_add_(0, ng.tensor([0]), x.expand(t.shape)[:1]),
    "index_fill_": lambda t, x: t.index_fill_(0, ng.tensor([0]), 2.0),
    "cumsum_": lambda t, x: t.cumsum_(0),
    "[[0]] =": lambda t, x: t.__setitem__([0], x),
    "[mask] =": lambda t, x: t.__setitem__(t > 1, 0.5),
    "tril_": lambda t, x: t.tril_(),
    "[...] =": lambda t, x: t.__setitem__(..., x),
    "[0] =": lambda t, x: t.__setitem__(0, x),
    "[1:, None] =": lambda t, x: t.__setitem__((slice(1, None), None), x),
    "[-1] += ": lambda t, x: t[-1].add_(x),
    "no such option": lambda t, x: t.add_(x, beta=2),
    "too many": lambda t, x: t.mul_(x, 2),
    "a list": lambda t, x: t.add_([1.0]),
}
# How the tensor comes about that is written to. Its numbers are positive; `x` stands for the first.
TARGETS: dict[str, Callable[[Any], Any]] = {
    "leaf": lambda x: x,
    "result": lambda x: x * 1,
    "constant": lambda x: (x * 1).detach(),
    "detached": lambda x: (x * 1).detach(),
    "transposed": lambda x: (x * 1).t().contiguous().t(),
    "row": lambda x: (x * 1)[1],
    "element": lambda x: (x * 1)[1, 2],
    "columns": lambda x: (x * 1)[:, ::2],
    "other columns": lambda x: (x * 1)[:, 1::2],
    "view of a leaf": lambda x: x[1],
    "view of a constant": lambda x: (x * 1).detach()[:2],
    "view without a history": lambda x: _without_grad(lambda: (x * 1)[1:]),
    "view made without grad": lambda x: _view_without_grad(x * 1),
    "view of a constant without grad": lambda x: _view_without_grad((x * 1).detach()),
    "one of several": lambda x: (x * 1).unbind(0)[0],
    "one of several constants": lambda x: (x * 1).detach().unbind(0)[1],
    "view that is stale": lambda x: _stale(x * 1),
    "view that is a leaf": lambda x: (x * 1).detach()[1].requires_grad_(),
    "view of a leaf that is a view": lambda x: _view_of_a_leaf_that_is_one(x),
    "view of a view": lambda x: (x * 1)[1:][0],
    "expanded": lambda x: (x * 1)[0].expand(3, 4),
    "of an inference": lambda x: _of_inference(x),
    "whole": lambda x: x.detach().to(ng.int64),
    "float32": lambda x: x.to(ng.float32),
    "complex": lambda x: x.to(ng.complex128),
    "real part": lambda x: x.to(ng.complex128).real,
    "that retains its gradient": lambda x: _retaining(x * 1),
}
OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "leaf": lambda t, y: y,
    "result": lambda t, y: y * 2,
    "constant": lambda t, y: y.detach(),
    "row": lambda t, y: y[1],
    "element": lambda t, y: y[1, 1],
    "transposed": lambda t, y: (y * 1).t().contiguous().t(),
    "number": lambda t, y: 1.5,
    "another number": lambda t, y: -0.5,
    "whole number": lambda t, y: 2,
    "bool": lambda t, y: True,
    "complex number": lambda t, y: 1j,
    "nothing": lambda t, y: None,
    "whole": lambda t, y: y.detach().to(ng.int64),
    "float32": lambda t, y: y.to(ng.float32),
    "itself": lambda t, y: t,
    "view of itself": lambda t, y: t[:1],
    "detached itself": lambda t, y: t.detach(),
    "view of all of itself": lambda t, y: t[...],
    "what lies beside it": lambda t, y: _beside(t),
    "view made without grad": lambda t, y: _view_without_grad(y * 1),
    "stale": lambda t, y: _stale(y * 1),
    "of an inference": lambda t, y: _of_inference(y),
}
MODES: dict[str, Callable[[], Any]] = {
    "grad": ng.enable_grad,
    "no_grad": ng.no_grad,
    "inference": ng.inference_mode,
}


def _without_grad(make: Callable[[], Any]) -> Any:
    with ng.no_grad():
        return make()


def _view_without_grad(base: Any) -> Any:
    with ng.no_grad():
        return base[:3]


def _of_inference(x: Any) -> Any:
    with ng.inference_mode():
        return x * 1


def _stale(base: Any) -> Any:
    view = base[:2]
    base.mul_(2)
    return view


def _view_of_a_leaf_that_is_one(x: Any) -> Any:
    base = (x * 1).detach()
    leaf = base[:2].requires_grad_()
    view = leaf[0]
    _without_grad(lambda: base.mul_(1))
    return view


def _beside(tensor: Any) -> Any:
    """Return the next row or element of what a view is a part of; a column of another tensor."""
    if tensor._base is None or tensor._base.ndim != 2:
        return tensor.clone()[..., 1:]
    start, width = tensor.storage_offset(), tensor._base.shape[1]
    row, column = divmod(start, width)
    whole = tensor._base
    if tensor.ndim == 1:
        return whole[row - 1]
    return whole[row, column - 1] if tensor.ndim == 0 else whole[:, 1::2]


def _retaining(result: Any) -> Any:
    result.retain_grad()
    return result


def names(tensor: Any) -> Any:
    node = tensor.grad_fn
    return node and (node.name(), [each and each.name() for each, _ in node.next_functions])


Case = tuple[list[str], str, str, str]


def told(case: Case, seed: int) -> list[Any]:
    """Return all there is to see of calls, and of what was computed before and after them."""
    calls, target, operand, mode = case
    numbers = np.random.default_rng(seed).uniform(0.5, 3, (2, 3, 4))
    x, y = (ng.from_numpy(each).requires_grad_() for each in numbers)
    seen: list[Any] = []
    try:
        t = TARGETS[target](x)
        other = OPERANDS[operand](t, y)
        base = t if t._base is None else t._base
        before = ng.exp(base)  # saved, and shares no memory
        kept = base * base  # cannot be differentiated any more if it saved what is written to
        with MODES[mode]():
            for call in calls:
                seen.append(CALLS[call](t, other) is t)
    except Exception as error:  # what is refused is refused every time
        seen.append((type(error), str(error)))
        if "t" not in locals() or "before" not in locals():
            return seen
    for tensor in (t, base):
        seen += [tensor.detach().numpy().tobytes(), tensor.dtype, tensor.shape, tensor.stride()]
        seen += [tensor.requires_grad, tensor.is_inference() or tensor._version]
        try:
            seen += [tensor.is_leaf, names(tensor)]
        except RuntimeError as error:
            seen.append(str(error))
    for root in (lambda: t * t, lambda: base * 1, lambda: before, lambda: kept):
        try:
            value = root()
            if value.requires_grad:
                weights = ng.arange(1.0, value.numel() + 1).reshape(value.shape)
                found = ng.autograd.grad(
                    [(value * weights).sum().real], [x, y], retain_graph=True, allow_unused=True
                )
                seen += [each and (each.numpy().tobytes(), each.stride()) for each in found]
        except RuntimeError as error:
            seen.append(str(error))
    if t._retains_grad and t.requires_grad:
        try:
            (t * t).sum().backward()
            seen.append(t.grad is not None and t.grad.numpy().tobytes())
        except RuntimeError as error:
            seen.append(str(error))
    return seen


# Targets of one shape each: what tells their calls apart is anything but that.
FAMILIES = [
    [*("leaf", "result", "constant", "transposed", "expanded", "of an inference", "whole")],
    [*("result", "constant", "float32", "complex", "real part", "that retains its gradient")],
    [*("row", "view of a leaf", "one of several", "one of several constants", "view of a view")],
    [*("row", "view that is a leaf", "view of a leaf that is a view", "columns", "element")],
    [*("view of a constant", "view that is stale", "view without a history")],
    [*("view made without grad", "view of a constant without grad", "detached", "other columns")],
]


@settings(max_examples=examples(200, in_sample=12))
@given(data=st.data())
def test_calls(data: st.DataObject) -> None:
    """Calls that differ in the target, or in the mode, one after the other."""
    calls = data.draw(st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=2))
    operand = data.draw(st.sampled_from(sorted(OPERANDS)))
    family = data.draw(st.sampled_from(FAMILIES))
    targets = data.draw(st.permutations(family))[:2]
    for target in targets:
        for mode in data.draw(st.permutations(sorted(MODES))):
            for seed in range(5):  # from the third time on, a call can be remembered
                with the_long_way():
                    expected = told((calls, target, operand, mode), seed)
                assert told((calls, target, operand, mode), seed) == expected, (target, mode)


# What stands for the arguments of a kind, where a method in place needs them.
GIVEN = {
    "Tensor": ["x"],
    "operand": ["x", "2"],
    "number": ["0.5", "2"],
    "int": ["1"],
    "str": ["'floor'"],
}
SHAPED = {
    "addmm_": "x, ng.ones(4, 4, dtype=x.dtype)",
    "addmv_": "ng.ones(3, 2, dtype=x.dtype), ng.ones(2, dtype=x.dtype)",
    "addr_": "x[:, 0], x[0]",
    "baddbmm_": "x[None, :, :1], x[None, :1]",
    "addbmm_": "x[None, :, :1], x[None, :1]",
    "scatter_": "0, ng.zeros(1, 4, dtype=ng.int64), x",
    "scatter_add_": "0, ng.zeros(1, 4, dtype=ng.int64), x",
    "scatter_reduce_": "0, ng.zeros(1, 4, dtype=ng.int64), x, 'mean'",
    "index_reduce_": "1, ng.tensor([1]), x[:, :1], 'mean'",
    "index_add_": "1, ng.tensor([1]), x[:, :1]",
    "index_copy_": "1, ng.tensor([1]), x[:, :1]",
    "index_fill_": "1, ng.tensor([1]), 0.5",
    "index_put_": "(ng.tensor([1]),), x[:1]",
    "masked_fill_": "x > 1, 0.5",
    "put_": "ng.tensor([1]), x[0, :1]",
    "masked_scatter_": "x > 1, x",
}
# What takes a list of indices has no key, and `put` is not remembered.
NOT_REMEMBERED = {"fill_diagonal_", "index_put_", "put_"}
SHAPES = {"addmv_": "t[:, 0]", "baddbmm_": "t[None]"}


def arguments_of(name: str) -> list[str]:
    """Return the arguments of calls of a method in place, as its signatures say."""
    if name in SHAPED:
        return [SHAPED[name]]
    found = []
    for signature in DECLARED[INPLACE[name]].signatures:
        needed = [each for each in signature.parameters if each.default is REQUIRED]
        values = [GIVEN[each.kind] for each in needed]
        found += [", ".join(each) for each in itertools.product(*values)]
    if name.startswith("clamp") or name == "clip_":
        found = ["0.5", "x"]
    return list(dict.fromkeys(found))


# Other tests declare some of their own.
OUR_OWN = [
    name
    for name, method in INPLACE.items()
    if not str(DECLARED[method].rule.__module__).startswith("tests.")
]


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("name", OUR_OWN)
def test_every_method_in_place(name: str) -> None:
    """Each is called five times of each kind, and then there are programs if there can be some."""
    assert getattr(ng.Tensor, name) is INPLACE[name]
    declaration = DECLARED[INPLACE[name]]
    calls = [f"{SHAPES.get(name, 't')}.{name}({each})" for each in arguments_of(name)]
    if declaration.calls is not None:
        declaration.calls.programs.clear()
    for call in calls:
        for dtype in (ng.float64, ng.int64):
            for grad in (False, True):
                for seed in range(5):
                    with the_long_way():
                        expected = written_by(call, dtype, grad, seed)
                    assert written_by(call, dtype, grad, seed) == expected, call
    if name not in NOT_REMEMBERED:
        programs = declaration.calls.programs.values()
        assert any(program is not _go_the_long_way for program in programs)


ITSELF = {
    "add_": lambda t: t.add_(t),
    "mul_": lambda t: t.mul_(t),
    "copy_": lambda t: t.copy_(t),
    "atan2_": lambda t: t.atan2_(t),
    "addcmul_": lambda t: t.addcmul_(t, t),
    "lt_": lambda t: t.lt_(t),
    "[0] = [1]": lambda t: t.__setitem__(0, t[1]),
    "row by row": lambda t: t[0].mul_(t[1]),
    "columns": lambda t: t[:, 0].add_(t[:, 1]),
    "a view": lambda t: t.add_(t[...]),
    "with a sum": lambda t: t.add_(t.sum()),
}


@pytest.mark.parametrize("name", ITSELF)
def test_a_write_that_reads_the_memory_it_writes_to_is_remembered(name: str) -> None:
    for turn in range(6):
        target = ng.tensor([[1.0, 2.0], [0.5, 4.0 + turn]])
        with the_long_way():
            expected = target.clone()
            ITSELF[name](expected)
        if turn < 3:
            ITSELF[name](target)
        else:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(upward, "perform", None)
                ITSELF[name](target)
        assert target.tolist() == expected.tolist()
        assert target._version == expected._version


def written_by(call: str, dtype: Any, grad: bool, seed: int) -> list[Any]:
    """Return what a call on tensors drawn anew leaves behind, and its gradients."""
    numbers = np.random.default_rng(seed).uniform(1, 3, (2, 3, 4))
    x, y = (ng.from_numpy(each).to(dtype) for each in numbers)
    leaves = [each.requires_grad_() for each in (x, y)] if grad and dtype is ng.float64 else []
    t = y * 1
    try:
        eval(call, {"ng": ng, "x": x, "t": t})
        seen = [t.detach().numpy().tobytes(), t.dtype, t.stride(), t._version, names(t)]
        if leaves and t.requires_grad:
            found = ng.autograd.grad((t * t).sum(), leaves, allow_unused=True)
            seen += [each and (each.numpy().tobytes(), each.stride()) for each in found]
    except Exception as error:
        return [type(error), str(error)]
    return seen


WRITES = ["zero_()", "copy_(q)", "fill_(2.0)", "mul_(0.0)", "copy_(y * 1)", "floor_()", "gt_(1.5)"]


@pytest.mark.parametrize("write", [f"y.{each}" for each in WRITES] + ["y[:] = q", "y[1:] = q[:1]"])
@pytest.mark.parametrize("others", ["z * w", "(z * w).sum() + z", "z.expand(2, 2).sum(0) * w"])
def test_what_is_added_to_a_gradient_is_not_there_in_the_next_pass(write: str, others: str) -> None:
    """Gradients that are remembered, of zeros for one, may be written to by who receives them."""
    found = []
    for _ in range(6):
        x, q = ng.tensor([1.0, 2.0], requires_grad=True), ng.tensor([5.0, 6.0], requires_grad=True)
        y = x * 1
        z = y * 1.5
        names = {"y": y, "z": z, "q": q, "w": 3.0}
        exec(write, names)
        (y.sum() + eval(others, names).sum()).backward()
        names["x"] = x
        found.append((x.grad.tolist(), None if q.grad is None else q.grad.tolist()))
        x.grad.add_(100)  # it is the caller's
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("value", [1e300, -1e300, float("nan"), 1e-320])
@pytest.mark.parametrize("name", ["add_", "mul_", "copy_", "sub_", "div_"])
def test_what_overflows_the_dtype_that_is_written_to_is_inf_without_a_word(
    torch: Any, name: str, value: float
) -> None:
    for _ in range(4):  # a program from the third time on
        found = []
        for library in (ng, torch):
            x = library.tensor([1.5, 0.0], dtype=library.float32)
            y = library.tensor([value, 2.0], dtype=library.float64)
            found.append(getattr(x, name)(y).tolist())
        np.testing.assert_array_equal(*found)
