"""Forward mode on dual tensors: ``torch.autograd.forward_ad``.

Inside a `dual_level`, `make_dual` gives a tensor a tangent, operations hand tangents on, and
`unpack_dual` reads them. `numgrad.func.jvp` differentiates a whole function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.forward.duals import DualLevel, laid_out_as
from numgrad.graph.backward.accumulate import OVERLAPS_ITSELF
from numgrad.graph.modes.grad_modes import Mode
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.strides import layout_of, repeats_elements
from numgrad.ops.core.primitive import Primitive

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1  # PyTorch's name, for the number that the functions' `level` defaults to

_PRIMAL: Primitive = Primitive(
    "forward_primal",
    "Identity",
    lambda array: array[...],
    ["input"],
    [lambda g: g],
    view=True,
    linear=True,
    listed=False,
)


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns.

    Attributes
    ----------
    primal : Tensor
        A view of the tensor, without a tangent.
    tangent : Tensor or None
        None if the tensor has none.
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level of forward mode, and return its number, 0.

    Mirrors ``torch.autograd.forward_ad.enter_dual_level``; `dual_level` closes it, too.

    Raises
    ------
    RuntimeError
        If one is open: levels do not nest.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.forward_ad.enter_dual_level()
    0
    >>> ng.autograd.forward_ad.exit_dual_level()
    """
    global _current_level
    if type(modes).dual is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    DualLevel().open()
    _current_level = 0
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level of forward mode, and forget the tangents of all tensors.

    Mirrors ``torch.autograd.forward_ad.exit_dual_level``.

    Parameters
    ----------
    level : int, optional
        Which level to close.

    Raises
    ------
    RuntimeError
        If that is not the one that is open.
    """
    global _current_level
    if level is not None and level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported."
        )
    if type(modes).dual is None:
        raise RuntimeError("Dual level must be a positive number.")
    type(modes).dual.close()
    _current_level = -1


class dual_level(Mode):  # noqa: N801 - PyTorch's name
    """A level of forward mode, as a context manager or a decorator.

    Mirrors ``torch.autograd.forward_ad.dual_level``. When it ends, tangents are forgotten.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 10.0]))
    ...     forward_ad.unpack_dual(x**3)
    UnpackedDualTensor(primal=tensor([1., 8.]), tangent=tensor([  3., 120.]))
    """

    def __enter__(self) -> int:  # type: ignore[override]
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a view of a tensor that has a tangent.

    Mirrors ``torch.autograd.forward_ad.make_dual``. It can be differentiated in backward mode with
    respect to both.

    Parameters
    ----------
    tensor, tangent : Tensor
        Of one shape. The tangent itself is taken if it is laid out in memory as the tensor is, and
        a copy otherwise; in-place operations on the dual tensor write to it.
    level : int, optional
        The number of the open level.

    Returns
    -------
    Tensor
        It shares its memory with `tensor`.

    Raises
    ------
    RuntimeError
        If no level is open, the shapes differ, or either has a tangent; or if the tensor has
        elements that share memory, and the tangent lies otherwise.
    ValueError
        If either is of integers or bools.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.autograd.forward_ad.dual_level():
    ...     ng.autograd.forward_ad.make_dual(ng.tensor(2.0), ng.tensor(1.0)) ** 2
    tensor(4., tangent=4.0)
    """
    number = _current_level if level is None else level
    if number < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, given in (("primal", tensor), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {given.dtype}"
            )
    dual: Any = modes.dual
    if dual is None or number != _current_level:
        raise RuntimeError("Invalid level given to _make_dual")
    if dual.tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            f"same level {number} is not supported."
        )
    if dual.tangent(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same "
            f"level{number} is not supported."
        )
    array, given_array = tensor._array, tangent._array
    if array.shape != given_array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(array.shape)} while the given "
            f"forward gradient is of size {list(given_array.shape)}."
        )
    if given_array.dtype.kind == "c" and array.dtype.kind != "c":
        raise RuntimeError(f"Expected the tangent of a real tensor to be real, got {tangent.dtype}")
    with dual.hidden():
        made: Tensor = tensor.view_as(tensor)
        if isinstance(array, np.ndarray) and layout_of(array) != layout_of(given_array):
            if repeats_elements(array):  # PyTorch writes the tangent to memory that lies so
                raise RuntimeError(OVERLAPS_ITSELF)
            same = array.dtype == given_array.dtype
            tangent = laid_out_as(
                tangent, array if same else np.empty_like(array, given_array.dtype)
            )
    if not modes.inference:  # in which no operation hands tangents on
        dual.put(made._array, tangent)
    return made


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and its tangent.

    Mirrors ``torch.autograd.forward_ad.unpack_dual``. Both can be differentiated in backward mode.

    Parameters
    ----------
    tensor : Tensor
    level : int, optional
        The number of the open level.

    Returns
    -------
    UnpackedDualTensor
        The primal is a view of the tensor. The tangent is None if there is none, and in inference
        mode.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.forward_ad.unpack_dual(ng.tensor(2.0))
    UnpackedDualTensor(primal=tensor(2.), tangent=None)
    """
    number = _current_level if level is None else level
    if number < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            "_unpack_dual(): argument 'dual' (position 1) must be Tensor, not "
            f"{type(tensor).__name__}"
        )
    dual: Any = modes.dual
    if dual is None:
        return UnpackedDualTensor(_PRIMAL.apply(tensor), None)
    tangent = dual.tangent(tensor)
    if tangent is not None and number != _current_level:
        raise RuntimeError("Invalid level given to _fw_primal")
    with dual.hidden():
        primal = _PRIMAL.apply(tensor)
    dual.put(primal._array, None)
    return UnpackedDualTensor(primal, None if modes.inference else tangent)
