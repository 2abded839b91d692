"""Arguments and results of `numgrad.autograd.functional`: checks, in PyTorch's words.

Their ``strict`` means: an output, a gradient or a derivative that does not depend on an input is an
error instead of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.autograd.forward.linear_maps import zeros_like
from numgrad.graph.tensor import Tensor

__all__ = [
    "Run",
    "check_single",
    "finish",
    "read_tensors",
    "read_vector",
    "require_dependent",
    "require_used",
    "stand_ins",
    "unpack",
    "zeros_for_none",
]

_CREATING = " This is not allowed in strict mode when create_graph=True."
# What `require_dependent` says of a tensor that has no history, by what the tensor is.
_INDEPENDENT = {
    "outputs": (
        "Output {i} of the user-provided function does not require gradients. The outputs must be "
        "computed in a differentiable manner from the input when running in strict mode."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with "
        "respect to input {i} is independent of the input. This is not allowed in strict mode. You "
        "should ensure that your function is twice differentiable and that the jacobian depends on "
        "the inputs (this would be violated by a linear function for example)."
    ),
}
# What `zeros_for_none` says where there is no derivative, and where it has no history.
_MISSING = {
    "vjp": (
        "The output of the user-provided function is independent of input {i}. This is not allowed "
        "in strict mode."
    ),
    "jvp": (
        "The gradient with respect to the input is independent of entry {i} in the grad_outputs "
        "when using the double backward trick to compute forward mode gradients. This is not "
        "allowed in strict mode."
    ),
    "vhp": (
        "The jacobian of the user-provided function is independent of input {i}. This is not "
        "allowed in strict mode."
    ),
    "hvp": (
        "The hessian of the user-provided function is independent of entry {i} in the "
        "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
        "backward trick to replace forward mode AD."
    ),
}


def read_tensors(value: Any, what: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether a tensor or a tuple of tensors was given, and the tensors.

    Raises
    ------
    TypeError
        If it is, or holds, anything else.
    """
    several = isinstance(value, tuple)
    tensors = value if several else (value,)
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            place = f"value at index {number}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but "
                f"the {place} has type {type(tensor)}."
            )
    return several, tensors


def stand_ins(
    tensors: Sequence[Tensor], create_graph: bool, requires_grad: bool = True
) -> tuple[Tensor, ...]:
    """Return what the user's function gets: new tensors, so that captured ones are told apart.

    They depend on the given ones under `create_graph`, and are leaves otherwise.
    """
    return tuple(
        [
            tensor.view_as(tensor)
            if create_graph and tensor.requires_grad
            else tensor.detach().requires_grad_(requires_grad)
            for tensor in tensors
        ]
    )


def read_vector(
    v: Any,
    like: Sequence[Tensor],
    several: bool,
    function: str,
    create_graph: bool,
    missing: str,
) -> tuple[Tensor | None, ...]:
    """Return the vector of a product, checked against the tensors that it has to be like.

    Parameters
    ----------
    several : bool
        Whether those came as a tuple.
    missing : str
        What is said where there is no vector although one is needed.

    Raises
    ------
    RuntimeError, TypeError
    """
    if v is None:
        if len(like) != 1 or like[0]._array.size != 1:
            raise RuntimeError(f"The vector v can only be None if {missing}")
        return (None,)
    _, vector = read_tensors(v, "v", function)
    vector = stand_ins(vector, create_graph, requires_grad=False)
    if len(like) != len(vector):
        if several:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for number, (given, expected) in enumerate(zip(vector, like, strict=True)):
        if given.shape != expected.shape:
            entry = f"Entry {number} in " if several else ""
            raise RuntimeError(
                f"{entry}v has invalid size: should be {expected.shape} but got {given.shape}."
            )
    return vector


def require_dependent(tensors: Sequence[Tensor | None], what: str, strict: bool) -> None:
    """Raise, if `strict`, for a tensor without a history; `what` says which these are."""
    if not strict:
        return
    for number, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(_MISSING["vjp"].format(i=number))
        if not tensor.requires_grad:
            raise RuntimeError(_INDEPENDENT[what].format(i=number))


def require_used(gradients: Sequence[Tensor | None]) -> None:
    """Raise for an input that got no gradient."""
    for number, gradient in enumerate(gradients):
        if gradient is None:
            raise RuntimeError(_MISSING["vjp"].format(i=number))


def check_single(outputs: Sequence[Tensor], several: bool, function: str) -> None:
    """Raise unless a function returned one tensor of one element."""
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0]._array.size != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )


class Run:
    """One run of the user's function on stand-ins for its inputs.

    Parameters
    ----------
    func : callable
    inputs : tensor or tuple of tensors
    function : str
        The name of the function of `numgrad.autograd.functional`, for messages.

    Attributes
    ----------
    inputs, outputs : tuple of Tensor
        The stand-ins, and what the function returned.
    several_inputs, several_outputs : bool
        Whether these are tuples for the user.
    """

    def __init__(self, inputs: Any, function: str, create_graph: bool) -> None:
        self._function = function
        self.several_inputs, given = read_tensors(inputs, "inputs", function)
        self.inputs = stand_ins(given, create_graph)
        self.outputs: tuple[Tensor, ...] = ()
        self.several_outputs = False

    def call(self, func: Callable[..., Any], strict: bool) -> tuple[Tensor, ...]:
        """Run the function and return its outputs."""
        self.several_outputs, self.outputs = read_tensors(
            func(*self.inputs), "outputs of the user-provided function", self._function
        )
        require_dependent(self.outputs, "outputs", strict)
        return self.outputs


def zeros_for_none(
    found: Sequence[Tensor | None],
    like: Sequence[Tensor],
    product: str,
    strict: bool,
    create_graph: bool,
) -> list[Tensor]:
    """Return zeros for None; if `strict`, raise for it, and for what should have a history."""
    filled = []
    for number, (tensor, reference) in enumerate(zip(found, like, strict=True)):
        if strict and tensor is None:
            raise RuntimeError(_MISSING[product].format(i=number))
        if strict and create_graph and tensor is not None and not tensor.requires_grad:
            derivative = "hessian" if product in ("vhp", "hvp") else "jacobian"
            raise RuntimeError(
                f"The {derivative} of the user-provided function is independent of input {number}."
                + _CREATING
            )
        filled.append(zeros_like(reference) if tensor is None else tensor)
    return filled


def finish(tensors: Sequence[Tensor], create_graph: bool) -> tuple[Tensor, ...]:
    """Return results without a history, unless one was asked for."""
    return tuple(tensors) if create_graph else tuple([tensor.detach() for tensor in tensors])


def unpack(results: Sequence[Any], several: bool) -> Any:
    """Return a tuple of results where a tuple was given, else the only one."""
    return tuple(results) if several else results[0]
