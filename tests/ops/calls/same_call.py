"""Evaluate a line of code in PyTorch and here, and compare everything that can be seen of it.

A line is an expression, or statements, ``->`` and an expression. It may name `torch` (which is
either library), `np`, and four tensors that require grad: `x` of shape (2, 3, 4), `m` of (3, 4),
`v` of (5,) and `p` of ().
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.graph.tensor import Tensor

_RNG = np.random.default_rng(5)
_DATA = {
    "x": _RNG.normal(size=(2, 3, 4)),
    "m": _RNG.normal(size=(3, 4)),
    "v": _RNG.normal(size=5),
    "p": np.array(0.7),
}


def _run(library: Any, line: str) -> tuple[Any, dict[str, Any]]:
    """Return the result of a line, and the names it could use."""
    names: dict[str, Any] = {"torch": library, "np": np}
    for name, array in _DATA.items():
        names[name] = library.from_numpy(array.copy()).requires_grad_()
    statements, arrow, expression = line.partition("->")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arrow:
            exec(statements, names)
            return eval(expression.strip(), names), names
        return eval(line, names), names


def _history(tensor: Any) -> list[tuple[str, int]]:
    """Return the names of the nodes along the first edges, with their number of edges."""
    node, found = tensor.grad_fn, []
    while node is not None:
        found.append((node.name().split("::")[-1], len(node.next_functions)))
        node = node.next_functions[0][0] if node.next_functions else None
    return found


def _describe(result: Any) -> Any:
    """Return all that can be seen of a result, as something that compares."""
    if isinstance(result, (tuple, list)) and not isinstance(result, ng.Size):
        return [_describe(each) for each in result]
    if not hasattr(result, "grad_fn"):
        return tuple(result) if isinstance(result, tuple) else str(result)
    # Strides say something only where there is a second element.
    strides = [
        step if length > 1 else None
        for length, step in zip(result.shape, result.stride(), strict=True)
    ]
    array = result._array if isinstance(result, Tensor) else result.detach().numpy()
    return {
        "history": _history(result),
        "shape": tuple(result.shape),
        "dtype": str(result.dtype),
        "strides": strides if array.size else None,
        "is a view": result._base is not None,
        "values": array.tolist(),
    }


def _outcome(library: Any, line: str) -> tuple[Any, Any]:
    """Return what can be seen of a result and None, or None and an error."""
    try:
        return _describe(_run(library, line)[0]), None
    except Exception as error:
        return None, error


def assert_same_call(torch: Any, line: str) -> None:
    """Compare nodes, shape, dtype, strides, being a view, and values up to rounding in sums."""
    _assert_same(_describe(_run(ng, line)[0]), _describe(_run(torch, line)[0]))


def _assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            _assert_same(one, other)
    elif isinstance(ours, dict):
        assert ours | {"values": None} == theirs | {"values": None}
        np.testing.assert_allclose(ours["values"], theirs["values"], rtol=1e-14)
    else:
        assert ours == theirs


def assert_same_error(torch: Any, line: str) -> None:
    """Check that PyTorch raises, and that here the same class with the same words is raised."""
    _, theirs = _outcome(torch, line)
    _, ours = _outcome(ng, line)
    assert theirs is not None
    assert type(ours) is type(theirs)
    assert str(ours).split("\n")[0] == str(theirs).split("\n")[0]


def _gradients(library: Any, line: str) -> list[Any]:
    """Return first and second derivatives of a weighted sum of cubes of the result."""
    result, names = _run(library, line)
    count = int(np.prod(tuple(result.shape), dtype=int))
    weights = np.cos(np.arange(count)).reshape(tuple(result.shape)) + 1.5
    leaves = [names[name] for name in _DATA]
    total = (result * result * result * library.from_numpy(np.asarray(weights))).sum()
    first = library.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    again = sum((each * each).sum() for each in first if each is not None and each.requires_grad)
    found = list(first)
    if not isinstance(again, int):
        found += library.autograd.grad(again, leaves, allow_unused=True)
    return [None if each is None else np.array(each.detach().tolist()) for each in found]


def assert_same_gradients(torch: Any, line: str) -> None:
    """Compare first and second derivatives; the result must be real."""
    ours, theirs = _gradients(ng, line), _gradients(torch, line)
    assert [each is None for each in ours] == [each is None for each in theirs]
    for own, reference in zip(ours, theirs, strict=True):
        if reference is not None:
            np.testing.assert_allclose(own, reference, rtol=1e-9, atol=1e-9)
