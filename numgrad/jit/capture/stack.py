"""Go through bytecode with sets of tokens in the place of values: what may come where.

What the tokens mean is for a `Meaning` to say (see `numgrad.jit.capture.meaning`). Here is what
instructions do with the stack of values: where those come from, and what is done with them.
Variables are not told apart by time: one holds whatever is stored in it anywhere.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush
from types import CodeType
from typing import Any, NamedTuple

from numgrad.jit.capture.meaning import NOTHING, Lost, Meaning, Tokens, Value
from numgrad.jit.capture.reads import instructions_of, is_subscript

__all__ = ["Run"]

_NULL = Value(is_null=True)
# fmt: off
_SILENT = frozenset((
    "CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "RESUME", "MAKE_CELL", "COPY_FREE_VARS",
    "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "SETUP_ANNOTATIONS",
    "DELETE_FAST", "DELETE_NAME", "DELETE_GLOBAL", "DELETE_DEREF", "KW_NAMES", "RETURN_CONST",
    "LIST_TO_TUPLE", "GET_ITER", "CALL_INTRINSIC_1", "FOR_ITER",
))
_PUSHES_NOTHING = frozenset((
    "LOAD_ASSERTION_ERROR", "LOAD_BUILD_CLASS", "LOAD_CLOSURE", "LOAD_COMMON_CONSTANT",
    "LOAD_LOCALS", "RETURN_GENERATOR", "MATCH_MAPPING", "MATCH_SEQUENCE",
    "WITH_EXCEPT_START",
))
_ONLY_POPS = frozenset((
    "POP_TOP", "POP_EXCEPT", "RAISE_VARARGS", "RERAISE", "END_FOR", "POP_ITER", "DELETE_ATTR",
    "PRINT_EXPR", "DELETE_SUBSCR",
))
_CONSTANT = frozenset(("LOAD_CONST", "LOAD_CONST_IMMORTAL", "LOAD_CONST_MORTAL", "LOAD_SMALL_INT"))
_FROM_DICT = frozenset(("LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS"))
_NAMES = _FROM_DICT | {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "IMPORT_NAME"}
_STORES = frozenset((
    "STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL", "STORE_FAST_MAYBE_NULL"
))
_ADDS = frozenset((
    "LIST_APPEND", "SET_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_MERGE", "DICT_UPDATE", "MAP_ADD"
))
_ENDS = frozenset((
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
))
# fmt: on
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class _Step(NamedTuple):
    """An instruction, and where it leads."""

    instruction: dis.Instruction
    handlers: tuple[tuple[int, int, int], ...]  # where, how much stays below, how much comes on top
    jump: tuple[int, int] | None  # where, and how much is on the stack then, more than before
    goes_on: bool


class Run:
    """The instructions of a function, what is on the stack before each, and which are to be done.

    Those that come first are done first, and again only for more that may be on the stack, or
    where `do` says so.
    """

    def __init__(self, code: CodeType, meaning: Meaning, frame: Any = None) -> None:
        self.meaning, self.frame = meaning, frame
        self.constants = code.co_consts
        self.steps = _read(code)
        self.stacks: dict[int, list[Value]] = {0: []}
        self.todo = [0]
        self.is_waiting = False
        self.plain = Value(meaning.of(None))

    def do(self, k: int) -> None:
        """Note that an instruction is to be done."""
        if k not in self.todo:
            heappush(self.todo, k)

    def advance(self) -> None:
        """Do one instruction; raises `Lost` if it is not known."""
        k = heappop(self.todo)
        before = self.stacks[k]
        instruction, handlers, jump, goes_on = self.steps[k]
        self.meaning.reader = self, k
        try:
            for target, depth, more in handlers:
                self.reach(target, before[:depth] + [NOTHING] * more)
            after = list(before)
            self.step(instruction, after, k)
            if jump is not None:
                self.reach(jump[0], [*before, NOTHING][: len(before) + jump[1]])
            if instruction.opname == "FOR_ITER":
                after.append(Value(self.meaning.items(after[-1].tokens)))
            if goes_on:
                self.reach(k + 1, after)
        except (IndexError, KeyError, AssertionError) as error:  # in a Python that is not known
            raise Lost from error

    def reach(self, k: int, stack: list[Value]) -> None:
        """Let an instruction be done with what is on the stack, or was there before."""
        known = self.stacks.get(k)
        if known is not None:
            if len(known) != len(stack):
                raise Lost
            stack = list(map(_merged, known, stack))
            if stack == known:
                return
        self.stacks[k] = stack
        self.do(k)

    def step(self, instruction: dis.Instruction, stack: list[Value], k: int) -> None:
        """Do what an instruction does to the stack; the items of a loop are not yet there."""
        name, count = instruction.opname, instruction.arg or 0
        if name in _SILENT:
            return
        if name in _ONLY_POPS:
            popped = _pop(stack, -dis.stack_effect(instruction.opcode, instruction.arg, jump=False))
            if name == "RAISE_VARARGS":
                self.meaning.unknown(_union(popped))
        elif name in _CONSTANT:
            stack.append(Value(self.meaning.of(instruction.argval), "", instruction.argval))
        elif name in _PUSHES_NOTHING:
            stack.append(NOTHING)
        elif name == "PUSH_NULL":
            stack.append(_NULL)
        elif name == "PUSH_EXC_INFO":
            stack.insert(len(stack) - 1, NOTHING)
            stack[-1] = Value(self.meaning.unknown(frozenset()))
        elif name == "GET_LEN":
            self.meaning.measure(stack[-1].tokens)
            stack.append(self.plain)
        elif name == "COPY":
            stack.append(stack[-count])
        elif name == "SWAP":
            stack[-1], stack[-count] = stack[-count], stack[-1]
        elif name.endswith("_ATTR") or name in ("LOAD_METHOD", "LOAD_SPECIAL", "IMPORT_FROM"):
            self.attributes(instruction, stack)
        elif name in _NAMES or name.startswith(("LOAD_FAST", "STORE_")):
            self.variables(instruction, stack)
        elif name.startswith(("POP_JUMP_", "JUMP_IF_")) or name in ("TO_BOOL", "UNARY_NOT"):
            value = stack.pop()
            if not name.endswith("NONE"):
                self.meaning.decide(value.tokens)
            if name in ("TO_BOOL", "UNARY_NOT"):
                stack.append(self.plain)
        elif name in ("RETURN_VALUE", "YIELD_VALUE"):
            self.meaning.leave(stack.pop().tokens)
            if name == "YIELD_VALUE":  # what is sent
                stack.append(Value(self.meaning.unknown(frozenset())))
        elif name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
            self.calls(instruction, stack, k)
        elif name.startswith("BUILD_") or name in _ADDS or name.startswith("UNPACK_"):
            self.containers(instruction, stack)
        elif name == "MAKE_FUNCTION":
            *others, code = _pop(stack, 1 + (count & 15).bit_count())
            defaults = _union(others[: (count & 3).bit_count()])  # then annotations, variables
            found = self.meaning.function(instruction.offset, code.constant, defaults)
            stack.append(Value(found))
        else:
            self.others(instruction, stack)

    def variables(self, instruction: dis.Instruction, stack: list[Value]) -> None:
        name, argument = instruction.opname, instruction.argval
        if name == "STORE_SUBSCR":
            value, owner, key = _pop(stack, 3)
            self.meaning.look_up(key.tokens)
            self.meaning.put(owner.tokens, value.tokens)
        elif name == "STORE_SLICE":
            value, owner, *_ = _pop(stack, 4)
            self.meaning.put(owner.tokens, self.meaning.items(value.tokens))
        elif name == "STORE_FAST_STORE_FAST":
            for each in argument:
                self.meaning.store("STORE_FAST", each, stack.pop().tokens)
        elif name == "STORE_FAST_LOAD_FAST":
            self.meaning.store("STORE_FAST", argument[0], stack.pop().tokens)
            stack.append(Value(self.meaning.load("LOAD_FAST", argument[1]), argument[1]))
        elif name in _STORES:
            self.meaning.store(name, argument, stack.pop().tokens)
        elif name.startswith("STORE_"):
            raise Lost
        else:
            if name == "IMPORT_NAME":
                _pop(stack, 2)
            elif name in _FROM_DICT:  # of a class that is being made: its names are variables
                stack.pop()
            for each in argument if isinstance(argument, tuple) else (argument,):
                stack.append(Value(self.meaning.load(name, each), each))
            if name == "LOAD_GLOBAL" and (instruction.arg or 0) & 1:
                _push_null(instruction, stack)

    def attributes(self, instruction: dis.Instruction, stack: list[Value]) -> None:
        name, argument = instruction.opname, instruction.argval
        if name == "STORE_ATTR":
            value, owner = _pop(stack, 2)
            self.meaning.set_attribute(owner.tokens, argument, value.tokens)
            return
        if name == "LOAD_SUPER_ATTR":
            _, _, value = _pop(stack, 3)
            found = self.meaning.inherited(value.tokens, argument)
        elif name == "LOAD_SPECIAL":
            found = self.meaning.entered(stack.pop().tokens)
        elif name == "IMPORT_FROM":
            found = self.meaning.attribute(stack[-1].tokens, argument)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            found = self.meaning.attribute(stack.pop().tokens, argument)
        else:
            raise Lost
        stack.append(Value(found, str(argument)))
        effect = dis.stack_effect(instruction.opcode, instruction.arg)
        if effect == {"LOAD_SUPER_ATTR": -1, "IMPORT_FROM": 2}.get(name, 1):
            _push_null(instruction, stack)

    def calls(self, instruction: dis.Instruction, stack: list[Value], k: int) -> None:
        spread: Tokens = frozenset()
        given: list[Value] = []
        names: Any = self.keywords(k)
        if instruction.opname == "CALL_FUNCTION_EX":
            count = 1 - dis.stack_effect(instruction.opcode, instruction.arg)
            first, second, *spreads = _pop(stack, count)
            for each in spreads:
                spread |= each.tokens | self.meaning.items(each.tokens)
        else:
            if instruction.opname == "CALL_KW":
                names = stack.pop().constant
            first, second, *given = _pop(stack, 2 + (instruction.arg or 0))
        function = second if first.is_null else first
        if not first.is_null and not second.is_null:
            given = [second, *given]
        split = len(given) - len(names)
        named = dict(zip(names, given[split:], strict=True))
        found = self.meaning.call(function, given[:split], named, spread, instruction.offset)
        stack.append(Value(found))

    def keywords(self, k: int) -> tuple[str, ...]:
        """Return the names of arguments, which stand before a call in some Pythons."""
        found = self.steps[k - 1].instruction
        while k > 1 and found.opname in ("PRECALL", "CACHE", "EXTENDED_ARG"):
            k -= 1
            found = self.steps[k - 1].instruction
        if found.opname != "KW_NAMES":
            return ()
        names: tuple[str, ...] = self.constants[found.arg or 0]
        return names

    def containers(self, instruction: dis.Instruction, stack: list[Value]) -> None:
        name, count, at = instruction.opname, instruction.arg or 0, instruction.offset
        meaning = self.meaning
        if name in _ADDS:
            *key, value = _pop(stack, 2 if name == "MAP_ADD" else 1)
            if name.startswith("SET"):
                meaning.look_up(value.tokens)
            for each in key:
                meaning.look_up(each.tokens)
            is_one = name in ("LIST_APPEND", "SET_ADD", "MAP_ADD")
            inside = value.tokens if is_one else meaning.items(value.tokens)
            meaning.put(stack[-count].tokens, inside)
        elif name.startswith("UNPACK_"):
            count = count if name == "UNPACK_SEQUENCE" else (count & 255) + 1 + (count >> 8)
            found = meaning.unpack(stack.pop().tokens, count)
            stack += [Value(each) for each in reversed(found)]
        else:
            pops = 1 - dis.stack_effect(instruction.opcode, instruction.arg)
            values = _pop(stack, pops)
            inside = _union(values)
            if name in ("BUILD_SET", "BUILD_STRING"):
                meaning.look_up(inside)
            elif name == "BUILD_MAP":
                meaning.look_up(_union(values[::2]))
            if name == "BUILD_SLICE":
                stack.append(Value(inside))
            elif name in ("BUILD_STRING", "BUILD_INTERPOLATION", "BUILD_TEMPLATE"):
                stack.append(self.plain)
            else:
                stack.append(Value(meaning.make(at, inside)))

    def others(self, instruction: dis.Instruction, stack: list[Value]) -> None:
        name, count, meaning = instruction.opname, instruction.arg or 0, self.meaning
        if is_subscript(instruction):
            value, key = _pop(stack, 2)
            stack.append(Value(meaning.entry(value.tokens, key)))
        elif name == "BINARY_SLICE":
            value, *ends = _pop(stack, 3)
            stack.append(Value(meaning.entry(value.tokens, Value(_union(ends)))))
        elif name == "BINARY_OP":
            left, right = _pop(stack, 2)
            if instruction.argrepr.endswith("="):
                meaning.put(left.tokens, meaning.items(right.tokens))
            for one, other in ((left, right), (right, left)):
                if isinstance(one.constant, (str, bytes, tuple)):  # repeated, or filled in
                    meaning.decide(other.tokens)
            stack.append(Value(meaning.computed(left.tokens, right.tokens)))
        elif name == "COMPARE_OP":
            left, right = _pop(stack, 2)
            found = meaning.computed(left.tokens, right.tokens)
            if instruction.argrepr.startswith("bool("):
                meaning.decide(found)
                found = self.plain.tokens
            stack.append(Value(found))
        elif name.startswith("UNARY_"):
            stack.append(Value(meaning.computed(stack.pop().tokens)))
        elif name == "CONTAINS_OP":
            value, container = _pop(stack, 2)
            meaning.find(value, container.tokens)
            stack.append(self.plain)
        elif name == "IS_OP":
            _pop(stack, 2)
            stack.append(self.plain)
        elif name == "CHECK_EXC_MATCH":
            stack[-1] = self.plain
        elif name in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"):
            meaning.decide(_union(_pop(stack, 1 - _effect(instruction))))
            stack.append(self.plain)
        elif name == "CALL_INTRINSIC_2":  # of type parameters: a function, or a variable of a type
            stack.append(_pop(stack, 2)[0])
        elif name == "CONVERT_VALUE":
            meaning.decide(stack[-1].tokens)
        elif name == "SET_FUNCTION_ATTRIBUTE":
            given, function = _pop(stack, 2)
            if count & 3:
                meaning.put(function.tokens, meaning.items(given.tokens) - given.tokens)
            stack.append(function)
        elif name == "BEFORE_WITH":
            found = meaning.entered(stack.pop().tokens)
            stack += [NOTHING, Value(found)]
        elif name == "MATCH_KEYS":
            stack.append(Value(meaning.items(stack[-2].tokens)))
        elif name == "MATCH_CLASS":
            stack.append(Value(meaning.unknown(_union(_pop(stack, 3)))))
        else:
            raise Lost


@lru_cache(256)
def _read(code: CodeType) -> list[_Step]:
    """Return the instructions of code, and where each leads."""
    instructions = instructions_of(code)
    entries: Any = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    at = {each.offset: k for k, each in enumerate(instructions)}
    steps: list[_Step] = []
    for k, each in enumerate(instructions):
        jump = None
        if each.opcode in _JUMPS:
            jump = at[each.argval], dis.stack_effect(each.opcode, each.arg, jump=True)
        handlers = tuple(
            [
                (at[entry.target], entry.depth, 1 + bool(entry.lasti))
                for entry in entries
                if entry.start <= each.offset < entry.end
            ]
        )
        goes_on = each.opname not in _ENDS and k + 1 < len(instructions)
        steps.append(_Step(each, handlers, jump, goes_on))
    return steps


def _push_null(instruction: dis.Instruction, stack: list[Value]) -> None:
    """Push what stands beside a function: above it since Python 3.13, below it before."""
    is_above = "+ NULL" in instruction.argrepr
    stack.insert(len(stack) - (not is_above), _NULL)


def _effect(instruction: dis.Instruction) -> int:
    return dis.stack_effect(instruction.opcode, instruction.arg)


def _merged(one: Value, other: Value) -> Value:
    if one == other:
        return one
    name = one.name if one.name == other.name else ""
    return Value(one.tokens | other.tokens, name, None, one.is_null and other.is_null)


def _pop(stack: list[Value], count: int) -> list[Value]:
    if not 0 <= count <= len(stack):
        raise Lost
    found = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return found


def _union(values: Sequence[Value]) -> Tokens:
    return frozenset().union(*[value.tokens for value in values])
