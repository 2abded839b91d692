"""The public functions, methods and in-place methods of elementwise primitives."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.signatures.declared import declare

__all__ = ["publish"]


def publish(
    primitive: ElementwisePrimitive,
    *aliases: str,
    inplace: bool = True,
    out: bool = True,
    signatures: tuple[str, ...] = (),
    rule: Callable[..., Any] | None = None,
    module: str | None = None,
) -> Callable[..., Any]:
    """Make the public function of an elementwise primitive and enter it under all its names.

    Parameters
    ----------
    primitive : ElementwisePrimitive
        Of one operand or two.
    *aliases : str
        Other names of the function.
    inplace : bool
        Whether there is a method that writes, ``Tensor.name_``.
    out : bool
        Whether each of its signatures takes an `out`, which they do not name then.
    signatures : tuple of str
        What stands between the parentheses of its signatures, if not its operands alone: tensors,
        one of which may be a number where there are two.
    rule : function, optional
        What is computed of the operands and of `out`, if there is something to look at first.
    module : str, optional
        Of a function of a namespace, the module in which it stands by the name of its declaration.
        There is no ``numgrad.name`` then, and no method.
    """
    if not signatures:
        kind = "Tensor" if len(primitive.inputs) == 1 else "operand"
        signatures = (", ".join([f"{kind} {name}" for name in primitive.inputs]),)
    name = primitive.function_name
    texts = [f"{name}({each}{', *, Tensor? out=None' * out})" for each in signatures]
    direct, is_top = rule is None, module is None
    function = declare(
        *texts,
        function=is_top,
        method=is_top,
        inplace=inplace and is_top,
        aliases=aliases,
        plain=primitive,
        direct=direct,
    )
    rule = rule or _rule_of(primitive)
    rule.__name__ = rule.__qualname__ = name
    rule.__module__ = module or "numgrad"
    rule.__doc__ = _indented(primitive.doc)
    return function(rule)


def _rule_of(primitive: ElementwisePrimitive) -> Callable[..., Any]:
    """Return the primitive as the rule of its function: nothing else is looked at."""
    rule: Callable[..., Any]
    if len(primitive.inputs) == 1:

        def rule(input: Tensor, out: Tensor | None) -> Tensor:
            result: Tensor = primitive(input, out=out)
            return result

    else:

        def rule(input: Any, other: Any, out: Tensor | None) -> Tensor:
            if type(input) is Tensor:
                return primitive.call((input, other), out)
            result: Tensor = primitive(input, other, out=out)
            return result

    return rule


def _indented(text: str) -> str:
    """Return a docstring as it stands in a function: all but the first line indented."""
    return textwrap.indent(inspect.cleandoc(text), "    ").lstrip() + "\n"
