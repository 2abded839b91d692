"""Symbolic sizes: sums of products of sizes known at run time, and offsets made of them.

Emitted code gets the sizes of arrays as arguments, so that one compiled function serves all sizes.
What it computes of them (strides, where a view begins) is found here, with symbols for the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ONE", "ZERO", "Place", "Size", "number", "product", "symbol"]


class Size:
    """A sum of products of named integers, with integer coefficients.

    Attributes
    ----------
    terms : mapping
        For each product (its names, sorted) the coefficient, which is not 0.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[tuple[str, ...], int]) -> None:
        self.terms = {names: factor for names, factor in terms.items() if factor}
        self._hash = hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __add__(self, other: Size) -> Size:
        if not self.terms or not other.terms:
            return self if self.terms else other
        terms = dict(self.terms)
        for names, factor in other.terms.items():
            terms[names] = terms.get(names, 0) + factor
        return Size(terms)

    def __mul__(self, other: Size) -> Size:
        if self == ONE or other == ONE:
            return self if other == ONE else other
        terms: dict[tuple[str, ...], int] = {}
        for names, factor in self.terms.items():
            for more, by in other.terms.items():
                key = tuple(sorted(names + more))
                terms[key] = terms.get(key, 0) + factor * by
        return Size(terms)

    @property
    def constant(self) -> int | None:
        """The number, if it is known; None if it is not."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms:
            return self.terms[()]
        return None

    def names(self) -> set[str]:
        """Return the names in it."""
        return {name for names in self.terms for name in names}

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the number, given that of each name."""
        total = 0
        for names, factor in self.terms.items():
            for name in names:
                factor *= values[name]
            total += factor
        return total

    def __str__(self) -> str:
        parts = []
        for names, factor in sorted(self.terms.items()):
            text = " * ".join(names)
            if not names:
                text = str(factor)
            elif factor == -1:
                text = f"-{text}"
            elif factor != 1:
                text = f"{factor} * {text}"
            parts.append(text)
        return " + ".join(parts).replace("+ -", "- ") or "0"

    __repr__ = __str__


ZERO, ONE = Size({}), Size({(): 1})


def number(value: int) -> Size:
    """Return a number that is known."""
    return Size({(): value})


def symbol(name: str) -> Size:
    """Return the number that a name stands for."""
    return Size({(name,): 1})


def product(sizes: list[Size]) -> Size:
    """Return the product of sizes, 1 of none."""
    result = ONE
    for size in sizes:
        result = result * size
    return result


class Place:
    """A linear function of the indices of a loop nest: ``start + sum(step * index[axis])``.

    Attributes
    ----------
    start : Size
    steps : mapping
        The step, not 0, of each axis that it depends on.
    """

    __slots__ = ("_hash", "start", "steps")

    def __init__(self, start: Size, steps: Mapping[int, Size]) -> None:
        self.start = start
        self.steps = {axis: step for axis, step in steps.items() if step.terms}
        self._hash = hash((start, frozenset(self.steps.items())))

    @classmethod
    def axis(cls, axis: int) -> Place:
        """Return the index of an axis itself."""
        return cls(ZERO, {axis: ONE})

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.start == other.start and self.steps == other.steps

    def __add__(self, other: Place) -> Place:
        steps = dict(self.steps)
        for axis, step in other.steps.items():
            steps[axis] = steps[axis] + step if axis in steps else step
        return Place(self.start + other.start, steps)

    def times(self, factor: Size) -> Place:
        """Return this, multiplied."""
        if factor == ONE:
            return self
        steps = {axis: step * factor for axis, step in self.steps.items()}
        return Place(self.start * factor, steps)

    def renamed(self, axes: Mapping[int, int]) -> Place:
        """Return this with other numbers for the axes; axes that are not mentioned are dropped."""
        return Place(self.start, {axes[a]: step for a, step in self.steps.items() if a in axes})

    def __repr__(self) -> str:
        steps = [f"({step})*i{axis}" for axis, step in sorted(self.steps.items())]
        return " + ".join([*steps, f"({self.start})"])
