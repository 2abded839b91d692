"""What ``jvp`` of a custom Function has to do with the memory of tangents; the same in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.autograd.function.functions import function

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # PyTorch's own

NO_VIEW = (
    "A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
    "returning a view."
)
NOT_WRITTEN = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the "
    "forward is modifying an input inplace, then the jvp function must modify the corresponding "
    "gradient inplace."
)
NOT_RETURNED = (
    "An inplace custom Function is not returning the forward mode gradients as-is. If the forward "
    "is modifying an input inplace, then the jvp function must modify the gradient inplace and "
    "return it as-is."
)


def as_it_is(ctx: Any, x: Any) -> Any:
    return x


def as_a_view(ctx: Any, x: Any) -> Any:
    return x.view(2, 2)


def as_a_copy(ctx: Any, x: Any) -> Any:
    return x * 1


def doubled(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def dual(lib: Any, part: bool = False) -> Any:
    """Return a dual tensor that is no view, or one that is."""
    values = lib.arange(8.0 if part else 4.0)
    made = lib.autograd.forward_ad.make_dual(lib.ones_like(values), values).clone()
    return made[:4] if part else made


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize(
    ("forward", "jvp"),
    [
        (as_it_is, lambda ctx, t: t.view_as(t)),
        (as_a_view, lambda ctx, t: t.view(2, 2)),
        (as_a_copy, lambda ctx, t: t),
        (as_a_copy, lambda ctx, t: t.view_as(t)),
    ],
)
def test_tangents_share_memory_as_tensors_do(lib: Any, forward: Any, jvp: Any, part: bool) -> None:
    forward_ad = lib.autograd.forward_ad
    made = function(lib, forward, jvp=staticmethod(jvp))
    with forward_ad.dual_level():
        x = dual(lib, part)
        y = made.apply(x)
        assert forward_ad.unpack_dual(y).tangent.flatten().tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("part", [False, True])
def test_the_tangent_of_what_is_written_to_is_written_to(lib: Any, part: bool) -> None:
    forward_ad = lib.autograd.forward_ad
    made = function(lib, doubled, jvp=staticmethod(lambda ctx, t: t.mul_(2)))
    with forward_ad.dual_level():
        x = dual(lib, part)
        assert made.apply(x) is x
        assert forward_ad.unpack_dual(x).tangent.tolist() == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize(
    ("forward", "jvp", "message"),
    [
        (as_it_is, lambda ctx, t: t.clone(), NO_VIEW),
        (as_a_view, lambda ctx, t: t.view(2, 2).clone(), NO_VIEW),
        (doubled, lambda ctx, t: t, NOT_WRITTEN),
        (doubled, lambda ctx, t: t * 2, NOT_WRITTEN),
        (doubled, lambda ctx, t: None, NOT_WRITTEN),
        (doubled, lambda ctx, t: t.mul_(2).view_as(t), NOT_RETURNED),
    ],
)
def test_tangents_that_share_other_memory_are_refused(
    lib: Any, forward: Any, jvp: Any, message: str, part: bool
) -> None:
    made = function(lib, forward, jvp=staticmethod(jvp))
    with lib.autograd.forward_ad.dual_level():
        with pytest.raises(RuntimeError) as info:
            made.apply(dual(lib, part))
        assert str(info.value) == message


def test_a_tangent_that_is_no_view_is_refused_where_the_input_is_returned(lib: Any) -> None:
    made = function(lib, as_it_is, jvp=staticmethod(lambda ctx, t: t))
    with lib.autograd.forward_ad.dual_level():
        with pytest.raises(RuntimeError) as info:
            made.apply(dual(lib))
        assert str(info.value) == NO_VIEW
        made.apply(dual(lib, part=True))  # this one's tangent is a view already


def test_views_of_other_tangents_are_refused(lib: Any) -> None:
    made = function(lib, as_a_view, jvp=staticmethod(lambda ctx, t: t.clone().view(2, 2)))
    of = "A custom Function is returning a view but the jvp is not returning a view of the"
    with lib.autograd.forward_ad.dual_level():
        for part, words in ((False, "given grad input."), (True, "same base as the given grad")):
            with pytest.raises(RuntimeError, match=f"^{of} {words}"):
                made.apply(dual(lib, part))


def test_operations_without_a_derivative_refuse_tangents(lib: Any) -> None:
    with lib.autograd.forward_ad.dual_level():
        x = dual(lib)
        for call in (lambda: x // 1, lambda: 1 // x, lambda: lib.floor_divide(x, 2)):
            with pytest.raises(NotImplementedError) as info:
                call()
            assert str(info.value) == (
                "Trying to use forward AD with aten::floor_divide that does not support it."
            )


@pytest.mark.parametrize("name", ["jacobian", "hessian"])
def test_matrices_of_complex_gradients_need_vectorization(lib: Any, name: str) -> None:
    functional = lib.autograd.functional
    x = lib.tensor([1 + 2j, 3.0])
    of = {"jacobian": lambda x: x**2, "hessian": lambda x: (x.abs() ** 2).sum()}[name]
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got torch.complex64"):
        getattr(functional, name)(of, x)
    assert getattr(functional, name)(of, x, vectorize=True).shape == (2, 2)
