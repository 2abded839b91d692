"""Fuse loop nests by blocks: nests that run together, a block of each after the other.

What several of them read then comes from memory once, as if they were one nest. They need not be
over the same domain: the sum over a slice and the gradient of the whole are neighbours.
"""

from __future__ import annotations

from numgrad.jit.ir.graph import Value
from numgrad.jit.schedule.index_maps import LEAVES
from numgrad.jit.schedule.nests import Nest, writes_over
from numgrad.jit.schedule.schedule import Schedule

__all__ = ["find_bands"]


def find_bands(plan: Schedule) -> list[range]:
    """Return all nests of a schedule, by their positions, those together that are done so.

    They are neighbours, none needs what another one makes, and each reads something that one before
    it reads too, or has a single element.
    """
    bands: list[range] = []
    made: set[Value] = set()
    read: set[Value] = set()
    for position, nest in enumerate(plan.steps):
        if not isinstance(nest, Nest):
            continue
        last = bands[-1] if bands else None
        needs, reads = _memory_of(plan, nest, position)
        if (
            last is not None
            and last.stop == position
            and not needs & made
            and (not nest.domain or reads & read)
            and all(_is_flat(plan, member) for member in (*last, position))
        ):
            bands[-1] = range(last.start, position + 1)
        else:
            bands.append(range(position, position + 1))
            made, read = set(), set()
        made.update(output.value for output in nest.outputs)
        made.update(nest.checks)
        read |= reads
    return bands


def _is_flat(plan: Schedule, position: int) -> bool:
    """Whether a step is a nest that visits elements only, each once, in any order, and has some."""
    nest = plan.steps[position]
    sizes = plan.elements.dims.values
    return isinstance(nest, Nest) and nest.is_flat and all(sizes[name] for name in nest.domain)


def _memory_of(plan: Schedule, nest: Nest, position: int) -> tuple[set[Value], set[Value]]:
    """Return what must be in memory before a nest, and what it reads."""
    reads = {
        element[0]
        for root, stored in plan.roots(nest)
        for element in plan.walk([(root, stored)], position)
        if plan.is_read(element, position, stored=stored and element == root)
    }
    needs = {value for value in reads if value.operation not in LEAVES}
    needs -= {output.value for output in nest.outputs}
    for output in nest.outputs:
        if writes_over(output):
            needs |= {output.value, plan.in_place.get(output.value, output.value)}
    return needs, reads
