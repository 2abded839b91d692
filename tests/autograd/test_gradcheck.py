"""gradcheck: right derivatives pass, wrong ones fail with PyTorch's words, in every mode."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import numgrad as ng
from numgrad.autograd import GradcheckError, gradcheck, gradgradcheck
from numgrad.autograd.gradcheck.jacobians import Options, make_case, random_gradient
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.node import Node
from numgrad.graph.tensor import wrap

Arrays = Sequence[Any]
Function = Callable[..., Any]

MODES = {
    "slow": {},
    "fast": {"fast_mode": True},
    "forward": {"check_forward_ad": True, "check_backward_ad": False},
    "fast forward": {"check_forward_ad": True, "check_backward_ad": False, "fast_mode": True},
    "both ways": {"check_forward_ad": True},
}
mode = pytest.mark.parametrize("options", MODES.values(), ids=MODES.keys())
slow_or_fast = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])

MATRIX = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.25]])
ROW = np.array([0.75, -0.5, 1.25])
COMPLEX = np.array([0.5 + 1.25j, -0.75 + 2.0j])
PAIR = np.array([1.5, -0.5])
SCALAR = np.array(1.25)
EMPTY = np.zeros((0, 2))

# Functions of tensors for which every library gives the right gradient, with their inputs.
RIGHT: dict[str, tuple[Function, Arrays]] = {
    "product of broadcast operands": (lambda a, b: a * b, (MATRIX, ROW)),
    "tuple of outputs": (lambda a, b: (a.sin(), (a * b).sum()), (MATRIX, ROW)),
    "list of outputs": (lambda a: [a * 2, a * a], (ROW,)),
    "scalar": (lambda a: a * a, (SCALAR,)),
    "no elements": (lambda a: a * a, (EMPTY,)),
    "no elements come out": (lambda a: a[:0], (ROW,)),
    "transposed and strided": (lambda a: a.exp(), (np.repeat(MATRIX, 2, axis=0)[::2].T,)),
    "output is the input": (lambda a: a, (ROW,)),
    "output is a view": (lambda a: a.t(), (MATRIX,)),
    "in place on a clone": (lambda a: a.clone().mul_(a), (ROW,)),
    "argument that is no tensor": (lambda a, k, b: a * k + b, (MATRIX, 2.5, ROW)),
    "unused input": (lambda a, b: a * 2, (ROW, PAIR)),
    "integers last": (lambda a: (a * 2, a.long()), (ROW,)),
    "constant output": (lambda a: a.detach() * 0, (ROW,)),
    "complex": (lambda a: a * a, (COMPLEX,)),
    "complex times real": (lambda a, b: a * b, (COMPLEX, PAIR)),
    "complex to real": (lambda a: a.abs(), (COMPLEX,)),
    "several outputs of a node": (lambda a: a.unbind(), (MATRIX,)),
}

# Functions with a factor or a term that the derivative does not see.
WRONG: dict[str, tuple[Function, Arrays]] = {
    "half of a square": (lambda a: a * a.detach(), (MATRIX,)),
    "one input of two": (lambda a, b: a * b.detach() + b * a.detach() * 2, (MATRIX, ROW)),
    "second output": (lambda a, b: (a * b, (a * b.detach()).sum()), (MATRIX, ROW)),
    "both outputs": (lambda a: (a * a.detach(), (a * a.detach()).sum()), (ROW,)),
    "scalar": (lambda a: a * a.detach(), (SCALAR,)),
    "a little": (lambda a: a + a.detach() * 1e-2, (ROW,)),
    "complex": (lambda a: a * a.detach(), (COMPLEX,)),
    "complex input of a mixed product": (lambda a, b: a * b + a.detach() * b, (COMPLEX, PAIR)),
    "real input of a mixed product": (lambda a, b: a * b + a * b.detach(), (COMPLEX, PAIR)),
    "complex to real": (lambda a: a.abs() * a.abs().detach(), (COMPLEX,)),
    "at a pole": (lambda a: 1 / a, (np.array([0.0, 1.0]),)),
    "at a kink": (lambda a: a.relu(), (np.array([0.0, 1.0]),)),
    "outside the domain": (lambda a: a.log(), (np.array([-1.0, 1.0]),)),
    "detached": (lambda a: a.detach(), (ROW,)),
    "jump in shape": (lambda a: a[a > 0.5], (np.array([0.5, 1.0]),)),
}

right = pytest.mark.parametrize(("function", "arrays"), RIGHT.values(), ids=RIGHT.keys())
wrong = pytest.mark.parametrize(("function", "arrays"), WRONG.values(), ids=WRONG.keys())


def inputs_of(library: ModuleType, arrays: Arrays) -> tuple[Any, ...]:
    """Return leaves of `library` that require grad, with the values and order of `arrays`."""

    def leaf(array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return array
        if not array.size:  # PyTorch's from_numpy gives it strides of 0, which gradcheck refuses
            return library.zeros(array.shape, dtype=library.float64, requires_grad=True)
        storage = np.empty_like(array, order="K")
        storage[...] = array
        return library.from_numpy(storage).requires_grad_()

    return tuple(leaf(array) for array in arrays)


def outcome(check: Callable[..., bool], function: Function, inputs: Any, **options: Any) -> str:
    """Return what a check returns or raises, as text."""
    try:
        return str(check(function, inputs, **options))
    except (RuntimeError, ValueError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"


def without_signs_of_zero(text: str) -> str:
    """Leave out what depends on the order in which zeros were multiplied."""
    text = re.sub(r"(?<=[\d.])-(0\.0*j)", r"+\1", text)
    text = re.sub(r"-(0\.0*(?!\d))", r"\1", text)
    return re.sub(r"\s+", " ", text).replace("[ ", "[")


def doubles(*values: float) -> ng.Tensor:
    return ng.tensor(values, dtype=ng.float64, requires_grad=True)


# --- The verdict ---------------------------------------------------------------------------------


@mode
@right
def test_right_derivative_passes(function: Function, arrays: Arrays, options: Any) -> None:
    assert gradcheck(function, inputs_of(ng, arrays), **options) is True


@mode
@wrong
def test_wrong_derivative_fails(function: Function, arrays: Arrays, options: Any) -> None:
    with pytest.raises((GradcheckError, AssertionError)):
        gradcheck(function, inputs_of(ng, arrays), **options)


@slow_or_fast
@right
def test_right_second_derivative_passes(
    function: Function, arrays: Arrays, fast_mode: bool
) -> None:
    assert gradgradcheck(function, inputs_of(ng, arrays), fast_mode=fast_mode) is True


@slow_or_fast
def test_wrong_second_derivative_fails_where_the_first_is_right(fast_mode: bool) -> None:
    def square(x: ng.Tensor) -> ng.Tensor:  # its gradient is 2 * x, but without a graph
        return (x * x).detach() + 2 * x.detach() * (x - x.detach())

    x = doubles(0.5, -2.0)
    assert gradcheck(square, (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to"):
        gradgradcheck(square, (x,), fast_mode=fast_mode)


@given(shape=array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3), seed=st.integers(0, 99))
def test_any_shape_is_checked_whole(shape: tuple[int, ...], seed: int) -> None:
    """One wrong element is found wherever it is."""
    generator = np.random.default_rng(seed)
    x = ng.from_numpy(generator.uniform(1, 2, shape)).requires_grad_()
    assert gradcheck(lambda x: x.sin() * x, (x,))
    if x.numel():
        hidden = np.zeros(x.numel())
        hidden[generator.integers(x.numel())] = 1.0
        mask = ng.from_numpy(hidden.reshape(shape))
        assert not gradcheck(lambda x: x + mask * x.detach(), (x,), raise_exception=False)


# --- The words -----------------------------------------------------------------------------------


@pytest.mark.sampled(0.14)
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # PyTorch uses it
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"check_forward_ad": True, "check_backward_ad": False},
        {"raise_exception": False},
        {"eps": 1e-3, "atol": 0.2, "rtol": 0.5},
        {"masked": True},
        {"check_grad_dtypes": True},
        {"check_undefined_grad": False},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("function", "arrays"), [*RIGHT.values(), *WRONG.values()], ids=[*RIGHT, *WRONG]
)
def test_outcome_is_pytorchs(
    torch: ModuleType, function: Function, arrays: Arrays, options: Any
) -> None:
    expected = outcome(torch.autograd.gradcheck, function, inputs_of(torch, arrays), **options)
    found = outcome(gradcheck, function, inputs_of(ng, arrays), **options)
    # PyTorch's Jacobian by forward mode may hang in a graph, and its repr says so.
    expected = re.sub(r",\s+grad_fn=<\w+>", "", expected)
    assert without_signs_of_zero(found) == without_signs_of_zero(expected)


@pytest.mark.parametrize(
    ("function", "arrays"), [*RIGHT.values(), *WRONG.values()], ids=[*RIGHT, *WRONG]
)
def test_fast_outcome_is_pytorchs_but_for_the_random_numbers(
    torch: ModuleType, function: Function, arrays: Arrays
) -> None:
    def words(text: str) -> str:
        """Leave out what depends on the random vectors and on rounding."""
        numbers = ("numerical:", "analytical:", "The max per-element")
        kept = [line for line in text.splitlines() if not line.startswith(numbers)]
        return without_signs_of_zero("\n".join(kept))

    expected = outcome(torch.autograd.gradcheck, function, inputs_of(torch, arrays), fast_mode=True)
    found = outcome(gradcheck, function, inputs_of(ng, arrays), fast_mode=True)
    assert words(found) == words(expected)


# PyTorch 2.13 calls a function without differentiable outputs without its arguments, and fails.
TO_SECOND_ORDER = {
    name: case
    for name, case in [*RIGHT.items(), *((f"wrong: {name}", case) for name, case in WRONG.items())]
    if name not in ("constant output", "wrong: detached")
}


@pytest.mark.parametrize(
    ("function", "arrays"), TO_SECOND_ORDER.values(), ids=TO_SECOND_ORDER.keys()
)
def test_second_order_verdict_is_pytorchs(
    torch: ModuleType, function: Function, arrays: Arrays
) -> None:
    def verdict(text: str) -> str:
        return text.split("numerical:")[0]  # the drawn gradients show in the numbers

    expected = outcome(torch.autograd.gradgradcheck, function, inputs_of(torch, arrays))
    found = outcome(gradgradcheck, function, inputs_of(ng, arrays))
    assert verdict(found) == verdict(expected)


def test_message_names_output_and_input_and_shows_both_jacobians() -> None:
    x, y = doubles(1.0, 2.0), doubles(3.0)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda k, x, y: (x * 2, x * y.detach()), (2.0, x, y))
    assert str(caught.value) == (
        "Jacobian mismatch for output 1 with respect to input 1,\n"
        "numerical:tensor([[1.0000, 2.0000]], dtype=torch.float64)\n"
        "analytical:tensor([[0., 0.]], dtype=torch.float64)\n"
    )


def test_fast_message_is_explained_by_whole_jacobians() -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: x * x.detach(), (doubles(1.0, 2.0),), fast_mode=True)
    first, explanation = str(caught.value).split("\n\nThe above quantities relating")
    numbers = dict(line.split(":") for line in first.splitlines()[1:])
    assert float(numbers["numerical"]) == pytest.approx(2 * float(numbers["analytical"]))
    assert (
        "recompute numerical and analytical jacobians in slow mode:\n\nNumerical:\n " in explanation
    )
    assert "Analytical:\ntensor([[1., 0.],\n        [0., 2.]], dtype=torch.float64)" in explanation
    assert "The max per-element difference (slow mode) is: 2.00000" in explanation
    assert "Fast gradcheck failed but element-wise differences are small" not in explanation


def test_fast_failure_that_slow_mode_would_pass_says_so() -> None:
    # Two large entries cancel in v @ J @ u, so the error within the tolerance of one stands out.
    x = doubles(1.0, 1.0)
    case = make_case(lambda x: x * 1, (x,), Options(1e-6, 1e-5, 1e-3, 0.0, False), True)
    assert case.u is not None
    assert case.v is not None
    weights = case.u[0][0] * case.v[0]
    entries = ng.from_numpy(np.array([1000.0, -1000.0 * weights[0] / weights[1]]))
    unseen = ng.tensor([0.5, 0.0], dtype=ng.float64)

    def function(x: ng.Tensor) -> ng.Tensor:
        return x * (entries - unseen) + x.detach() * unseen

    assert gradcheck(function, (x,))
    with pytest.raises(GradcheckError, match=r"test might've passed in slow_mode!"):
        gradcheck(function, (x,), fast_mode=True)


# --- What is asked of the inputs -----------------------------------------------------------------


@pytest.mark.parametrize("inputs", [(2.0,), (ng.ones(2),), ()], ids=["float", "constant", "none"])
def test_some_input_must_require_grad(inputs: Any) -> None:
    message = (
        "^gradcheck expects at least one input tensor to require gradient, "
        r"but none of them have requires_grad=True\.$"
    )
    with pytest.raises(ValueError, match=message):
        gradcheck(lambda *x: x[0] * 2, inputs, raise_exception=False)


def test_input_of_less_than_double_precision_warns() -> None:
    x = ng.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Input #1 requires gradient and is not a double") as seen:
        assert gradcheck(lambda k, x: x * k, (3.0, x), eps=1e-2)
    assert seen[0].filename == __file__


def test_input_that_overlaps_itself_is_refused() -> None:
    x = ng.ones(3, dtype=ng.float64).expand(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match=r"^The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x * 2, (x,), raise_exception=False)


def test_tensor_or_list_serves_for_a_tuple_of_inputs() -> None:
    x, y = doubles(1.0, 2.0), doubles(3.0)
    assert gradcheck(lambda x: x * x, x)
    assert gradcheck(lambda x, y: x * y, [x, y])
    assert gradgradcheck(lambda x: x * x, x, [doubles(1.0, 1.0)])


def test_input_may_have_negative_strides() -> None:
    x = ng.from_numpy(ROW[::-1]).requires_grad_()
    assert x.detach().numpy().strides == (-8,)
    assert gradcheck(lambda x: x * x, (x,))
    assert not gradcheck(lambda x: x * x.detach(), (x,), raise_exception=False)


def test_input_may_be_computed() -> None:
    x = doubles(1.0, 2.0)
    assert gradcheck(lambda y: y * y, (x * 3,))
    assert x.grad is None


@mode
def test_inputs_come_back_bit_for_bit(options: Any) -> None:
    x = ng.from_numpy(MATRIX / 3).requires_grad_()
    before = x.detach().clone().numpy()
    version = x._version
    gradcheck(lambda x: x.sin() * x, (x,), **options)
    assert x.detach().numpy().tobytes() == before.tobytes()
    assert x._version == version
    assert x.grad is None


def test_inputs_come_back_when_the_function_raises() -> None:
    x = doubles(1.0, 2.0)
    calls = iter(range(4))

    def function(x: ng.Tensor) -> ng.Tensor:
        if next(calls) == 3:
            raise KeyError("the function's own error")
        return x * 2

    with pytest.raises(KeyError, match="the function's own error"):
        gradcheck(function, (x,), raise_exception=False)
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "outputs",
    [
        lambda x: (x.detach() * 0, x * 2),
        lambda x: (x.long(), x * 2),
        lambda x: (x > 0, x * 2),
    ],
    ids=["constant", "integer", "boolean"],
)
@slow_or_fast
def test_outputs_without_gradient_may_come_first(outputs: Function, fast_mode: bool) -> None:
    assert gradcheck(outputs, (doubles(0.25, 2.25),), fast_mode=fast_mode)


# --- What is asked of the backward ---------------------------------------------------------------


class Twice(Node):
    """The node of ``2 * x``, with a gradient that the test gives."""

    __slots__ = ("rule",)
    rule: Callable[[Any], Any]

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool]]:
        return (self.rule(gradients[0]),), (False,)

    def run_tensors(self, gradients: Sequence[Any]) -> tuple[Any]:
        return (self.rule(gradients[0]),)


def twice(rule: Callable[[Any], Any]) -> Function:
    """Return a function that doubles its input and pulls arrays (or None) back by `rule`."""

    def function(x: ng.Tensor) -> ng.Tensor:
        node = Twice((gradient_edge(x),))
        node.rule = rule
        result = wrap(x.detach().numpy() * 2)
        result._edge = (node, 0)
        return result

    return function


def doubled(gradient: Any) -> Any:
    return None if gradient is None else gradient * 2


def test_node_of_the_tests_passes_when_right() -> None:
    assert gradcheck(twice(doubled), (doubles(1.0, 2.0),), check_grad_dtypes=True)


def drifting(step: float) -> Callable[[Any], Any]:
    """Return the rule of `twice` with a factor that grows from call to call."""
    calls: Iterator[int] = iter(range(1000))
    return lambda g: None if g is None else g * (2 + step * next(calls))


@slow_or_fast
def test_backward_must_repeat_itself(fast_mode: bool) -> None:
    x = doubles(1.0, 2.0)
    message = (
        "^Backward is not reentrant, i.e., running backward with same input and grad_output "
        "multiple times gives different values, although analytical gradient matches numerical "
        r"gradient.The tolerance for nondeterminism was 1e-12\."
    )
    with pytest.raises(GradcheckError, match=message):
        gradcheck(twice(drifting(1e-9)), (x,), nondet_tol=1e-12, fast_mode=fast_mode)
    assert gradcheck(twice(drifting(1e-9)), (x,), nondet_tol=1e-6, fast_mode=fast_mode)


def test_backward_must_give_zero_for_zero() -> None:
    x = doubles(1.0, 2.0)

    def offset(gradient: Any) -> Any:
        return None if gradient is None else gradient * 2 + 1e-9

    with pytest.raises(GradcheckError, match=r"^backward not multiplied by grad_output$"):
        gradcheck(twice(offset), (x,))
    assert gradcheck(twice(offset), (x,), masked=True)


def test_backward_must_take_an_undefined_gradient() -> None:
    def raises(gradient: Any) -> Any:
        if gradient is None:
            raise RuntimeError("no gradient")
        return gradient * 2

    x = doubles(1.0, 2.0)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking") as seen,
        pytest.raises(GradcheckError, match=r"^Expected backward function to handle undefined"),
    ):
        gradcheck(twice(raises), (x,))
    assert seen[0].filename == __file__
    assert gradcheck(twice(raises), (x,), check_undefined_grad=False)


def test_backward_must_take_an_undefined_gradient_for_zeros() -> None:
    def one(gradient: Any) -> Any:
        return np.ones(2) if gradient is None else gradient * 2

    x = doubles(1.0, 2.0)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking"),
        pytest.raises(GradcheckError, match=r"^Expected all input grads to be undefined or zero"),
    ):
        gradcheck(twice(one), (x,))
    assert gradcheck(twice(one), (x,), check_undefined_grad=False)


def test_undefined_gradients_are_tried_for_one_output_at_a_time() -> None:
    seen: list[tuple[bool, bool]] = []

    class Both(Node):
        __slots__ = ()
        num_outputs = 2

        def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool]]:
            seen.append((gradients[0] is None, gradients[1] is None))
            found = [gradient for gradient in gradients if gradient is not None]
            return (sum(found) * 2 if found else None,), (False,)

    def function(x: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
        node = Both((gradient_edge(x),))
        outputs = wrap(x.detach().numpy() * 2), wrap(x.detach().numpy() * 2)
        for number, output in enumerate(outputs):
            output._edge = (node, number)
        return outputs

    assert gradcheck(function, (doubles(1.0),))
    assert seen[-3:] == [(True, True), (True, False), (False, True)]


def test_gradient_must_be_of_its_inputs_size_and_dtype() -> None:
    x = doubles(1.0, 2.0)
    with pytest.raises(GradcheckError, match=r"^Analytical gradient has incorrect size$"):
        gradcheck(twice(lambda g: (g * 2).sum()), (x,))

    def single(gradient: Any) -> Any:
        return None if gradient is None else (gradient * 2).astype(np.float32)

    with pytest.raises(GradcheckError, match=r"^Gradient has dtype mismatch$"):
        gradcheck(twice(single), (x,), check_grad_dtypes=True)
    with pytest.raises(GradcheckError, match=r"^grad is incorrect type$"):
        gradcheck(twice(single), (x,))


# --- Random numbers, flags -----------------------------------------------------------------------


def test_fast_mode_leaves_the_random_stream_alone() -> None:
    x = doubles(1.0, 2.0)
    ng.manual_seed(7)
    expected = ng.rand(4).tolist()
    ng.manual_seed(7)
    gradcheck(lambda x: x * x, (x,), fast_mode=True)
    assert ng.rand(4).tolist() == expected


def test_manual_seed_repeats_the_drawn_gradients() -> None:
    messages = []
    for _ in range(2):
        ng.manual_seed(7)
        messages.append(outcome(gradgradcheck, lambda x: x * x * x.detach(), (doubles(1.0, 2.0),)))
    assert messages[0] == messages[1]
    assert "Jacobian mismatch" in messages[0]


@pytest.mark.parametrize("non_contiguous", [False, True])
@pytest.mark.parametrize("dtype", [ng.float32, ng.float64, ng.complex64, ng.complex128], ids=str)
def test_drawn_gradients_are_like_their_output(dtype: ng.dtype, non_contiguous: bool) -> None:
    drawn = random_gradient(ng.zeros(20, 3, dtype=dtype), non_contiguous)
    values = drawn.detach().numpy()
    assert drawn.shape == (20, 3)
    assert drawn.dtype is dtype
    assert drawn.is_leaf
    assert drawn.requires_grad
    assert values.flags.c_contiguous is not non_contiguous
    parts = [values.real, values.imag] if dtype.is_complex else [values]
    for part in parts:
        assert part.min() < -0.5
        assert part.max() > 0.5
        assert np.abs(part).max() <= 1


def test_gradgradcheck_accepts_gradients_that_are_not_contiguous() -> None:
    x = ng.from_numpy(MATRIX.copy()).requires_grad_()
    assert gradgradcheck(lambda x: x.sin(), (x,), gen_non_contig_grad_outputs=True)


def test_gradgradcheck_uses_the_gradients_it_is_given() -> None:
    x, drawn = doubles(2.0), doubles(5.0)
    with pytest.raises(GradcheckError) as caught:
        gradgradcheck(lambda x: x * x * x.detach(), (x,), (drawn,))
    assert "numerical:tensor([[40.0000]], dtype=torch.float64)" in str(caught.value)


def test_failures_give_false_when_no_exception_is_wanted() -> None:
    x = doubles(1.0, 2.0)
    assert gradcheck(lambda x: x * x.detach(), (x,), raise_exception=False) is False
    assert gradgradcheck(lambda x: x**3 * x.detach(), (x,), raise_exception=False) is False


@pytest.mark.parametrize(
    ("check", "flags", "message"),
    [
        (gradcheck, {"check_backward_ad": False}, "at least one of check_forward_ad or"),
        (
            gradcheck,
            {"check_batched_grad": True, "check_backward_ad": False, "check_forward_ad": True},
            "check_batched_grad=True requires check_backward_ad to be True",
        ),
        (
            gradcheck,
            {"check_batched_forward_grad": True},
            "check_batched_forward_grad=True requires check_forward_ad to be True",
        ),
        (gradgradcheck, {"check_rev_over_rev": False}, "at least one of check_fwd_over_rev or"),
        (
            gradgradcheck,
            {"check_rev_over_rev": False, "check_fwd_over_rev": True},
            "check_undefined_grad=True requires check_rev_over_rev to be True",
        ),
        (
            gradgradcheck,
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            "check_batched_grad=True requires check_rev_over_rev to be True",
        ),
    ],
)
def test_flags_must_agree(check: Callable[..., bool], flags: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(lambda x: x * x, (doubles(1.0),), raise_exception=False, **flags)


@right
def test_batched_tangents_pass_where_single_ones_do(function: Function, arrays: Arrays) -> None:
    options = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(function, inputs_of(ng, arrays), **options)


def test_batched_tangents_must_be_the_single_ones_stacked() -> None:
    calls = []

    def shifting(x: Any) -> Any:
        calls.append(x)
        return x + (x - x.detach()) * (1e-3 * len(calls))

    options = {"atol": 1.0, "check_backward_ad": False, "check_forward_ad": True}
    assert gradcheck(shifting, (doubles(1.0),), **options)
    with pytest.raises(GradcheckError, match=r"^For output 0 and input 0:\n\ngradcheck failed"):
        gradcheck(shifting, (doubles(1.0),), check_batched_forward_grad=True, **options)


def test_forward_mode_is_checked_where_nothing_is_recorded() -> None:
    @ng.no_grad()
    def function(x: Any) -> Any:
        return x.sin()

    x = doubles(1.0, 2.0)
    assert gradcheck(
        lambda x: x.sin() if x.requires_grad else function(x),
        (x,),
        check_forward_ad=True,
        check_backward_ad=False,
    )


@right
def test_batched_gradients_pass_where_single_ones_do(function: Function, arrays: Arrays) -> None:
    assert gradcheck(function, inputs_of(ng, arrays), check_batched_grad=True)


def test_batched_gradients_must_be_the_single_ones_stacked() -> None:
    x = doubles(1.0)
    options = {"nondet_tol": 1.0, "atol": 1.0}
    assert gradcheck(twice(drifting(1e-4)), (x,), **options)
    with pytest.raises(GradcheckError, match=r"^For output 0 and input 0:\n\ngradcheck or grad"):
        gradcheck(twice(drifting(1e-4)), (x,), check_batched_grad=True, **options)


def test_forward_over_reverse_is_checked() -> None:
    x = doubles(0.5, -2.0)
    assert gradgradcheck(lambda x: x**3, (x,), check_fwd_over_rev=True)


def test_right_derivatives_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(lambda x: 1 / x, (doubles(1.0, 2.0),), check_batched_grad=False)
