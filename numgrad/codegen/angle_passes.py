"""Passes over loops with sines in them, which have branches: for angles that are far from 0.

LLVM does not vectorise loops with branches. There are three ways without them: two loops, of which
one does without (`blocked_angles`); to suppose that no angle is far and to note if one was
(`near_angles`); to have kernels of their own compute the sines of a block, between two loops over
the rest (`phases`). A sine has the same bits in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from numgrad.base.tuning import ANGLE_BLOCK, ANGLE_ROOMS, FEW_OPERATIONS
from numgrad.codegen.expression import SCALAR, scalar
from numgrad.codegen.loop_passes import calls, names_in, rewritten, walk
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Call,
    Choice,
    Do,
    Expression,
    For,
    If,
    Infix,
    Load,
    Name,
    Number,
    Prefix,
    Statement,
    Store,
    call,
    combine,
    names,
)
from numgrad.codegen.scalar_ops import SCALAR_OPS

__all__ = ["angles_in", "blocked_angles", "near_angles", "phases"]

_ANGLES = frozenset(name for name, op in SCALAR_OPS.items() if op.of_angle)
_KERNELS = "numgrad.math.angle_blocks"
_OF_A_FUNCTION = 1000  # operations: what a function counts as


def _sine(node: Any) -> tuple[str, str] | None:
    """Return which function of which variable something is, if it is a sine, cosine or tangent."""
    match node:
        case Call(Name(function, module), (Name(angle),)):
            return (function, angle) if module == SCALAR and function in _ANGLES else None
    return None


def _any(variable: str) -> bool:
    return True


def angles_in(nodes: Any, is_real: Callable[[str], bool] = _any) -> list[str]:
    """Return the variables that sines and so on are computed of, once for each of these.

    Of those that are not real, the passes here leave them as they are.
    """
    found = [sine[1] for sine in map(_sine, walk(nodes)) if sine is not None]
    return [angle for angle in found if is_real(angle)]


def _replaced(body: Sequence[Statement], way: str, angles: Sequence[str]) -> Sequence[Statement]:
    """Return statements with another function for each sine of some angles."""

    def change(node: Any) -> Any:
        sine = _sine(node)
        if sine is None or sine[1] not in angles:
            return node
        return Call(scalar(f"{sine[0]}_{way}"), node.arguments)

    changed: Sequence[Statement] = rewritten(body, change)
    return changed


def _noted(angle: Expression) -> Statement:
    return Assign("far", combine("|", "far", call(scalar("is_far"), angle)))


def _with_signs(loop: For, reads: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return what is read, also for what differs from it in its sign: that is as far from 0."""
    found = dict(reads)
    for line in loop.body:
        match line:
            case Assign(target, Prefix("-", Name(read)) | Call(Name("abs"), (Name(read),))):
                if read in found:
                    found[target] = found[read]
    return found


def blocked_angles(loop: For, reads: Mapping[str, Expression]) -> list[Statement]:
    """Return a loop as two, if it has sines of what it reads in it, else as it is.

    Which of the two runs is decided, block by block, by one look at the angles, which may have
    another sign than what is read.

    Parameters
    ----------
    reads : mapping
        For the variable of each operand that is a real array, how its i-th element is read.
    """
    reads = _with_signs(loop, reads)
    found = sorted({angle for angle in angles_in(loop.body) if angle in reads})
    if not found:
        return [loop]

    def over(body: Sequence[Statement]) -> For:
        # Of an index that may be negative Numba makes a choice, which LLVM does not vectorise.
        (unsigned,) = names("numpy", "uintp")
        return For(loop.index, call(unsigned, "block"), call(unsigned, "end"), body)

    apart, near = (over(_replaced(loop.body, way, found)) for way in ("apart", "near"))
    body: list[Statement] = [
        Assign("end", combine("+", "block", ANGLE_BLOCK)),
        Assign("end", Choice(combine("<", "end", loop.last), Name("end"), loop.last)),
        Assign("far", Number(False)),
        over([_noted(angle) for angle in dict.fromkeys(reads[angle] for angle in found)]),
        If(Name("far"), [apart], [near]),
    ]
    return [For("block", loop.first, loop.last, body, Number(ANGLE_BLOCK))]


def near_angles(loop: For, is_real: Callable[[str], bool] = _any) -> For:
    """Return a loop that computes sines as if no angle was far; ``far`` is set if one was."""
    body: list[Statement] = []
    for line in loop.body:
        found = dict.fromkeys(angles_in(line, is_real))
        body += [_noted(Name(angle)) for angle in found]
        body += _replaced([line], "near", list(found))
    return For(loop.index, loop.first, loop.last, body, loop.step)


def _alike(variable: str) -> Any:
    return None


def phases(
    loop: For,
    room: Callable[[str], str],
    is_real: Callable[[str], bool] = _any,
    kind: Callable[[str], Any] = _alike,
) -> list[Statement]:
    """Return a loop as several: before each but for the first one, sines are computed of a block.

    Each loop, or *phase*, computes what is needed in it, from the sines there are by then, and from
    what earlier ones have handed on: what takes more than a few operations is computed once. The
    last one stores what the loop did.

    Parameters
    ----------
    loop : For
        Of a block at most. Its body gives each variable one value.
    room : callable
        Returns the name of a new array, for the values of a variable in a block.
    is_real : callable
        Whether a variable is a real number.
    kind : callable
        Returns what variables have in common whose values can be, in turns, in the same array.

    Examples
    --------
    >>> from numgrad.codegen.printer import print_module
    >>> from numgrad.codegen.loops import Function
    >>> i, x, y = Name("i"), Name("x"), Name("y")
    >>> lines = [Assign("u", Load(x, i)), Assign("v", call(scalar("sin"), "u"))]
    >>> loop = For("i", Name("lo"), Name("hi"), [*lines, Store(y, i, Name("v"))])
    >>> lines = phases(loop, lambda name: f"room_of_{name}")
    >>> print(print_module([Function("f", ["x", "y", "lo", "hi"], lines)]).partition("def ")[2])
    f(x, y, lo, hi):
        near_sin(x, lo, hi - lo, room_of_v)
        for i in range(lo, hi):
            v = element(room_of_v, i - lo)
            store(y, i, v)
    <BLANKLINE>
    """
    found = angles_in(loop.body, is_real)
    return _Phases(loop, room, is_real, kind).statements() if found else [loop]


def _room_of(variable: str) -> str:
    """Return what stands for the array of a variable until its name is known."""
    return f"{variable} of a block"


class _Phases:
    """The loops that a loop becomes."""

    def __init__(
        self,
        loop: For,
        room: Callable[[str], str],
        is_real: Callable[[str], bool],
        kind: Callable[[str], Any],
    ) -> None:
        self.loop, self.room, self.is_real, self.kind = loop, room, is_real, kind
        self.offset = combine("-", loop.index, loop.first)
        self.made: dict[str, Assign] = {
            line.target: line for line in loop.body if type(line) is Assign
        }
        self.needs: dict[str, list[str]] = {}
        self.depth: dict[str, int] = {}  # how many sines are inside each other
        self.sines: dict[str, tuple[str, str]] = {}  # of which function and angle each is
        for target, line in self.made.items():
            self.needs[target] = [name for name in names_in(line.value) if name in self.made]
            self.depth[target] = max([self.depth[name] for name in self.needs[target]], default=0)
            sine = _sine(line.value)
            if sine is not None and sine[1] in self.made and is_real(sine[1]):
                self.sines[target] = sine
                self.depth[target] += 1
        self.roots: list[list[str]] = [[] for _ in range(max(self.depth.values()) + 1)]
        self.places: dict[str, tuple[Name, Expression]] = {}  # of sines and angles, in arrays
        self.first: dict[str, int] = {}  # which phase needs something first, if none hands on
        self.kept: set[str] = set()  # what phases hand on to later ones
        self.costs: dict[str, int] = {}

    def statements(self) -> list[Statement]:
        """Return the phases, and the calls between them."""
        last = len(self.roots) - 1
        other = [line for line in self.loop.body if type(line) is not Assign]
        self.roots[last] += names_in(other)
        for phase, computed in self._wanted():
            for name in computed:
                self.first[name] = phase
        wanted = dict(self._wanted())
        lines: list[Statement] = []
        for phase in range(last + 1):
            computed = wanted[phase]
            body: list[Statement] = [self._computed(n, phase) for n in self.made if n in computed]
            if phase == last:
                body += other
            else:
                angles = self.roots[phase]
                body += [Store(self.places[n][0], self.offset, Name(n)) for n in angles]
            if body:
                lines.append(For(self.loop.index, self.loop.first, self.loop.last, body))
            lines += self._calls(phase)
        return self._with_rooms(lines)

    def _wanted(self) -> Iterator[tuple[int, set[str]]]:
        """Yield phases, from the last to the first, and what each has to know."""
        for phase in range(len(self.roots) - 1, -1, -1):
            wanted: set[str] = set()
            stack = [name for name in self.roots[phase] if name in self.made]
            while stack:
                name = stack.pop()
                if name not in wanted:
                    wanted.add(name)
                    if name in self.sines:
                        self._take(name)
                    elif self._is_handed_on(name, phase):
                        self._keep(name)
                    else:
                        stack += self.needs[name]
            yield phase, wanted

    def _with_rooms(self, lines: list[Statement]) -> list[Statement]:
        """Return lines with the names of arrays; where these are many, they serve several times.

        The stack has room for so many, and LLVM is quicker where each is written in one loop.
        """
        variables = {_room_of(name): name for name in self.places}
        last: dict[str, int] = {}
        for line, statement in enumerate(lines):
            last |= dict.fromkeys(names_in(statement).keys() & variables.keys(), line)
        named: dict[str, Name] = {}
        free: dict[Any, list[Name]] = {}
        made = 0
        for line, statement in enumerate(lines):
            here = [each for each in names_in(statement) if each in variables]
            for each in here:
                if each not in named:
                    idle = free.get(self.kind(variables[each])) if made >= ANGLE_ROOMS else None
                    named[each] = idle.pop(0) if idle else Name(self.room(variables[each]))
                    made += not idle
            for each in here:
                if last[each] == line:
                    free.setdefault(self.kind(variables[each]), []).append(named[each])

        def renamed(node: Any) -> Any:
            return named.get(node.id, node) if type(node) is Name else node

        found: list[Statement] = rewritten(lines, renamed)
        return found

    def _take(self, name: str) -> None:
        """Have a sine computed between phases, and its angle be in memory by then."""
        if name in self.places:
            return
        self.places[name] = Name(_room_of(name)), ZERO
        angle = self.sines[name][1]
        if angle in self.sines:
            self._take(angle)
        elif angle not in self.places:
            found = self._place(angle)
            if found is None:
                found = Name(_room_of(angle)), ZERO
                self.roots[self.depth[name] - 1].append(angle)
            self.places[angle] = found

    def _is_handed_on(self, name: str, phase: int) -> bool:
        """Whether a phase finds in memory what it needs, since an earlier one needs it, too."""
        is_known = self.first.get(name, phase) < phase
        return is_known and self.is_real(name) and self._cost(name) > FEW_OPERATIONS

    def _keep(self, name: str) -> None:
        """Have the first phase that needs something hand it on."""
        self.kept.add(name)
        if name not in self.places:
            self.places[name] = Name(_room_of(name)), ZERO
            self.roots[self.first[name]].append(name)

    def _cost(self, name: str) -> int:
        """Return how many operations lead from memory to something; a function counts as many."""
        found = self.costs.get(name)
        if found is None:
            value = self.made[name].value
            found = 0
            if name not in self.sines:
                is_function = calls(value, SCALAR)
                own = 0 if type(value) is Load else _OF_A_FUNCTION if is_function else 1
                found = min(
                    _OF_A_FUNCTION, own + sum([self._cost(each) for each in self.needs[name]])
                )
            self.costs[name] = found
        return found

    def _computed(self, name: str, phase: int) -> Statement:
        line = self.made[name]
        if name not in self.sines and not (name in self.kept and self.first[name] < phase):
            return line
        return Assign(name, Load(self.places[name][0], self.offset), line.origin)

    def _place(self, angle: str) -> tuple[Name, Expression] | None:
        """Return where the angles of a block lie side by side in an array that is read."""
        index, first = Name(self.loop.index), self.loop.first
        match self.made[angle].value:
            case Load(Name() as array, place, False) if _counts(place, self.loop.index):
                return array, rewritten(place, lambda node: first if node == index else node)
        return None

    def _calls(self, phase: int) -> list[Statement]:
        """Return what computes sines of the angles that are known after a phase."""
        of_angle: dict[str, list[str]] = {}
        for name in self.made:
            if name in self.places and name in self.sines and self.depth[name] == phase + 1:
                of_angle.setdefault(self.sines[name][1], []).append(name)
        lines: list[Statement] = []
        length = combine("-", self.loop.last, self.loop.first)
        for angle, found in of_angle.items():
            source, start = self.places[angle]
            for together in self._together(found):
                near = "_".join(["near", *(self.sines[name][0] for name in together)])
                rooms = [self.places[name][0] for name in together]
                filled = call(Name(near, _KERNELS), source, start, length, *rooms)
                lines.append(Do(filled, self.made[together[0]].origin))
        return lines

    def _together(self, found: list[str]) -> list[list[str]]:
        """Return what to compute in one go of the sines and so on of an angle: sine and cosine."""
        sines, cosines = ([n for n in found if self.sines[n][0] == f] for f in ("sin", "cos"))
        pairs = [list(pair) for pair in zip(sines, cosines, strict=False)]
        return [*pairs, *([name] for name in found if not any(name in pair for pair in pairs))]


def _counts(place: Expression, index: str) -> bool:
    """Whether a place moves on by one with an index."""
    match place:
        case Infix("+", left, right):
            here, there = (index in names_in(term) for term in (left, right))
            return here != there and _counts(left if here else right, index)
        case Infix("-", left, right):
            return index not in names_in(right) and _counts(left, index)
    return place == Name(index)
