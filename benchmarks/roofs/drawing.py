"""Draw rooflines: on log-log axes, the limits of a machine, and where kernels are below them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

__all__ = ["draw"]

COLOURS = {  # of Okabe and Ito, which the colour-blind can tell apart
    "functions": "#0072b2",
    "layouts": "#e69f00",
    "reductions": "#009e73",
    "gradients": "#d55e00",
}
LEGEND = {**{group: group for group in COLOURS}, "gradients": "gradients, marked \u2032"}
INK, PALE = "#333333", "#999999"
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "numgrad",  # the same picture is the same file
    "font.size": 9,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
# Where a label may be, from its point: nearest first.
DISTANCES = (5, 8, 12, 18, 26, 36, 48, 62, 78, 96, 116, 138, 162)
ANGLES = np.linspace(0, 2 * math.pi, 32, endpoint=False)


def draw(path: Path, kernels: Sequence[Any], machines: dict[int, Any]) -> None:
    """Write a picture with a field for each dtype: kernels on the most threads, and all limits."""
    threads = max(machines)
    speeds = [kernel.operations / kernel.seconds[threads] / 1e9 for kernel in kernels]
    intensities = [kernel.intensity for kernel in kernels]
    highest = max(machines[threads].peak.values()) / 1e9
    dtypes = list(dict.fromkeys(kernel.dtype for kernel in kernels))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(15, 8), dpi=72, facecolor="white")  # a point is a dot
        FigureCanvasAgg(figure)
        fields = figure.subplots(1, len(dtypes), sharex=True, sharey=True)
        figure.subplots_adjust(left=0.04, right=0.99, bottom=0.065, top=0.96, wspace=0.04)
        for field, dtype in zip(fields, dtypes, strict=True):
            field.set(xscale="log", yscale="log", title=dtype)
            field.set_xlim(min(intensities) / 1.8, 6 * max(intensities))
            field.set_ylim(min(speeds) / 1.5, 1.5 * highest)
            field.set_xlabel("floating-point operations by byte of operands and results")
            for axis in (field.xaxis, field.yaxis):
                axis.set_major_formatter("{x:g}")
            field.spines[["top", "right"]].set_visible(False)
            field.grid(which="major", color="#eeeeee")
            field.set_axisbelow(True)
            lines: list[Any] = []
            notes: list[Bbox] = []
            for number, machine in sorted(machines.items()):
                _limits(field, dtype, number, machine, number == threads, lines, notes)
            own = [kernel for kernel in kernels if kernel.dtype == dtype]
            _points(field, own, threads, lines, notes)
        fields[0].set_ylabel("GFLOP/s")
        handles = [
            Line2D([], [], color=colour, marker="o", linestyle="", label=LEGEND[group])
            for group, colour in COLOURS.items()
        ]
        fields[0].legend(handles=handles, loc="upper left", frameon=False)
        figure.savefig(path, metadata={"Date": None})


def _limits(
    field: Any,
    dtype: str,
    threads: int,
    machine: Any,
    solid: bool,
    lines: list[Any],
    notes: list[Bbox],
) -> None:
    """Draw what some threads can reach; add where lines and notes are in the picture."""
    peak = machine.peak[dtype] / 1e9
    low, high = field.get_xlim()
    style = {"color": INK if solid else PALE, "linewidth": 1.3 if solid else 0.9}
    bandwidths = {"copied, ": machine.copy / 1e9, "read, ": machine.read / 1e9}
    if abs(math.log(machine.read / machine.copy)) < 0.15:  # it would be the same line
        bandwidths = {"": machine.copy / 1e9}
    for what, bandwidth in bandwidths.items():
        x = np.geomspace(low, high, 400)
        y = np.minimum(x * bandwidth, peak)
        field.plot(x, y, linestyle="--" if what == "read, " else "-", **style)
        lines.append(field.transData.transform(np.column_stack([x, y])))
        # Along the line, where few kernels are.
        at = 0.3 if what == "read, " else 0.6
        text = f"{bandwidth:.0f} GB/s, {what}{_of_threads(threads)}"
        slope = np.diff(lines[-1][:2], axis=0)[0]
        note = field.text(
            at,
            at * bandwidth,
            text,
            color=style["color"],
            rotation=math.degrees(math.atan2(slope[1], slope[0])),
            rotation_mode="anchor",
            ha="center",
            va="bottom",
        )
        # A row of small boxes: the one around a slanting text would take too much room.
        extent = note.get_window_extent()
        steps = np.linspace(extent.p0, extent.p1, 12)
        notes += [Bbox([step - 7, step + 7]) for step in steps]
    text = f"{peak:.0f} GFLOP/s, {_of_threads(threads)}"
    note = field.text(high, peak * 1.03, text, color=style["color"], ha="right", va="bottom")
    notes.append(note.get_window_extent())


def _of_threads(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _points(
    field: Any, kernels: Sequence[Any], threads: int, lines: list[Any], notes: list[Bbox]
) -> None:
    """Draw kernels, with their names where there is room."""
    places = np.array([(k.intensity, k.operations / k.seconds[threads] / 1e9) for k in kernels])
    centres = field.transData.transform(places)
    room = _Room(field, centres, np.concatenate(lines), notes)
    # Those with the most neighbours choose first.
    neighbours = [np.sum(np.hypot(*(centres - centre).T) < 80) for centre in centres]
    for position in np.argsort(neighbours, kind="stable")[::-1]:
        kernel, centre = kernels[position], centres[position]
        colour = COLOURS[kernel.group]
        field.plot(*places[position], "o", color=colour, markersize=5, zorder=3)
        name = kernel.name.replace("'", "\u2032")
        label = field.text(*places[position], name, color=colour, ha="center", va="center")
        extent = label.get_window_extent()
        half = np.array([extent.width, extent.height]) / 2 + 1.5
        middle, end = room.take(centre, half)
        back = field.transData.inverted().transform
        label.set_position(back(middle))
        if math.dist(end, centre) > 8:
            field.plot(*back([centre, end]).T, color=colour, linewidth=0.5, zorder=1)


class _Room:
    """Where labels may still be, in points of the picture."""

    def __init__(self, field: Any, centres: Any, roofs: Any, notes: list[Bbox]) -> None:
        self.area = field.get_window_extent()
        self.roofs = roofs
        self.points = [Bbox.from_extents(*(centre - 4), *(centre + 4)) for centre in centres]
        self.labels = list(notes)
        self.leaders: list[Any] = []  # some points of each

    def take(self, centre: Any, half: Any) -> tuple[Any, Any]:
        """Return the middle of the best place for a label, and where it is nearest to its point."""
        best: tuple[float, Any, Any] = (math.inf, None, None)
        for distance, angle in itertools.product(DISTANCES, ANGLES):
            direction = np.array([math.cos(angle), math.sin(angle)])
            # The edge of the label, not its middle, is that far away.
            reach = np.min(half / np.maximum(np.abs(direction), 1e-9))
            middle = centre + direction * (distance + reach)
            end = np.clip(centre, middle - half, middle + half)
            cost = self._cost(Bbox([middle - half, middle + half]), centre, end, best[0])
            if cost < best[0]:
                best = (cost, middle, end)
        _, middle, end = best
        self.labels.append(Bbox([middle - half, middle + half]))
        self.leaders.append(_along(centre, end))
        return middle, end

    def _cost(self, box: Bbox, centre: Any, end: Any, limit: float) -> float:
        """Return how bad a place is; what is above the limit need not be known."""
        cost = math.dist(centre, end)
        if cost >= limit:
            return cost
        if not (self.area.contains(*box.min) and self.area.contains(*box.max)):
            return math.inf
        cost += 500 * box.count_overlaps([*self.labels, *self.points])
        if cost >= limit:
            return cost
        cost += 30 * bool(box.count_contains(self.roofs))
        leader = _along(centre, end)
        cost += 200 * sum(bool(label.count_contains(leader)) for label in self.labels)
        for other in self.leaders:
            if cost >= limit:
                return cost
            cost += 200 * bool(box.count_contains(other))
            gaps = np.hypot(*(other[8:, None] - leader[None, 8:]).transpose(2, 0, 1))
            cost += 100 * bool(np.min(gaps) < 2)
        return cost


def _along(start: Any, end: Any) -> Any:
    return np.linspace(start, end, 24)
