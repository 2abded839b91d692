"""A pass over the loop IR: integers that are known are written where they are used.

Programs for given sizes say what these are in their first lines. With that, most of what serves
other sizes goes: loops of one turn, blocks of one block, what combines a single value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.base.tuning import SUM_BLOCK
from numgrad.codegen.loop_passes import names_in, rewritten, walk
from numgrad.codegen.loops import (
    SIGNS,
    ZERO,
    Assign,
    Break,
    Call,
    Do,
    Expression,
    For,
    If,
    Infix,
    Load,
    Name,
    Number,
    Statement,
    Store,
    Unpack,
    While,
    call,
    plus,
    times,
)

__all__ = ["with_numbers"]

_RUNTIME = "numgrad.codegen.fold_runtime"


def with_numbers(statements: Sequence[Statement]) -> list[Statement]:
    """Return statements in which integers that are known stand in the place of variables.

    Parameters
    ----------
    statements : sequence of Statement
        Without a `Fold` in them. What they assign nobody else reads.

    Examples
    --------
    >>> from numgrad.codegen.loops import Function, combine
    >>> from numgrad.codegen.printer import print_module
    >>> x, i = Name("x"), Name("i")
    >>> body = [Store(x, plus("lo", i), Load(x, combine("*", "n", i)))]
    >>> lines = [Assign("n", Number(1)), For("lo", ZERO, Name("n"), [For("i", ZERO, i, body)])]
    >>> print(print_module([Function("f", ["x", "i"], with_numbers(lines))]).partition("def ")[2])
    f(x, i):
        for i in range(i):
            store(x, i, element(x, i))
    <BLANKLINE>
    """
    lines = _Known().of(statements)
    read = names_in(lines)

    def change(node: Any) -> Any:
        unread = type(node) is Assign and type(node.value) is Number and node.target not in read
        return [] if unread else node

    return rewritten(lines, change)


class _Known:
    """What is known after the statements so far."""

    def __init__(self) -> None:
        self.numbers: dict[str, Number] = {}

    def of(self, statements: Sequence[Statement]) -> list[Statement]:
        lines: list[Statement] = []
        for line in statements:
            lines += self._statement(line)
        return lines

    def _statement(self, line: Statement) -> list[Statement]:
        match line:
            case For():
                return self._for(line)
            case While(condition, body):
                self._forget(body)
                return [While(self._value(condition), self._apart(body))]
            case If(condition, then, otherwise):
                condition = self._value(condition)
                if isinstance(condition, Number):
                    return self.of(then if condition.value else otherwise)
                choices = [self._apart(each) for each in (then, otherwise)]
                self._forget((*then, *otherwise))
                return [If(condition, *choices)]
            case Store(array, index, value, origin, False):
                array, value = self._value(array), self._value(value)
                return [Store(array, self._index(index), value, origin)]
            case Do(value, origin):
                return [_done(Do(self._value(value), origin))]
            case Assign(target, value, origin):
                value = self._value(value)
                if isinstance(value, Number) and type(value.value) is int:
                    self.numbers[target] = value
                else:
                    self.numbers.pop(target, None)
                return [Assign(target, value, origin)]
        self._forget([line])
        return [rewritten(line, self._changed)]

    def _for(self, loop: For) -> list[Statement]:
        first, last, step = (self._index(each) for each in (loop.first, loop.last, loop.step))
        bounds = [each.value for each in (first, last, step) if isinstance(each, Number)]
        if len(bounds) == 3:
            turns = range(*bounds)
            if not turns:
                return []
            if len(turns) == 1 and not any(type(each) is Break for each in walk(loop.body)):
                return self.of([Assign(loop.index, Number(turns[0])), *loop.body])
        self._forget([loop])
        return [For(loop.index, first, last, self._apart(loop.body), step)]

    def _apart(self, body: Sequence[Statement]) -> list[Statement]:
        """Return statements that run or not, and forget what they assign."""
        before = dict(self.numbers)
        lines = self.of(body)
        self.numbers = before
        self._forget(body)
        return lines

    def _forget(self, statements: Sequence[Statement]) -> None:
        for node in walk(list(statements)):
            match node:
                case Assign(target):
                    self.numbers.pop(target, None)
                case Unpack(targets):
                    for target in targets:
                        self.numbers.pop(target, None)
                case For(index):
                    self.numbers.pop(index, None)

    # --- expressions ---

    def _value(self, node: Expression) -> Any:
        return rewritten(node, self._changed)

    def _index(self, node: Expression) -> Expression:
        """Return an expression for an integer, in which nothing is added that is 0."""

        def change(part: Any) -> Any:
            match self._changed(part):
                case Infix("+", left, right):
                    return plus(left, right)
                case Infix("*", left, right):
                    return ZERO if ZERO in (left, right) else times(left, right)
                case Infix("-", left, Number(0)):
                    return left
                case changed:
                    return changed

        return rewritten(node, change) if not _loads(node) else self._value(node)

    def _changed(self, node: Any) -> Any:
        """Return an expression, of whose parts what is known is known."""
        match node:
            case Name(name, ""):
                return self.numbers.get(name, node)
            case Infix(sign, Number(left), Number(right)) if _are_integers(left, right):
                known = SIGNS.get(sign)
                if known is None or not known.keeps_integers:
                    return node
                return Number(known.operator(left, right))
            case Call(Name("min"), (Number(left), Number(right))) if _are_integers(left, right):
                return Number(min(left, right))
            case Call(Name("stride"), (Number() as known,)):
                return known
            case Call(Name(name, module), arguments) if module == _RUNTIME:
                return _combined(name, arguments, node)
            case Load(array, index, False):
                return Load(array, self._index(index))
        return node


def _are_integers(*values: Any) -> bool:
    return all(type(value) is int for value in values)


def _loads(node: Expression) -> bool:
    """Whether an expression reads an array, whose elements may be no integers."""
    return any(type(each) in (Load, Call) for each in walk(node))


def _combined(name: str, arguments: tuple[Expression, ...], node: Call) -> Expression:
    """Return what is left of a call that combines as many values as there are."""
    what, _, kind = name.partition("_")
    match what, arguments:
        case "total" | "merged", (array, Number(1), _):
            return Load(array, ZERO)
        case "fold", (array, Number(count), nothing) if count <= SUM_BLOCK:
            return call(Name(f"run_{kind}", _RUNTIME), array, 0, count, nothing)
    return node


def _done(line: Do) -> Statement:
    """Return what is left of a call that is there for what it does."""
    match line.value:
        case Call(Name(name, module), (levels, Number(0), value, _)) if module == _RUNTIME:
            if name.startswith("merge_"):
                return Store(levels, ZERO, value, line.origin)
    return line
