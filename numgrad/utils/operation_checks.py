"""`check_operation`: the checks of the catalogue, for an operation of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from numgrad.autograd.gradcheck.gradcheck import gradcheck, gradgradcheck
from numgrad.graph.backward.backward import grad
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.decorator import jit
from numgrad.ops.core.domains import Domain
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE, Primitive
from numgrad.ops.creation.from_data import from_numpy
from numgrad.ops.later import load_all

__all__ = ["check_operation"]

# Of the first operand, and of the others, which are broadcast to it.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((5,), (5,)),
    ((3, 4), (4,)),
    ((2, 1, 3), (2, 1)),
    ((2, 0, 3), (3,)),
)


def check_operation(operation: str | Callable[..., Any], *, seed: int = 0) -> list[str]:
    """Check an operation at points drawn from its domains (or at its samples), and say what held.

    First and second derivatives are compared with finite differences, in backward and in forward
    mode; values and gradients in float32 with those in float64, under `jit` with eager ones, and
    in place with those that are not. Complex numbers are drawn, too, where there are any.

    Parameters
    ----------
    operation : str, or what `publish` returned
        The name of an operation, of numgrad or of your own.
    seed : int
        Of the random numbers.

    Returns
    -------
    list of str
        What was checked.

    Raises
    ------
    ValueError
        If there is no such operation.
    GradcheckError
        If a derivative is not that of the formula.
    AssertionError
        If one of the other comparisons fails.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.utils.check_operation(ng.tanh)[0]
    'derivatives in float64'
    """
    primitive = _find(operation)
    random = np.random.default_rng(seed)
    if not isinstance(primitive, ElementwisePrimitive):
        return _check_samples(primitive, random)
    checked = []
    for kind in ("float64", "complex128"):
        if np.dtype(kind).kind in primitive.accepts and any(primitive.rules):
            for operands in _draws(primitive, random, kind):
                _check_derivatives(primitive, operands)
            checked.append(f"derivatives in {kind}")
    if "f" not in primitive.accepts:
        return checked
    for operands in _draws(primitive, random, "float64"):
        _check_jit(primitive, operands)
        _check_float32(primitive, operands)
    checked += ["jit", "float32"]
    if primitive.kind in ("same", "float"):
        _check_in_place(primitive, next(_draws(primitive, random, "float64")))
        checked.append("in place")
    return checked


def _find(operation: str | Callable[..., Any]) -> Any:
    load_all()
    name = operation if isinstance(operation, str) else getattr(operation, "__name__", "")
    found = CATALOGUE.get(name)
    if found is None:  # under another name than its function's
        named = [p for p in CATALOGUE.values() if getattr(p, "function_name", None) == name]
        found = named[0] if named else None
    if found is None:
        raise ValueError(f"check_operation: the catalogue has no operation called {name!r}")
    return found


def _draws(
    primitive: ElementwisePrimitive, random: np.random.Generator, kind: str
) -> Iterator[list[Any]]:
    """Yield operands of some shapes, leaves all that can be."""
    for shape, other in _SHAPES:
        first: Any = None
        operands: list[Any] = []
        for position, domain in enumerate(primitive.domains):
            made = _operand(domain, other if position else shape, first, random, kind)
            if first is None and isinstance(made, np.ndarray):
                first = made
            operands.append(_leaf(made) if isinstance(made, np.ndarray) else made)
        yield operands


def _operand(
    domain: Domain, shape: tuple[int, ...], first: Any, random: np.random.Generator, kind: str
) -> Any:
    """Return numbers of a domain, away from those of the first operand where they have to be."""
    if domain.is_number:
        return domain.intervals[0][0]
    if domain.is_mask:
        return np.asarray(random.random(shape) < 0.5)
    if domain.apart and first is not None:
        above = first.real.max() if first.size else 0.0
        return np.asarray((above + domain.apart + random.random(shape)).astype(kind))
    return np.asarray(domain.draw(shape, random, is_complex=kind[0] == "c"))


def _leaf(array: np.ndarray[Any, Any]) -> Tensor:
    tensor = from_numpy(array)
    return tensor.requires_grad_() if array.dtype.kind in "fc" else tensor


def _check_derivatives(function: Callable[..., Any], operands: list[Any]) -> None:
    assert gradcheck(function, operands, check_forward_ad=True, check_batched_grad=False)
    assert gradgradcheck(function, operands)


def _run(function: Callable[..., Any], operands: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Return the value and the gradients of its sum, as arrays."""
    output = function(*operands)
    leaves = [x for x in operands if isinstance(x, Tensor) and x.requires_grad]
    found = [output.detach().numpy()]
    if output.requires_grad:
        gradients = grad(output.sum(), leaves, allow_unused=True, materialize_grads=True)
        found += [gradient.numpy() for gradient in gradients]
    return found


def _check_jit(primitive: ElementwisePrimitive, operands: list[Any]) -> None:
    tensors = [k for k, x in enumerate(operands) if isinstance(x, Tensor)]

    def function(*given: Tensor) -> Any:
        arguments = list(operands)
        for k, tensor in zip(tensors, given, strict=True):
            arguments[k] = tensor
        return primitive(*arguments)

    compiled = _run(jit(function), [operands[k] for k in tensors])
    for found, expected in zip(compiled, _run(primitive, operands), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg="jit")


def _check_float32(primitive: ElementwisePrimitive, operands: list[Any]) -> None:
    """Compare with float64 at the same numbers, to 32 roundings of the results' scale."""
    single, double = [
        [
            _leaf(x.detach().numpy().astype(np.float32).astype(kind))
            if isinstance(x, Tensor) and x.is_floating_point()
            else x
            for x in operands
        ]
        for kind in ("float32", "float64")
    ]
    tolerance = 32 * float(np.finfo(np.float32).eps)
    for found, expected in zip(_run(primitive, single), _run(primitive, double), strict=True):
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance * scale, err_msg="float32"
        )


def _check_in_place(primitive: ElementwisePrimitive, operands: list[Any]) -> None:
    name = f"{primitive.function_name}_"
    if hasattr(Tensor, name) and operands[0].is_floating_point():
        others = [x.detach() if isinstance(x, Tensor) else x for x in operands[1:]]
        expected = primitive(operands[0].detach().clone(), *others).numpy()
        target = operands[0].detach().clone()
        getattr(target, name)(*others)
        np.testing.assert_array_equal(target.numpy(), expected, err_msg="in place")


def _check_samples(primitive: Primitive, random: np.random.Generator) -> list[str]:
    """Check the derivatives of an operation on arrays at the samples that it was declared with."""

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Tensor:
        count = int(np.prod(shape, dtype=int))
        if distinct:
            places = (random.permutation(count) + 0.5) / max(count, 1)
            return _leaf((low + (high - low) * places).reshape(shape))
        return _leaf(np.asarray(random.uniform(low, high, shape)))

    for sample in primitive.samples:
        function, tensors, keywords = sample(make)
        assert gradcheck(lambda *x, f=function, k=keywords: f(*x, **k), tensors)
        assert gradgradcheck(lambda *x, f=function, k=keywords: f(*x, **k), tensors)
    return ["derivatives in float64"]
