"""The text of tensors is PyTorch's, character for character.

`EXAMPLES` holds literal texts, so that printing is tested where PyTorch is missing; where it is
there, the same literals are checked against it, and so are arrays and options drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import cleandoc
from math import inf, nan
from types import ModuleType
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

from numgrad.base import dtypes
from numgrad.io import printing

DTYPE_NAMES = tuple(dtypes.DTYPES)
DIFFERENTIABLE = ("float32", "float64", "complex64", "complex128")
GRADIENT_STATES = ("constant", "leaf", "computed")


class GradFn:
    """Stands in for a node of the graph, which prints under the name of its class."""


GradFn.__name__ = "MulBackward0"


class Tensor:
    """Stands in for a tensor: what printing reads of one."""

    def __init__(self, array: np.ndarray, state: str = "constant") -> None:
        self._array = array
        self.dtype = dtypes.of_numpy(array.dtype)
        self.requires_grad = state != "constant"
        self.grad_fn = GradFn() if state == "computed" else None

    def __repr__(self) -> str:
        return printing.tensor_repr(self)

    def __format__(self, spec: str) -> str:
        return printing.tensor_format(self, spec)


def torch_tensor(torch: ModuleType, array: np.ndarray, state: str = "constant") -> Any:
    """The PyTorch tensor that should print as ``Tensor(array, state)`` does."""
    tensor = torch.from_numpy(array.copy())
    if state != "constant":
        tensor.requires_grad_()
    if state == "computed":
        tensor = tensor * 1
        # A complex product with 1 loses the sign of zero and turns inf into nan; put them back.
        tensor.detach().copy_(torch.from_numpy(array.copy()))
    return tensor


@contextmanager
def torch_printoptions(torch: ModuleType, options: dict[str, Any]) -> Iterator[None]:
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**options)
    try:
        yield
    finally:
        torch.set_printoptions(profile="default")


@contextmanager
def default_dtype(module: Any, name: str) -> Iterator[None]:
    """Change the default floating point type of ``base.dtypes`` or of PyTorch for a while."""
    before = module.get_default_dtype()
    module.set_default_dtype(getattr(module, name))
    try:
        yield
    finally:
        module.set_default_dtype(before)


@dataclass(frozen=True)
class Example:
    name: str
    array: np.ndarray
    text: str
    state: str = "constant"
    options: dict[str, Any] = field(default_factory=dict)
    default: str = "float32"

    def __str__(self) -> str:
        return self.name


def ex(name: str, elements: Any, text: str, dtype: str = "float32", **rest: Any) -> Example:
    text = cleandoc(text) if text.startswith("\n") else text
    return Example(name, np.array(elements, dtype), text, **rest)


# fmt: off
EXAMPLES = [
    # Which of the three formats.
    ex("whole numbers", [1, -2, 300], "tensor([  1.,  -2., 300.])"),
    ex("fixed point", [1, -2.5], "tensor([ 1.0000, -2.5000])"),
    ex("ties are rounded to even", [0.25, 0.75, 1.25], "tensor([0.2, 0.8, 1.2])",
       options={"precision": 1}),
    ex("ratio of 1000", [1.5, 1500], "tensor([   1.5000, 1500.0000])"),
    ex("ratio above 1000", [1.5, 1501], "tensor([1.5000e+00, 1.5010e+03])"),
    ex("whole numbers, ratio of 1000", [1, 1000], "tensor([   1., 1000.])"),
    ex("whole numbers, ratio above 1000", [1, 1001], "tensor([1.0000e+00, 1.0010e+03])"),
    ex("ratio of float32 taken in float64: 0.1 is above a tenth", [0.1, 100],
       "tensor([  0.1000, 100.0000])"),
    ex("ratio of the next float32", [0.1, 100.00001], "tensor([1.0000e-01, 1.0000e+02])"),
    ex("1e8", [1e8], "tensor([100000000.])"),
    ex("next float32 after 1e8", [100000008], "tensor([1.0000e+08])"),
    ex("float32 1e-4 is below 1e-4", [1e-4], "tensor([1.0000e-04])"),
    ex("float64 1e-4", [1e-4], "tensor([0.0001], dtype=torch.float64)", "float64"),
    ex("zeros do not count as small", [0, 1, 0.5], "tensor([0.0000, 1.0000, 0.5000])"),
    ex("extremes of float64", [5e-324, 1.7e308],
       "tensor([4.9407e-324, 1.7000e+308], dtype=torch.float64)", "float64"),
    ex("whole float64 above 2**53", [2.0**53, 2.0**53 + 2],
       "tensor([9.0072e+15, 9.0072e+15], dtype=torch.float64)", "float64"),
    # What is neither finite nor different from zero.
    ex("negative zero", [-0.0, 0.0], "tensor([-0., 0.])"),
    ex("negative zero does not widen its column", [1, -0.0], "tensor([1., -0.])"),
    ex("nothing decides", [0, nan, -0.0, inf], "tensor([0., nan, -0., inf])"),
    ex("nan and inf stick out of whole numbers", [nan, 1, -inf], "tensor([nan, 1., -inf])"),
    ex("nan and inf fit into fixed point", [nan, 1.5, -inf], "tensor([   nan, 1.5000,   -inf])"),
    ex("nan fits into scientific notation", [1.5, 1e5, nan],
       "tensor([1.5000e+00, 1.0000e+05,        nan])"),
    ex("lines are broken by the nominal width", [-inf, 1, -inf, 1], """
       tensor([-inf, 1., -inf,
               1.])""", options={"linewidth": 20}),
    # Other types.
    ex("bool", [[True, False]], "tensor([[ True, False]])", "bool"),
    ex("int64", [1, -2, 300], "tensor([  1,  -2, 300])", "int64"),
    ex("int64 above 2**53 is exact", [2**53 + 1, -1],
       "tensor([9007199254740993,               -1])", "int64"),
    ex("uint64 above 2**63", [2**64 - 1, 1],
       "tensor([18446744073709551615,                    1], dtype=torch.uint64)", "uint64"),
    ex("int32", [1, 2], "tensor([1, 2], dtype=torch.int32)", "int32"),
    ex("uint8", [255], "tensor([255], dtype=torch.uint8)", "uint8"),
    ex("int8", [-128, 7], "tensor([-128,    7], dtype=torch.int8)", "int8"),
    ex("whole complex", [1 + 2j, 3 - 4j], "tensor([1.+2.j, 3.-4.j])", "complex64"),
    ex("real and imaginary parts have a format each", [1 + 2j, 3.5 - 4j],
       "tensor([1.0000+2.j, 3.5000-4.j])", "complex64"),
    ex("complex, one part scientific", [1e-10 + 2.5j, 3 - 4j],
       "tensor([1.0000e-10+2.5000j, 3.0000e+00-4.0000j])", "complex64"),
    ex("complex, real parts aligned and imaginary ones not", [10 + 2j, -3 + 400j],
       "tensor([10.+2.j, -3.+400.j])", "complex64"),
    ex("complex nan and inf", [complex(nan, -inf), 1 + 2j],
       "tensor([nan-infj, 1.+2.j])", "complex64"),
    ex("complex128", [0.5j], "tensor([0.+0.5000j], dtype=torch.complex128)", "complex128"),
    # Shapes.
    ex("0-d whole", 1, "tensor(1.)"),
    ex("0-d fixed point", 1.5, "tensor(1.5000)"),
    ex("0-d scientific", 1e-5, "tensor(1.0000e-05)"),
    ex("0-d nan", nan, "tensor(nan)"),
    ex("0-d int64", -3, "tensor(-3)", "int64"),
    ex("0-d bool", True, "tensor(True)", "bool"),
    ex("0-d complex", 1 + 2j, "tensor(1.+2.j)", "complex64"),
    ex("two dimensions", [[1, -20], [3, 4]], """
       tensor([[  1., -20.],
               [  3.,   4.]])"""),
    ex("three dimensions have an empty line between", [[[1], [2]], [[3], [4]]], """
       tensor([[[1.],
                [2.]],

               [[3.],
                [4.]]])"""),
    ex("four dimensions have two", [[[[1]]], [[[2]]]], """
       tensor([[[[1.]]],


               [[[2.]]]])"""),
    ex("lines are broken before 80 columns", [2.5] * 20, """
       tensor([2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000,
               2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000,
               2.5000, 2.5000])"""),
    ex("complex lines are broken", [1.25 + 2.5j] * 6, """
       tensor([1.2500+2.5000j, 1.2500+2.5000j, 1.2500+2.5000j, 1.2500+2.5000j,
               1.2500+2.5000j, 1.2500+2.5000j])""", "complex64"),
    ex("a line holds one element at least", [1.5, 2.5], """
       tensor([1.5000,
               2.5000])""", options={"linewidth": 0}),
    # No elements.
    ex("empty", [], "tensor([])"),
    ex("empty with dimensions", np.zeros((2, 0)), "tensor([], size=(2, 0))"),
    ex("empty int64 tells its type", [], "tensor([], dtype=torch.int64)", "int64"),
    ex("empty bool tells its type", np.zeros((0, 3)),
       "tensor([], size=(0, 3), dtype=torch.bool)", "bool"),
    ex("empty complex64 tells its type", [], "tensor([], dtype=torch.complex64)", "complex64"),
    ex("empty leaf", np.zeros((2, 0)),
       "tensor([], size=(2, 0), dtype=torch.float64, requires_grad=True)", "float64", state="leaf"),
    # Suffixes.
    ex("leaf", [1, 2.5], "tensor([1.0000, 2.5000], requires_grad=True)", state="leaf"),
    ex("non-leaf", [6], "tensor([6.], grad_fn=<MulBackward0>)", state="computed"),
    ex("0-d non-leaf", 1.5, "tensor(1.5000, grad_fn=<MulBackward0>)", state="computed"),
    ex("float64 non-leaf", [6],
       "tensor([6.], dtype=torch.float64, grad_fn=<MulBackward0>)", "float64", state="computed"),
    ex("suffixes that fit in the last line", [2.5] * 20, """
       tensor([2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000,
               2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000, 2.5000,
               2.5000, 2.5000], dtype=torch.float64, grad_fn=<MulBackward0>)""",
       "float64", state="computed"),
    ex("a suffix in a line of its own", [[0, 1, 2, 3]], """
       tensor([[0., 1., 2., 3.]],
              requires_grad=True)""", state="leaf", options={"linewidth": 30}),
    ex("suffixes after elements leave two columns", [123456], """
       tensor([123456.],
              requires_grad=True)""", state="leaf", options={"linewidth": 37}),
    ex("and no more than two", [123456], "tensor([123456.], requires_grad=True)",
       state="leaf", options={"linewidth": 38}),
    ex("suffixes after suffixes leave none", [1.5, 2.5, 3.5], """
       tensor([1.5000, 2.5000, 3.5000],
              dtype=torch.float64, grad_fn=<MulBackward0>)""",
       "float64", state="computed", options={"linewidth": 50}),
    ex("and have a line each where they must", [1.5, 2.5, 3.5], """
       tensor([1.5000, 2.5000, 3.5000],
              dtype=torch.float64,
              grad_fn=<MulBackward0>)""",
       "float64", state="computed", options={"linewidth": 49}),
    # The default type.
    ex("float64 by default", [1], "tensor([1.])", "float64", default="float64"),
    ex("complex128 by default", [1], "tensor([1.+0.j])", "complex128", default="float64"),
    ex("float32 not by default", [1],
       "tensor([1.], dtype=torch.float32)", "float32", default="float64"),
    ex("complex64 not by default", [1],
       "tensor([1.+0.j], dtype=torch.complex64)", "complex64", default="float64"),
    ex("empty float32 not by default", [],
       "tensor([], dtype=torch.float32)", "float32", default="float64"),
    # Summaries.
    ex("1000 elements are not too many", np.zeros((100, 10)),
       "tensor([" + ",\n        ".join(["[" + ", ".join(["0."] * 10) + "]"] * 100) + "])"),
    ex("1001 are", np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])", "int64"),
    ex("what is not shown decides nothing", np.r_[np.ones(600), 1e9, np.ones(600)],
       "tensor([1., 1., 1.,  ..., 1., 1., 1.])"),
    ex("both dimensions are summarised", np.arange(2000.0).reshape(40, 50), """
       tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 4.7000e+01, 4.8000e+01,
                4.9000e+01],
               [5.0000e+01, 5.1000e+01, 5.2000e+01,  ..., 9.7000e+01, 9.8000e+01,
                9.9000e+01],
               [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.4700e+02, 1.4800e+02,
                1.4900e+02],
               ...,
               [1.8500e+03, 1.8510e+03, 1.8520e+03,  ..., 1.8970e+03, 1.8980e+03,
                1.8990e+03],
               [1.9000e+03, 1.9010e+03, 1.9020e+03,  ..., 1.9470e+03, 1.9480e+03,
                1.9490e+03],
               [1.9500e+03, 1.9510e+03, 1.9520e+03,  ..., 1.9970e+03, 1.9980e+03,
                1.9990e+03]])"""),
    ex("dimensions of up to twice the edge are shown in full", np.arange(6).reshape(2, 3), """
       tensor([[0,  ..., 2],
               [3,  ..., 5]])""", "int64", options={"threshold": 5, "edgeitems": 1}),
    ex("outer dimensions are summarised", np.arange(3).reshape(3, 1, 1), """
       tensor([[[0]],

               ...,

               [[2]]])""", "int64", options={"threshold": 2, "edgeitems": 1}),
    ex("complex summary", [1j, 2.5, 3, 4, 5], "tensor([0.+1.j,  ..., 5.+0.j])", "complex64",
       options={"threshold": 4, "edgeitems": 1}),
    ex("no edges", np.zeros((3, 4)), "tensor([...], size=(3, 4))",
       options={"threshold": 0, "edgeitems": 0}),
    ex("no edges, all shown", [1, 2], "tensor([1., 2.], size=(2,))", options={"edgeitems": 0}),
    ex("no edges, 0-d", 1, "tensor(1., size=(), dtype=torch.float64)", "float64",
       options={"threshold": 0, "edgeitems": 0}),
    # Other options.
    ex("precision 2", [1.234, 5], "tensor([1.23, 5.00])", options={"precision": 2}),
    ex("precision 0 of fixed point has no point", [2.5, 0.5],
       "tensor([2, 0])", options={"precision": 0}),
    ex("precision 10 of float32", [1.1], "tensor([1.1000000238])", options={"precision": 10}),
    ex("sci_mode on", [1, 2.5, -inf], "tensor([1.0000e+00, 2.5000e+00,       -inf])",
       options={"sci_mode": True}),
    ex("sci_mode on has nothing to do with zeros", [0], "tensor([0.])", options={"sci_mode": True}),
    ex("sci_mode on has nothing to do with integers", [1], "tensor([1])", "int64",
       options={"sci_mode": True}),
    ex("sci_mode off", [1e-9, 1], "tensor([0.0000, 1.0000])", options={"sci_mode": False}),
    ex("sci_mode off, whole numbers", [1, 1e10, -inf],
       "tensor([          1., 10000000000.,         -inf])", options={"sci_mode": False}),
    ex("complex sci_mode", [1 + 20j], "tensor([1.0e+00+2.0e+01j])", "complex64",
       options={"sci_mode": True, "precision": 1}),
    ex("profile short", np.arange(1001.0) / 1000,
       "tensor([0.00, 0.00,  ..., 1.00, 1.00])", options={"profile": "short"}),
    ex("profile full", np.ones((150, 10)),
       "tensor([" + ",\n        ".join(["[" + ", ".join(["1."] * 10) + "]"] * 150) + "])",
       options={"profile": "full"}),
]
# fmt: on


@pytest.mark.parametrize("case", EXAMPLES, ids=str)
def test_text_is_as_written(case: Example) -> None:
    with printing.printoptions(**case.options), default_dtype(dtypes, case.default):
        assert repr(Tensor(case.array, case.state)) == case.text


@pytest.mark.parametrize("case", EXAMPLES, ids=str)
def test_what_is_written_is_pytorchs(torch: ModuleType, case: Example) -> None:
    with torch_printoptions(torch, case.options), default_dtype(torch, case.default):
        assert repr(torch_tensor(torch, case.array, case.state)) == case.text


KINKS = [0, -0.0, nan, inf, -inf, 1, -1, 1.5, 0.1, 1e-4, 1e-5, 5e-5, 100, 1000, 1001, 99999.5]
KINKS += [1e8, 123456789, 2.0**24, 2.0**53, 2.0**63, 1e38, 1e-38]


def real_elements(dtype: np.dtype) -> st.SearchStrategy[float]:
    """Numbers that make every format likely, with the neighbourhood of each of its bounds."""
    with np.errstate(over="ignore"):  # what float16 can't hold is infinite
        kinks = [float(dtype.type(kink)) for kink in KINKS]
        neighbours = [
            float(np.nextafter(dtype.type(kink), dtype.type(way)))
            for kink in (1e-4, 1e8)
            for way in (0, inf)
        ]
    return st.one_of(
        st.sampled_from(kinks + neighbours),
        st.integers(-2000, 2000).map(float),
        st.floats(-1000, 1000, width=dtype.itemsize * 8),
        st.floats(width=dtype.itemsize * 8),
    )


@st.composite
def arrays(draw: st.DrawFn, names: tuple[str, ...] = DTYPE_NAMES, **shape: int) -> np.ndarray:
    """An array of any type, of 0 to 4 dimensions, whose elements come from one or two kinds."""
    name = draw(st.sampled_from(names))
    dtype = dtypes.DTYPES[name]
    shapes = hnp.array_shapes(
        **({"min_dims": 0, "max_dims": 4, "min_side": 0, "max_side": 9} | shape)
    )
    if dtype.is_complex:
        real = dtype.to_real().numpy
        parts = hnp.arrays(real, (*draw(shapes), 2), elements=real_elements(real))
        return draw(parts).view(dtype.numpy)[..., 0]
    elements = real_elements(dtype.numpy) if dtype.is_floating_point else None
    return draw(hnp.arrays(dtype.numpy, shapes, elements=elements))


print_options = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 12),
        "threshold": st.sampled_from([0, 1, 2, 10, 50, inf]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(0, 120),
        "profile": st.sampled_from(["default", "short", "full", "no such profile"]),
        "sci_mode": st.sampled_from([None, True, False]),
    },
)


@given(array=arrays(), options=print_options)
@example(array=np.arange(12.0).reshape(3, 4), options={"threshold": 0, "edgeitems": 1})
def test_any_array_prints_as_in_pytorch(
    torch: ModuleType, array: np.ndarray, options: dict[str, Any]
) -> None:
    with printing.printoptions(**options), torch_printoptions(torch, options):
        assert repr(Tensor(array)) == repr(torch_tensor(torch, array))


@given(
    array=arrays(DIFFERENTIABLE, max_dims=2, max_side=4),
    state=st.sampled_from(GRADIENT_STATES),
    linewidth=st.integers(0, 120),
    default=st.sampled_from(["float32", "float64"]),
)
def test_any_suffixes_print_as_in_pytorch(
    torch: ModuleType, array: np.ndarray, state: str, linewidth: int, default: str
) -> None:
    with (
        printing.printoptions(linewidth=linewidth),
        torch_printoptions(torch, {"linewidth": linewidth}),
        default_dtype(dtypes, default),
        default_dtype(torch, default),
    ):
        assert repr(Tensor(array, state)) == repr(torch_tensor(torch, array, state))


@given(array=arrays(min_dims=1), data=st.data())
def test_strides_do_not_show(array: np.ndarray, data: st.DataObject) -> None:
    view = array[data.draw(hnp.basic_indices(array.shape))]
    view = np.asarray(view).T
    threshold = data.draw(st.sampled_from([0, 1000]))
    with printing.printoptions(threshold=threshold, edgeitems=2):
        assert printing.format_array(view) == printing.format_array(view.copy())


def test_summary_reads_only_what_it_shows() -> None:
    # A terabyte of elements, if it were read or copied.
    array = np.broadcast_to(np.float32(2.5), (1000, 1000, 500, 500))
    text = repr(Tensor(array))
    assert text.count("2.5000") == 6**4
    assert text.startswith("tensor([[[[2.5000, 2.5000, 2.5000,  ..., 2.5000, 2.5000, 2.5000],\n")


def test_summary_of_many_dimensions_is_pytorchs(torch: ModuleType) -> None:
    array = np.arange(2000.0).reshape((1,) * 12 + (2000,) + (1,) * 12)
    assert repr(Tensor(array)) == repr(torch_tensor(torch, array))


def test_signalling_nan_prints_without_a_warning() -> None:
    array = np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)
    assert printing.format_array(array) == "[nan, 1.]"  # warnings are errors in this test run


def test_view_with_a_forbidden_history_is_invalid(torch: ModuleType) -> None:
    class Forbidden(Tensor):
        @property
        def grad_fn(self) -> GradFn:
            raise RuntimeError("its base was written to")

        @grad_fn.setter
        def grad_fn(self, node: GradFn | None) -> None:
            pass

    factor = torch.ones(1, requires_grad=True)
    base = torch.ones(1)
    with torch.no_grad():
        view = base.view(1)
    base.mul_(factor)
    assert repr(view) == repr(Forbidden(np.ones(1, np.float32), "leaf"))
    assert repr(view) == "tensor([1.], grad_fn=<Invalid>)"


# Options.


def test_options_are_pytorchs_at_first() -> None:
    assert printing.get_printoptions() == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }


@given(calls=st.lists(print_options, max_size=4))
def test_any_calls_set_the_options_that_they_set_in_pytorch(
    torch: ModuleType, calls: list[dict[str, Any]]
) -> None:
    with printing.printoptions(), torch_printoptions(torch, {}):
        for options in calls:
            printing.set_printoptions(**options)
            torch.set_printoptions(**options)
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()


def test_options_may_be_given_in_pytorchs_order() -> None:
    with printing.printoptions():
        printing.set_printoptions(1, 2, 5, 40, "short", True)
        assert list(printing.get_printoptions().values()) == [1, 2, 5, 40, True]


def test_a_call_without_sci_mode_makes_it_automatic_again() -> None:
    with printing.printoptions(sci_mode=True):
        printing.set_printoptions(precision=3)
        assert printing.get_printoptions()["sci_mode"] is None


def test_context_restores_every_option_after_an_error() -> None:
    with printing.printoptions(precision=7, sci_mode=True):
        before = printing.get_printoptions()
        with pytest.raises(ZeroDivisionError), printing.printoptions(profile="full", precision=1):
            _ = 1 / 0
        assert printing.get_printoptions() == before


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="digits"), printing.printoptions(digits=3):
        raise AssertionError("the block must not run")


# format(tensor, spec).

SPECS = ["", ".3f", ">20", "5d", "08.2e", "no such format"]


def outcome(function: Callable[[], str]) -> str | tuple[type, str]:
    """What the function returns, or the type and words of what it raises."""
    try:
        return function()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "array",
    [
        np.array(2.5, np.float32),
        np.array(0.1, np.float32),
        np.array(3),
        np.array(True),
        np.array(1 + 2j),
        np.ones(2, np.float32),
        np.ones(1),
        np.ones((0, 2)),
    ],
    ids=repr,
)
def test_format_is_pytorchs(torch: ModuleType, array: np.ndarray, spec: str) -> None:
    ours = outcome(lambda: format(Tensor(array), spec))
    assert ours == outcome(lambda: format(torch_tensor(torch, array), spec))


def test_format_of_a_0d_tensor_is_that_of_its_element() -> None:
    assert f"{Tensor(np.array(2.5, np.float32), 'leaf'):.3f}" == "2.500"
    assert f"{Tensor(np.array(0.1, np.float32))}" == "0.10000000149011612"
    assert f"{Tensor(np.array(7)):4d}" == "   7"


def test_format_with_dimensions_takes_no_spec() -> None:
    assert f"{Tensor(np.ones(1, np.float32), 'leaf')}" == "tensor([1.], requires_grad=True)"
    with pytest.raises(TypeError, match=r"^unsupported format string passed to Tensor.__format__$"):
        format(Tensor(np.ones(1, np.float32)), ".3f")
