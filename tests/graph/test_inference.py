"""Inference tensors: which tensors are, and what they may be used for outside of the mode."""

from __future__ import annotations

import math
import threading
from types import ModuleType
from typing import Any

import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.graph.modes.state import interceptors
from numgrad.ops.calls.steps import Steps

PREPARE = """
import copy
x = torch.tensor([1.0, 2.0], requires_grad=True)
n = torch.tensor([3.0, 4.0])
base = x * 2
with torch.inference_mode():
    i = torch.ones(2)
    required = torch.ones(2, requires_grad=True)
    computed = x * x
    view = x[:1]
    constant_view = n.view(2)
    late = base[:1]
"""

# What each gives, or raises, outside of the mode.
LINES = """
i.is_inference(), torch.is_inference(i), x.is_inference(), n.is_inference()
computed.is_inference(), computed.requires_grad, required.requires_grad, required.is_leaf
view.is_inference(), view.requires_grad, constant_view.is_inference(), view.is_leaf
i[0].is_inference(), i.view(2).is_inference(), i.detach().is_inference(), i.data.is_inference()
i.clone().is_inference(), (i + 1).is_inference(), copy.deepcopy(i).is_inference()
i._version
i[0]._version
view._version, constant_view._version
i * n
i + x
(i + x).requires_grad
i * x
x * i
torch.stack([x, i])
torch.where(i > 0, x, i)
x.exp() * i.exp()
(x * 2) @ i
(x * 2).add_(i)
(x * 2).mul_(i)
(x * 2).copy_(i)
n.clone().copy_(i).is_inference()
i.mul_(2)
i.zero_()
i[0].zero_()
i.__setitem__(0, 5.0)
i.view(2).add_(1)
i.view(2).mul_(x)
constant_view.unbind()[0].add_(1)
torch.add(n, n, out=i)
torch.exp(n, out=i)
i.copy_(n)
i.requires_grad_()
i.requires_grad_(False)
setattr(i, "requires_grad", True)
i.clone().requires_grad_()
required * 2
required.mul_(2)
view.add_(1)
view * 2
constant_view.add_(1)
constant_view * x
late.add_(1)
base.add_(1) ; late * 1
x.backward(i) ; x.grad, x.grad.is_inference()
(x * 2).backward(i) ; x.grad
torch.autograd.grad(x * x, x, i)
torch.autograd.grad(x * x, x, i, create_graph=True)
x.grad = i ; (x * 2).sum().backward()
x.grad = i ; x.grad.is_inference()
i.backward()
i.register_hook(lambda g: g)
i.retain_grad()
i.detach_().is_inference()
i.tolist()
torch.func.grad(lambda v: (v * v).sum())(i)
torch.func.grad(lambda v: (v * v * i).sum())(n)
torch.func.grad_and_value(lambda v: (v * i).sin().sum())(i)
torch.func.grad(lambda v: torch.func.grad(lambda w: (w**3).sum())(v).sum())(i).is_inference()
torch.func.vjp(lambda v: v * v, i)[1](n)
torch.func.vjp(lambda v: v * i, n)[1](i)
torch.func.jacrev(lambda v: v * v)(i)
torch.from_numpy(i.numpy()).is_inference()
"""

INSIDE = """
i.add_(1) ; i
n.add_(1) ; n._version
x.add_(1) ; x._version
x[0] = 5.0 ; x._version
i[0] = 5.0 ; i
i.requires_grad_() ; i.requires_grad, (i * 2).requires_grad
i._version
torch.is_grad_enabled(), torch.is_inference_mode_enabled()
torch.from_numpy(np.ones(2)).is_inference(), torch.tensor([1]).is_inference()
n.data.is_inference(), x.data.is_inference(), i.data.is_inference()
n.view(2).is_inference(), n.detach().is_inference(), n.clone().is_inference()
n.unbind()[0].is_inference(), i.unbind()[0].is_inference()
n.sum().is_inference(), n.exp().is_inference(), (n * n).is_inference(), (2 * n).is_inference()
n.sort().values.is_inference(), n[n > 0].is_inference(), (n @ n).is_inference()
torch.exp(n, out=torch.empty(2)).is_inference()
torch.func.grad(lambda v: (v * v).sum())(n).is_inference()
torch.func.grad(lambda v: (v * i).sum())(i).is_inference()
torch.func.grad(lambda v: (n * n).sum())(n).is_inference()
torch.func.grad_and_value(lambda v: v.sum())(n)[1].is_inference()
torch.func.vjp(lambda v: v * v, n)[0].is_inference()
torch.func.vjp(lambda v: v * v, n)[1](n)[0].is_inference()
torch.func.jacrev(lambda v: v * v)(n).is_inference()
torch.vmap(lambda v: v * v)(n).is_inference()
torch.set_grad_enabled(True) ; torch.is_grad_enabled(), torch.ones(1).is_inference()
(x * 2).sum().backward()
required.resize_(1) ; required.shape, required.requires_grad, required.is_leaf
computed.resize_(1) ; computed.shape, computed.requires_grad
required.resize_as_(torch.ones(1)) ; required.shape
"""


def outcome(library: Any, line: str, inside: bool) -> Any:
    """Return what a line gives, or the kind and words of what it raises."""
    names: dict[str, Any] = {"torch": library}
    exec("import numpy as np", names)
    exec(PREPARE, names)
    *statements, expression = line.split(" ; ")
    try:
        with library.inference_mode(inside):
            for statement in statements:
                exec(statement.strip(), names)
            result = eval(expression, names)
            return repr(result)
    except Exception as error:
        return type(error).__name__, str(error)
    finally:
        library.set_grad_enabled(True)


@pytest.mark.parametrize("line", [line for line in LINES.splitlines() if line])
def test_outside_of_the_mode_it_is_as_in_pytorch(torch: ModuleType, line: str) -> None:
    assert outcome(ng, line, False) == outcome(torch, line, False)


@pytest.mark.parametrize("line", [line for line in INSIDE.splitlines() if line])
def test_inside_of_the_mode_it_is_as_in_pytorch(torch: ModuleType, line: str) -> None:
    assert outcome(ng, line, True) == outcome(torch, line, True)


def test_refused_write_changes_nothing() -> None:
    with ng.inference_mode():
        x = ng.ones(2)
    for write in (x.zero_, lambda: x.__setitem__(0, 5.0), lambda: ng.exp(ng.ones(2), out=x)):
        with pytest.raises(RuntimeError, match="outside InferenceMode"):
            write()
        assert x.tolist() == [1, 1]


def test_writes_are_counted_for_who_notes_what_a_call_does() -> None:
    """Although nobody may ask an inference tensor for its version."""
    with ng.inference_mode():
        t = ng.ones(2)
        for count in range(4):
            assert list.__getitem__(t._counter, 0) == count
            noted = Steps()
            noted.run(lambda: t * 2)
            assert noted.is_complete()
            t.add_(1)
            assert not noted.is_complete()


@pytest.mark.usefixtures("traced")
def test_results_of_compiled_functions_are_inference_tensors() -> None:
    function = ng.jit(lambda x: x.sin() * 2)
    x = ng.ones(3)
    function(x)
    with ng.inference_mode():
        assert function(x).is_inference()
    assert not function(x).is_inference()


def test_other_threads_are_not_in_the_mode() -> None:
    found = []
    with ng.inference_mode():
        thread = threading.Thread(
            target=lambda: found.append((ng.ones(1) * ng.ones(1)).is_inference())
        )
        thread.start()
        thread.join()
    assert found == [False] and not interceptors


def test_functions_are_differentiated_inside_of_the_mode() -> None:
    with ng.inference_mode():
        x, c = ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0])
        assert ng.func.grad(lambda x: (x * x * c).sum())(x).tolist() == [6, 16]
        assert ng.func.jvp(lambda x: x * x * c, (x,), (c,))[1].tolist() == [18, 64]
        _, vjp = ng.func.vjp(lambda x: x * x * c, x)
        assert vjp(c)[0].tolist() == [18, 64]


TRANSFORMED: dict[str, Any] = {
    "grad": ng.func.grad(lambda x: (x * x).sum()),
    "value_and_grad": ng.func.value_and_grad(lambda x: (x * x).sum()),
    "a gradient of zeros": ng.func.grad(lambda x: ng.ones(())),
    "vjp": lambda x: ng.func.vjp(lambda x: x * x, x)[1](x),
    "jvp": lambda x: ng.func.jvp(lambda x: x * x, (x,), (x,)),
    "linearize": lambda x: ng.func.linearize(lambda x: x * x, x)[1](x),
    "jacrev": ng.func.jacrev(lambda x: x * x),
    "jacfwd": ng.func.jacfwd(lambda x: x * x),
    "hessian": ng.func.hessian(lambda x: (x * x).sum()),
    "vmap": ng.vmap(lambda x: x * x),
    "a product": lambda x: x * x,
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", TRANSFORMED)
def test_compiled_functions_make_inference_tensors_where_others_do(name: str) -> None:
    function = TRANSFORMED[name]
    compiled, x = ng.jit(function), ng.tensor([1.0, 2.0])
    compiled(x)
    with ng.inference_mode():
        made = [flatten(each(x))[0] for each in (function, compiled, compiled)]
    expected = name in ("vmap", "a product")
    assert {each.is_inference() for results in made for each in results} == {expected}
    x.requires_grad_()
    for each in made[0]:
        if not expected:
            (each.sum() * x).sum().backward()


def test_mode_can_be_left_inside() -> None:
    x = ng.ones(2, requires_grad=True)
    with ng.inference_mode(), ng.inference_mode(False):
        y = x * 2
        assert y.requires_grad and not y.is_inference()


VIEWS = {
    "[1:]": lambda x: x[1:],
    "view": lambda x: x.view(-1),
    "t": lambda x: x.t(),
    "expand": lambda x: x.expand(2, *x.shape),
    "split": lambda x: x.split(1)[0],
    "unbind": lambda x: x.unbind()[-1],
    "diagonal": lambda x: x.diagonal(),
    "a view of a view": lambda x: x.t()[:1].unsqueeze(0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_an_inference_tensor_has_no_base(lib: Any, name: str) -> None:
    normal = lib.ones(2, 2)
    with lib.inference_mode():
        made = lib.ones(2, 2)
        inside = VIEWS[name](made), VIEWS[name](normal)
    outside = VIEWS[name](made), VIEWS[name](normal)
    for of_made, of_normal in (inside, outside):
        assert of_made._base is None and not of_made._is_view() and of_made.is_inference()
        assert of_normal._base is normal and of_normal._is_view()
    with lib.inference_mode():
        made.fill_(3)
        assert set(inside[0].reshape(-1).tolist()) == {3.0}
        assert made.untyped_storage().data_ptr() == inside[0].untyped_storage().data_ptr()
        assert inside[0].untyped_storage().nbytes() == made.untyped_storage().nbytes()


@pytest.mark.parametrize(
    "function",
    [
        lambda y: (y * y).sum() + y.sum(),
        lambda y: y.sum() + y.sum(),
        lambda y: (y * y).sum() + y.sum() + y.sum(),
        lambda y: (y * y).sum() + y.sum(-1).sum(),
        lambda y: (y * 3).mean() + y.expand(2, *y.shape).sum() + y.reshape(-1).sum(),
    ],
)
@pytest.mark.parametrize("shape", [(2,), (2, 2), (3, 1)])
def test_gradients_in_the_mode_are_those_outside(function: Any, shape: tuple[int, ...]) -> None:
    """There views have no base, and memory that they show again and again is added to by nobody."""
    y = ng.arange(1.0, 1.0 + math.prod(shape)).reshape(shape).requires_grad_()
    (expected,) = ng.autograd.grad(function(y), y)
    for _ in range(4):
        result = function(y)
        with ng.inference_mode():
            (found,) = ng.autograd.grad(result, y)
        assert found.tolist() == expected.tolist()
