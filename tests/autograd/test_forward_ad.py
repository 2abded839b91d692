"""autograd.forward_ad: what dual tensors do is what PyTorch's do, line by line."""

from __future__ import annotations

import gc
import threading
import weakref
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd import forward_ad
from numgrad.graph.modes.state import interceptors, modes
from tests.jit.layout_programs import laid_out
from tests.ops.catalogue_strategies import array_primitives

# PyTorch's own forward mode compiles with what PyTorch itself deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

PREPARE = """
x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
v = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
m = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
w = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
one = torch.ones(3, dtype=torch.float64, requires_grad=True)
def dual(primal, tangent=None):
    return fw.make_dual(primal, torch.ones_like(primal) if tangent is None else tangent)
def tangent(tensor):
    return fw.unpack_dual(tensor).tangent
d = dual(x, v)
"""

SAME = """
fw.unpack_dual(d)
fw.unpack_dual(x)
fw.unpack_dual(x, level=5)
fw.unpack_dual(d * d)
fw.unpack_dual(fw.unpack_dual(d * d).primal)
fw.unpack_dual(fw.unpack_dual(d * d).primal[1:])
tangent(d) is v
tangent(dual(m, m.t().contiguous().t())).stride()
tangent(dual(m.t(), m.t())).stride()
repr(d)
repr(d.sum())
repr(dual(w))
str(d.float()) + f"{d.sum()}"
tangent(torch.sin(d) * torch.exp(-d) / (1 + d**2))
tangent(x * d - d / x + 3 * d - 1)
tangent(2**d + d**3 + d**x)
tangent(torch.where(x > 1, d, x))
tangent(torch.maximum(d, x * 2).clamp(max=3))
tangent(d.sum() * d.mean())
tangent(d.to(torch.float32))
tangent(x.float() * d)
tangent(d.floor())
tangent(d > 2)
tangent(d.long())
tangent(d.argmax())
tangent(torch.zeros_like(d))
tangent(torch.cat([x, d]))
tangent(torch.stack([d, x], 1))
tangent(d.sort(descending=True).values)
tangent(d.cumprod(0))
tangent(d.softmax(0).log())
tangent(d.norm())
tangent(d.prod())
tangent(d.unsqueeze(1) @ d.unsqueeze(0))
tangent(dual(m) @ x)
tangent(torch.mv(m, d))
tangent((d * (1 + 2j)).abs())
tangent(torch.complex(d, x) * torch.complex(x, d))
tangent(dual(torch.complex(x, x), torch.complex(v, x)).real)
tangent(dual(torch.complex(x, x), torch.complex(v, x)).exp())
tangent(d.expand(2, 3).t().reshape(6))
tangent(dual(m)[1, ::2])
tangent(dual(m)[torch.tensor([1, 0])])
dual(m).split(1)
dual(m).max(dim=1)
tangent(d.detach())
tangent(d.data)
tangent(d.clone())
tangent(x.clone())
a = d + 1 ; a.mul_(2) -> tangent(a), v
a = x.clone() ; a.mul_(d) -> tangent(a)
a = dual(x.clone(), v.clone()) ; t = tangent(a) ; b = a * a ; a.mul_(3) -> t, tangent(a), tangent(b)
a = dual(x.clone(), v.clone()) ; a.exp_() -> tangent(a)
a = dual(x.clone(), v.clone()) ; a[0] = 5.0 -> tangent(a)
a = dual(x.clone(), v.clone()) ; a.zero_() -> tangent(a)
a = dual(x.clone(), v.clone()) ; a[1:] *= 2 -> a, tangent(a)
a = dual(x.clone(), v.clone()) ; a[1] = d.sum() -> a, tangent(a)
a = dual(x.clone(), v.clone()) ; a += x -> a, tangent(a)
a = dual(x.clone(), v.clone()) ; s = a[:2] ; a.mul_(2) -> tangent(s), tangent(a[1:])
a = dual(x.clone(), v.clone()) ; s = a[:2] ; s.mul_(2) -> tangent(s), tangent(a)
a = x.clone() ; a[1] = d.sum() -> a, tangent(a)
a = torch.zeros_like(x) ; s = a[:2] ; s.copy_(d[:2]) -> tangent(a), tangent(s), tangent(a[1:])
a = torch.zeros_like(x) ; s = a[:2] ; a.copy_(d) -> tangent(a), tangent(s)
a = torch.zeros_like(m) ; s = a.t() ; s[1] = d[:2] -> tangent(a), tangent(s)
a = torch.zeros_like(m) ; a.t().add_(dual(m).t()) -> tangent(a)
a = x.clone() ; a.clamp_(min=d * 1.4 - 0.9) -> tangent(a)
a = x * w ; a.mul_(d) -> tangent(a), torch.autograd.grad(a.sum(), w)
a = dual(x * w, v.clone()) ; a.mul_(2) -> tangent(a).detach(), torch.autograd.grad(a.sum(), w)
torch.set_grad_enabled(False) -> tangent(d * d), tangent(dual(w) * 2), tangent(dual(x) * w)
torch.set_grad_enabled(False) ; a = dual(x.clone(), v.clone()) ; a[1:].mul_(2) -> a, tangent(a)
g = torch.inference_mode() ; g.__enter__() ; r = d * d ; g.__exit__(None, None, None) -> tangent(r)
dual(w).requires_grad, dual(w).is_leaf, d.requires_grad
torch.autograd.grad(tangent(dual(w, one) ** 3).sum(), [w, one])
torch.autograd.grad(tangent(dual(x, one) ** 3).sum(), one)
torch.autograd.grad(tangent((dual(w, one) * w).exp().sum()), [w, one], create_graph=True)
g, = torch.autograd.grad((dual(w, v) ** 3).sum(), w) -> g, tangent(g)
g, = torch.autograd.grad((w * d).exp().sum(), w, create_graph=True) -> g, tangent(g)
a = dual(w, v) ; g, = torch.autograd.grad(a.exp() @ a, a, create_graph=True) -> g, tangent(g)
a = dual(w, v) ; g, = torch.autograd.grad((a.sin() @ a), a) -> g, tangent(g)
a = dual(w, v) ; g, = torch.autograd.grad((a * a[0]).prod(), w) -> g, tangent(g)
a = dual(w, v) ; g, = torch.autograd.grad((a.cumsum(0) ** 2)[1:].sum(), w) -> g, tangent(g)
(dual(w, v) ** 2).sum().backward() -> w.grad, tangent(w.grad)
"""

RAISE = """
fw.unpack_dual(d, level=5)
fw.make_dual(x, torch.ones(2))
fw.make_dual(x, torch.ones(3, dtype=torch.int64))
fw.make_dual(x.long(), v)
fw.make_dual(x, v, level=1)
fw.make_dual(d, v)
fw.make_dual(x, d)
fw.unpack_dual(3)
fw.enter_dual_level()
fw.exit_dual_level(level=3)
torch.add(d, d, out=torch.zeros(3))
torch.add(x, x, out=d)
dual(w).mul_(2)
"""


def names(library: Any) -> dict[str, Any]:
    return {"torch": library, "fw": library.autograd.forward_ad}


def run(library: Any, line: str) -> Any:
    """Evaluate an expression inside a level, after the statements before ``->``."""
    known = names(library)
    try:
        with known["fw"].dual_level():
            exec(PREPARE, known)
            statements, arrow, expression = line.partition("->")
            if arrow:
                for statement in statements.split(" ; "):
                    exec(statement.strip(), known)
            elif "=" in line.split("(")[0]:
                exec(line, known)
                return None
            return describe(eval((expression if arrow else line).strip(), known))
    finally:
        library.set_grad_enabled(True)


def describe(result: Any) -> Any:
    """Return all that can be seen of tensors, in tuples."""
    if isinstance(result, tuple) and not hasattr(result, "numel"):
        return [describe(each) for each in result]
    if not hasattr(result, "requires_grad"):
        return result
    values = np.array(result.detach().tolist(), dtype=complex).round(9).tolist()
    return (str(result.dtype), tuple(result.shape), result.requires_grad, values)


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("line", [line for line in SAME.splitlines() if line])
def test_tangents_are_pytorchs(torch: ModuleType, line: str) -> None:
    assert run(ng, line) == run(torch, line)


@pytest.mark.parametrize("line", [line for line in RAISE.splitlines() if line])
def test_misuse_raises_what_pytorch_raises(torch: ModuleType, line: str) -> None:
    with pytest.raises(Exception) as theirs:
        run(torch, line)
    with pytest.raises(type(theirs.value)) as ours:
        run(ng, line)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    "line", ["fw.make_dual(x, x)", "fw.exit_dual_level()", "fw.unpack_dual(x)"]
)
def test_without_a_level_it_is_as_in_pytorch(torch: ModuleType, line: str) -> None:
    seen = []
    for library in (ng, torch):
        try:
            found = str(eval(line, names(library) | {"x": library.ones(2)}))
        except RuntimeError as error:
            found = f"raised {error}"
        seen.append(found)
    assert seen[0] == seen[1]


def samples() -> list[Any]:
    return [
        pytest.param(sample, id=f"{primitive.name}-{number}")
        for primitive in array_primitives()
        for number, sample in enumerate(primitive.samples)
    ]


def make_tensors(seed: int) -> Any:
    random = np.random.default_rng(seed)

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Any:
        count = int(np.prod(shape, dtype=int))
        values = low + (high - low) * (random.permutation(count) + 0.5) / max(count, 1)
        return ng.from_numpy(values.reshape(shape))

    return make


@pytest.mark.sampled(0.024)
@pytest.mark.parametrize("sample", samples())
def test_every_operation_hands_tangents_on(sample: Any) -> None:
    function, tensors, keywords = sample(make_tensors(0))
    directions = [ng.from_numpy(np.cos(np.arange(t.numel())).reshape(t.shape)) for t in tensors]

    def outputs(*arguments: Any) -> tuple[Any, ...]:
        found = function(*arguments, **keywords)
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        return tuple(each for each in found if each.dtype.is_floating_point or each.is_complex())

    _, expected = ng.func.jvp(outputs, tuple(tensors), tuple(directions))
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(t, v) for t, v in zip(tensors, directions, strict=True)]
        for output, jvp in zip(outputs(*duals), expected, strict=True):
            tangent = forward_ad.unpack_dual(output).tangent
            if tangent is None:
                assert not jvp.numpy().any()
            else:
                assert tangent.dtype is output.dtype
                np.testing.assert_allclose(tangent.numpy(), jvp.numpy(), rtol=1e-12, atol=1e-12)


def test_hessian_vector_product_by_forward_over_backward_is_the_finite_difference() -> None:
    x = ng.tensor([0.3, -0.7, 1.1], dtype=ng.float64)
    v = ng.tensor([1.0, 2.0, -1.0], dtype=ng.float64)

    def gradient(x: Any) -> Any:
        x = x.detach().requires_grad_() if not x.requires_grad else x
        return ng.autograd.grad((x.sin() * x.prod()).logsumexp(0), x, create_graph=True)[0]

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone().requires_grad_(), v)
        product = forward_ad.unpack_dual(gradient(dual)).tangent
    step = 1e-5
    expected = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    assert np.allclose(product.detach(), expected.detach(), rtol=1e-6)


def test_tangents_pass_gradcheck() -> None:
    x = ng.tensor([0.3, 0.7, 1.1], dtype=ng.float64, requires_grad=True)
    v = ng.tensor([1.0, 2.0, -1.0], dtype=ng.float64, requires_grad=True)

    def tangent(x: Any, v: Any) -> Any:
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, v)
            z = y.exp().cumsum(0)
            z[1:].mul_(y[:2])
            return forward_ad.unpack_dual(z * y.prod()).tangent

    assert ng.autograd.gradcheck(tangent, (x, v))
    assert ng.autograd.gradgradcheck(tangent, (x, v))


def test_tensor_multiplied_in_place_by_itself_has_the_tangent_of_its_square() -> None:
    with forward_ad.dual_level():
        a = forward_ad.make_dual(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 10.0]))
        a.mul_(a)
        assert forward_ad.unpack_dual(a).tangent.tolist() == [2, 40]


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "permuted", "stepped", "rows"])
@given(order=st.permutations([0, 1, 2, 3]))
def test_views_of_any_layout_write_to_one_tangent(layout: str, order: list[int]) -> None:
    values = np.arange(12.0).reshape(3, 4)
    with forward_ad.dual_level():
        x = ng.from_numpy(laid_out(values, layout))
        dual = forward_ad.make_dual(x, ng.from_numpy(values + 1))
        handed_out = forward_ad.unpack_dual(dual).tangent
        before = dual[:, order[0]]
        for column in order[1:]:
            dual[:, column].mul_(dual[1:, order[0]].sum())
        before.mul_(3)
        assert np.array_equal(handed_out, forward_ad.unpack_dual(dual).tangent)
        assert np.array_equal(forward_ad.unpack_dual(before).tangent, handed_out[:, order[0]])

    def chain(x: Any) -> Any:
        y = x.clone()
        for column in order[1:]:
            y[:, column] *= y[1:, order[0]].sum()
        y[:, order[0]] *= 3
        return y

    point, direction = ng.from_numpy(values), ng.from_numpy(values + 1)
    expected = ng.func.jvp(chain, (point,), (direction,))[1]
    assert np.allclose(handed_out, expected)


def test_func_jvp_inside_a_level_is_a_second_derivative() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.tensor(2.0), ng.tensor(1.0))
        _, first = ng.func.jvp(lambda x: x**4, (x,), (ng.tensor(1.0),))
        assert forward_ad.unpack_dual(first) == (ng.tensor(32.0), ng.tensor(48.0))


def test_func_grad_hands_tangents_on() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.tensor(2.0), ng.tensor(1.0))
        found = ng.func.grad(lambda x: x**4)(x)
        assert forward_ad.unpack_dual(found).tangent == 48


@pytest.mark.usefixtures("traced")
def test_jitted_function_hands_tangents_on() -> None:
    function = ng.jit(lambda x: (x.sin() * x).sum())
    x, v = ng.tensor([1.0, 2.0]), ng.tensor([1.0, -1.0])
    function(x)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(function(forward_ad.make_dual(x, v))).tangent
    assert np.allclose(tangent, ng.func.jvp(function, (x,), (v,))[1])


@pytest.mark.usefixtures("traced")
def test_level_inside_a_jitted_function_is_compiled_with_it() -> None:
    def derivative(x: Any, v: Any) -> Any:
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, v)
            return forward_ad.unpack_dual((y.sin() * y).cumsum(0)).tangent

    x, v = ng.tensor([1.0, 2.0]), ng.tensor([1.0, -1.0])
    assert np.allclose(ng.jit(derivative)(x, v), derivative(x, v))


def test_level_decorates_functions() -> None:
    @forward_ad.dual_level()
    def derivative(x: Any) -> Any:
        return forward_ad.unpack_dual(forward_ad.make_dual(x, ng.ones(())) ** 2).tangent

    assert derivative(ng.tensor(3.0)) == 6
    assert derivative(ng.tensor(4.0)) == 8


def test_level_closes_when_its_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), forward_ad.dual_level():
        raise ZeroDivisionError
    assert modes.dual is None and not interceptors
    with forward_ad.dual_level() as number:
        assert number == 0


def test_level_is_that_of_all_threads() -> None:
    found = []
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.tensor(3.0), ng.tensor(1.0))
        thread = threading.Thread(
            target=lambda: found.append(forward_ad.unpack_dual(x * x).tangent)
        )
        thread.start()
        thread.join()
    assert found == [6]


def test_tangent_is_freed_with_its_tensor() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.ones(3), ng.ones(3))
        y = x * 2
        reference = weakref.ref(forward_ad.unpack_dual(y).tangent)
        assert reference() is not None
        del y
        gc.collect()
        assert reference() is None


def test_in_inference_mode_there_are_no_tangents(lib: Any) -> None:
    forward_ad = lib.autograd.forward_ad
    with lib.inference_mode(), forward_ad.dual_level():
        for x in (lib.ones(2), lib.ones(2)):
            dual = forward_ad.make_dual(x, lib.tensor([1.0, 2.0]))
            assert forward_ad.unpack_dual(dual).tangent is None
            assert forward_ad.unpack_dual(dual * dual).tangent is None
            dual.mul_(2)
            assert forward_ad.unpack_dual(dual).tangent is None
            assert forward_ad.unpack_dual(dual).primal.tolist() == [2.0, 2.0]


def test_in_inference_mode_no_tangent_from_outside_is_unpacked(lib: Any) -> None:
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lib.ones(2), lib.tensor([1.0, 2.0]))
        with lib.inference_mode():
            assert forward_ad.unpack_dual(dual).tangent is None
        assert forward_ad.unpack_dual(dual).tangent.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("inferred", [(True, False), (False, True), (True, True)])
def test_tangents_of_inference_tensors_are_those_of_others(inferred: tuple[bool, bool]) -> None:
    """PyTorch loses some of them, by which overload of an operation is called."""
    with ng.inference_mode(inferred[0]):
        x = ng.tensor([1.0, 2.0])
    with ng.inference_mode(inferred[1]):
        t = ng.tensor([3.0, 5.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        for make, expected in (
            (lambda d: d * d, [6.0, 20.0]),
            (lambda d: d * 2, [6.0, 10.0]),
            (lambda d: d[1:], [5.0]),
            (lambda d: ng.ones(2).copy_(d), [3.0, 5.0]),
            (lambda d: (d**3).sum(), 69.0),
        ):
            assert forward_ad.unpack_dual(make(dual)).tangent.tolist() == expected
    assert t.tolist() == [3.0, 5.0]


REPEATED = {
    "rows": lambda lib: lib.ones(3).expand(2, 3),
    "columns": lambda lib: lib.ones(2, 1).expand(2, 3),
    "everything": lambda lib: lib.ones(()).expand(2, 3),
    "turned": lambda lib: lib.ones(2).expand(3, 2).t(),
}


@pytest.mark.parametrize("repeated", REPEATED)
@pytest.mark.parametrize("other", [None, *REPEATED])
def test_a_tensor_that_repeats_elements_takes_only_a_tangent_that_lies_so(
    lib: Any, repeated: str, other: str | None
) -> None:
    tensor = REPEATED[repeated](lib)
    tangent = lib.ones(2, 3) if other is None else REPEATED[other](lib)
    forward = lib.autograd.forward_ad
    with forward.dual_level():
        if tensor.stride() == tangent.stride():
            assert forward.unpack_dual(forward.make_dual(tensor, tangent)).tangent is not None
            return
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            forward.make_dual(tensor, tangent)
