"""Hooks on saved tensors, and what nodes saved; the same here as in PyTorch."""

from __future__ import annotations

import gc
import importlib
import threading
import weakref
from typing import Any

import pytest

import numgrad as ng
from tests.autograd.function.functions import function, leaf, square

FREED = "Trying to backward through the graph a second time"

OPERATIONS = {
    "mul": lambda lib, a, b: a * b,
    "number": lambda lib, a, b: a * 2,
    "exp": lambda lib, a, b: a.exp(),
    "sin": lambda lib, a, b: a.sin(),
    "add": lambda lib, a, b: a + b,
    "div": lambda lib, a, b: a / b,
    "pow": lambda lib, a, b: a**2,
    "broadcast": lambda lib, a, b: a * b.sum(),
    "matmul": lambda lib, a, b: a.unsqueeze(0) @ b.unsqueeze(1),
    "prod": lambda lib, a, b: a.prod(),
    "sum": lambda lib, a, b: a.sum(),
    "std": lambda lib, a, b: a.std(),
    "softmax": lambda lib, a, b: a.softmax(0),
    "where": lambda lib, a, b: lib.where(a > 0.5, a, b),
    "inplace": lambda lib, a, b: (a * 1).mul_(b),
    "inplace_result": lambda lib, a, b: (a + 1).exp_(),
    "inplace_view": lambda lib, a, b: _write_to_a_view(a, b),
}


def _write_to_a_view(a: Any, b: Any) -> Any:
    c = a + 1
    c[:1].mul_(b[:1])
    return c


def inputs(lib: Any) -> tuple[Any, Any]:
    return leaf(lib, 0.4, 1.5), leaf(lib, 2.0, -3.0)


def as_numbers(tensor: Any) -> Any:
    """Pack a tensor as lists of numbers, and what they are."""
    return tensor.detach().tolist(), tensor.dtype


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_is_packed_is_unpacked_for_the_gradient(
    lib: Any, name: str, create_graph: bool
) -> None:
    operation, packed, unpacked = OPERATIONS[name], [], []

    def pack(tensor: Any) -> Any:
        assert not lib.is_grad_enabled()
        packed.append(as_numbers(tensor))
        return packed[-1]

    def unpack(value: Any) -> Any:
        unpacked.append(value)
        return lib.tensor(value[0], dtype=value[1])

    def gradients(a: Any, b: Any, y: Any) -> Any:
        found = lib.autograd.grad(y.sum(), [a, b], create_graph=create_graph, allow_unused=True)
        if create_graph:
            roots = [g.sum() for g in found if g is not None and g.requires_grad]
            if roots:
                found += lib.autograd.grad(roots, [a, b], allow_unused=True)
        return [None if g is None else g.tolist() for g in found]

    a, b = inputs(lib)
    expected = gradients(a, b, operation(lib, a, b))
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = operation(lib, a, b)
    assert gradients(a, b, y) == expected
    if not create_graph:
        assert sorted(map(str, packed)) == sorted(map(str, unpacked))


def test_the_hook_gets_the_tensors_themselves(lib: Any) -> None:
    seen = []
    a, b = inputs(lib)
    c = a + 1
    with lib.autograd.graph.saved_tensors_hooks(
        lambda t: (seen.append(t), t.detach())[1], lambda t: t
    ):
        product = c * b
        exponential = a.exp()
    assert {id(t) for t in seen} == {id(t) for t in (b, c, exponential)}
    product.sum().backward()
    assert a.grad.tolist() == b.tolist()


@pytest.mark.parametrize("name", ["mul", "div", "prod", "std", "matmul", "inplace", "softmax"])
def test_hooks_get_tensors_in_pytorchs_order(torch: Any, name: str) -> None:
    def seen(lib: Any) -> list[Any]:
        found: list[Any] = []
        a, b = inputs(lib)
        with lib.autograd.graph.saved_tensors_hooks(
            lambda t: found.append(("pack", tuple(t.shape))) or t.detach().clone(),
            lambda t: found.append(("unpack", tuple(t.shape))) or t,
        ):
            y = OPERATIONS[name](lib, a, b.sum() if name in ("mul", "div") else b)
        y.sum().backward()
        return found

    assert seen(ng) == seen(torch)


def test_of_nested_contexts_the_innermost_applies(lib: Any) -> None:
    seen = []

    def hooks(name: str) -> Any:
        return lib.autograd.graph.saved_tensors_hooks(
            lambda t: (seen.append(name), t.detach())[1], lambda t: t
        )

    a, _ = inputs(lib)
    with hooks("outer"):
        with hooks("inner"):
            y = a.exp()
        z = y.exp()
    w = z.sin()
    w.sum().backward()
    assert seen == ["inner", "outer"]


def test_hooks_belong_to_their_thread() -> None:
    seen: list[Any] = []
    a, _ = inputs(ng)
    with ng.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t), lambda t: t):
        thread = threading.Thread(target=lambda: (a * a).sum().backward())
        thread.start()
        thread.join()
    assert seen == [] and a.grad.tolist() == [0.8, 3.0]


@pytest.mark.parametrize("output", [False, True])
def test_what_a_custom_function_saves_is_packed(lib: Any, output: bool) -> None:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y if output else x.detach().exp())
        return y

    f = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(lib, 0.5)
    with lib.autograd.graph.saved_tensors_hooks(
        lambda t: seen.append("pack") or t.detach().clone(), lambda t: seen.append("unpack") or t
    ):
        y = f.apply(x)
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    assert first.item() == y.item() and seen == ["pack", "unpack"]
    assert first.requires_grad == output
    if output:
        (second,) = lib.autograd.grad(first, x)
        assert second.item() == pytest.approx(y.item())


_PACKS: dict[str, tuple[Any, Any]] = {
    "as it is": (lambda lib, x: x, lambda lib, kept: kept),
    "in a list": (lambda lib, x: [x], lambda lib, kept: kept[0]),
    "detached": (lambda lib, x: x.detach(), lambda lib, kept: kept),
    "copied": (lambda lib, x: x, lambda lib, kept: kept.clone()),
    "an array": (lambda lib, x: x.detach().numpy(), lambda lib, kept: lib.from_numpy(kept)),
    "a leaf": (lambda lib, x: x, lambda lib, kept: kept.detach().requires_grad_()),
}


@pytest.mark.parametrize("pack", _PACKS)
@pytest.mark.parametrize("kind", ["constant", "view", "leaf", "result"])
def test_what_hangs_nowhere_is_what_the_hook_returned(torch: Any, kind: str, pack: str) -> None:
    """A tensor without a history is unpacked as the very object; another one gets its history."""
    found: list[Any] = []
    for lib in (ng, torch):
        x, c = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([5.0, 6.0])
        saved = {"constant": c, "view": c[:2], "leaf": x, "result": x * 1}[kind]
        seen: list[Any] = []
        returned: list[Any] = []

        class Double(lib.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any, saved: Any) -> Any:
                ctx.save_for_backward(saved)
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any, seen: Any = seen) -> Any:
                seen.extend(ctx.saved_tensors)
                return g * 2, None

        def unpack(kept: Any, lib: Any = lib, returned: Any = returned) -> Any:
            returned.append(_PACKS[pack][1](lib, kept))
            return returned[-1]

        hooks = lib.autograd.graph.saved_tensors_hooks
        with hooks(lambda x, lib=lib: _PACKS[pack][0](lib, x), unpack):
            y = Double.apply(x, saved)
        y.sum().backward()
        (got,) = seen
        found.append(
            (
                got is saved,
                got is returned[0],
                got.data_ptr() == returned[0].data_ptr(),
                (got.requires_grad, got.is_leaf, got._version),
            )
        )
    assert found[0] == found[1]


def test_inputs_of_a_custom_function_hang_in_the_graph_when_they_are_unpacked(lib: Any) -> None:
    x = leaf(lib, 1.5)
    hooks = lib.autograd.graph.saved_tensors_hooks(
        as_numbers, lambda v: lib.tensor(v[0], dtype=v[1])
    )
    with hooks:
        y = square(lib).apply(x * 2)
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert first.item() == 12.0 and second.item() == 8.0


def test_errors_of_hooks(lib: Any) -> None:
    hooks = lib.autograd.graph.saved_tensors_hooks
    a, _ = inputs(lib)

    def fail(_: Any) -> Any:
        raise KeyError("mine")

    with hooks(lambda t: (t.add_(1), t)[1], lambda t: t):
        c = a + 1
        with pytest.raises(RuntimeError) as error:
            c.sin()
    assert str(error.value).startswith(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
        "pack hook cannot be modified by in-place operations"
    )
    with hooks(lambda t: t.detach(), lambda t: 3):
        y = a.sin()
    with pytest.raises(TypeError) as kind:
        y.sum().backward()
    assert str(kind.value) == (
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"
    )
    with hooks(fail, lambda t: t), pytest.raises(KeyError, match="mine"):
        a.sin()
    with hooks(lambda t: t.detach(), fail):
        y = a.sin()
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    with pytest.raises(KeyError, match="context"), hooks(fail, fail):
        raise KeyError("context")
    a.sin().sum().backward()
    assert lib.is_grad_enabled() and a.grad is not None


def test_a_graph_whose_values_are_packed_is_freed(lib: Any) -> None:
    a, _ = inputs(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        y = a.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=FREED):
        y.backward()


def test_what_hooks_keep_lives_as_long_as_the_graph() -> None:
    a, _ = inputs(ng)
    kept = []

    def pack(tensor: Any) -> Any:
        copy = tensor.detach().clone()
        kept.append(weakref.ref(copy))
        return copy

    gc.collect()
    gc.disable()
    try:
        with ng.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            first, second = a.exp(), a.exp()
        first.sum().backward()
        del second
        assert len(kept) == 2 and [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()


def test_hooks_can_be_refused(lib: Any) -> None:
    graph = lib.autograd.graph
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="^not here$"), graph.save_on_cpu():
            pass
        with pytest.raises(KeyError), graph.disable_saved_tensors_hooks("nor here"):
            raise KeyError
        with pytest.raises(RuntimeError, match="^not here$"), graph.save_on_cpu():
            pass
    with (
        graph.save_on_cpu(),
        pytest.raises(RuntimeError, match="^not here$"),
        graph.disable_saved_tensors_hooks("not here"),
    ):
        pass
    with graph.save_on_cpu(pin_memory=True):
        pass


def test_saving_on_the_cpu_changes_nothing(lib: Any) -> None:
    a, _ = inputs(lib)
    with lib.autograd.graph.save_on_cpu():
        y = a * a.exp()
    y.sum().backward()
    with lib.no_grad():
        assert lib.allclose(a.grad, (1 + a) * a.exp())


@pytest.mark.usefixtures("traced")
def test_a_compiled_function_has_its_arguments_packed() -> None:
    packed: list[Any] = []
    f = ng.jit(lambda a: (a * a.exp()).sum())
    a, _ = inputs(ng)
    hooks = ng.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t) or as_numbers(t), lambda v: ng.tensor(v[0], dtype=v[1])
    )
    with hooks:
        y = f(a)
    assert len(packed) == 1 and packed[0] is a
    y.backward()
    with ng.no_grad():
        assert ng.allclose(a.grad, (1 + a) * a.exp())


def test_hooks_around_transformations() -> None:
    packed: list[Any] = []
    a, _ = inputs(ng)
    hooks = ng.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t) or as_numbers(t), lambda v: ng.tensor(v[0], dtype=v[1])
    )

    def f(x: Any) -> Any:
        return (x.exp() * x).sum()

    point = a.detach()
    expected = ng.func.grad(f)(point), ng.func.jvp(f, (point,), (point,))[1]
    with hooks:
        found = ng.func.grad(f)(point), ng.func.jvp(f, (point,), (point,))[1]
    assert packed and all(map(ng.allclose, found, expected))


# --- writes to what was saved ---------------------------------------------------------------------


def test_saved_tensors_are_copied_before_a_write(lib: Any) -> None:
    with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = lib.ones(2, requires_grad=True)
        b = a.clone()
        y = (b**2).sum()
        assert (len(context.cloned), len(context.original)) == (0, 1)
        b.sin_()
        assert (len(context.cloned), len(context.original)) == (1, 1)
        y.backward()
        assert (len(context.cloned), len(context.original)) == (0, 1)
    assert a.grad.tolist() == [2.0, 2.0] and b.grad_fn.name() == "SinBackward0"


@pytest.mark.parametrize(
    "write",
    [
        lambda lib, b: b.zero_(),
        lambda lib, b: b.mul_(3),
        lambda lib, b: b[0].mul_(3),
        lambda lib, b: b.__setitem__(0, 7.0),
        lambda lib, b: b.data.fill_(4),
        lambda lib, b: b.detach().add_(1),
        lambda lib, b: lib.add(b.detach(), 1, out=b.detach()),
        lambda lib, b: lib.cat([lib.zeros(1, 2), lib.zeros(1, 2)], out=b.detach()),
        lambda lib, b: lib.ones(2, 2, out=b.detach()),
        lambda lib, b: b.detach().uniform_(),
        lambda lib, b: b.detach().t().copy_(lib.zeros(2, 2)),
        lambda lib, b: lib.conj_physical(lib.zeros(2, 2), out=b.detach()),
    ],
)
def test_every_kind_of_write_is_noticed(lib: Any, write: Any) -> None:
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        b = a * 1
        first, second = (b**2).sum(), (b[0] ** 3).sum()
        write(lib, b)
        (first + second).backward()
    assert a.grad.tolist() == [[5.0, 16.0], [6.0, 8.0]]


@pytest.mark.parametrize(
    "view",
    [
        lambda b: b.unsqueeze(0),
        lambda b: b.unfold(0, 2, 2),
        lambda b: b.as_strided((2, 2), (2, 1)).t(),
    ],
)
def test_a_write_is_noticed_through_views_of_any_strides(lib: Any, view: Any) -> None:
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = lib.arange(4.0).requires_grad_()
        above, below = a * 1, a * 1
        kept = (view(above) ** 2).sum() + (below**2).sum()
        above.add_(5)
        view(below).add_(7)
        kept.backward()
    b = lib.arange(4.0).requires_grad_()
    ((view(b * 1) ** 2).sum() + (b**2).sum()).backward()
    assert a.grad.tolist() == b.grad.tolist()


def test_results_that_were_saved_may_be_written_to(lib: Any) -> None:
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = lib.zeros(2, requires_grad=True)
        y = (a + 0).exp()
        y.mul_(5)
        y.sum().backward()
    assert a.grad.tolist() == [5.0, 5.0]


def test_the_context_that_allows_writes_has_its_limits(lib: Any) -> None:
    allow = lib.autograd.graph.allow_mutation_on_saved_tensors
    with allow():
        a = lib.ones(2, requires_grad=True)
        y = (a.clone() ** 2).sum()
        with (
            pytest.raises(
                RuntimeError, match="^allow_mutation_on_saved_tensors contexts cannot be"
            ),
            allow(),
        ):
            pass
    with pytest.raises(AssertionError, match="^Trying to backward outside of the 'allow_mutation_"):
        y.backward()


# --- attributes of nodes --------------------------------------------------------------------------


def test_nodes_show_what_they_saved(lib: Any) -> None:
    a, b = inputs(lib)
    y, z = a.exp(), a * b
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn and y.grad_fn._saved_result is not y
    assert z.grad_fn._saved_self is a and z.grad_fn._saved_other is b
    assert (a * 2).grad_fn._saved_self is None
    assert (a**2.5).grad_fn._saved_exponent == 2.5 and (a**3).grad_fn._saved_self is a
    assert (a.unsqueeze(0) @ b.unsqueeze(1)).grad_fn._saved_mat2.tolist() == [[2.0], [-3.0]]
    assert a.prod().grad_fn._saved_self is a and a.prod().grad_fn._saved_result.dim() == 0
    assert {"_saved_self", "_saved_other", "_raw_saved_self"} <= set(dir(z.grad_fn))
    assert not hasattr(z.grad_fn, "_saved_result")
    with pytest.raises(
        AttributeError, match="^'MulBackward0' object has no attribute '_saved_foo'"
    ):
        _ = z.grad_fn._saved_foo
    z.sum().backward()
    with pytest.raises(RuntimeError, match=FREED):
        _ = z.grad_fn._saved_self


@pytest.mark.parametrize("make", ["operation", "function"])
def test_hooks_on_one_saved_tensor(lib: Any, make: str) -> None:
    seen = []
    a = leaf(lib, 0.4, 1.5)
    if make == "function":
        y = square(lib).apply(a)
        (raw,) = y.grad_fn._raw_saved_tensors
    else:
        y = a.sin()
        raw = y.grad_fn._raw_saved_self
    raw.register_hooks(
        lambda t: (seen.append("pack"), t.clone())[1], lambda t: (seen.append("unpack"), t)[1]
    )
    with pytest.raises(RuntimeError, match="^Calling register_hooks on a saved tensor whose hooks"):
        raw.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert seen == ["pack", "unpack"]
    with lib.no_grad():
        assert lib.allclose(a.grad, 2 * a if make == "function" else a.cos())
    if make == "function" and lib is not ng:  # PyTorch goes on as if it was not freed
        return
    with pytest.raises(
        RuntimeError, match="^Calling register_hooks on a saved tensor after it has"
    ):
        raw.register_hooks(lambda t: t, lambda t: t)


@pytest.mark.parametrize("saved", ["result", "self"])
@pytest.mark.parametrize("detached", [False, True])
def test_hooks_never_see_what_was_written_to(saved: str, detached: bool) -> None:
    """To register them raises what the pass would raise; PyTorch hands over the new numbers."""
    x = leaf(ng, 0.4, 1.5)
    a = x * 1
    y = a.exp() if saved == "result" else a.sin()
    node = y.grad_fn
    written = y if saved == "result" else a
    (written.detach() if detached else written).mul_(2)
    raw = getattr(node, f"_raw_saved_{saved}")
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation") as first:
        raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation") as second:
        y.sum().backward()
    assert str(first.value) == str(second.value)


def test_where_hooks_cannot_be_registered(lib: Any) -> None:
    a, b = inputs(lib)
    with pytest.raises(RuntimeError) as error:
        (a * 2).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    assert str(error.value) == (
        "Calling register_hooks on a saved tensor with value None is forbidden"
    )
    with pytest.raises(TypeError, match=r"^register_hooks\(\): "):
        (a * b).grad_fn._raw_saved_self.register_hooks(3, 4)


def test_a_leaf_is_saved_itself_but_what_a_hook_returns_stands_in_for_it(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self is x and y.grad_fn._saved_other is x
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    again = y.grad_fn._saved_self
    assert again is not x and again.is_leaf and again.requires_grad and again.grad_fn is None
    assert again.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("reentrant", [False, True])
def test_tensors_that_a_function_saved_in_a_checkpoint(lib: Any, reentrant: bool) -> None:
    """The arguments of the second run stand in for those of the first, unless it is reentrant."""
    checkpoint = importlib.import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
    seen = []

    class Product(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            y = x * w
            ctx.save_for_backward(x, w, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            saved = ctx.saved_tensors
            seen.append([saved[0] is x, saved[1] is w, saved[2].grad_fn is not None])
            seen.append([each.requires_grad for each in saved])
            return g * saved[1], g * saved[0]

    x, w = lib.ones(2, requires_grad=True), lib.full((2,), 3.0, requires_grad=True)
    checkpoint(lambda x: Product.apply(x, w) * 2, x, use_reentrant=reentrant).sum().backward()
    assert seen == [[False, reentrant, True], [True, True, True]]
    assert x.grad.tolist() == [6.0, 6.0] and w.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("pair", [(1, abs), (abs, None), ("pack", "unpack")])
def test_hooks_that_cannot_be_called_are_refused_when_they_are_entered(lib: Any, pair: Any) -> None:
    x = leaf(lib, 1, 2)
    with (
        pytest.raises(TypeError),
        lib.autograd.graph.saved_tensors_hooks(*pair),
    ):
        pass
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_hooks_get_the_tensors_that_a_write_in_place_takes(lib: Any) -> None:
    writes: list[Any] = [
        lambda t, x, y: t.mul_(y),
        lambda t, x, y: t.addcmul_(x, y),
        lambda t, x, y: t.atan2_(y),
        lambda t, x, y: t.mul_(x).mul_(y),
    ]
    for write in writes:
        found = []
        for _ in range(4):  # at first, and when calls are remembered
            x, y = (lib.ones(3, requires_grad=True) * 1 for _ in range(2))
            got: list[Any] = []
            target = x * 1

            def pack(tensor: Any) -> Any:
                got.append((tensor is x, tensor is y, tensor is target))
                return tensor

            with lib.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
                write(target, x, y)
            found.append(got)
        assert found == [found[0]] * 4
        assert not any(each[2] for each in found[0])
        assert any(each[1] for each in found[0])
