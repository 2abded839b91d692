"""Custom Functions that return their inputs or views, or write to their inputs."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng
from tests.autograd.function.functions import function, leaf

FORBIDDEN = (
    "Output 0 of Fn is a view and {} modified inplace. This view was created inside a custom "
    "Function (or because an input was returned as-is) and the autograd logic to handle "
    "view+inplace would override the custom backward associated with the custom Function, leading "
    "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of "
    "the custom Function."
)


def doubling(lib: Any) -> Any:
    """Return a Function that doubles its input in place."""

    def forward(ctx: Any, a: Any) -> Any:
        a.mul_(2)
        ctx.mark_dirty(a)
        return a

    return function(lib, forward, lambda ctx, g: g * 2)


def test_an_input_that_is_returned_comes_back_as_a_view(lib: Any) -> None:
    f = function(lib, lambda ctx, a: a, lambda ctx, g: g * 5)
    x = leaf(lib, 1.0, 2.0)
    y = f.apply(x)
    assert y is not x and y._is_view() and y._base is x and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    constant = lib.ones(2)
    same = f.apply(constant)
    assert same is not constant and same._base is constant and not same.requires_grad
    with lib.no_grad():
        assert not f.apply(x).requires_grad


@pytest.mark.parametrize(
    "forward",
    [lambda ctx, a: a, lambda ctx, a: a.view(-1), lambda ctx, a: (a * 2).view(-1)],
)
def test_views_that_a_function_returns_may_not_be_written_to(lib: Any, forward: Any) -> None:
    f = function(lib, forward, lambda ctx, g: g * 5)
    y = f.apply(leaf(lib, 1.0, 2.0) * 1)
    assert y._is_view() and y.grad_fn.name() == "FnBackward"
    with pytest.raises(RuntimeError) as error:
        y.mul_(2)
    assert str(error.value) == FORBIDDEN.format("is being")
    with lib.no_grad():
        y.mul_(2)


VIEWS: dict[str, Any] = {
    "itself": lambda a: a,
    "all": lambda a: a.view(-1),
    "part": lambda a: a[:1],
    "of a result": lambda a: (a * 2)[:1],
    "detached": lambda a: a.detach()[:1],
    "several": lambda a: (a[:1], a[1:]),
    "with a result": lambda a: (a[:1], a * 2),
}
INPUTS: dict[str, Any] = {
    "leaf": lambda lib: leaf(lib, 1.0, 2.0),
    "computed": lambda lib: leaf(lib, 1.0, 2.0) * 1,
    "view": lambda lib: (leaf(lib, 1.0, 2.0, 3.0) * 1)[:2],
}
WHOLE = FORBIDDEN.partition(" This view was")[2]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("how", ["as it is", "marked", "without grad mode", "viewed again"])
@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", VIEWS)
def test_which_error_a_write_to_a_view_of_a_function_raises(
    lib: Any, name: str, given: str, how: str
) -> None:
    """What PyTorch says depends on whether the view has a node, and who it is a view of."""

    def forward(ctx: Any, a: Any) -> Any:
        found = VIEWS[name](a)
        if how == "marked":
            ctx.mark_non_differentiable(*(found if isinstance(found, tuple) else (found,)))
        return found

    f = function(lib, forward, lambda ctx, *g: lib.zeros(2))
    x = INPUTS[given](lib)
    if how == "without grad mode":
        with lib.no_grad():
            found = f.apply(x)
    else:
        found = f.apply(x)
    y = found[0] if isinstance(found, tuple) else found
    if how == "viewed again":
        y = y[:1]
    if not y.requires_grad:  # then nothing is wrong with it
        y.mul_(2)
        return
    with pytest.raises(RuntimeError) as error:
        y.mul_(2)
    message = str(error.value)
    if how in ("marked", "without grad mode"):
        start = "A view was created in no_grad mode and is being modified inplace with grad mode "
        assert message.startswith(start + "enabled. This view was created inside a custom Function")
        assert message.endswith(WHOLE)
    elif name in ("several", "with a result"):
        assert "This view is the output of a function that returns multiple views." in message
    else:
        number = "Slice" if how == "viewed again" else "Fn"
        assert message == FORBIDDEN.format("is being").replace("of Fn", f"of {number}")


def test_a_view_of_an_input_has_no_history_after_a_write_to_the_input(lib: Any) -> None:
    z = leaf(lib, 1.0, 2.0) * 1
    y = function(lib, lambda ctx, a: a.view(-1), lambda ctx, g: g).apply(z)
    z.mul_(2)
    with pytest.raises(RuntimeError) as error:
        _ = y.grad_fn
    assert str(error.value) == FORBIDDEN.format("its base or another view of its base has been")


def test_several_views_may_not_be_written_to(lib: Any) -> None:
    f = function(lib, lambda ctx, a: (a[:1], a[1:]), lambda ctx, g, h: lib.cat([g, h]))
    x = leaf(lib, 1.0, 2.0)
    first, second = f.apply(x * 1)
    with pytest.raises(RuntimeError, match="the output of a function that returns multiple views"):
        first.mul_(2)
    (first + second * 3).sum().backward()
    assert x.grad.tolist() == [1.0, 3.0]


def test_a_dirty_input_comes_back_itself(lib: Any) -> None:
    x = leaf(lib, 1.0, 2.0)
    z = x * 1
    y = doubling(lib).apply(z)
    assert y is z and z.tolist() == [2.0, 4.0] and z.grad_fn.name() == "FnBackward"
    assert z._version == 2
    (z * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_marking_dirty_finds_what_was_saved_before(lib: Any) -> None:
    z = leaf(lib, 1.0) * 1
    before = z * z
    doubling(lib).apply(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        before.backward()


def test_a_dirty_view_rewrites_the_history_of_its_base(lib: Any) -> None:
    x = leaf(lib, 1.0, 2.0)
    z = x * 1
    view = z[:1]
    assert doubling(lib).apply(view) is view
    assert z.grad_fn.name().endswith("CopySlices") and view.grad_fn.name() == "AsStridedBackward0"
    z.sum().backward()
    assert z.tolist() == [2.0, 2.0] and x.grad.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("kind", ["leaf", "computed", "view"])
@pytest.mark.parametrize("cut", ["view(-1)", "[:1]", "view(-1)[:1]", "unsqueeze(0)"])
def test_a_view_made_in_forward_can_not_be_dirty(lib: Any, kind: str, cut: str) -> None:
    x = leaf(lib, 1.0, 2.0)
    x = {"leaf": x, "computed": x * 1, "view": (x * 1)[:]}[kind]

    class Writes(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            part = eval(f"x{'' if cut.startswith('[') else '.'}{cut}", {"x": x})
            ctx.mark_dirty(part)
            return part.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad has been used in"):
        Writes.apply(x)


def test_a_dirty_output_can_be_saved_and_differentiated_twice(lib: Any) -> None:
    def forward(ctx: Any, a: Any) -> Any:
        a.exp_()
        ctx.mark_dirty(a)
        ctx.save_for_backward(a)
        return a

    f = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(lib, 0.3, -0.5)
    assert lib.autograd.gradcheck(lambda x: f.apply(x * 1), x)
    assert lib.autograd.gradgradcheck(lambda x: f.apply(x * 1), x)


def test_a_dirty_input_may_be_one_of_several_outputs(lib: Any) -> None:
    def forward(ctx: Any, a: Any) -> Any:
        a.mul_(2)
        ctx.mark_dirty(a)
        return a, a * 1

    f = function(lib, forward, lambda ctx, g, h: g * 2 + h)
    x = leaf(lib, 1.0)
    first, second = f.apply(x * 1)
    (first * 3 + second).backward()
    assert x.grad.tolist() == [7.0]
    with pytest.raises(RuntimeError) as error:
        f.apply((x * 1)[:1])
    assert str(error.value).startswith("If your Function modifies inplace an input that is a view")


def test_a_dirty_view_that_is_not_the_first_input() -> None:
    """PyTorch 2.13 takes the first input for the one that was written to."""

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        b.mul_(a)
        ctx.mark_dirty(b)
        ctx.save_for_backward(a)
        return b

    f = function(ng, forward, lambda ctx, g: (g * 10, g * ctx.saved_tensors[0]))
    x, y = leaf(ng, 1.0, 2.0), leaf(ng, 3.0)
    z = x * 1
    f.apply(y, z[:1])
    z.sum().backward()
    assert z.tolist() == [3.0, 2.0]
    assert x.grad.tolist() == [3.0, 1.0] and y.grad.tolist() == [10.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda x: x,
            "a leaf Variable that requires grad has been used in an in-place operation.",
        ),
        (
            lambda x: x[:1],
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        ),
    ],
)
def test_leaves_may_not_be_dirty(lib: Any, make: Any, message: str) -> None:
    with pytest.raises(RuntimeError) as error:
        doubling(lib).apply(make(leaf(lib, 1.0, 2.0)))
    assert str(error.value) == message


def test_what_is_dirty_has_to_be_returned(lib: Any) -> None:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a)
        return a * 2

    with pytest.raises(RuntimeError) as error:
        function(lib, forward).apply(leaf(lib, 1.0) * 1)
    assert str(error.value) == (
        "Some elements marked as dirty during the forward method were not returned as output. The "
        "inputs that are modified inplace must all be outputs of the Function."
    )


def test_what_is_dirty_should_be_an_input(lib: Any) -> None:
    other = lib.ones(1)

    def forward(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(other)
        return other

    with pytest.warns(UserWarning, match=r"received a tensor that was not an input\. Only input"):
        y = function(lib, forward, lambda ctx, g: g).apply(leaf(lib, 1.0))
    assert y is other and y.requires_grad
