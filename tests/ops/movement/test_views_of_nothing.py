"""Views of no elements keep their place in memory, and so does what is made of them.

The programs that make them are drawn by the number of the test, so that what PyTorch answers can be
recorded.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng

Shape = tuple[int, ...]
Step = tuple[str, Any]  # the name of a method and its arguments; of several results, one is taken
Rng = np.random.Generator

COUNT = 24
SHAPES = [(24,), (4, 6), (2, 3, 4), (6, 1, 4)]
PROGRAMS = 12  # in a test
CUTS = ("__getitem__", "narrow", "split", "tensor_split")
UNWRITTEN = ("chunk", "detach", "split")  # what comes of these may not be, or has no history


def _part(rng: Rng, length: int, is_empty: bool) -> tuple[int, int]:
    start = int(rng.integers(0, length + 1))
    return start, start if is_empty else int(rng.integers(start, length + 1))


def _cut(rng: Rng, shape: Shape, name: str) -> Step:
    """Return a step that leaves a part of a dim, mostly nothing of it."""
    dim = int(rng.integers(len(shape)))
    start, stop = _part(rng, shape[dim], rng.random() < 0.7)
    if name == "__getitem__":
        key = slice(start, stop, int(rng.integers(1, 4)))
        return name, ((*[slice(None)] * dim, key),)
    if name == "narrow":
        return name, (dim, start, stop - start)
    if name == "split":
        return name, ([start, stop - start, shape[dim] - stop], dim)
    return name, ([start, stop], dim)


def _step(rng: Rng, shape: Shape) -> Step:
    """Return a view that a tensor of a shape allows."""
    dim = int(rng.integers(len(shape))) if shape else 0
    other = int(rng.integers(len(shape))) if shape else 0
    choices: list[Step] = [("unsqueeze", (dim,)), ("expand", (2, *shape)), ("detach", ())]
    if shape:
        choices += [_cut(rng, shape, name) for name in CUTS] * 2
        choices += [("transpose", (dim, other)), ("permute", tuple(rng.permutation(len(shape))))]
        size = int(rng.integers(0, min(shape[dim], 3) + 1))
        choices += [("unfold", (dim, size, int(rng.integers(1, 3)))), ("flip", (dim,))]
        choices += [("squeeze", (dim,)), ("chunk", (2, dim))]
        if shape[dim]:
            choices += [("select", (dim, int(rng.integers(shape[dim]))))] * 2
    if len(shape) == 2:
        choices += [("t", ()), ("diagonal", (int(rng.integers(-7, 8)),))]
    if 0 in shape:
        choices += [("view", (0, 3)), ("reshape", (2, 0, 1))]
    name, arguments = choices[int(rng.integers(len(choices)))]
    return name, tuple(int(each) if name == "permute" else each for each in arguments)


def _run(tensor: Any, steps: list[Step]) -> Any:
    for name, arguments in steps:
        tensor = getattr(tensor, name)(*arguments)
        if name in ("split", "tensor_split", "chunk"):
            tensor = tensor[1 if len(tensor) > 1 else 0]
    return tensor


def _program(rng: Rng) -> tuple[Shape, list[Step], int]:
    """Return a shape, steps to a view of nothing, and how many elements lie behind its place."""
    while True:
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        view = ng.arange(float(COUNT)).view(shape)
        steps = []
        for _ in range(int(rng.integers(1, 7))):
            steps.append(_step(rng, tuple(view.shape)))
            is_copy = steps[-1][0] == "flip" and not view.numel()
            view = _run(view, steps[-1:])
            if is_copy:  # there is no memory to have a place in
                break
        if not view.numel():
            room = view.untyped_storage().nbytes() // 4 - view.storage_offset()
            return shape, steps, max(0, min(3, room))


def _used(module: ModuleType, x: Any, program: tuple[Shape, list[Step], int]) -> list[Any]:
    """Read and write what lies behind a view of nothing.

    Return what was read, what is in the memory then, and the place.
    """
    shape, steps, size = program
    memory = x * 2
    nothing = _run(memory.view(shape), steps)
    behind = nothing.as_strided((size,), (1,))
    read = behind * 3
    if not any(name in UNWRITTEN for name, _ in steps):
        nothing.mul_(5)
        behind = nothing.as_strided((size,), (1,))
        behind.mul_(module.arange(2.0, size + 2.0))
    # Without elements, strides that are all 0 are NumPy's for new memory, and are not told.
    is_told = not any(name in ("flip", "expand") for name, _ in steps)
    strides = tuple(nothing.stride()) if is_told else ()
    return [read, memory, nothing.storage_offset(), strides, tuple(nothing.shape)]


def _loss(module: ModuleType, x: Any, program: tuple[Shape, list[Step], int]) -> Any:
    read, memory, *_ = _used(module, x, program)
    return (read * read).sum() + (memory * module.arange(float(COUNT))).sum()


def _numbers(results: list[Any]) -> list[Any]:
    return [each.detach().tolist() if hasattr(each, "detach") else each for each in results]


def _expected(torch: ModuleType, program: Any) -> tuple[list[Any], list[float]]:
    x = torch.arange(float(COUNT)).requires_grad_()
    used = _numbers(_used(torch, x, program))
    _loss(torch, x, program).backward()
    return used, x.grad.tolist()


@pytest.mark.parametrize("number", range(8))
def test_views_of_nothing_lie_where_pytorchs_do(torch: ModuleType, number: int) -> None:
    rng = np.random.default_rng(number)
    for _ in range(PROGRAMS):
        program = _program(rng)
        used, gradient = _expected(torch, program)
        x = ng.arange(float(COUNT)).requires_grad_()
        assert _numbers(_used(ng, x, program)) == used, program
        assert _numbers(_used(ng, x.detach(), program)) == used, program
        _loss(ng, x, program).backward()
        assert x.grad is not None and x.grad.tolist() == gradient, program


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("number", range(8, 10))
def test_views_of_nothing_lie_where_pytorchs_do_under_jit(torch: ModuleType, number: int) -> None:
    rng = np.random.default_rng(number)
    for _ in range(PROGRAMS):
        program = _program(rng)
        used, gradient = _expected(torch, program)
        x = ng.arange(float(COUNT))
        found = ng.jit(lambda x, program=program: _used(ng, x, program))(x)
        assert [tuple(each) if type(each) is list else each for each in _numbers(found)] == [
            tuple(each) if type(each) is list else each for each in used
        ], program
        of_loss = ng.func.grad(lambda x, program=program: _loss(ng, x, program))
        assert ng.jit(of_loss)(x).tolist() == gradient, program


def test_a_view_of_nothing_in_complex_numbers_lies_where_pytorchs_does(torch: ModuleType) -> None:
    def places(module: ModuleType) -> list[Any]:
        x = module.arange(12.0).view(6, 2)
        part = module.view_as_complex(x)[2:2]
        views = [part.imag, part.real, module.view_as_real(part), module.view_as_complex(x[3:3])]
        views += [x[2:2].view(module.int32), part.imag.as_strided((2,), (2,))]
        return [[view.storage_offset(), view.tolist()] for view in views]

    assert places(ng) == places(torch)


def test_history_of_a_view_of_nothing_says_where_it_lies(torch: ModuleType) -> None:
    def saved(module: ModuleType) -> list[Any]:
        x = module.arange(10.0).requires_grad_() * 2
        first, last = x.view(2, 5)[1:, 3:3], x[10:]
        first.mul_(2)
        last.mul_(2)
        nodes = [first.grad_fn, last.grad_fn]
        return [[type(node).__name__, node._saved_storage_offset] for node in nodes]

    assert saved(ng) == saved(torch)
