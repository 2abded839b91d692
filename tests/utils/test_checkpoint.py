"""Checkpoints: what is computed again, when, and what may go wrong; the same here as in PyTorch."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values), dtype=lib.float64, requires_grad=True)


def tools(lib: Any) -> Any:
    return lib.utils.checkpoint


def close(one: Any, other: Any) -> bool:
    return bool(one.detach().sub(other.detach()).abs().max() < 1e-12)


def wave(x: Any, y: Any = None, k: float = 2.0) -> Any:
    z = (x * k).sin().exp()
    return z if y is None else z * y


@pytest.fixture(params=[False, True], ids=["recorded", "reentrant"])
def reentrant(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_gradients_are_those_without_a_checkpoint(lib: Any, reentrant: bool) -> None:
    calls = []

    def function(x: Any, y: Any) -> Any:
        calls.append("run")
        return wave(x, y)

    x, y = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    expected = lib.autograd.grad(wave(x, y).sum(), [x, y])
    result = tools(lib).checkpoint(function, x, y, use_reentrant=reentrant)
    assert calls == ["run"] and close(result, wave(x, y))
    result.sum().backward()
    assert calls == ["run", "run"]
    assert close(x.grad, expected[0]) and close(y.grad, expected[1])


def test_without_reentry_everything_works_that_does_without_a_checkpoint(lib: Any) -> None:
    x, calls = leaf(lib, 1.0, 2.0), []

    def function(x: Any, k: float) -> Any:
        calls.append("run")
        return wave(x, k=k)

    y = tools(lib).checkpoint(function, x, k=3.0, use_reentrant=False).sum()
    plain = wave(x, k=3.0).sum()
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (expected,) = lib.autograd.grad(plain, x, create_graph=True)
    assert close(first, expected)
    (second,) = lib.autograd.grad(first.sum(), x, retain_graph=True)
    (second_expected,) = lib.autograd.grad(expected.sum(), x, retain_graph=True)
    assert close(second, second_expected)
    y.backward(inputs=[x], retain_graph=True)
    y.backward()
    assert close(x.grad, 2 * expected)
    assert len(calls) == 5  # once for each backward pass
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize("how", ["grad", "inputs"])
def test_with_reentry_only_backward_works(lib: Any, how: str) -> None:
    x = leaf(lib, 1.0, 2.0)
    y = tools(lib).checkpoint(wave, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError) as error:
        lib.autograd.grad(y, x) if how == "grad" else y.backward(inputs=[x])
    assert str(error.value) == (
        "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing "
        "an `inputs` parameter to .backward(). To resolve this error, you can either set "
        "use_reentrant=False, or call .backward() without passing the `inputs` argument."
    )


def test_nothing_that_is_computed_inside_is_kept() -> None:
    x, kept = leaf(ng, 1.0, 2.0), []

    def function(x: Any) -> Any:
        y = x.exp()
        kept.append(weakref.ref(y._array))
        return y.sin().sum()

    gc.collect()
    gc.disable()
    try:
        z = ng.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
        assert kept[0]() is None
        z.backward()
        assert len(kept) == 2 and kept[1]() is None
        node = weakref.ref(z.grad_fn)
        del z
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("by", ["argument", "context"])
def test_the_second_run_ends_when_all_is_there(lib: Any, early: bool, by: str) -> None:
    reached = []

    def function(x: Any) -> Any:
        x = x.sin()
        reached.append(1)
        x = x.exp()
        reached.append(2)
        return x + 1

    x, module = leaf(lib, 1.0, 2.0), tools(lib)
    if by == "argument":
        y = module.checkpoint(function, x, use_reentrant=False, early_stop=early)
    else:
        with module.set_checkpoint_early_stop(early):
            y = module.checkpoint(function, x, use_reentrant=False, early_stop=not early)
    y.sum().backward()
    assert reached == ([1, 2, 1] if early else [1, 2, 1, 2])
    with lib.no_grad():
        assert close(x.grad, x.cos() * x.sin().exp())


@pytest.mark.parametrize("early", [True, False])
def test_checkpoints_nest(lib: Any, early: bool) -> None:
    calls, module = [], tools(lib)

    def inner(x: Any) -> Any:
        calls.append("inner")
        return x.sin().exp().cos()

    def outer(x: Any) -> Any:
        calls.append("outer")
        return module.checkpoint(inner, x.exp(), use_reentrant=False).tanh()

    x = leaf(lib, 0.1, 0.2)
    (expected,) = lib.autograd.grad(x.exp().sin().exp().cos().tanh().sum(), x)
    with module.set_checkpoint_early_stop(early):
        y = module.checkpoint(outer, x, use_reentrant=False)
    y.sum().backward()
    assert close(x.grad, expected)
    assert calls[:2] == ["outer", "inner"] and set(calls[2:]) == {"outer", "inner"}


def test_reentrant_checkpoints_nest(lib: Any) -> None:
    module = tools(lib)
    x = leaf(lib, 0.1, 0.2)
    (expected,) = lib.autograd.grad(x.exp().sin().tanh().sum(), x)

    def outer(x: Any) -> Any:
        return module.checkpoint(lib.sin, x.exp(), use_reentrant=True).tanh()

    with pytest.warns(UserWarning, match="^None of the inputs have requires_grad=True"):
        y = module.checkpoint(outer, x, use_reentrant=True)  # the inner one is in a no_grad
    y.sum().backward()
    assert close(x.grad, expected)


@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers_come_again(lib: Any, reentrant: bool, preserve: bool) -> None:
    def function(x: Any) -> Any:
        return x * lib.rand(20, dtype=lib.float64)

    x = leaf(lib, *range(1, 21))
    lib.manual_seed(0)
    y = tools(lib).checkpoint(function, x, use_reentrant=reentrant, preserve_rng_state=preserve)
    lib.manual_seed(1)
    state = lib.get_rng_state()
    y.sum().backward()
    assert close(x.grad * x, y) == preserve
    assert bool((lib.get_rng_state() == state).all()) == preserve


def test_a_seed_inside_changes_nothing_outside(lib: Any, reentrant: bool) -> None:
    def function(x: Any) -> Any:
        lib.manual_seed(7)
        return x * lib.rand(2, dtype=lib.float64) * x

    x = leaf(lib, 1.0, 2.0)
    y = tools(lib).checkpoint(function, x, use_reentrant=reentrant)
    lib.manual_seed(1)
    expected = lib.rand(3).tolist()
    lib.manual_seed(1)
    y.sum().backward()
    assert lib.rand(3).tolist() == expected
    assert close(x.grad * x, 2 * y)


def other(lib: Any, change: str) -> Any:
    """Return a function that does something else when it is called again."""
    calls = []

    def function(x: Any) -> Any:
        calls.append("run")
        if len(calls) == 1:
            return x.sin().exp()
        return {
            "fewer": lambda: x + 1,
            "more": lambda: x.sin().exp().sin().sin(),
            "shape": lambda: x[:1].sin().exp(),
            "dtype": lambda: x.float().sin().exp(),
        }[change]()

    return function


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (
            "fewer",
            {},
            "torch.utils.checkpoint: A different number of tensors was saved during the original "
            "forward and recomputation.\nNumber of tensors saved during forward: 2\nNumber of "
            "tensors saved during recomputation: 0.\n",
        ),
        (
            "more",
            {"early_stop": False},
            "torch.utils.checkpoint: trying to save more tensors during recomputation than during "
            "the original forward pass.\n",
        ),
        (
            "shape",
            {},
            "torch.utils.checkpoint: Recomputed values for the following tensors have different "
            "metadata than during the forward pass.\ntensor at position 0:\nsaved metadata: "
            "{'shape': torch.Size([2]), 'dtype': torch.float64, 'device': device(type='cpu')}\n"
            "recomputed metadata: {'shape': torch.Size([1]), 'dtype': torch.float64, 'device': "
            "device(type='cpu')}\ntensor at position 1:",
        ),
        (
            "dtype",
            {},
            "torch.utils.checkpoint: Recomputed values for the following tensors have different "
            "metadata than during the forward pass.\ntensor at position 0:\nsaved metadata: "
            "{'shape': torch.Size([2]), 'dtype': torch.float64, 'device': device(type='cpu')}\n"
            "recomputed metadata: {'shape': torch.Size([2]), 'dtype': torch.float32,",
        ),
    ],
)
def test_a_second_run_that_differs_is_found(
    lib: Any, change: str, arguments: Any, message: str
) -> None:
    x, module = leaf(lib, 1.0, 2.0), tools(lib)
    y = module.checkpoint(other(lib, change), x, use_reentrant=False, **arguments)
    with pytest.raises(module.CheckpointError) as error:
        y.sum().backward()
    assert str(error.value).startswith(message)
    assert "either pass `debug=True`" in str(error.value)


def test_more_at_the_end_does_not_matter(lib: Any) -> None:
    x = leaf(lib, 1.0, 2.0)
    function = other(lib, "more")
    tools(lib).checkpoint(function, x, use_reentrant=False).sum().backward()
    with lib.no_grad():
        assert close(x.grad, x.cos() * x.sin().exp())


def test_the_comparison_can_be_left_out(lib: Any) -> None:
    x = leaf(lib, 1.0, 2.0)
    y = tools(lib).checkpoint(other(lib, "dtype"), x, use_reentrant=False, determinism_check="none")
    y.sum().backward()
    with lib.no_grad():
        assert bool((x.grad - x.cos() * x.sin().exp()).abs().max() < 1e-6)


def test_values_of_another_shape_never_reach_a_kernel() -> None:
    x = leaf(ng, 1.0, 2.0)
    y = ng.utils.checkpoint.checkpoint(
        other(ng, "shape"), x, use_reentrant=False, determinism_check="none"
    )
    with pytest.raises(
        RuntimeError, match=r"has shape \[1\], but a tensor of shape \[2\] was saved"
    ):
        y.sum().backward()


@pytest.mark.parametrize("by", ["argument", "context"])
def test_debugging_shows_where_tensors_were_saved(by: str) -> None:
    x, module = leaf(ng, 1.0, 2.0), ng.utils.checkpoint
    function = other(ng, "fewer")
    with module.set_checkpoint_debug_enabled(True if by == "context" else None):
        y = module.checkpoint(function, x, use_reentrant=False, debug=by == "argument")
    with pytest.raises(module.CheckpointError) as error:
        y.sum().backward()
    text = str(error.value)
    assert "Tensors saved during the original forward:\n    0: " in text
    assert text.count("test_checkpoint.py:") == 2
    assert text.endswith("Tensors saved during recomputation:\n\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"use_reentrant": False, "determinism_check": "x"},
            "determinism_check should be one of ['default', 'none'], but got x",
        ),
        ({"use_reentrant": True, "k": 1, "m": 2}, "Unexpected keyword arguments: k,m"),
        (
            {"use_reentrant": True, "debug": True},
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False.",
        ),
        (
            {"use_reentrant": True, "context_fn": lambda: (None, None)},
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False.",
        ),
        (
            {"use_reentrant": False, "debug": True, "context_fn": lambda: (None, None)},
            "debug=True is incompatible with non-default context_fn",
        ),
    ],
)
def test_arguments_that_do_not_go_together(lib: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        tools(lib).checkpoint(wave, leaf(lib, 1.0), **arguments)
    assert str(error.value) == message


def test_leaving_out_the_variant_warns(lib: Any) -> None:
    x, module = leaf(lib, 1.0), tools(lib)
    with pytest.warns(UserWarning, match="^torch.utils.checkpoint: the use_reentrant parameter"):
        y = module.checkpoint(wave, x)
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    with pytest.warns(UserWarning, match="^torch.utils.checkpoint.checkpoint_sequential: the use"):
        module.checkpoint_sequential([lib.sin, lib.exp], 1, x)


def test_both_runs_have_a_context(lib: Any) -> None:
    seen = []

    @contextlib.contextmanager
    def context(name: str) -> Iterator[None]:
        seen.append(name)
        yield

    x = leaf(lib, 1.0)
    y = tools(lib).checkpoint(
        wave,
        x,
        use_reentrant=False,
        context_fn=lambda: (context("first"), context("second")),
    )
    assert seen == ["first"]
    y.backward()
    assert seen == ["first", "second"]


def test_errors_of_the_function(lib: Any, reentrant: bool) -> None:
    calls, module = [], tools(lib)

    def fail(x: Any) -> Any:
        calls.append("run")
        y = x.sin()
        if len(calls) > 1:
            raise KeyError("mine")
        return y.exp()

    x = leaf(lib, 1.0)
    y = module.checkpoint(fail, x, use_reentrant=reentrant)
    with pytest.raises(KeyError, match="mine"):
        y.backward(retain_graph=True)
    with pytest.raises(KeyError, match="mine"):
        module.checkpoint(fail, x, use_reentrant=reentrant)
    assert lib.is_grad_enabled() and x.grad is None
    x.sin().backward()
    assert x.grad is not None


def test_a_context_that_hides_errors(lib: Any) -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(RuntimeError, match="^torch.utils.checkpoint: the forward context provided"):
        tools(lib).checkpoint(
            fail,
            leaf(lib, 1.0),
            use_reentrant=False,
            context_fn=lambda: (contextlib.suppress(KeyError), contextlib.nullcontext()),
        )


def test_without_anything_to_differentiate(lib: Any) -> None:
    module, constant = tools(lib), lib.ones(2)
    assert not module.checkpoint(wave, constant, use_reentrant=False).requires_grad
    with lib.no_grad():
        assert not module.checkpoint(wave, leaf(lib, 1.0), use_reentrant=False).requires_grad
    with pytest.warns(UserWarning, match="^None of the inputs have requires_grad=True. Gradients"):
        assert not module.checkpoint(wave, constant, use_reentrant=True).requires_grad
    y = module.checkpoint(lambda x: x.detach().sin(), leaf(lib, 1.0), use_reentrant=True)
    with pytest.raises(RuntimeError, match="^none of output has requires_grad=True, this checkpoi"):
        y.backward()
    with pytest.raises(RuntimeError) as error:
        module.detach_variable([1])
    assert str(error.value) == (
        "Only tuple of tensors is supported. Got Unsupported input type: list"
    )


def test_results_may_be_anything(lib: Any, reentrant: bool) -> None:
    x = leaf(lib, 1.0)

    def function(x: Any) -> Any:
        return x.sin(), 3, x.exp().detach()

    first, number, _ = tools(lib).checkpoint(function, x, use_reentrant=reentrant)
    first.backward()
    assert number == 3
    with lib.no_grad():
        assert close(x.grad, x.cos())


def test_an_argument_that_was_written_to_is_found(lib: Any, reentrant: bool) -> None:
    z = leaf(lib, 1.0) * 1
    y = tools(lib).checkpoint(wave, z, use_reentrant=reentrant)
    z.add_(1)
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert "which is output 0 of Add, is at version 1; expected version 0" in str(error.value)


def test_writes_inside(lib: Any, reentrant: bool) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y.sin_()
        y[:1].mul_(x[1:])
        return y.sin()

    x = leaf(lib, 0.1, 0.2)
    (expected,) = lib.autograd.grad(function(x).sum(), x)
    tools(lib).checkpoint(function, x, use_reentrant=reentrant).sum().backward()
    assert close(x.grad, expected)


def test_a_backward_pass_inside(lib: Any) -> None:
    def function(x: Any) -> Any:
        (slope,) = lib.autograd.grad(x.sin().sum(), x, create_graph=True)
        return slope * x

    x = leaf(lib, 0.1, 0.2)
    (expected,) = lib.autograd.grad(function(x).sum(), x)
    tools(lib).checkpoint(function, x, use_reentrant=False).sum().backward()
    assert close(x.grad, expected)


def test_several_passes_share_a_run_in_a_group(lib: Any) -> None:
    calls, module = [], tools(lib)

    def function(x: Any) -> Any:
        calls.append("run")
        return x.sin(), x.cos()

    x = leaf(lib, 1.0)
    first, second = module.checkpoint(function, x, use_reentrant=False)
    first.backward()
    second.backward()
    assert len(calls) == 3
    first, second = module.checkpoint(function, x, use_reentrant=False)
    with module.GraphExecGroup():
        first.backward(retain_graph=True)
        second.backward()
        with pytest.raises(module.CheckpointError, match="Performing two backward calls that over"):
            first.backward()
        with pytest.raises(RuntimeError, match="^GraphExecGroup contexts cannot be nested. Alread"):
            module.GraphExecGroup().__enter__()
    assert len(calls) == 5


def test_saved_tensors_can_be_asked_for_once_in_a_pass(lib: Any) -> None:
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            _ = ctx.saved_tensors
            return g * ctx.saved_tensors[0]

    module = tools(lib)
    y = module.checkpoint(lambda x: Twice.apply(x * 1), leaf(lib, 1.0), use_reentrant=False)
    with pytest.raises(module.CheckpointError, match="If you are calling ctx.saved_tensors in"):
        y.backward()


def test_what_a_node_saved_can_be_looked_at_again_and_again(lib: Any) -> None:
    y = tools(lib).checkpoint(lib.exp, leaf(lib, 1.0), use_reentrant=False)
    for _ in range(2):
        assert close(y.grad_fn._saved_result, y)


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_functions_one_after_the_other(lib: Any, segments: int, reentrant: bool) -> None:
    steps = [lib.sin, lib.exp, lib.tanh, lib.cos, lib.sin]
    x = leaf(lib, 0.3, 0.7)
    y = x
    for step in steps:
        y = step(y)
    (expected,) = lib.autograd.grad(y.sum(), x)
    module = tools(lib)
    module.checkpoint_sequential(
        steps, segments, x, use_reentrant=reentrant, preserve_rng_state=False
    ).sum().backward()
    assert close(x.grad, expected)
    with pytest.raises(ValueError, match="^Unexpected keyword arguments: foo$"):
        module.checkpoint_sequential(steps, segments, x, use_reentrant=reentrant, foo=1)


def test_modules_give_their_children() -> None:
    class Modules:
        def children(self) -> Any:
            return iter([ng.sin, ng.exp])

    x = leaf(ng, 1.0)
    y = ng.utils.checkpoint.checkpoint_sequential(Modules(), 2, x, use_reentrant=False)
    assert close(y, x.sin().exp())


@pytest.mark.usefixtures("traced")
def test_checkpoints_in_compiled_functions_and_in_transformations() -> None:
    checkpoint = ng.utils.checkpoint.checkpoint

    def plain(x: Any) -> Any:
        return wave(x).sum()

    def checkpointed(x: Any) -> Any:
        return checkpoint(wave, x, use_reentrant=False).sum()

    x = leaf(ng, 0.3, 0.7)
    for transform in (ng.func.grad, ng.func.hessian, lambda f: ng.jit(ng.func.grad(f))):
        point = x.detach()
        assert close(transform(checkpointed)(point), transform(plain)(point))
    _, tangent = ng.func.jvp(checkpointed, (x.detach(),), (x.detach(),))
    assert close(tangent, (ng.func.grad(plain)(x.detach()) * x).sum())
    compiled = ng.jit(checkpointed)
    compiled(x).backward()
    assert close(x.grad, ng.func.grad(plain)(x.detach()))
    y = checkpoint(ng.jit(wave), x, use_reentrant=False)
    x.grad = None
    y.sum().backward()
    assert close(x.grad, ng.func.grad(plain)(x.detach()))


_STEPS: dict[str, Any] = {
    "exp": lambda x: x.exp(),  # saves its result
    "sin": lambda x: x.sin(),  # its operand
    "square": lambda x: x * x,  # its operand, twice
    "double": lambda x: x * 2,  # nothing
    "clone": lambda x: x.clone(),
}


@given(
    names=st.lists(st.sampled_from(sorted(_STEPS)), min_size=1, max_size=6),
    place=st.integers(0, 5),
    back=st.integers(0, 5),
    reading=st.booleans(),
)
@settings(max_examples=examples(400))  # few draws write to what is saved
def test_a_second_run_that_writes_to_what_it_saved_is_found(
    names: list[str], place: int, back: int, reading: bool
) -> None:
    """After step `place` it writes to what an earlier step computed, or only looks at it."""
    place = min(place, len(names) - 1)
    written = max(1, place - back)  # not the argument, of which the first run has the same memory
    runs = 0

    def function(x: Any) -> Any:
        nonlocal runs
        runs += 1
        values = [x]
        for step, name in enumerate(names):
            values.append(_STEPS[name](values[-1]))
            if step == place and runs == 2 and written <= step:
                value = values[written].detach()
                _ = value + 1 if reading else value.add_(1)
        return values[-1]

    def saved(position: int) -> bool:
        after = names[position] if position <= place else ""
        return names[position - 1] == "exp" or after in ("sin", "square")

    x = ng.tensor([0.25, 0.5], dtype=ng.float64, requires_grad=True)
    expected = function(x)
    (gradient,) = ng.autograd.grad(expected.sum(), x)
    runs = 0
    with ng.utils.checkpoint.set_checkpoint_early_stop(False):
        y = ng.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
        if written <= place and not reading and saved(written):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()
            assert x.grad.tolist() == gradient.tolist()


@pytest.mark.parametrize("writes", [False, True])
def test_an_inner_second_run_that_writes_to_its_argument_is_found(writes: bool) -> None:
    """Its argument is what the outer function computed, again, and saved."""
    checkpoint = ng.utils.checkpoint.checkpoint
    runs = 0

    def inner(y: Any) -> Any:
        nonlocal runs
        runs += 1
        if writes and runs == 2:  # the outer second run ends before it calls this
            y.detach().add_(1)
        return y.sin()

    def outer(x: Any) -> Any:
        return checkpoint(inner, x.exp(), use_reentrant=False)

    x = ng.tensor([0.25, 0.5], dtype=ng.float64, requires_grad=True)
    y = checkpoint(outer, x, use_reentrant=False)
    if writes:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    else:
        y.sum().backward()
        assert close(x.grad, (x.exp().cos() * x.exp()).detach())
    assert runs == 2
