"""What crosses the border of a transformed function: captured tensors, modes, writes, arrays."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func
from numgrad.graph.modes.state import modes


@dataclasses.dataclass
class Line:
    slope: Any
    offset: Any


def test_gradients_reach_what_was_captured() -> None:
    w = ng.tensor([1.0, 2.0], requires_grad=True)
    x = ng.tensor([3.0, 4.0])
    value, gradient = func.value_and_grad(lambda x: (w * x * x).sum())(x)
    (value + gradient.sum()).backward()
    assert w.grad.tolist() == [9 + 6, 16 + 8]
    assert x.grad is None and not x.requires_grad


def test_only_results_that_depend_on_the_outside_require_grad() -> None:
    w = ng.tensor(2.0, requires_grad=True)
    (of_x, of_y), (value, aux) = func.grad_and_value(
        lambda x, y: (w * x**2 + y**2, (x * 3, w * 3, y)), argnums=(0, 1), has_aux=True
    )(ng.tensor(1.0), ng.tensor(1.0))
    assert [t.requires_grad for t in (of_x, of_y, value, *aux)] == [
        True,
        False,
        True,
        False,
        True,
        False,
    ]


def test_leaves_that_were_captured_keep_their_grad() -> None:
    w = ng.tensor(2.0, requires_grad=True)
    with ng.no_grad():
        result = func.grad(lambda x: w * x**2)(ng.tensor(1.0))
    assert w.grad is None and result.item() == 4 and not result.requires_grad


def test_the_function_of_a_vjp_can_be_called_within_another_level() -> None:
    x = ng.tensor([1.0, 2.0])
    vjp_fn = func.vjp(lambda x: x**3, x)[1]
    found = func.grad(lambda v: (vjp_fn(v)[0] * v).sum())(x)
    assert found.tolist() == [6.0, 48.0]
    assert not found.requires_grad


def test_modes_are_restored_after_an_error() -> None:
    with ng.no_grad():
        with pytest.raises(ZeroDivisionError):
            func.grad(lambda x: 1 / 0)(ng.tensor(1.0))
        assert not ng.is_grad_enabled() and modes.level is None


def test_inference_mode_does_not_keep_from_differentiating() -> None:
    def f(x: Any) -> Any:
        with ng.no_grad():
            constant = x**2
        return x**3 - constant

    with ng.inference_mode():
        assert func.grad(f)(ng.tensor(2.0)).item() == 12
        assert ng.is_inference_mode_enabled()


# In inference mode inside of a function of `x`, with `y` and `v` computed of it; the others are
# captured.
IN_INFERENCE = """
x * x
x + w
(x * 2).view(-1)
(x * 2).mul_(3)
(x * 2).detach()
(x * 2)[0].zero_()
x.clone()
x[[0]]
x.contiguous()
x.reshape(2, 2)
x.view(-1)
x[0]
x.t()
x.detach()
x.data
x.unbind()[0]
y.view(-1)
y[:1]
y.detach()
v.view(2, 2)
w.view(-1)
w.detach()
r.view(-1)
(r * 1).view(-1)
torch.ones(4).view(2, 2)
torch.zeros(2, 2).add_(1)
i.view(-1)
i.mul_(2)
w.mul_(2)
x.mul_(2)
y.mul_(2)
torch.einsum("ij,jk", x, x)
"""


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp"])
@pytest.mark.parametrize("line", IN_INFERENCE.strip().splitlines())
def test_inference_mode_inside_does_what_it_does_in_pytorch(
    torch: Any, transform: str, line: str
) -> None:
    """What is computed there is constant, and a view of what is differentiated is refused."""

    def outcome(lib: Any) -> Any:
        captured = {"w": lib.ones(2, 2), "r": lib.ones(2, 2, requires_grad=True)}
        with lib.inference_mode():
            captured["i"] = lib.ones(2, 2)

        def f(x: Any) -> Any:
            y = x * 3
            names = {"torch": lib, "x": x, "y": y, "v": y.view(-1), **captured}
            with lib.inference_mode():
                found = eval(line, names)
            return (x * y).sum() + found.sum()

        x = lib.full((2, 2), 2.0)
        try:
            if transform == "grad":
                return lib.func.grad(f)(x).tolist()
            if transform == "vjp":
                return lib.func.vjp(f, x)[1](lib.ones(()))[0].tolist()
            return [each.tolist() for each in lib.func.jvp(f, (x,), (lib.ones(2, 2),))]
        except RuntimeError as error:
            return str(error)

    assert outcome(ng) == outcome(torch)


def test_linear_functions_made_in_inference_mode_have_tangents() -> None:
    x = ng.tensor([2.0, 3.0])
    with ng.inference_mode():
        output, push = func.linearize(lambda x: x**3, x)
        tangent = push(ng.tensor([1.0, 10.0]))
    assert output.tolist() == [8.0, 27.0] and tangent.tolist() == [12.0, 270.0]
    assert not tangent.is_inference()


def test_an_argument_modified_after_its_vjp_is_found_out() -> None:
    x = ng.tensor([1.0, 2.0])
    vjp_fn = func.vjp(lambda x: x**2, x)[1]
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vjp_fn(ng.ones(2))


def test_numpy_arrays_are_tensors() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, gradient = func.value_and_grad(lambda x, d: (x * d["y"]).sum())(x, {"y": y})
    assert value.item() == 11 and gradient.tolist() == [3.0, 4.0]
    assert func.jvp(lambda x: x * 2, (x,), (y,))[1].tolist() == [6.0, 8.0]
    assert func.vjp(lambda x: x * 2, x)[1](y)[0].tolist() == [6.0, 8.0]
    assert func.jacrev(lambda x: x * 2)(x).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert func.jacfwd(lambda x, y: x * y)(x, y).tolist() == [[3.0, 0.0], [0.0, 4.0]]


def test_dataclasses_are_arguments_and_results() -> None:
    def f(line: Line, x: Any) -> Line:
        return Line(line.slope * x, line.offset + x)

    line = Line(ng.tensor(2.0), ng.tensor(1.0))
    assert func.grad(lambda line, x: f(line, x).slope)(line, 3.0).slope.item() == 3
    jacobian = func.jacrev(f)(line, ng.tensor(3.0))
    assert jacobian.slope.slope.item() == 3 and jacobian.offset.offset.item() == 1


def test_hvp_of_several_arguments_is_a_tuple() -> None:
    x, y, one, zero = (ng.tensor(v) for v in (2.0, 3.0, 1.0, 0.0))
    found = func.hvp(lambda x, y: x**2 * y, (x, y), (one, zero))
    assert [each.item() for each in found] == [6.0, 4.0]


def test_hvp_names_itself_where_primals_are_no_tuple() -> None:
    x = ng.ones(3)
    with pytest.raises(RuntimeError, match=r"^hvp\(.*Expected primals to be a tuple"):
        func.hvp(lambda x: x.sum(), x, x)


def test_hvp_takes_pytrees() -> None:
    p, v = {"a": ng.tensor(2.0)}, {"a": ng.tensor(1.0)}
    assert func.hvp(lambda p: p["a"] ** 3, (p,), (v,))["a"].item() == 12


def test_a_long_chain_needs_no_recursion() -> None:
    def f(x: Any) -> Any:
        for _ in range(5000):
            x = x * 1.0
        return x

    x = ng.tensor(2.0)
    assert func.grad(f)(x).item() == func.jvp(f, (x,), (x,))[1].item() / 2 == 1


def test_nothing_is_kept_of_a_call() -> None:
    references = []

    def f(x: Any) -> Any:
        y = x * x
        references.append(weakref.ref(y))
        return y.sum()

    gc.disable()
    try:
        func.value_and_grad(f)(ng.ones(2))
        func.jvp(f, (ng.ones(2),), (ng.ones(2),))
        func.hessian(f)(ng.ones(2))
        assert [reference() for reference in references] == [None, None, None]
    finally:
        gc.enable()


def test_gradients_do_not_share_memory_with_arguments() -> None:
    x = ng.tensor([1.0, 2.0])
    gradient = func.grad(lambda x, y: (x * y).sum())(ng.ones(2), x)
    gradient.add_(1)
    assert x.tolist() == [1.0, 2.0]
    cotangent = ng.ones(2)
    (result,) = func.vjp(lambda x: x.clone(), x)[1](cotangent)
    result.add_(1)
    assert cotangent.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
@pytest.mark.parametrize("requires", [False, True])
def test_arguments_are_leaves_where_nothing_is_recorded_outside(
    lib: Any, mode: str, requires: bool
) -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        seen.append((x.is_leaf, x.requires_grad, x.grad_fn))
        return (x * x).sum()

    given = lib.tensor([1.0, 2.0], requires_grad=requires)
    for x in (given, given * 1):
        with getattr(lib, mode)():
            found = lib.func.grad(function)(x)
        assert not found.requires_grad and found.grad_fn is None and found.tolist() == [2.0, 4.0]
    assert seen == [(True, True, None)] * 2


def _seen(library: Any, transform: str, outside: str) -> list[tuple[bool, bool, str | None]]:
    """Return what tensors are inside of a function of arguments that require grad outside."""
    seen: list[tuple[bool, bool, str | None]] = []

    def note(tensor: Any) -> None:
        node = tensor.grad_fn
        seen.append((tensor.is_leaf, tensor.requires_grad, node and node.name()))

    def f(*tensors: Any) -> Any:
        total = 0
        for x in tensors:
            note(x)
            with library.no_grad():
                note(x)
                if not forward:  # all that has a tangent requires grad here
                    note(x * 2)
            for each in (x * 2, x.detach(), x.view(-1), x.clone(), (x * x).sum()):
                note(each)
            total = total + (x * x).sum()
        note(captured)
        return total

    forward = "jvp" in transform or "hessian" in transform
    captured, x, y = (library.ones(3, requires_grad=outside != "none") for _ in range(3))
    if outside == "computed":
        captured, x, y = captured * 1, x * 1, y * 1
    eval(transform, {"func": library.func, "f": f, "x": x, "y": y, "ones": library.ones})
    note(x)
    return seen


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("outside", ["none", "leaf", "computed"])
def test_arguments_are_leaves_inside_as_in_pytorch(torch: Any, outside: str) -> None:
    """Also of functions within functions, and whatever the arguments are outside."""
    for transform in (
        "func.grad(f)(x)",
        "func.grad(f, argnums=(0, 1))(x, y)",
        "func.grad_and_value(f)(x)",
        "func.vjp(f, x, y)[1](ones(()))",
        "func.jacrev(f)(x)",
        "func.hessian(f)(x)",
        "func.grad(lambda z: func.grad(f)(z).sum())(x)",
        "func.grad(lambda z: func.grad(f)(y).sum() + (z * z).sum())(x)",
        "func.jvp(func.grad(f), (x,), (ones(3),))",
        "func.vmap(f)(x.expand(2, 3))",
        "func.vmap(func.grad(f))(x.expand(2, 3))",
        "func.grad(lambda z: func.vmap(f)(z.expand(2, 3)).sum())(x)",
    ):
        found, theirs = (_seen(library, transform, outside) for library in (ng, torch))
        assert found == theirs, transform


def test_a_hook_on_an_argument_is_called() -> None:
    """One that requires grad outside has a node below, which the function does not see."""
    for requires_grad in (False, True):
        called: list[list[float]] = []
        x = ng.tensor([1.0, 2.0], requires_grad=requires_grad)

        def f(z: ng.Tensor) -> ng.Tensor:
            z.register_hook(lambda g: called.append(g.tolist()))
            return (z * z).sum()

        assert func.grad(f)(x).tolist() == [2, 4]
        assert called == [[2, 4]]


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_there_is_one_history_for_all_levels(torch: Any) -> None:
    """What only depends on the outside requires grad inside, too; in PyTorch it does outside."""
    w = {library: library.ones(2, requires_grad=True) for library in (torch, ng)}
    for library in (torch, ng):
        seen: list[bool] = []

        def f(x: Any) -> Any:
            seen.extend([(w[library] * 2).requires_grad, x.requires_grad])
            return x.sum()

        x = library.ones(2)
        library.func.grad(f)(x)
        library.func.jvp(f, (x,), (x,))
        assert seen == ([False, True, False, False] if library is torch else [True] * 4)
