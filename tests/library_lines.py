"""Lines that either library evaluates, and all that can be seen of what they give."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import pytree

__all__ = ["described", "evaluated"]


def evaluated(line: str, names: dict[str, Any]) -> Any:
    """Evaluate an expression, after the statements before ``->``."""
    statements, arrow, expression = line.partition("->")
    if arrow:
        exec("\n".join(statement.strip() for statement in statements.split(";")), names)
    return eval((expression if arrow else line).strip(), names)


def described(result: Any, digits: int) -> Any:
    """Return all that can be seen of the tensors in a result, in their structure."""

    def of_leaf(leaf: Any) -> Any:
        if not hasattr(leaf, "requires_grad"):
            return str(leaf)
        values = np.array(leaf.detach().tolist(), dtype=complex).round(digits).tolist()
        return (str(leaf.dtype), tuple(leaf.shape), leaf.requires_grad, values)

    leaves, spec = pytree.flatten(result)
    return [of_leaf(leaf) for leaf in leaves], spec
