"""Programs as people write them for PyTorch; each takes the library and prints what it finds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["PROGRAMS"]

PROGRAMS: dict[str, Callable[[Any], None]] = {}


def program(function: Callable[[Any], None]) -> Callable[[Any], None]:
    PROGRAMS[function.__name__] = function
    return function


def attempt(function: Callable[[], Any]) -> None:
    """Print what a call gives, or what it raises."""
    try:
        print(function())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


@program
def fits_a_polynomial_by_hand(torch: Any) -> None:
    x = torch.linspace(-math.pi, math.pi, 100)
    y = torch.sin(x)
    parameters = [torch.full((), value, requires_grad=True) for value in (0.1, 0.2, -0.3, 0.4)]
    a, b, c, d = parameters
    for step in range(60):
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        if step % 20 == 19:
            print(step, f"{loss.item():.2f}")
        loss.backward()
        with torch.no_grad():
            for parameter in parameters:
                parameter -= 1e-6 * parameter.grad
                parameter.grad = None
    print(loss.grad_fn.name(), [f"{each:.3f}" for each in parameters], a.requires_grad)


@program
def trains_two_layers(torch: Any) -> None:
    x = torch.arange(40.0).reshape(8, 5).sin()
    target = torch.arange(16.0).reshape(8, 2).cos()
    w1 = torch.arange(30.0).reshape(5, 6).cos().requires_grad_()
    w2 = torch.arange(12.0).reshape(6, 2).sin().requires_grad_()
    for _ in range(10):
        loss = (x.mm(w1).clamp(min=0).mm(w2) - target).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for w in (w1, w2):
                w -= 0.05 * w.grad
                w.grad.zero_()
    print(f"{loss.item():.3f}", loss.grad_fn.name(), w1.grad.abs().sum(), w1._version)


@program
def steps_with_momentum_in_a_class(torch: Any) -> None:
    class Descent:
        def __init__(self, parameters: Any, rate: float, momentum: float) -> None:
            self.parameters = list(parameters)
            self.rate, self.momentum = rate, momentum
            self.velocities = [torch.zeros_like(each) for each in self.parameters]

        @torch.no_grad()  # type: ignore[untyped-decorator]
        def step(self) -> None:
            for parameter, velocity in zip(self.parameters, self.velocities, strict=True):
                velocity.mul_(self.momentum).add_(parameter.grad)
                parameter.add_(velocity, alpha=-self.rate)

        def zero_grad(self) -> None:
            for parameter in self.parameters:
                parameter.grad = None

    x = torch.linspace(0, 1, 20)
    slope = torch.tensor(0.0, requires_grad=True)
    offset = torch.tensor(1.0, requires_grad=True)
    descent = Descent([slope, offset], rate=0.1, momentum=0.5)
    for _ in range(30):
        descent.zero_grad()
        loss = ((slope * x + offset - 3 * x) ** 2).mean()
        loss.backward()
        descent.step()
    print(f"{loss.item():.3f}", slope, offset, slope.grad_fn, slope._version)


@program
def classifies(torch: Any) -> None:
    x = torch.arange(12.0).reshape(4, 3).sin()
    labels = torch.tensor([0, 2, 1, 1])
    w = torch.zeros(3, 3, requires_grad=True)
    scores = torch.log_softmax(x @ w, dim=1)
    loss = -scores[torch.arange(4), labels].mean()
    print(loss, -scores.gather(1, labels.unsqueeze(1)).mean())
    loss.backward()
    print(w.grad)
    hits = torch.zeros(4, 3).scatter_(1, labels[:, None], 1.0)
    print(hits, (hits * scores).sum(), (scores.argmax(1) == labels).float().mean())


@program
def remembers_and_attends(torch: Any) -> None:
    w = (torch.arange(16.0).reshape(4, 4) / 16).requires_grad_()
    state, states = torch.zeros(2, 4), []
    for x in torch.arange(40.0).reshape(5, 2, 4).cos():
        state = torch.tanh(x + state @ w)
        states.append(state)
    history = torch.stack(states)
    history.sum().backward()
    print(history.shape, history.grad_fn.name(), f"{w.grad.norm().item():.3f}")
    query = torch.arange(12.0).reshape(1, 3, 4).sin().requires_grad_()
    later = torch.triu(torch.ones(3, 3, dtype=torch.bool), diagonal=1)
    weights = (query @ query.transpose(-2, -1) / 2).masked_fill(later, -math.inf).softmax(-1)
    print(weights)
    (weights @ query).sum().backward()
    print(query.grad.shape, query.grad.isnan().any())


@program
def descends_by_conjugate_gradients(torch: Any) -> None:
    matrix, target = torch.tensor([[3.0, 1.0], [1.0, 2.0]]), torch.tensor([1.0, 1.0])

    def energy(x: Any) -> Any:
        return 0.5 * x @ matrix @ x - target @ x

    x = torch.zeros(2, requires_grad=True)
    rest = -torch.autograd.grad(energy(x), x)[0]
    way = rest.clone()
    for _ in range(2):
        _, bend = torch.autograd.functional.hvp(energy, x, way)
        step = (rest @ rest) / (way @ bend)
        with torch.no_grad():
            x += step * way
        before, rest = rest, rest - step * bend
        way = rest + (rest @ rest) / (before @ before) * way
    print(x, energy(x))


@program
def follows_hamiltons_equations(torch: Any) -> None:
    z = start = torch.tensor([1.0, 0.0], requires_grad=True)
    for _ in range(10):
        (slope,) = torch.autograd.grad((z**2).sum() / 2, z, create_graph=True)
        z = z + 0.1 * torch.stack([slope[1], -slope[0]])
    print(z, torch.autograd.grad(z[0], start))


@program
def looks_at_a_graph(torch: Any) -> None:
    x = torch.ones(3, 4, requires_grad=True)
    w = torch.ones(4, 2, requires_grad=True)
    result = torch.log_softmax(torch.relu(x @ w) + torch.ones(2), dim=1).mean(0).max()

    def show(node: Any, depth: int = 0) -> None:
        print("  " * depth, None if node is None else node.name())
        if node is not None:
            for following, _ in node.next_functions:
                show(following, depth + 1)

    show(result.grad_fn)
    print(result.grad_fn.metadata, result.output_nr, result.is_leaf, x.is_leaf)


@program
def passes_a_gradient_straight_through(torch: Any) -> None:
    x = torch.tensor([0.2, 1.7, -3.0], requires_grad=True)
    y = x + (x.round() - x).detach()
    y.sum().backward()
    print(y, x.grad)
    z = torch.where(x > 0, x, x.detach() * 0.1)
    x.grad = None
    z.sum().backward()
    print(z, x.grad)
    x.grad = None
    x[x > 0].sum().backward()
    print(x.grad)


@program
def takes_a_newton_step(torch: Any) -> None:
    x = torch.tensor([1.5, -0.5], dtype=torch.double, requires_grad=True)
    for _ in range(6):
        value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        (a, b), (c, d) = (torch.autograd.grad(each, x, retain_graph=True)[0] for each in slope)
        step = torch.stack([d * slope[0] - b * slope[1], a * slope[1] - c * slope[0]])
        with torch.no_grad():
            x -= step / (a * d - b * c)
    print(x)


@program
def penalises_and_clips_gradients(torch: Any) -> None:
    parameters = [torch.ones(3, requires_grad=True), torch.ones(2, 2, requires_grad=True)]
    loss = sum((each**2).sum() for each in parameters)
    slopes = torch.autograd.grad(loss, parameters, create_graph=True)
    penalty = torch.cat([slope.reshape(-1) for slope in slopes]).norm()
    print(penalty)
    (loss + penalty).backward()
    norm = torch.norm(torch.stack([torch.norm(each.grad) for each in parameters]))
    for each in parameters:
        each.grad.mul_(1 / norm)
    print(norm, [each.grad for each in parameters])


@program
def writes_functions(torch: Any) -> None:
    class Cube(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x**3, 3 * x**2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0], output[1])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx: Any, g: Any, g_slope: Any) -> Any:
            _, slope = ctx.saved_tensors
            print("backward", g, g_slope, ctx.needs_input_grad, torch.is_grad_enabled())
            return g * slope

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y, slope = Cube.apply(x)
    print(y, slope, y.grad_fn.name(), y.grad_fn.next_functions[0][0].variable is x)
    y.sum().backward()
    print(x.grad)
    attempt(lambda: y.sum().backward())
    attempt(lambda: y.grad_fn.saved_tensors)
    print(
        torch.autograd.gradcheck(lambda x: Cube.apply(x)[0], x.detach().double().requires_grad_())
    )


@program
def makes_mistakes_in_functions(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)

    def function(forward: Any, backward: Any) -> Any:
        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return type("Mine", (torch.autograd.Function,), methods)

    def double(ctx: Any, x: Any) -> Any:
        return x * 2

    for gradient in (lambda ctx, g: (g, g), lambda ctx, g: g.expand(3, 2)[0, :1].expand(3)):
        attempt(lambda gradient=gradient: function(double, gradient).apply(x).sum().backward())
    attempt(lambda: function(double, lambda ctx, g: "no").apply(x).sum().backward())
    attempt(lambda: function(lambda ctx, x: "text", None).apply(x))
    attempt(lambda: function(double, lambda ctx, g: g).apply())
    attempt(lambda: function(lambda ctx, x: ctx.mark_dirty(x) or x, None).apply(x))
    attempt(lambda: function(lambda ctx, x: ctx.save_for_backward([x]) or x * 2, None).apply(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attempt(lambda: function(double, None)()(x))


@program
def registers_hooks(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: print("first", g))
    handle = y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda gradients: print("node, before", gradients))
    y.grad_fn.register_hook(lambda inputs, outputs: print("node, after", inputs, outputs))
    x.register_post_accumulate_grad_hook(lambda leaf: print("added", leaf.grad))
    several = torch.autograd.graph.register_multi_grad_hook(
        (x, y), lambda gradients: print("several", gradients)
    )
    y.sum().backward()
    print(y.grad, x.grad)
    handle.remove()
    several.remove()
    (x * 2).mul_(3).sum().backward()
    attempt(lambda: x.detach().register_hook(print))
    attempt(lambda: y.register_post_accumulate_grad_hook(print))
    y = x * 2
    y.register_hook(lambda g: g[:1])
    attempt(lambda: y.sum().backward())


@program
def packs_what_is_saved(torch: Any) -> None:
    def pack(tensor: Any) -> Any:
        print("pack", tensor.shape, tensor.requires_grad)
        return tensor.detach().numpy()

    def unpack(array: Any) -> Any:
        print("unpack", array.shape)
        return torch.from_numpy(array)

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * torch.tensor([1.0, 2.0, 3.0])).exp() ** 2
    y.sum().backward()
    print(x.grad)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        attempt(lambda: x.detach() * x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    attempt(lambda: y.sum().backward())
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = x.clone()
        b = a * a
        a.sin_()
        b.sum().backward()
    print(x.grad)


@program
def checkpoints(torch: Any) -> None:
    from_library = torch.utils.checkpoint

    def block(x: Any, k: float) -> Any:
        print("run", torch.is_grad_enabled())
        return (x * k).sin().exp()

    for reentrant in (True, False):
        x = torch.ones(2, requires_grad=True)
        y = from_library.checkpoint(block, x, 2.0, use_reentrant=reentrant)
        z = from_library.checkpoint(lambda y: block(y, 3.0) + 1, y, use_reentrant=reentrant)
        print(y, z)
        z.sum().backward()
        print(x.grad)
    attempt(lambda: from_library.checkpoint(block, x, use_reentrant=True, k=3.0))
    steps = [lambda x, k=k: x * k for k in (1.0, 2.0, 3.0)]
    print(from_library.checkpoint_sequential(steps, 2, x, use_reentrant=False))


@program
def pushes_tangents(torch: Any) -> None:
    forward = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.tensor([1.0, 0.5]))
        print(dual)
        print(forward.unpack_dual((dual**3).sum()))
        base = torch.zeros(2, 2)
        base[0] = dual
        print(base, forward.unpack_dual(base.t()[0]).tangent)
        (slope,) = torch.autograd.grad((dual**3).sum(), dual)
        print(forward.unpack_dual(slope).tangent)
        attempt(lambda: forward.make_dual(x, torch.ones(3)))
        attempt(lambda: forward.enter_dual_level())
    print(dual)
    attempt(lambda: forward.make_dual(x, x))


@program
def computes_jacobians(torch: Any) -> None:
    functional = torch.autograd.functional
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])

    def f(x: Any, y: Any) -> Any:
        return x * y, (x + y**2).sum()

    print(functional.jacobian(f, (x, y)))
    print(functional.vjp(f, (x, y), (x, torch.tensor(1.0))))
    print(functional.hessian(lambda x: (x**3).sum(), x), functional.hvp(torch.prod, x, y))
    attempt(lambda: functional.vjp(lambda x: x**2, x))
    attempt(lambda: functional.jacobian(lambda x: torch.ones(2), x, strict=True))
    attempt(lambda: functional.hessian(lambda x: x, x))
    print(torch.func.jacrev(f, argnums=1)(x, y), torch.func.jvp(torch.sin, (x,), (y,)))
    attempt(lambda: torch.func.grad(lambda x: x)(x))


@program
def switches_modes(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)

    @torch.no_grad()
    def numbers() -> Any:
        sent = yield torch.is_grad_enabled()
        yield sent, torch.is_grad_enabled()

    generator = numbers()
    print(next(generator), torch.is_grad_enabled(), generator.send(5))
    with torch.inference_mode():
        y = x * 2
        print(y.is_inference(), y.requires_grad, torch.is_grad_enabled())
    attempt(lambda: y.add_(1))
    attempt(lambda: y * x)
    attempt(lambda: y._version)
    attempt(lambda: x.add_(1))
    first, _ = (x * 2).unbind()
    attempt(lambda: first.mul_(2))
    with torch.no_grad():
        view = (x * 2)[:1]
    attempt(lambda: view.requires_grad)
    attempt(lambda: torch.set_grad_enabled("no"))


@program
def checks_gradients(torch: Any) -> None:
    class Wrong(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    check = torch.autograd.gradcheck
    x = torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True)
    print(check(torch.sin, x), torch.autograd.gradgradcheck(torch.sin, x))
    attempt(lambda: check(Wrong.apply, x))
    print(check(Wrong.apply, x, raise_exception=False))
    attempt(lambda: check(torch.sin, x.detach()))
    attempt(lambda: check(torch.sin, x, check_backward_ad=False))


@program
def asks_what_makes_no_sense(torch: Any) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = torch.ones(4)
    attempt(lambda: x + y)
    attempt(lambda: x @ y)
    attempt(lambda: x.view(5))
    attempt(lambda: x[5])
    attempt(lambda: x.sum(5))
    attempt(lambda: x.backward())
    attempt(lambda: torch.autograd.grad(x.sum(), y))
    attempt(lambda: torch.tensor([1, 2], requires_grad=True))
    attempt(lambda: bool(x))
    attempt(lambda: x.numpy())
    attempt(lambda: torch.cat([x, y]))
    total = (x**2).sum()
    total.backward()
    attempt(lambda: total.backward())
    doubled = x * 2
    squared = doubled**2
    doubled.add_(1)
    attempt(lambda: squared.sum().backward())
