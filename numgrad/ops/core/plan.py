"""The plan of a node: the rules that run, and what they need saved.

A plan belongs to a primitive, a choice of the inputs that need a gradient, and which operands are
tensors. All that it says is read off the names of the rules' parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from numgrad.ops.calls.node_source import Saved

__all__ = ["DeclaredRule", "Plan", "Rule", "declared_rule"]

Rule = Callable[..., Any]

_HELD = {"index", "indices", "mask"}


class DeclaredRule(NamedTuple):
    """A rule and the names of its parameters."""

    function: Rule
    parameters: tuple[str, ...]


def declared_rule(function: Rule) -> DeclaredRule:
    """Return a rule with the names of its parameters."""
    return DeclaredRule(function, tuple(inspect.signature(function).parameters))


class Plan:
    """What the backward pass of a primitive takes, for some inputs that need a gradient.

    Attributes
    ----------
    primitive : Primitive
    rules : tuple
        For each of these inputs its position, its rule, and what that names.
    saved : tuple
        What they name of the inputs and outputs: ("input", i), ("number", i) for an operand that is
        no tensor, and ("output", i).
    names : tuple of str
        By which names.
    shape_names : tuple
        Names of shapes of inputs, and which input's.
    place_names : tuple
        Names of how inputs lie, and which input.
    of_all : bool
        Whether they name all inputs or all shapes.
    held : str
        The parameter they name that may be an index or a mask, as large as a tensor that is saved.
    """

    __slots__ = (
        "held",
        "names",
        "of_all",
        "place_names",
        "primitive",
        "rules",
        "saved",
        "shape_names",
    )

    laid: tuple[int, ...] = ()  # inputs whose gradients lie otherwise than their rules have them

    def __init__(self, primitive: Any, needs: int, kinds: str) -> None:
        """Read off what is needed.

        Parameters
        ----------
        primitive : Primitive
        needs : int
            Bit i is set if input i needs a gradient.
        kinds : str
            For each operand whether it is a tensor, ``t`` (a mask: ``m``), or a number, ``n`` (a
            mask: ``q``).
        """
        count = len(kinds)
        self.primitive = primitive
        self.rules: tuple[tuple[int, Rule, tuple[str, ...]], ...] = tuple(
            [
                (position, *rule)
                for position, rule in enumerate(primitive.rules_for(count))
                if (needs >> position) & 1 and rule is not None
            ]
        )
        named = {name for _, _, parameters in self.rules for name in parameters}
        inputs, outputs = primitive.input_names(count), primitive.outputs
        saved = [
            (("number" if kinds[position] in "nq" else "input", position), name)
            for position, name in enumerate(inputs)
            if "inputs" in named or name in named
        ] + [(("output", position), name) for position, name in enumerate(outputs) if name in named]
        self.saved: Saved = tuple([place for place, _ in saved])
        self.names = tuple([name for _, name in saved])
        self.shape_names = _facts(inputs, "shape", named)
        self.place_names = _facts(inputs, "lies", named)
        self.of_all = not named.isdisjoint(("inputs", "shapes"))
        self.held: str = next(iter(named & _HELD - {*inputs, *outputs}), "")

    @property
    def saved_places(self) -> Saved:
        """What nodes save: what the rules name, and what may stand behind it."""
        return self.saved

    @property
    def repeats(self) -> bool:
        """Whether what runs the rules is the same for all nodes of one kind."""
        return not self.primitive.by_numbers

    def holds(self, parameters: dict[str, Any]) -> bool:
        """Whether rules need an index or a mask that was an argument (a number is none)."""
        return bool(self.held) and not isinstance(parameters[self.held], int)


def _facts(inputs: Any, fact: str, named: set[str]) -> tuple[tuple[str, int], ...]:
    """Return the names of a fact about inputs that rules name, and which input's it is."""
    found = [(f"{name}_{fact}", position) for position, name in enumerate(inputs)]
    return tuple([each for each in found if each[0] in named])
