"""resize_, resize_as_, set_ and ``data =``: what they do and refuse, and that views are safe."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import numgrad as ng

# Statements on x (a leaf that requires grad), y (computed), z and a; what is to be seen.
LINES = r"""
y.detach().resize_(4) -> y
z.resize_(2, 2) -> (z, z._version, z.stride())
z.resize_((2,)) -> (z, z._version)
z.resize_([2, 1]) -> z
z.resize_(torch.Size([2, 1])) -> z
z.resize_(()) -> z
z.resize_(4) -> (z, z._version)
z.resize_(6) -> (z[:4], z.shape, z._version)
z.resize_(0); z.resize_(4) -> (z, z._version)
z.resize_(2); z.resize_(2, 2) -> z
v = z[1:3]; v.resize_(3) -> (v, v._is_view(), v.storage_offset())
v = z[1:3]; v.resize_(2, 1); v.zero_() -> z
v = z[::2]; v.resize_(4) -> (v, v.stride())
v = z[::2]; v.resize_(2) -> (v, v.stride())
v = z.view(2, 2).t(); v.resize_(4) -> v
z.resize_as_(torch.ones(2, 2).t()) -> (z, z.stride())
z.resize_as_(x) -> (z, z.requires_grad)
s = (z * a).sum(); z.resize_(4); s.backward() -> a.grad
z.set_(torch.zeros(3)) -> (z, z._version)
z.set_() -> (z, z._version)
z.set_(torch.arange(6.), 1, (2, 2), (2, 1)) -> (z, z.storage_offset())
z.set_(torch.arange(6.), 1, (2, 2)) -> z
z.set_(torch.arange(6.)[2:], 1, (2,)) -> (z, z.storage_offset())
z.set_(source=torch.arange(6.)[2:]) -> (z, z.storage_offset())
w = torch.ones(3); z.set_(w); w[0] = 5 -> (z, z._version, w._version, z._is_view())
z.set_(torch.ones(2, 2).t()) -> z.stride()
z.set_(torch.arange(6.), 6, (0,), (1,)) -> (z.shape, z.storage_offset())
z.set_(torch.arange(6.), 7, (2, 0), (1, 1)) -> (z.shape, z.storage_offset())
v = z[0:2]; v.set_(torch.zeros(3)) -> (v, v._is_view(), z)
v = z[0:2]; z.set_(torch.zeros(3)) -> (v, z)
with torch.no_grad(): x.set_(torch.ones(2)) -> (x, x.is_leaf)
x.data = torch.ones(3, 3) -> (x, x.is_leaf)
y.data = torch.zeros(2, 2) -> (y, y.is_leaf)
"""
ERRORS = r"""
x.resize_(3)
x.resize_(2, 2)
y.resize_(3)
x[0].resize_(2)
with torch.no_grad(): x.resize_(3)
x.resize_as_(z)
z.resize_as_(3)
z.resize_()
z.resize_(-1)
z.resize_(2.5)
z.resize_('a')
z.resize_(2, 2.5)
i.resize_(2)
x.set_(torch.ones(2))
x[0].set_(torch.ones(2))
z.set_(torch.arange(6.), -1, (4,))
z.set_(torch.arange(6.), 4, (4,), (1,))
z.set_(torch.ones(2, dtype=torch.float64))
z.set_(torch.ones(2, dtype=torch.int64))
z.set_(torch.arange(6.), 1)
z.set_([1.])
x.data = [1, 2]
x.data = torch.ones(2, 2, dtype=torch.int64)
del x.data
"""


@pytest.fixture(params=["numgrad", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request: pytest.FixtureRequest) -> Any:
    """Return numgrad, then PyTorch: what a test says of one has to hold for the other."""
    return ng if request.param == "numgrad" else request.getfixturevalue("torch")


def run(library: Any, statements: str, expression: str) -> str:
    """Return what is to be seen after some statements, or the error."""
    names: dict[str, Any] = {"torch": library, "x": library.ones(2, 2, requires_grad=True)}
    names |= {"y": names["x"] * 1, "z": library.arange(4.0)}
    names["a"] = library.ones(4, requires_grad=True)
    with library.inference_mode():
        names["i"] = library.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(statements, names)
            return str(eval(expression, names))
        except (RuntimeError, TypeError) as error:
            return f"{type(error).__name__}: {error}".split("\n")[0]


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_tensors_change_as_in_pytorch(torch: Any, line: str) -> None:
    statements, _, expression = line.partition(" -> ")
    found = run(ng, statements, expression)
    assert found == run(torch, statements, expression)
    assert "Error" not in found


@pytest.mark.parametrize("statements", ERRORS.strip().splitlines())
def test_what_is_refused_is_refused_in_pytorchs_words(torch: Any, statements: str) -> None:
    found = run(ng, statements, "0")
    assert found == run(torch, statements, "0")
    assert "Error" in found


@pytest.mark.parametrize("line", ["y.set_(torch.ones(2))", "z.set_(x)"])
def test_set_has_no_derivative(line: str) -> None:
    """PyTorch raises only in the backward pass."""
    assert run(ng, line, "0") == "RuntimeError: derivative for aten::set_ is not implemented"


@pytest.mark.parametrize("change", ["z.resize_(2)", "z.set_(torch.zeros(4))"])
def test_what_was_saved_before_is_noticed(lib: Any, change: str) -> None:
    found = run(lib, f"s = (z * a).sum(); {change}; s.backward()", "0")
    assert found.startswith("RuntimeError: one of the variables needed for gradient computation")


@pytest.mark.parametrize("change", ["z.data = torch.ones(4)", "z.resize_(9)", "v.data = z.clone()"])
def test_a_view_that_lost_its_base_is_not_written_to_through_it(change: str) -> None:
    """In PyTorch the history goes by where the view was."""
    found = run(ng, f"v = z[1:3]; {change}; v.mul_(torch.ones(1, requires_grad=True))", "0")
    assert found.startswith("RuntimeError: a view does not lie in the memory of its base any more")


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "statements",
    [
        "s = x.sum(); x.data = torch.ones(9)",
        "s = x.sum(); x.data = torch.ones(1)",
        "x.sum().backward(); x.data = torch.ones(9); s = x.sum()",
        "x.sum().backward(); x.grad.data = torch.ones(1); s = x.sum()",
        "s = x.t().sum(); x.data = torch.ones(2, 3).t()",
    ],
)
def test_gradients_that_do_not_fit_any_more_are_refused(
    statements: str, create_graph: bool
) -> None:
    found = run(ng, f"{statements}; s.backward(create_graph={create_graph})", "0")
    assert found.startswith("RuntimeError: a gradient of size [")


def test_a_leaf_that_was_given_other_data_gets_gradients_of_its_size() -> None:
    assert run(ng, "x.data = torch.ones(3); (x * 2).sum().backward()", "x.grad.tolist()") == str(
        [2.0] * 3
    )


@pytest.mark.parametrize("value", ["torch.ones(9)", "torch.ones(2, 2, dtype=torch.float64)"])
def test_data_of_a_computed_tensor_keeps_its_shape_and_dtype(value: str) -> None:
    """PyTorch lets that pass, and the backward pass fails."""
    found = run(ng, f"y.data = {value}", "0")
    assert "can't be assigned to a computed tensor of size [2, 2] and torch.float32" in found


def test_a_traced_function_does_not_resize() -> None:
    for function in (lambda x: x.resize_(2), lambda x: x.set_(ng.ones(2))):
        with pytest.raises(ng.TraceError):
            ng.jit(function)(ng.ones(4))


@pytest.mark.parametrize("part", [slice(None), slice(1, 4), slice(2, None), slice(0, 4, 2)])
@pytest.mark.parametrize(
    "before", ["", "x.resize_(8)", "x.resize_(2)", "x.set_(torch.arange(9.0)[3:7])", "x.resize_(0)"]
)
def test_nothing_is_left_of_the_memory_that_a_tensor_had_before_its_data(
    lib: Any, before: str, part: slice
) -> None:
    x = lib.arange(6.0) + 100
    exec(before, {"torch": lib, "x": x})
    values = [0.0, 10.0, 20.0, 30.0, 40.0]
    whole = lib.tensor(values)
    x.data = whole[part]
    start = part.start or 0
    assert x.tolist() == values[part]
    assert (x.storage_offset(), x.stride()) == (start, (part.step or 1,))
    assert x.untyped_storage().nbytes() == 4 * len(values)
    assert x.as_strided((5,), (1,), 0).tolist() == values
    x.resize_(1)
    assert x.resize_(3).tolist() == values[start : start + 3]
    x.resize_(0)
    assert x.resize_(len(values) - start).tolist() == values[start:]


@pytest.mark.parametrize("write", ["v.mul_(3.0)", "x.mul_(3.0)"])
@pytest.mark.parametrize("view", ["x[:3]", "x.view(2, 3)", "x[1:][::2]"])
@pytest.mark.parametrize("given", ["x.data = y", "v.data = y[:3]"])
def test_views_of_what_got_other_data_keep_theirs_or_are_refused(
    torch: Any, write: str, view: str, given: str
) -> None:
    numbers = []
    for library in (torch, ng):  # without a history: each has its own numbers
        names = {"x": library.arange(6.0), "y": 7 * library.ones(6)}
        names["v"] = eval(view, names)
        if given.startswith("x") or view == "x[:3]":
            exec(f"{given}\n{write}", names)
        numbers.append((names["x"].tolist(), names["v"].tolist()))
    assert numbers[1] == numbers[0]
    names = {"a": ng.arange(6.0).requires_grad_(), "y": ng.ones(6)}
    names["x"] = names["a"] * 2
    names["v"] = eval(view, names)
    if given.startswith("x"):
        exec(given, names)
        with pytest.raises(RuntimeError, match=r"Make the view anew\.$"):
            exec(f"{write}\n(x.sum() + v.sum()).backward()", names)
