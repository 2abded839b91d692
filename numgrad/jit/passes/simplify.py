"""Simplify a graph: all passes, until nothing changes; the same bits from fewer operations.

The graph is built anew once, operands first, by a `Builder` that knows equal values and asks the
rules about every new one:

- `numgrad.jit.passes.algebra`: identities of scalar operations, and constants;
- `numgrad.jit.passes.views`: views and reshapes;
- `numgrad.jit.passes.reductions`: reductions, updates and joins;
- `numgrad.jit.passes.indexing`: gathers.

Then joins move behind elementwise operations (`numgrad.jit.passes.concat_motion`), and views before
them where that repeats no work (`numgrad.jit.passes.view_motion`). What no output needs is never
visited again: a graph consists of what its outputs need.
"""

from __future__ import annotations

from numgrad.base.tuning import VIEW_ROUNDS
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.passes.algebra import simplify_constant, simplify_elementwise
from numgrad.jit.passes.concat_motion import move_joins
from numgrad.jit.passes.indexing import simplify_check, simplify_gather
from numgrad.jit.passes.reductions import simplify_join, simplify_reduce, simplify_update
from numgrad.jit.passes.rewriter import Builder, Rule
from numgrad.jit.passes.view_motion import push_views, rebuild
from numgrad.jit.passes.views import simplify_reshape, simplify_view

__all__ = ["simplify"]


def _simplify_call(builder: Builder, value: Value) -> Value | None:
    """Ask the primitive whether it needs all its operands."""
    specialised = getattr(value.attributes["primitive"], "specialised", None)
    found = specialised(value.operands) if specialised is not None else None
    if found is None:
        return None
    primitive, operands = found
    return Value("call", operands, value.shape, value.dtype, value.origin, primitive=primitive)


_RULES: dict[str, Rule] = {
    "elementwise": simplify_elementwise,
    "constant": simplify_constant,
    "view": simplify_view,
    "reshape": simplify_reshape,
    "reduce": simplify_reduce,
    "update": simplify_update,
    "join": simplify_join,
    "gather": simplify_gather,
    "check": simplify_check,
    "call": _simplify_call,
}


def simplify(graph: Graph) -> Graph:
    """Return a graph with the same inputs that computes the same bits in fewer operations.

    Which nan a nan is (its sign and payload) is not kept; everything else is, -0.0 and inf too.

    Examples
    --------
    >>> import numpy as np
    >>> x = Value("input", (), (3,), np.dtype("float64"), position=0)
    >>> one = Value("constant", (), (), x.dtype, value=1)
    >>> product = Value("mul", [Value("exp", [x], (3,), x.dtype), one], (3,), x.dtype)
    >>> total = Value("add", [product, Value("exp", [x], (3,), x.dtype)], (3,), x.dtype)
    >>> print(simplify(Graph([x], [total])))
    function(x0: f64[3]):
        v0: f64[3] = exp(x0)
        v1: f64[3] = add(v0, v0)
        return v1
    """
    builder = Builder(_RULES)
    new: dict[Value, Value] = {}
    for value in graph.values():
        builder.origin = value.origin
        new[value] = rebuild(builder, value, tuple([new[operand] for operand in value.operands]))
    result = Graph(graph.inputs, [new[output] for output in graph.outputs])
    result = move_joins(builder, result) or result
    for _ in range(VIEW_ROUNDS):
        pushed = push_views(builder, result)
        if pushed is None:
            break
        result = pushed
    return result
