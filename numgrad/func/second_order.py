"""Second derivatives of whole functions: Hessians, and Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.func.arguments import Argnums
from numgrad.func.forward import jvp
from numgrad.func.jacobians import jacfwd, jacrev
from numgrad.func.reverse import grad

__all__ = ["hessian", "hvp"]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return the function that computes the Hessian of `func`.

    Mirrors ``torch.func.hessian``: H[i, j] = d^2 output / d input[i] d input[j], computed as
    ``jacfwd(jacrev(func))``. `func` and the backward pass run once.

    Parameters
    ----------
    func : callable
        A function that returns a real floating point tensor, or a pytree of them.
    argnums : int or tuple of int
        With respect to which positional arguments, which may be pytrees.

    Returns
    -------
    callable
        Takes positional arguments. For a tensor as argument, returns a tensor of the output's shape
        followed by the input's, twice; pytrees and tuples of arguments nest, twice, as they do in
        `jacrev`.

    Raises
    ------
    RuntimeError, ValueError
        As `jacrev` and `jacfwd`.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.hessian(lambda x: (x**3).sum())(ng.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    >>> ng.func.hessian(lambda x: x.prod())([2.0, 3.0])
    tensor([[0., 1.],
            [1., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Return the Hessian of a scalar function times a vector, without the Hessian.

    H v is the derivative of the gradient in the direction v: ``jvp(grad(func), primals,
    tangents)[1]``, at the cost of a few gradients. JAX's documentation has it as a recipe.

    Parameters
    ----------
    func : callable
        A function that returns a tensor of no dimensions.
    primals : tuple of pytrees of tensors
        Where to differentiate, with respect to all of them.
    tangents : tuple of pytrees of tensors
        The vector: for each tensor in `primals` one of its shape.

    Returns
    -------
    pytree
        Like the primal if there is one, else a tuple of one for each primal.

    Raises
    ------
    RuntimeError, ValueError
        As `grad` and `jvp`.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.hvp(lambda x: (x**3).sum(), (ng.tensor([1.0, 2.0]),), (ng.tensor([1.0, 10.0]),))
    tensor([  6., 120.])
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "hvp(func, primals, tangents): Expected primals to be a tuple. E.g. it should be valid "
            "to call func(*primals)."
        )
    several = len(primals) > 1
    argnums: Argnums = tuple(range(len(primals))) if several else 0
    return jvp(grad(func, argnums), primals, tangents)[1]
