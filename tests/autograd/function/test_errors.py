"""What may go wrong with custom Functions, in PyTorch's words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.autograd.function.functions import function, leaf, square


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            lambda lib, g: (g, g),
            "function FnBackward returned an incorrect number of gradients (expected 1, got 2)",
        ),
        (
            lambda lib, g: (),
            "function FnBackward returned an incorrect number of gradients (expected 1, got 0)",
        ),
        (
            lambda lib, g: lib.ones(3),
            "Function FnBackward returned an invalid gradient at index 0 - got [3] but expected "
            "shape compatible with [2]",
        ),
        (
            lambda lib, g: lib.ones(()),
            "Function FnBackward returned an invalid gradient at index 0 - got [] but expected "
            "shape compatible with [2]",
        ),
        (lambda lib, g: 3, "expected Variable or None (got int)"),
        (lambda lib, g: [g], "expected Variable or None (got list)"),
        (
            lambda lib, g: g.to(lib.complex64),
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) "
            "to be true, but got false.  (Could this error message be improved?  If so, please "
            "report an enhancement request to PyTorch.)",
        ),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_that_do_not_fit(lib: Any, rule: Any, message: str, create_graph: bool) -> None:
    y = function(lib, lambda ctx, a: a * 2, lambda ctx, g: rule(lib, g)).apply(leaf(lib, 1.0, 2.0))
    with pytest.raises(RuntimeError) as error:
        y.sum().backward(create_graph=create_graph)
    assert str(error.value) == message


@pytest.mark.parametrize("gradient", [4, "tensor"])
def test_what_is_no_tensor_gets_no_gradient(lib: Any, gradient: Any) -> None:
    f = function(
        lib, lambda ctx, a, n: a * n, lambda ctx, g: (g, g if gradient == "tensor" else gradient)
    )
    with pytest.raises(RuntimeError) as error:
        f.apply(leaf(lib, 1.0), 3).backward()
    assert str(error.value) == (
        "function FnBackward returned a gradient different than None at position 2, but the "
        "corresponding forward input was not a Variable"
    )


def test_methods_that_are_missing(lib: Any) -> None:
    base, x = lib.autograd.Function, leaf(lib, 1.0)
    with pytest.raises(NotImplementedError) as error:
        base.apply(x)
    assert str(error.value) == (
        "You must implement the forward function for custom autograd.Function."
    )
    with pytest.raises(NotImplementedError) as error:
        function(lib, lambda ctx, a: a * 2).apply(x).backward()
    assert str(error.value) == (
        "You must implement either the backward or vjp method for your custom autograd.Function to "
        "use it with backward mode AD."
    )
    with pytest.raises(NotImplementedError) as error:
        base.jvp(None, x)
    assert str(error.value) == (
        "You must implement the jvp function for custom autograd.Function to use it with forward "
        "mode AD."
    )
    with pytest.raises(NotImplementedError) as error:
        base.vmap(None, (0,), x)
    assert str(error.value) == (
        "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
        "generate_vmap_rule=True."
    )
    with pytest.raises(NotImplementedError) as error:
        base.setup_context(None, (), x)
    assert str(error.value) == "setup_context is not implemented."


def test_backward_and_vjp_together(lib: Any) -> None:
    f = function(lib, lambda ctx, a: a * 2, lambda ctx, g: g, vjp=staticmethod(lambda ctx, g: g))
    with pytest.raises(RuntimeError) as error:
        f.apply(leaf(lib, 1.0)).backward()
    assert str(error.value) == (
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
        "only implement one of them."
    )


def test_functions_are_not_instantiated(lib: Any) -> None:
    f = square(lib)
    with pytest.warns(DeprecationWarning, match="should not be instantiated") as caught:
        made = f()
    assert str(caught[0].message) == (
        f"{f} should not be instantiated. Methods on autograd functions are all static, so you "
        "should invoke them on the class itself. Instantiating an autograd function will raise an "
        "error in a future version of PyTorch."
    )
    with pytest.raises(RuntimeError) as error:
        made(leaf(lib, 1.0))
    assert str(error.value) == (
        "Legacy autograd function with non-static forward method is deprecated. Please use "
        "new-style autograd function with static forward method. (Example: "
        "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
    )


@pytest.mark.parametrize(
    ("mark", "kind", "message"),
    [
        (
            lambda ctx: ctx.save_for_backward(ctx, 3),
            TypeError,
            "save_for_backward can only save variables, but argument 0 is of type FnBackward",
        ),
        (
            lambda ctx: ctx.save_for_backward(None, 3),
            TypeError,
            "save_for_backward can only save variables, but argument 1 is of type int",
        ),
        (
            lambda ctx: ctx.save_for_forward(3),
            AssertionError,
            "save_for_forward expects all arguments to be tensors; you should save non-tensors as "
            "attributes on ctx.",
        ),
        # Of these PyTorch 2.13 cuts off the ends.
        (
            lambda ctx: setattr(ctx, "to_save", [1]),
            RuntimeError,
            "autograd internal error: to_save attribute is expected to be a tuple but is ",
        ),
        (
            lambda ctx: setattr(ctx, "dirty_tensors", [1]),
            RuntimeError,
            "autograd internal error: dirty_tensors attribute is expected to be a tuple but is ",
        ),
        (
            lambda ctx: setattr(ctx, "non_differentiable", [1]),
            RuntimeError,
            "autograd internal error: non_differentiable attribute is expected to be a tuple but "
            "is ",
        ),
        (
            lambda ctx: ctx.mark_non_differentiable(3),
            RuntimeError,
            "mark_non_differentiable only accepts variable arguments, but got ",
        ),
        (
            lambda ctx: ctx.mark_dirty(3),
            RuntimeError,
            "mark_dirty can only accept variables, but argument ",
        ),
    ],
)
def test_marks_on_what_is_no_tensor(lib: Any, mark: Any, kind: Any, message: str) -> None:
    def forward(ctx: Any, a: Any) -> Any:
        mark(ctx)
        return a * 2

    with pytest.raises(kind) as error:
        function(lib, forward).apply(leaf(lib, 1.0))
    assert str(error.value).startswith(message)


def test_deprecated_names_of_the_context(lib: Any) -> None:
    def backward(ctx: Any, g: Any) -> Any:
        with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_"):
            assert ctx.saved_variables == ()
        return g

    def forward(ctx: Any, a: Any) -> Any:
        with pytest.warns(FutureWarning, match="`mark_shared_storage` is deprecated. Tensors with"):
            ctx.mark_shared_storage((a, a))
        return a * 2

    function(lib, forward, backward).apply(leaf(lib, 1.0)).backward()


def test_arguments_that_are_missing(lib: Any) -> None:
    x = leaf(lib, 1.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        function(lib, lambda ctx, a, b: a * b).apply(x)
    setup = staticmethod(lambda ctx, inputs, output: None)
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        function(lib, lambda a, b: a * b, setup_context=setup).apply(x)
