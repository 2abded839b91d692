"""The ``*_copy`` form of every view: the view's numbers and derivative, in memory of its own."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.gradcheck.gradcheck import gradcheck, gradgradcheck
from numgrad.ops.movement.view_copies import COPIES

# For each view its arguments behind a tensor of shape (3, 3, 2); a test wants all of them here.
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "alias": [()],
    "as_strided": [((2, 2), (1, 3)), ((4,), (2,), 3)],
    "detach": [()],
    "diagonal": [(), (1, 0, 2), (-1,)],
    "expand": [((2, 3, 3, 2),), ((3, -1, 2),)],
    "narrow": [(0, 1, 2), (-1, 0, 1)],
    "permute": [((2, 0, 1),), ((-1, 1, 0),)],
    "select": [(0, 1), (-1, -1)],
    "slice": [(), (0, 1), (1, 0, 3, 2), (-1, -1)],
    "split": [(2,), (1, 2)],
    "split_with_sizes": [((1, 2),), ((2, 1), 1)],
    "squeeze": [(), (0,), ((0, 1),)],
    "t": [()],
    "transpose": [(0, 2), (-1, -2)],
    "unbind": [(), (2,)],
    "unfold": [(0, 2, 1), (1, 3, 2)],
    "unsqueeze": [(0,), (-1,)],
    "view": [((9, 2),), ((-1,),)],
    "view_as_complex": [()],
    "view_as_real": [()],
}
IN_PLACE = {"as_strided_", "squeeze_", "swapaxes_", "swapdims_", "transpose_", "unsqueeze_"}
CALLS = [(name, arguments) for name, each in ARGUMENTS.items() for arguments in each]
IDS = [f"{name}{arguments}" for name, arguments in CALLS]


def argument(library: Any, name: str, kind: str = "float64") -> Any:
    x = library.from_numpy(np.linspace(-1.0, 2.0, 18).reshape(3, 3, 2)).to(getattr(library, kind))
    if name == "t":
        x = x[0]
    elif name == "squeeze":
        x = x[:1]
    elif name == "view_as_real":
        x = x * 1j + 2
    return x.clone().requires_grad_()


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def view(x: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    if name == "alias":
        return x[...]
    if name == "slice":
        dim, start, stop, step = (*arguments, *(0, None, None, 1)[len(arguments) :])
        key = [slice(None)] * x.dim()
        key[dim] = slice(start, stop, step)
        return x[tuple(key)]
    return getattr(x, name)(*arguments) if hasattr(x, name) else getattr(ng, name)(x, *arguments)


def test_every_copy_is_tried() -> None:
    assert {f"{name}_copy" for name in ARGUMENTS} == set(COPIES)


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=IDS)
def test_a_copy_holds_what_the_view_shows(name: str, arguments: tuple[Any, ...]) -> None:
    x = argument(ng, name)
    copies, views = parts(COPIES[f"{name}_copy"](x, *arguments)), parts(view(x, name, arguments))
    assert len(copies) == len(views)
    for copy, shown in zip(copies, views, strict=True):
        assert (copy.tolist(), copy.shape, copy.dtype) == (shown.tolist(), shown.shape, shown.dtype)
        assert copy.is_contiguous()
        assert not copy._is_view()
        assert copy.untyped_storage() != x.untyped_storage()
        assert copy.requires_grad == shown.requires_grad
    with ng.no_grad():
        parts(COPIES[f"{name}_copy"](x, *arguments))[0].zero_()
    assert x.tolist() == argument(ng, name).tolist()


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.18)
@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=IDS)
def test_derivatives_of_copies(name: str, arguments: tuple[Any, ...]) -> None:
    function = COPIES[f"{name}_copy"]
    x = argument(ng, name)
    if name != "detach":
        assert gradcheck(lambda x: function(x, *arguments), (x,), check_forward_ad=True)
        assert gradgradcheck(lambda x: function(x, *arguments), (x,))
    if not x.is_complex() and name != "view_as_complex":  # jit compiles for these as for others
        jitted = parts(ng.jit(lambda x: function(x, *arguments))(x.detach()))
        eager = parts(function(x.detach(), *arguments))
        assert [each.tolist() for each in jitted] == [each.tolist() for each in eager]


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=IDS)
def test_copies_are_pytorchs(torch: ModuleType, name: str, arguments: tuple[Any, ...]) -> None:
    if name == "detach":
        return  # PyTorch's requires grad, and raises in backward
    found = []
    for library in (ng, torch):
        x = argument(library, name)
        if name == "view_as_complex":  # PyTorch does not differentiate its copy
            x = x.detach()
        copies = parts(getattr(library, f"{name}_copy")(x, *arguments))
        found.append(
            [
                (copy.tolist(), copy.stride(), copy.grad_fn and copy.grad_fn.name(), copy.output_nr)
                for copy in copies
            ]
        )
    assert found[0] == found[1]


def test_out_takes_the_result() -> None:
    x = ng.arange(6.0).reshape(2, 3)
    out = ng.empty(0)
    assert ng.t_copy(x, out=out) is out
    assert out.tolist() == x.t().tolist()
    rows = [ng.empty(3), ng.empty(3)]
    ng.unbind_copy(x, out=rows)
    assert [row.tolist() for row in rows] == x.tolist()


@pytest.mark.parametrize("name", ["split_copy", "split_with_sizes_copy", "unbind_copy"])
@pytest.mark.parametrize("out", [ng.empty(0), 5])
def test_out_of_several_copies_is_a_tuple(name: str, out: Any) -> None:
    arguments = {"split_copy": (1,), "split_with_sizes_copy": ([1, 1],)}.get(name, ())
    kind = "Tensor" if isinstance(out, ng.Tensor) else "int"
    words = rf"^{name}\(\): argument 'out' must be tuple of Tensors, not {kind}$"
    with pytest.raises(TypeError, match=words):
        COPIES[name](ng.ones(2, 3), *arguments, out=out)
    with pytest.raises(TypeError, match="^expected tuple of 2 elements but got 1$"):
        COPIES[name](ng.ones(2, 3), *arguments, out=(ng.empty(0),))


WRONG: list[tuple[Any, ...]] = [(), ("x",), (0, "x"), (0.5, 1), (1, 1, "x"), (None,), (1,) * 8]


@pytest.mark.parametrize("name", [*COPIES, *(name for name in dir(ng.Tensor) if name in IN_PLACE)])
def test_wrong_calls_are_told_what_pytorch_tells_them(torch: ModuleType, name: str) -> None:
    told = []
    for library in (torch, ng):
        x = library.ones(2, 3)
        calls = [(x, *each) for each in WRONG]
        if name in COPIES:
            calls += WRONG
        answers = []
        for arguments in calls:
            function = getattr(library, name, None) or getattr(type(x), name)
            try:
                function(*arguments)
            except (TypeError, IndexError, RuntimeError) as error:
                answers.append((type(error), str(error).splitlines()[0]))
        told.append(answers)
    assert told[1] == told[0]
