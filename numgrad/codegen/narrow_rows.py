"""Rows of few elements: functions such as ``exp`` are computed of several rows at once.

A loop of few turns has no use for vector instructions. So what leads to the functions of many rows
is stored first, then they are computed in one loop, and what follows them is done row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numgrad.base.tuning import SUM_BLOCK
from numgrad.codegen.expression import SCALAR
from numgrad.codegen.loop_passes import assigned, names_in, rewritten, walk
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Choice,
    Expression,
    Fold,
    For,
    If,
    Load,
    Name,
    Statement,
    Store,
    call,
    combine,
    plus,
    times,
)
from numgrad.codegen.scalar_ops import SCALAR_OPS

__all__ = ["functions_apart", "has_functions", "in_segments", "is_by_rows"]

_DEAR = frozenset(name for name, op in SCALAR_OPS.items() if op.flops >= SCALAR_OPS["exp"].flops)
_BEGIN, _END, _AT = "strip", "strip_end", "at_strip"

Lines = list[Statement]


def has_functions(nodes: Any) -> bool:
    """Whether something is computed that takes as long as ``exp``."""
    found = (node for node in walk(nodes) if type(node) is Name and node.module == SCALAR)
    return any(node.id in _DEAR for node in found)


def _as_it_is(loop: For) -> list[Statement]:
    return [loop]


def functions_apart(
    rows: For,
    length: Expression,
    room: Callable[[str], str],
    is_real: Callable[[str], bool],
    counted: Callable[[For], list[Statement]] = _as_it_is,
    of_row: Collection[str] = (),
) -> list[Statement]:
    """Return a loop over rows as several, between which functions are computed of many rows.

    Parameters
    ----------
    rows : For
        In its body the loops over the elements of a row, of which each variable has one value.
    length : Expression
        How many elements a row has, at most those of a block.
    room : callable
        Returns the name of a new array, for the values of a variable in a block.
    is_real : callable
        Whether a variable is a real number.
    counted : callable
        Returns a loop over rows with what other indices it needs.
    of_row : collection of str
        Arrays that hold values of one row, for later loops over its elements.

    Examples
    --------
    >>> from numgrad.codegen.loops import Function
    >>> from numgrad.codegen.printer import print_module
    >>> x, y, place = Name("x"), Name("y"), plus(times("row", "n"), "i")
    >>> power = Assign("v", call(Name("exp", SCALAR), "u"))
    >>> body = [Assign("u", Load(x, place)), power, Store(y, place, Name("v"))]
    >>> rows = For("row", ZERO, Name("m"), [For("i", ZERO, Name("n"), body)])
    >>> lines = functions_apart(rows, Name("n"), lambda name: f"room_of_{name}", lambda name: True)
    >>> print(print_module([Function("f", ["x", "y", "m", "n"], lines)]).partition("def ")[2])
    f(x, y, m, n):
        for strip in range(0, m, 1024 // n):
            strip_end = min(strip + 1024 // n, m)
            for row in range(strip, strip_end):
                at_strip = (row - strip) * n
                for i in range(n):
                    u = element(x, row * n + i)
                    store(room_of_u, at_strip + i, u)
            for at_strip in range((strip_end - strip) * n):
                u = element(room_of_u, at_strip)
                v = scalar.exp(u)
                store(room_of_v, at_strip, v)
            for row in range(strip, strip_end):
                at_strip = (row - strip) * n
                for i in range(n):
                    v = element(room_of_v, at_strip + i)
                    store(y, row * n + i, v)
    <BLANKLINE>
    """
    loops = _Apart(rows, length, room, is_real, of_row).loops(list(rows.body))
    if len(loops) == 1:
        return counted(rows)
    lines: Lines = []
    for loop in loops:
        lines += counted(loop) if loop.index == rows.index else [loop]
    step = combine("//", SUM_BLOCK, length)
    end = call(Name("min"), combine("+", _BEGIN, step), rows.last)
    return [For(_BEGIN, rows.first, rows.last, [Assign(_END, end), *lines], step)]


def in_segments(rows: For, loops: Sequence[tuple[str, Expression]]) -> list[Statement]:
    """Return a loop over rows that are those of several loops, with the indices of these.

    It is one over the last of them within one over the others: so LLVM sees by how much each row
    moves on, and nothing is divided for it.

    Parameters
    ----------
    rows : For
    loops : sequence of tuple
        The index of each, and how many turns it has.

    Examples
    --------
    >>> from numgrad.codegen.loops import Function
    >>> from numgrad.codegen.printer import print_module
    >>> body = [Store(Name("x"), Name("row"), plus("i", "j"))]
    >>> rows = For("row", Name("first"), Name("last"), body)
    >>> lines = in_segments(rows, [("i", Name("m")), ("j", Name("n"))])
    >>> function = Function("f", ["x", "first", "last", "m", "n"], lines)
    >>> print(print_module([function]).partition("def ")[2])
    f(x, first, last, m, n):
        at_segment = first // n
        i = at_segment
        for segment in range(first // n, (last + n - 1) // n):
            base = segment * n
            begin = first - base if first > base else 0
            for j in range(begin, min(last - base, n)):
                row = base + j
                store(x, row, i + j)
            i = i + 1
    <BLANKLINE>
    """
    *others, (index, size) = loops
    if not others:
        return [rows]
    rest, base = Name("at_segment"), Name("base")
    lines: Lines = [Assign(rest.id, combine("//", rows.first, size))]
    for each, turns in reversed(others[1:]):
        lines.append(Assign(each, combine("%", rest, turns)))
        lines.append(Assign(rest.id, combine("//", rest, turns)))
    is_within = combine(">", rows.first, base)
    begin = Choice(is_within, combine("-", rows.first, base), ZERO)
    end = call(Name("min"), combine("-", rows.last, base), size)
    row = Assign(rows.index, plus(base, index))
    body: Lines = [
        Assign(base.id, times("segment", size)),
        Assign("begin", begin),
        For(index, Name("begin"), end, [row, *rows.body]),
    ]
    moved: Lines = []
    for each, turns in others:
        is_end = If(combine("==", each, turns), [Assign(each, ZERO), *moved])
        moved = [Assign(each, plus(each, 1)), *([is_end] if moved else [])]
    segments = combine("//", combine("-", plus(rows.last, size), 1), size)
    over = For("segment", combine("//", rows.first, size), segments, [*body, *moved])
    return [*lines, Assign(others[0][0], rest), over]


def is_by_rows(rows: For) -> bool:
    """Whether a loop over rows does nothing in one of them that goes on in the next."""
    return all(_is_plain(line, rows.index) for line in rows.body)


def _is_plain(line: Statement, rows: str) -> bool:
    match line:
        case For(body=body):
            return all(_is_plain(each, rows) for each in body)
        case Fold(run=run, whole=whole, place=place):
            return place is not None or (run != rows and not whole)
    return type(line) in (Assign, Store)


@dataclass
class _Row:
    """A loop over the elements of a row, with what is in front of it and behind."""

    before: Lines
    loop: For
    after: Lines


class _Apart:
    """The loops that a loop over rows becomes."""

    def __init__(
        self,
        rows: For,
        length: Expression,
        room: Callable[[str], str],
        is_real: Callable[[str], bool],
        of_row: Collection[str],
    ) -> None:
        self.rows, self.length, self.is_real = rows, length, is_real
        self.of_row = of_row
        self.new_room = room
        self.rooms: dict[tuple[str, bool], Name] = {}

    def loops(self, body: Lines) -> list[For]:
        """Return loops over the rows of a strip that do what stands in a row."""
        for k, line in enumerate(body):
            if has_functions(line):
                before, after, found = body[:k], body[k + 1 :], None
                if type(line) is For:
                    found = self._split(_Row(before, line, after))
                elif type(line) is Assign:
                    found = self._split_at(before, line, after)
                if found is not None:
                    first, functions, rest = found
                    return [self._over_rows(first), functions, *self.loops(rest)]
        return [self._over_rows(body)]

    def _over_rows(self, body: Lines) -> For:
        at = Assign(_AT, times(combine("-", self.rows.index, _BEGIN), self.length))
        return For(self.rows.index, Name(_BEGIN), Name(_END), [at, *body])

    def _split(self, row: _Row) -> tuple[Lines, For, Lines] | None:
        """Return what leads to the functions of a row, these, and the rest; None if it can't be."""
        loop = row.loop
        made = {line.target: line for line in loop.body if type(line) is Assign}
        flat = _leading_to_functions(made)
        inside = [made[name] for name in flat]
        of_row = _targets(row.before)
        taken = [n for n in names_in(inside) if n not in flat and (n in made or n in of_row)]
        done = [line for line in loop.body if type(line) is not Assign]
        copies = self._copies(done, loop, flat)
        own = [line for line in done if type(line) is not Store or line.array not in copies]
        rest = _needed(own, made, flat)
        given = [name for name in flat if name in {*names_in(rest), *copies.values()}]
        is_alone = not any(type(n) is Load or n == Name(loop.index) for n in walk(inside))
        if not is_alone or not all(map(self.is_real, [*taken, *given])):
            return None
        offset = plus(_AT, _from_first(loop))
        first = _needed([Store(self._room(n), offset, Name(n)) for n in taken], made, [])
        loaded: Lines = [Assign(n, Load(self._room(n), offset)) for n in given]
        rooms = {array: self._room(name) for array, name in copies.items()}
        after = self._from_rooms(row.after, rooms, loop.first)
        again = [*([replace(loop, body=[*loaded, *rest])] if rest else []), *after]
        handed = self._handed_on(row.before, again)
        if handed is None:
            return None
        stored, before = handed
        leading = [*row.before, *stored, replace(loop, body=first)]
        following = [*before, *again]
        if _written(row.before) & _read(again) or _written(again) & _read(leading):
            return None
        at = Name(_AT)
        functions: Lines = [
            *(Assign(n, Load(self._room(n), at)) for n in taken),
            *inside,
            *(Store(self._room(n), at, Name(n)) for n in given),
        ]
        count = times(combine("-", _END, _BEGIN), self.length)
        return leading, For(_AT, ZERO, count, functions), following

    def _copies(self, lines: Lines, loop: For, flat: Sequence[str]) -> dict[Expression, str]:
        """Return the arrays that keep for a row what the room of a function has, and of which."""
        found: dict[Expression, str] = {}
        for line in lines:
            match line:
                case Store(Name(id) as array, Name(at, ""), Name(value, "")):
                    if id in self.of_row and at == loop.index and value in flat:
                        found[array] = value
        return found

    def _from_rooms(self, lines: Lines, rooms: dict[Expression, Name], first: Expression) -> Lines:
        """Return lines that read in rooms of a strip what arrays of a row had."""

        def change(node: Any) -> Any:
            if type(node) is not Load or node.array not in rooms:
                return node
            at = node.index if first == ZERO else combine("-", node.index, first)
            return Load(rooms[node.array], plus(_AT, at))

        changed: Lines = rewritten(lines, change) if rooms else lines
        return changed

    def _split_at(
        self, before: Lines, line: Assign, after: Lines
    ) -> tuple[Lines, For, Lines] | None:
        """Return what `_split` does, of a function that is computed once of each row."""
        of_row, index = _targets(before), combine("-", self.rows.index, _BEGIN)
        taken = [name for name in names_in(line.value) if name in of_row]
        is_alone = not any(type(n) is Load or n == Name(self.rows.index) for n in walk(line.value))
        if not is_alone or not all(map(self.is_real, [*taken, line.target])):
            return None
        rooms = {name: self._room(name, of_row=True) for name in [*taken, line.target]}
        again: Lines = [Assign(line.target, Load(rooms[line.target], index)), *after]
        handed = self._handed_on(before, again)
        if handed is None:
            return None
        stored, known = handed
        arguments: Lines = [Store(rooms[name], index, Name(name)) for name in taken]
        leading = [*before, *arguments, *[each for each in stored if each not in arguments]]
        if _written(before) & _read(again) or _written(again) & _read(leading):
            return None
        at = Name(_AT)
        functions: Lines = [
            *(Assign(name, Load(rooms[name], at)) for name in taken),
            line,
            Store(rooms[line.target], at, Name(line.target)),
        ]
        return leading, For(_AT, ZERO, combine("-", _END, _BEGIN), functions), [*known, *again]

    def _handed_on(self, before: Lines, again: Lines) -> tuple[Lines, Lines] | None:
        """Return what stores what later loops know of a row, and what knows it again there."""
        of_row, index = _targets(before), combine("-", self.rows.index, _BEGIN)
        wanted = [name for name in names_in(again) if name in of_row]
        numbers = [name for name in wanted if self.is_real(name)]
        found = {name for name in wanted if name not in numbers}
        lines: Lines = []
        for line in reversed(before):
            if type(line) is Assign and line.target in found:
                lines.insert(0, line)
                found |= {n for n in names_in(line.value) if n in of_row and not self.is_real(n)}
                if any(map(self.is_real, names_in(line.value))):
                    return None
        if found - assigned(lines):
            return None
        rooms = {name: self._room(name, of_row=True) for name in numbers}
        stored: Lines = [Store(rooms[n], index, Name(n)) for n in numbers]
        return stored, [*(Assign(n, Load(rooms[n], index)) for n in numbers), *lines]

    def _room(self, name: str, *, of_row: bool = False) -> Name:
        """Return the array of a variable's values: for each element, or for each row."""
        key = name, of_row
        if key not in self.rooms:
            self.rooms[key] = Name(self.new_room(name))
        return self.rooms[key]


def _leading_to_functions(made: dict[str, Assign]) -> list[str]:
    """Return the functions, and what of them other ones are computed of."""
    late: set[str] = set()
    for name, line in made.items():
        if has_functions(line.value) or late & names_in(line.value).keys():
            late.add(name)
    flat: set[str] = set()
    for name, line in reversed(made.items()):
        if name in late and (name in flat or has_functions(line.value)):
            flat |= {name, *(late & names_in(line.value).keys())}
    return [name for name in made if name in flat]


def _needed(lines: Lines, made: dict[str, Assign], known: Iterable[str]) -> Lines:
    """Return lines, and in front of them what they are computed from, up to what is known."""
    wanted, known = set(names_in(lines)), set(known)
    before: Lines = []
    for name, line in reversed(made.items()):
        if name in wanted and name not in known:
            before.insert(0, line)
            wanted |= names_in(line.value).keys()
    return [*before, *lines]


def _from_first(loop: For) -> Expression:
    return Name(loop.index) if loop.first == ZERO else combine("-", loop.index, loop.first)


def _targets(lines: Lines) -> set[str]:
    """Return what lines of a row give a value."""
    folds = {each.target for each in walk(lines) if type(each) is Fold and each.place is None}
    return assigned(lines) | folds


def _written(lines: Lines) -> set[str]:
    stored = {node.array for node in walk(lines) if type(node) is Store}
    added = {node.target for node in walk(lines) if type(node) is Fold and node.place is not None}
    return added | {array.id for array in stored if type(array) is Name}


def _read(lines: Lines) -> set[str]:
    loaded = {node.array for node in walk(lines) if type(node) is Load}
    return {array.id for array in loaded if type(array) is Name}
