"""A function that is transformed may write to what it was given or made, not to what it captured.

Each expression is evaluated inside of such a function, in both libraries.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import numgrad as ng

# What PyTorch says to itself when it first pushes a tangent, and when it makes a linear function.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),
]

# Writes to ``c``, with what they write at hand: the arguments `x` and `y`.
WRITES = """
c.mul_(x)
c.add_(1)
c.copy_(x)
c.fill_(2)
c.pow_(y)
c.sin_()
c.zero_()
c.lerp_(x, 0.5)
c.masked_fill_(y > 3, 0.0)
c.index_add_(0, torch.tensor([0]), y[:1])
c.scatter_(0, torch.tensor([0]), y[:1])
c.uniform_()
c.t_()
c.unsqueeze_(0)
c.resize_(1)
c.detach_()
c.__setitem__(0, x[0])
c.__setitem__(0, 1.0)
c.__setitem__((slice(1), None), 1.0)
c.__setitem__(torch.tensor([0]), 1.0)
c.__setitem__(y > 3, 0.0)
c[:1].mul_(x[:1])
c.data.mul_(2)
c.detach().mul_(2)
torch.no_grad()(lambda: c.add_(y))()
"""
# Writes, and what the error calls them: overloads by whether the last operand is a tensor.
OVERLOADS = """
c.mul_(y) -> mul_.Tensor
c.sub_(2, alpha=2) -> sub_.Tensor
c.true_divide_(2) -> true_divide_.Tensor
c.floor_divide_(y) -> floor_divide_.Tensor
c.copy_(x) -> copy_
c.sin_() -> sin_
c.atan2_(y) -> atan2_
c.addcmul_(x, y) -> addcmul_
c.fill_(2) -> fill_.Scalar
c.fill_(y[0]) -> fill_.Tensor
c.pow_(x) -> pow_.Tensor
c.pow_(2) -> pow_.Scalar
c.pow_(exponent=y) -> pow_.Tensor
c.fmod_(y) -> fmod_.Tensor
c.remainder_(2) -> remainder_.Scalar
c.copysign_(y) -> copysign_.Tensor
c.copysign_(1) -> copysign_.Scalar
c.float_power_(1) -> float_power_.Scalar
c.eq_(1) -> eq_.Scalar
c.lt_(y) -> lt_.Tensor
c.lerp_(x, 0.5) -> lerp_.Scalar
c.lerp_(y, 0.5) -> lerp_.Scalar
c.lerp_(x, y) -> lerp_.Tensor
c.lerp_(y, weight=x) -> lerp_.Tensor
c.masked_fill_(y > 3, 0.0) -> masked_fill_.Scalar
c.masked_fill_(y > 3, y[0]) -> masked_fill_.Tensor
c.masked_fill_(y > 3, value=x[0]) -> masked_fill_.Tensor
c.scatter_(0, torch.tensor([0]), y[:1]) -> scatter_.src
c.scatter_(0, torch.tensor([0]), 2.0) -> scatter_.value
c.index_fill_(0, torch.tensor([0]), 2.0) -> index_fill_.int_Scalar
c.index_fill_(0, torch.tensor([0]), y[0]) -> index_fill_.int_Tensor
c.index_add_(0, torch.tensor([0]), y[:1]) -> index_add_
c.clamp_(0, 1) -> clamp_
c.clamp_(x, y) -> clamp_.Tensor
c.clamp_min_(x) -> clamp_min_.Tensor
c.clamp_max_(2) -> clamp_max_
c.xlogy_(y) -> xlogy_.Tensor
c.bernoulli_(0.5) -> bernoulli_.float
c.random_() -> random_
c.log_normal_() -> log_normal_
c.round_() -> round_
c.round_(decimals=1) -> round_.decimals
c.squeeze_() -> squeeze_
c.squeeze_(0) -> squeeze_.dim
c.unsqueeze_(0) -> unsqueeze_
c.uniform_() -> uniform_
"""
# What may be captured, made outside of the function.
CAPTURED = {
    "plain": lambda lib: lib.ones(2),
    "leaf": lambda lib: lib.ones(2, requires_grad=True),
    "computed": lambda lib: lib.ones(2, requires_grad=True) * 1,
    "view": lambda lib: lib.ones(3)[:2],
}
# What the function may write to: made inside, or given to it.
OWN = """
x * 1
x.clone()
x.detach()
y
y[:1].expand(2).clone()
k
torch.zeros(2)
torch.zeros_like(x)
torch.tensor([1.0, 2.0])
torch.ones(2).sin()
torch.ones(2) + 1
torch.ones(2, 2).sum(0)
torch.ones(2, 2).max(0)[0]
torch.ones(2).double()
torch.ones(2).data
torch.ones(4).view(2, 2)[0]
torch.zeros(3).resize_(2).zero_()
torch.cat([y[:1], y[1:]])
torch.no_grad()(lambda: y * 2)()
func.grad(lambda z: (z * z).sum())(y)
func.vjp(lambda z: z * z, y)[0]
func.jvp(lambda z: z * z, (y,), (y,))[1]
"""
TRANSFORMS = ("grad", "vjp", "jvp", "jacrev", "jacfwd")


def transformed(lib: Any, name: str, f: Any) -> list[float]:
    """Return what a transformation makes of ``f(x, y, k)``, as a list of numbers."""
    func = ng.func if lib is ng else importlib.import_module("torch.func")
    x, y, k = (lib.tensor(pair) for pair in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]))
    if name == "grad":
        result = func.grad(f)(x, y, k=k)
    elif name == "vjp":
        (result,) = func.vjp(lambda x: f(x, y * 1, k * 1), x)[1](lib.tensor(1.0))
    elif name == "jvp":
        result = func.jvp(lambda x: f(x, y * 1, k * 1), (x,), (lib.ones(2),))[1]
    else:
        result = getattr(func, name)(f)(x, y, k)
    found: list[float] = result.reshape(-1).tolist()
    return found


def run(lib: Any, expression: str, **names: Any) -> Any:
    func = ng.func if lib is ng else importlib.import_module("torch.func")
    return eval(expression, {"torch": lib, "func": func, **names})


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("kind", CAPTURED)
def test_a_captured_tensor_may_not_be_written_to(lib: Any, name: str, kind: str) -> None:
    for write in WRITES.strip().splitlines():
        captured = CAPTURED[kind](lib)
        if "detach_()" in write and kind == "view":
            continue  # which no view may be

        def f(x: Any, y: Any, k: Any, write: str = write, captured: Any = captured) -> Any:
            run(lib, write, c=captured, x=x, y=y)
            return (captured * x).sum()

        with pytest.raises(RuntimeError, match=r"would mutate a captured Tensor") as error:
            transformed(lib, name, f)
        method = write.removeprefix("torch.no_grad()(lambda: ").removeprefix("c")
        if method.startswith("."):
            operation = method.removeprefix(".data").removeprefix(".detach()")[1:].partition("(")[0]
            if operation != "__setitem__":
                assert f"(aten::{operation}" in str(error.value), write
        assert captured.detach().tolist() == [1.0, 1.0], write


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("line", OVERLOADS.strip().splitlines())
@pytest.mark.parametrize("kind", ["plain", "computed"])
def test_the_error_names_the_overload_that_writes(lib: Any, kind: str, line: str) -> None:
    write, _, overload = line.partition(" -> ")
    captured = CAPTURED[kind](lib)

    def f(x: Any, y: Any, k: Any) -> Any:
        run(lib, write, c=captured, x=x, y=lib.tensor([3.0, 4.0]))
        return (captured * x).sum()

    with pytest.raises(RuntimeError, match=r"would mutate a captured Tensor") as error:
        transformed(lib, "grad", f)
    assert f"(aten::{overload})" in str(error.value)


# Writes that leave the same however often a function runs, as PyTorch's `linearize` has it run.
REPEATED = """
c.copy_(x * x)
c.fill_(2)
c.zero_()
c.clamp_(2, 3)
c.__setitem__(0, x[0] * x[1])
c.__setitem__(0, 1.5)
c.masked_fill_(y > 3, 0.5)
c[:1].copy_(x[1:])
c.data.fill_(3)
c.detach().fill_(3)
torch.no_grad()(lambda: c.fill_(4))()
"""


@pytest.mark.parametrize("kind", ["plain", "view"])
@pytest.mark.parametrize("write", REPEATED.strip().splitlines())
def test_linearize_lets_a_function_write_to_what_it_captured(
    torch: Any, write: str, kind: str
) -> None:
    found = []
    for lib in (ng, torch):
        captured = CAPTURED[kind](lib)
        x = lib.tensor([1.0, 2.0])

        def f(x: Any, lib: Any = lib, captured: Any = captured) -> Any:
            run(lib, write, c=captured, x=x, y=lib.tensor([3.0, 4.0]))
            return captured * x * x

        func = ng.func if lib is ng else importlib.import_module("torch.func")
        output, push = func.linearize(f, x)
        tangent = push(lib.tensor([1.0, 10.0]))
        found.append([each.detach().tolist() for each in (output, tangent, captured, x)])
    assert found[0] == found[1]


def test_linearize_within_another_function_lets_it_write_to_nothing_more(lib: Any) -> None:
    func = ng.func if lib is ng else importlib.import_module("torch.func")
    captured, x = lib.ones(2), lib.tensor([1.0, 2.0])

    def f(x: Any) -> Any:
        return func.linearize(lambda y: captured.mul_(2) * y, x)[0].sum()

    with pytest.raises(RuntimeError, match=r"\(aten::mul_.Tensor\) that would mutate a captured"):
        func.grad(f)(x)
    assert captured.tolist() == [1.0, 1.0]


OUTER = {
    "the argument": lambda x: (x, x),
    "what it is a view of": lambda x: (x, x[:2]),
    "another view of it": lambda x: (x[:2], x),
    "its row": lambda x: (x[0], x),
}


@pytest.mark.parametrize("name", [*TRANSFORMS, "hessian"])
@pytest.mark.parametrize("which", OUTER)
def test_the_outer_tensor_may_not_be_written_to(lib: Any, name: str, which: str) -> None:
    func = ng.func if lib is ng else importlib.import_module("torch.func")
    for write in ("c.mul_(2)", "c.zero_()", "c.fill_(2)", "c.data.mul_(2)"):
        x = lib.tensor([1.0, 2.0, 3.0])
        captured, given = OUTER[which](x)

        def f(a: Any, write: str = write, captured: Any = captured) -> Any:
            eval(write, {"c": captured})
            return (a * a * captured.sum()).sum()

        calls = {
            "jvp": lambda f=f, given=given: func.jvp(f, (given,), (given.clone(),)),
            "vjp": lambda f=f, given=given: func.vjp(f, given),
        }
        call = calls.get(name, lambda f=f, given=given: getattr(func, name)(f)(given))
        with pytest.raises(RuntimeError, match=r"would mutate a captured Tensor"):
            call()
        assert x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("expression", OWN.strip().splitlines())
def test_what_the_function_made_or_got_may_be_written_to(
    lib: Any, name: str, expression: str
) -> None:
    def f(x: Any, y: Any, k: Any) -> Any:
        own = run(lib, expression, x=x, y=y, k=k)
        own.mul_(2).add_(1)
        own[0] = 5.0
        return (own * x).sum()

    factor = run(lib, expression, x=lib.tensor([1.0, 2.0]), y=lib.tensor([3.0, 4.0]), k=None)
    second = 13.0 if factor is None else float(factor.reshape(-1)[1]) * 2 + 1
    slope = [5.0, second + 4.0 if expression in ("x * 1", "x.clone()") else second]
    found = transformed(lib, name, f)
    assert found == (pytest.approx([sum(slope)]) if name == "jvp" else pytest.approx(slope))


def test_an_inner_function_captures_what_an_outer_one_made(lib: Any) -> None:
    func = ng.func if lib is ng else importlib.import_module("torch.func")
    x = lib.tensor(2.0)
    for make in (lambda x: lib.zeros(()), lambda x: x * 1, lambda x: x):

        def outer(x: Any, make: Any = make) -> Any:
            captured = make(x)
            return func.grad(lambda y: captured.copy_(y * 3) * y)(x)

        with pytest.raises(RuntimeError, match=r"\(aten::copy_\) that would mutate a captured"):
            func.grad(outer)(x)


def test_an_outer_function_may_write_to_what_an_inner_one_returned(lib: Any) -> None:
    func = ng.func if lib is ng else importlib.import_module("torch.func")

    def outer(x: Any) -> Any:
        slope, made = func.grad(lambda y: (y**3, lib.ones(())), has_aux=True)(x)
        return slope.mul_(2) + made.add_(x)

    assert func.grad(outer)(lib.tensor(2.0)).item() == 25


def test_nodes_of_functions_in_transformed_ones_are_named_generated(lib: Any) -> None:
    func = ng.func if lib is ng else importlib.import_module("torch.func")

    class Double(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

    names = []

    def f(x: Any) -> Any:
        y = Double.apply(x)
        names.append(y.grad_fn.name())
        return y.sum()

    x = lib.ones(2, requires_grad=True)
    f(x)
    for transform in (func.grad, func.jacrev, lambda f: func.grad(lambda x: func.grad(f)(x).sum())):
        transform(f)(x)
    func.vjp(f, x)
    f(x)
    assert names == ["DoubleBackward", *["DoubleGeneratedBackward"] * 4, "DoubleBackward"]
    names.clear()
    func.linearize(f, x)  # which calls the function several times in PyTorch
    assert set(names) == {"DoubleBackward"}
    names.clear()
    for transform in (
        lambda: func.vjp(f, x)[0],
        lambda: func.grad_and_value(f)(x)[1],
        lambda: func.vjp(lambda x: func.vjp(f, x)[0], x)[0],
        lambda: func.linearize(f, x)[0],
    ):
        value = transform()  # what the caller gets is part of a graph outside
        assert value.grad_fn.next_functions[0][0].name() == "DoubleBackward"


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("way", ["argument", "keyword", "view"])
@pytest.mark.parametrize("with_value", [False, True])
def test_what_a_function_wrote_to_depends_on_what_lies_outside_of_it(
    lib: Any, outer: bool, recording: bool, way: str, with_value: bool
) -> None:
    """On what its argument was computed from, where the caller records, and on nothing else."""
    leaf = lib.tensor([1.0, 2.0], requires_grad=outer)
    x = leaf * 1
    k = lib.tensor([5.0, 6.0])
    transform = "func.grad_and_value(f)(x, {})" if with_value else "func.grad(f)(x, {})"

    def f(x: Any, k: Any) -> Any:
        (k[:] if way == "view" else k).mul_(x)
        return (k * x).sum()

    with lib.set_grad_enabled(recording):
        call = transform.format("k=k" if way == "keyword" else "k")
        found = run(lib, call, f=f, x=x, k=k)
    gradient = found[0] if with_value else found
    assert k.tolist() == [5.0, 12.0] and gradient.tolist() == [10.0, 24.0]
    assert gradient.requires_grad == k.requires_grad == (outer and recording)
    if k.requires_grad:
        k.sum().backward()
        assert leaf.grad.tolist() == [5.0, 6.0]
