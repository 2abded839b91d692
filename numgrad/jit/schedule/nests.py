"""What a schedule is made of: loop nests with their outputs, and steps that are no loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from numgrad.jit.ir.graph import Value

__all__ = ["LoopOutput", "Nest", "OpaqueStep", "writes_over"]


@dataclass(eq=False)
class LoopOutput:
    """Something to compute that goes to memory.

    Attributes
    ----------
    kind : str
        ``"store"``, ``"window"`` (the part of an update or join), ``"scatter"`` (that of a
        scatter), ``"reduce"``, or ``"copy"`` (a reduction over nothing).
    value : Value
        What it is, or is a part of.
    source : Value
        What is computed at every element of the domain.
    domain : tuple of str
        The names of the sizes of the loops.
    reduced : frozenset of int
        The loops that a reduction runs over.
    axes : tuple of int
        The loops of the nest that these are.
    number : int
        Which of the operands the part is.
    """

    kind: str
    value: Value
    source: Value
    domain: tuple[str, ...]
    reduced: frozenset[int] = frozenset()
    axes: tuple[int, ...] = ()
    number: int = 1


@dataclass(eq=False)
class OpaqueStep:
    """A matrix product or a call of a primitive."""

    value: Value


@dataclass(eq=False)
class Nest:
    """Loops over a domain, and what they compute.

    When they are done, each of the `checks` raises if what it goes by says so.
    """

    domain: tuple[str, ...]
    outputs: list[LoopOutput] = field(default_factory=list)
    inner: frozenset[int] | None = None
    blocked: frozenset[int] | None = None
    checks: list[Value] = field(default_factory=list)

    @property
    def is_flat(self) -> bool:
        """Whether it visits elements only, each once, in any order."""
        return not self.inner and not self.blocked and not self.is_serial

    @property
    def has_totals(self) -> bool:
        """Whether elements of the domain are reduced to one number."""
        return any(len(output.reduced) == len(self.domain) for output in self.outputs)

    @property
    def has_complex_blocks(self) -> bool:
        """Whether complex numbers are reduced across the steps."""
        return any(
            output.reduced == self.blocked and output.value.dtype.kind == "c"
            for output in self.outputs
        )

    @property
    def is_serial(self) -> bool:
        """Whether the elements must be visited in order."""
        return any(output.kind == "scatter" for output in self.outputs)

    @property
    def rows(self) -> tuple[int, ...]:
        """The axes that are not inner."""
        inner = self.inner or frozenset()
        return tuple(axis for axis in range(len(self.domain)) if axis not in inner)


def writes_over(output: LoopOutput) -> bool:
    """Whether an output writes over what another one has written."""
    return output.kind in ("window", "scatter") and output.value.operation in ("update", "scatter")
