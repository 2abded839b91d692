# ruff: noqa: E501 - a line of a table is a line of code
"""float16: kept in 16 bits, computed in float32, for every operation of the catalogue."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.base import dtypes
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.sample_calls import REFUSALS, SampleCall, sample_calls
from numgrad.ops.later import LATER
from tests.ops.lines import answer
from tests.ops.test_catalogue_torch import call as call_by_name
from tests.ops.test_catalogue_torch import to_module
from tests.rows import names_of

NAMES = sorted(CATALOGUE)
# There are no complex numbers of two float16.
# Parts of derivatives: only rules call them, with operands of one dtype.
PARTS = {"linear_recurrence", "log_softmax_backward", "logsumexp_backward", "softmax_backward"}
PARTS |= names_of("HALF_PARTS")
# What PyTorch refuses: its linear algebra has no low precision.
REFUSED = {*LATER["matrices"].primitives} | names_of("HALF_REFUSED")
# Of which PyTorch rounds what it computes on the way, or which it has not.
ROUNDED = names_of("HALF_ROUNDED")
COMPLEX = {"view_as_complex", "complex_of", "polar", "joined", "view_as_real"}

SETUP = """
h = torch.tensor([1.5, -2.25, 3000.], dtype=torch.float16)
one = torch.ones(3)
g = h.clone().requires_grad_()
"""
LINES = r"""
torch.float16, torch.half is torch.float16, h.dtype.itemsize, h.element_size(), h.dtype.is_floating_point
h
h[:2], h[0], h[:0]
torch.tensor([1e6, 1, True], dtype=torch.half)
torch.full((2,), 1e6, dtype=torch.half)
torch.full((2,), -65504., dtype=torch.half)
torch.finfo(torch.half)
torch.finfo(torch.half).eps, torch.finfo(torch.float16).max, torch.finfo(torch.half).bits
h.half() is h, h.float(), h.double().dtype, h.int()
torch.tensor([1e-8, 6e-8, 65519., 65520., -70000.]).half()
torch.tensor([2049., 2051.]).half(), torch.tensor([70000, 3]).half()
h * h, h + 1, h * 1.1, h - True, 1 / h, 2 ** h, h // 2, h % 2, h ** 2
h + one, h + one[0], h + one[0].double(), h + torch.arange(3), h + one.double()
h[0] + torch.ones(2, dtype=torch.int32), h[0] + one, h[0] + one[0]
h.sum(), h.mean(), h.sum(dtype=torch.float32), h.prod(), h.std(), h.norm(), h.var(0)
torch.ones(5000, dtype=torch.half).sum(), torch.full((5000,), 10., dtype=torch.half).mean()
torch.ones(5000, dtype=torch.half).cumsum(0)[-1], h.max(), h.argmax(), h.sort()
h.softmax(0), h.logsumexp(0), h @ h, (h[:2] @ h[:2]), h.outer(h)[1]
h > 0, h == h, h.isnan(), h.isinf(), h.bool(), h.tolist(), h[1].item(), float(h[0])
h.numpy().dtype, torch.from_numpy(np.array([1, 2], np.float16)), torch.as_tensor(np.float16(2))
torch.from_numpy(h.numpy()).data_ptr() == h.data_ptr()
h.type(), isinstance(h, torch.HalfTensor), torch.HalfTensor([1]), h.type('torch.FloatTensor')
torch.promote_types(torch.half, torch.float32), torch.promote_types(torch.half, torch.complex64)
torch.promote_types(torch.half, torch.int64), torch.result_type(h, 1.5), torch.result_type(h, one[0])
torch.can_cast(torch.float64, torch.half), torch.can_cast(torch.half, torch.int32)
torch.zeros(2, dtype=torch.half), torch.arange(3, dtype=torch.half), torch.eye(2, dtype=torch.half)
torch.linspace(0, 1, 3, dtype=torch.half), torch.empty(2, dtype=torch.half).dtype
torch.rand(2, dtype=torch.half).dtype, torch.randn(2, dtype=torch.half).dtype, torch.rand_like(h).dtype
(g * g).sum()
torch.autograd.grad((g * g).sum(), g), torch.autograd.grad((g.float() * 2).sum(), g)
torch.autograd.grad(g.exp().sum(), g), torch.autograd.grad((g * one).sum(), g)
(g * g).sum().backward(); (g * 2).sum().backward() -> g.grad
z = g * 1; z[0] = 5; z[1:].mul_(2); z.sum().backward() -> z, g.grad
h.clone().add_(1), h.clone().mul_(one), one.clone().add_(h), h.clone().copy_(one * 1e6)
h.clone().fill_(1e6)
h.masked_fill(h > 0, 1e6)
h.clamp(0, 1), torch.where(h > 0, h, 0.), torch.where(h > 0, h, one)
torch.cat([h, h[:1]]), torch.cat([h, one]), torch.stack([h[:1], h[1:2]])
h[h > 0], h[[0, 1]], h.index_add(0, torch.tensor([0]), h[:1]), h.index_put((torch.tensor([0]),), h[1])
h.view(3, 1).expand(3, 2).sum(0), h.t(), h[::2], h.view(1, 3)._base is h
[r.stride() for r in (h.expand(4, 3) * 1, h.expand(4, 3).exp(), h.expand(2, 3) + h.expand(2, 3))]
torch.einsum('i,i', h[:2], h[:2]), torch.equal(h, h), torch.allclose(h, h)
torch.set_default_dtype(torch.half); d = torch.tensor(1.5), torch.zeros(2); torch.set_default_dtype(torch.float32) -> d
torch.ones(300000, dtype=torch.half).requires_grad_().mean()
b = torch.ones(300000, dtype=torch.half).requires_grad_(); b.mean().backward() -> b.grad[:2]
torch.autograd.grad(torch.autograd.grad((g ** 3).sum(), g, create_graph=True)[0].sum(), g)
"""
CODES = list(filter(None, LINES.split("\n")))


@pytest.mark.parametrize("code", CODES, ids=CODES)
def test_lines(torch: ModuleType, code: str) -> None:
    assert answer(ng, code, SETUP) == answer(torch, code, SETUP)


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def outcome(call: SampleCall, operands: list[Any]) -> tuple[list[Any], list[Any]] | None:
    """Return results of a call and gradients of their sum; None if it refuses the dtype."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = parts(call.function(*operands, **call.keywords))
    except REFUSALS:
        return None
    leaves = [each for each in operands if isinstance(each, ng.Tensor) and each.requires_grad]
    roots = [each for each in results if isinstance(each, ng.Tensor) and each.requires_grad]
    if not roots or not leaves or any(root.is_complex() for root in roots):
        return results, []
    weights = [ng.full_like(root, 0.25) for root in roots]
    try:
        found = ng.autograd.grad(roots, leaves, weights, allow_unused=True)
    except REFUSALS:
        return results, []
    return results, list(found)


def in_float32(value: Any, rounds: bool = False) -> Any:
    """Return an operand in float32, and numbers as they are, or as float16 holds them."""
    if rounds and isinstance(value, float):
        return float(np.float16(value))
    if isinstance(value, ng.Tensor) and value.dtype is ng.half:
        return value.detach().float().requires_grad_(value.requires_grad)
    return value


@pytest.mark.sampled(0.036)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in COMPLEX | REFUSED])
def test_every_operation_is_that_of_float32_rounded(name: str) -> None:
    for call in sample_calls(name, dtypes.float16):
        # A base that is a number becomes float16 first, as in PyTorch.
        rounds = name == "pow_of_number"
        wide = outcome(call, [in_float32(operand, rounds) for operand in call.operands])
        own = outcome(call, list(call.operands))
        assert (own is None) == (wide is None)
        if own is None or wide is None:
            continue
        for mine, reference in zip(own[0], wide[0], strict=True):
            if not isinstance(mine, ng.Tensor):
                continue
            if reference.dtype is ng.float32:
                assert mine.dtype in (ng.half, ng.float32)
                reference = reference.to(mine.dtype)
            assert mine.dtype is reference.dtype
            # A function of several operations rounds between them.
            single = isinstance(CATALOGUE[name], ElementwisePrimitive)
            tolerance = 0 if single or not mine.is_floating_point() else 4e-3
            np.testing.assert_allclose(
                mine.numpy(force=True), reference.numpy(force=True), tolerance, tolerance
            )
        for mine, reference in zip(own[1], wide[1], strict=True):
            if mine is not None and reference is not None and reference.dtype is ng.float32:
                assert mine.dtype is ng.half
                reference = reference.half()
                np.testing.assert_allclose(
                    mine.numpy().astype(float), reference.numpy().astype(float), 1e-2, 1e-2
                )


VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-3, -7.25, 30.0, np.inf, -np.inf, np.nan]
ELEMENTWISE = [
    primitive
    for primitive in CATALOGUE.values()
    if isinstance(primitive, ElementwisePrimitive)
    and "f" in primitive.accepts
    and primitive.name not in COMPLEX
]
# In float16 PyTorch calls pow for these, in the other dtypes sqrt, and so do we in all.
ROOTS = {"pow_0.5", "pow_-0.5"}


@pytest.mark.sampled(0.13)
@pytest.mark.parametrize(
    "primitive",
    [each for each in ELEMENTWISE if each.name not in ROUNDED],
    ids=lambda each: each.name,
)
def test_elementwise_operations_are_pytorchs(
    torch: ModuleType, primitive: ElementwisePrimitive
) -> None:
    tensors = [domain for domain in primitive.domains if not domain.is_number]
    grid = np.array(np.meshgrid(*[VALUES[:: 1 if len(tensors) < 3 else 2]] * len(tensors)))
    columns = iter(grid.reshape(len(tensors), -1))
    operands: list[Any] = []
    for domain in primitive.domains:
        if domain.is_number:
            operands.append(domain.intervals[0][0])
        else:
            column = next(columns)
            operands.append(column > 0 if domain.is_mask else column.astype(np.float16))
    if primitive.name in ROOTS:
        operands[0] = operands[0][~np.signbit(operands[0])]
    if primitive.name == "gelu":  # of inf, PyTorch's vectors of some processors give nan
        operands[0] = operands[0][np.isfinite(operands[0])]
    theirs_in = to_module(torch, operands, requires_grad=True)
    ours_in = to_module(ng, operands, requires_grad=True)
    try:
        theirs = call_by_name(torch, primitive, theirs_in)
    except (RuntimeError, TypeError) as error:
        if "Half" in str(error):  # PyTorch has no kernel of that dtype: ours does no harm
            return
        with pytest.raises(type(error)):
            call_by_name(ng, primitive, ours_in)
        return
    ours = call_by_name(ng, primitive, ours_in)
    assert repr(ours.dtype) == repr(theirs.dtype)
    np.testing.assert_allclose(
        ours.numpy(force=True).astype(float),
        theirs.numpy(force=True).astype(float),
        rtol=2e-3,
        atol=1e-6,
        equal_nan=True,
    )
    if theirs.grad_fn is None or ours.grad_fn.name() == "torch::autograd::NotImplemented":
        return
    try:
        theirs.backward(torch.ones_like(theirs))
    except NotImplementedError:  # nor for the derivative
        return
    ours.backward(ng.ones_like(ours))
    for mine, reference in zip(ours_in, theirs_in, strict=True):
        if isinstance(mine, ng.Tensor) and mine.requires_grad and reference.grad is not None:
            assert mine.grad is not None
            assert mine.grad.dtype is ng.half
            expected = reference.grad.numpy(force=True).astype(float)
            # PyTorch rounds within a formula, too, which overflows or loses what is small.
            known = np.isfinite(expected)
            np.testing.assert_allclose(
                mine.grad.numpy().astype(float)[known], expected[known], rtol=6e-3, atol=4e-3
            )


# Of the 65,536 there are, with 0 for nan.
halves = st.integers(0, 2**16 - 1).map(
    lambda bits: float(
        np.nan_to_num(np.uint16(bits).view(np.float16), posinf=np.inf, neginf=-np.inf)
    )
)


@given(st.lists(st.tuples(halves, halves), max_size=9))
def test_arithmetic_is_rounded_once(pairs: list[tuple[float, float]]) -> None:
    a, b = (np.array([pair[at] for pair in pairs], np.float16) for at in (0, 1))
    x, y = ng.from_numpy(a), ng.from_numpy(b)
    wide = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        for found, exact in (
            (x + y, wide[0] + wide[1]),
            (x - y, wide[0] - wide[1]),
            (x * y, wide[0] * wide[1]),
            (x / y, wide[0] / wide[1]),
            (x.sqrt(), np.sqrt(wide[0])),
        ):
            np.testing.assert_array_equal(found.numpy(), exact.astype(np.float16))


@given(st.lists(halves, max_size=300))
def test_sums_are_accumulated_in_float32(values: list[float]) -> None:
    array = np.array(values, np.float16)
    found = ng.from_numpy(array).sum().item()
    with np.errstate(all="ignore"):
        exact = np.float64(array.astype(np.float64).sum())
        near = max(1e-3 * abs(exact), 1e-4 * float(np.abs(array.astype(float)).sum()), 1e-6)
    if np.isfinite(exact) and abs(exact) < 65000:
        assert abs(found - exact) <= near


def test_uniform_numbers_stay_below_one() -> None:
    ng.manual_seed(0)
    drawn = ng.rand(200_000, dtype=ng.half)
    assert drawn.max().item() < 1
    assert drawn.min().item() >= 0
    assert 0.49 < drawn.float().mean().item() < 0.51


def test_tensors_of_halves_are_copied_and_kept() -> None:
    x = ng.tensor([1.5, -2.25], dtype=ng.half, requires_grad=True)
    file = io.BytesIO()
    ng.save(x, file)
    file.seek(0)
    for found in (ng.load(file), pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert found.dtype is ng.half
        assert found.tolist() == [1.5, -2.25]
        assert found.requires_grad
    assert pickle.loads(pickle.dumps(ng.half)) is ng.half


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x.float().half(),
        lambda x: x + ng.ones(2, dtype=ng.half).float().half(),
        lambda x: CAPTURED.float() * x.float(),
    ],
)
def test_jit_says_what_to_do(function: Any) -> None:
    with pytest.raises(ng.TraceError, match=r"float16 .*x\.float\(\)"):
        ng.jit(function)(CAPTURED)


CAPTURED = ng.tensor([1.5, -2.25], dtype=ng.half)


def test_what_there_is_not_says_so() -> None:
    with pytest.raises(AttributeError, match="no bfloat16, because NumPy has no such dtype"):
        ng.bfloat16  # noqa: B018
    assert not hasattr(ng, "bfloat16")
    with pytest.raises(RuntimeError, match="no complex numbers of two float16"):
        ng.view_as_complex(ng.ones(1, 2, dtype=ng.half))
    assert (CAPTURED * 1j).dtype is ng.complex64


def test_transformations_of_halves() -> None:
    def f(x: ng.Tensor) -> ng.Tensor:
        return (x**3).sum()

    x = ng.tensor([1.5, -2.0], dtype=ng.half)
    assert ng.func.grad(f)(x).tolist() == [6.75, 12.0]
    assert ng.func.hessian(f)(x).tolist() == [[9.0, 0.0], [0.0, -12.0]]
    value, tangent = ng.func.jvp(f, (x,), (x,))
    assert (value.item(), tangent.item()) == (-4.625, -13.875)
    assert {value.dtype, tangent.dtype, ng.func.grad(f)(x).dtype} == {ng.half}


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in COMPLEX | PARTS])
def test_operands_of_other_dtypes(name: str) -> None:
    """One operand in float32: the others take part as such, or the call is refused in words."""
    words: list[str] = []
    for call in sample_calls(name, dtypes.float16):
        floating = [
            at
            for at, operand in enumerate(call.operands)
            if isinstance(operand, ng.Tensor) and operand.dtype is ng.half
        ]
        for at in floating if len(floating) > 1 else []:
            operands = [
                in_float32(operand) if place == at else operand
                for place, operand in enumerate(call.operands)
            ]
            try:
                results = parts(call.function(*operands, **call.keywords))
            except REFUSALS as error:
                words.append(str(error))
                continue
            wide = outcome(call, [in_float32(operand) for operand in operands])
            assert wide is not None
            for mine, reference in zip(results, wide[0], strict=True):
                expected = reference.to(mine.dtype).numpy(force=True)
                np.testing.assert_allclose(mine.numpy(force=True), expected, 4e-3, 4e-3)
    assert "float16" not in words  # which is all that Numba says


REDUCTIONS = ["sum", "mean", "prod", "amax", "std", "norm", "argmax", "any", "logsumexp"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_half_that_was_pickled_is_reduced_as_before(name: str) -> None:
    """NumPy gives what it unpickles a dtype of its own, equal to float16 but another object."""
    x = ng.tensor([1.0, 2.5, 3.0], dtype=ng.float16)
    again = pickle.loads(pickle.dumps(x)).requires_grad_(name not in ("argmax", "any"))
    arguments = (0,) if name == "logsumexp" else ()
    found, expected = (getattr(t, name)(*arguments) for t in (again, x))
    assert found.dtype is expected.dtype and found.tolist() == expected.tolist()
    if again.requires_grad:
        found.backward()
        assert again.grad.dtype is ng.float16


@pytest.mark.parametrize("dtype", [ng.float32, ng.float64, ng.int64])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "softmax", "nansum"])
def test_a_reduction_to_half_rounds_what_float32_gives(name: str, dtype: ng.dtype) -> None:
    x = ng.tensor([1.0, 2.0, 3.0], dtype=dtype)
    arguments = (0,) if name in ("cumsum", "softmax") else ()
    found = getattr(x, name)(*arguments, dtype=ng.float16)
    assert found.dtype is ng.float16
    assert found.tolist() == getattr(x.float(), name)(*arguments).half().tolist()
