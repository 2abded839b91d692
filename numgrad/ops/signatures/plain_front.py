"""What stands in front of a declared function of one or two operands: the plain calls, at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.ops.calls.plain_calls import front_source
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.registry import make_front
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.numbers import NUMPY_NUMBERS, PLAIN_NUMBERS
from numgrad.ops.signatures.signature import ABSENT, REQUIRED

__all__ = ["plain_front"]


def plain_front(
    primitive: ElementwisePrimitive,
    declaration: Declaration,
    function: Callable[..., Any],
    *,
    direct: bool,
) -> Callable[..., Any]:
    """Return a declared function that hands the plain calls to a primitive's kernel itself.

    Every other call goes to `function`, which reads it; if nothing but operands was given, and they
    are plainly as declared, to the rule, or to the primitive where it is `direct`.
    """
    defaults = declaration.defaults
    names = ["self"] * declaration.bound + [name for name, d in defaults.items() if d is REQUIRED]
    others = [name for name in [*defaults, *declaration.handed] if name not in names]
    namespace: dict[str, Any] = {f"default_{name}": defaults.get(name) for name in others}
    written = {n: "None" if defaults.get(n) is None else f"default_{n}" for n in others}
    options = {name: written[name] for name in others if name in defaults}
    known = declaration.parameters.items()
    handed = written | {n: repr(each.left_out) for n, each in known if each.default is ABSENT}
    given = ["self"] * declaration.bound + [handed.get(n, n) for n in declaration.handed]
    numbers = NUMPY_NUMBERS | PLAIN_NUMBERS
    namespace |= {"NUMBERS": numbers, "REQUIRED": REQUIRED, "rule": declaration.rule}
    rule = "" if direct else f"rule({', '.join(given)})"
    source = front_source(names, options, rule=rule)
    front = make_front(primitive, function, source, namespace)
    front.__module__, front.__name__ = function.__module__, function.__name__
    front.__qualname__, front.__doc__ = function.__qualname__, function.__doc__
    front.__dict__.update(function.__dict__)
    return front
