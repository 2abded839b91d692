"""Forward mode of a primitive: its tangent map, from what the primitive already declares.

The rule of an elementwise operation multiplies a cotangent by the conjugate of the derivative, so
the same rule on conjugated tangents is its tangent map. A linear operation is its own. Any other
rule is linear in the cotangent, and its transpose is the tangent map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.backward import grad
from numgrad.graph.modes import enable_grad
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.core.elementwise import ElementwisePrimitive
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.pointwise.complex import conj

__all__ = ["jvp", "transpose_jvp"]


def jvp(
    primitive: ElementwisePrimitive | Primitive,
    primals: Sequence[Any],
    tangents: Sequence[Tensor | None],
    **parameters: Any,
) -> tuple[Any, Any]:
    """Return the output of a primitive and its directional derivative.

    Parameters
    ----------
    primitive : ElementwisePrimitive or Primitive
    primals : sequence of tensor or number
        The operands.
    tangents : sequence of tensor or None
        For each operand its direction, of its shape; None for a constant.

    Returns
    -------
    output, tangent
    """
    if isinstance(primitive, ElementwisePrimitive):
        return _elementwise_jvp(primitive, primals, tangents)
    directions = [tangent for tangent in tangents if tangent is not None]
    if primitive.linear and len(directions) == len(tangents):
        return primitive.apply(*primals, **parameters), primitive.apply(*directions, **parameters)
    moving = [position for position, tangent in enumerate(tangents) if tangent is not None]

    def function(*arguments: Tensor) -> Any:
        operands = list(primals)
        for position, argument in zip(moving, arguments, strict=True):
            operands[position] = argument
        return primitive.apply(*operands, **parameters)

    return transpose_jvp(
        function,
        [primals[position] for position in moving],
        directions,
    )


def _elementwise_jvp(
    primitive: ElementwisePrimitive, primals: Sequence[Any], tangents: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """Run the rules on tangents, broadcast to the output's shape, and add them up."""
    output: Tensor = primitive(*primals)
    environment = dict(zip(primitive.inputs, primals, strict=True)) | {"y": output}
    total: Tensor | None = None
    for position, tangent in enumerate(tangents):
        if tangent is None or primitive.rules[position] is None:
            continue
        rule, parameters = primitive.rules[position]  # type: ignore[misc]
        environment["g"] = conj(tangent.expand(output.shape))
        part = conj(rule(*[environment[name] for name in parameters]))
        total = part if total is None else total + part
    if total is None:
        total = fresh(np.zeros(output._array.shape, output._array.dtype))
    return output, total


def transpose_jvp(
    function: Any, primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Any, Any]:
    """Return the output of a function of tensors and its directional derivative.

    The vector-Jacobian product is linear in its vector; differentiating it with respect to that
    vector, in the direction of the tangents, gives the Jacobian-vector product.
    """
    with enable_grad():
        inputs = [primal.detach().requires_grad_() for primal in primals]
        output = function(*inputs)
        outputs = output if isinstance(output, tuple) else (output,)
        derivatives: list[Tensor] = []
        for part in outputs:
            if not part.requires_grad:
                derivatives.append(fresh(np.zeros(part._array.shape, part._array.dtype)))
                continue
            vector = fresh(np.zeros(part._array.shape, part._array.dtype)).requires_grad_()
            products = grad(
                part, inputs, vector, create_graph=True, allow_unused=True, retain_graph=True
            )
            present = [
                (product, tangent)
                for product, tangent in zip(products, tangents, strict=True)
                if product is not None and product.requires_grad
            ]
            if not present:
                derivatives.append(fresh(np.zeros(part._array.shape, part._array.dtype)))
                continue
            (derivative,) = grad(
                [product for product, _ in present],
                vector,
                [tangent for _, tangent in present],
                allow_unused=True,
                materialize_grads=True,
            )
            derivatives.append(derivative)
    values = tuple(part.detach() for part in outputs)
    if isinstance(output, tuple):
        return values, tuple(derivatives)
    return values[0], derivatives[0]
