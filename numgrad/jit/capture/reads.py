"""Find what a function's code reads from outside: globals, closures, attributes, items.

The bytecode is scanned, once for each code object. A variable that is loaded, and what follows in a
straight line (``self.layers[0].weight``), is a chain of attributes and constant entries. What
becomes of the value at its end is not followed here (`numgrad.jit.capture.flows` does): it may be
read as a whole.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["BLIND", "Chain", "Reads", "instructions_of", "is_subscript", "reads_of"]

BLIND = ("eval", "exec", "globals")  # whose calls read what the code need not show


class Chain(NamedTuple):
    """What is looked up in the value of a variable.

    Attributes
    ----------
    steps : tuple
        Each ``("attribute", name)`` or ``("entry", key)``.
    ends : str
        ``"write"`` if the last value is only written to, and so not read, ``"length"`` if only its
        length is; else nothing.
    """

    steps: tuple[tuple[str, Any], ...] = ()
    ends: str = ""


class Reads(NamedTuple):
    """What a function's code, and that of functions inside it, may read.

    Attributes
    ----------
    names : dict
        Global names, with the chains that start there.
    variables : dict
        Its own variables, those of enclosing functions and its parameters, with chains.
    modules : dict
        Modules that it imports, with what is imported from each; None for the module itself.
    words : frozenset of str
        Names of attributes, and strings that could be some.
    """

    names: dict[str, set[Chain]]
    variables: dict[str, set[Chain]]
    modules: dict[str, set[str | None]]
    words: frozenset[str]


_GLOBAL = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_CONSTANT = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))
_SILENT = frozenset(("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "PUSH_NULL"))


@lru_cache(4096)
def instructions_of(code: CodeType) -> tuple[dis.Instruction, ...]:
    """Return the instructions of code."""
    return tuple(dis.get_instructions(code))


@lru_cache(4096)
def reads_of(code: CodeType, lengths: bool = True) -> Reads:
    """Return what a function's code may read; `lengths` says that its ``len`` is Python's."""
    reads = Reads({}, {}, {}, frozenset(_words(code)))
    instructions = [each for each in instructions_of(code) if each.opname not in _SILENT]
    for at, instruction in enumerate(instructions):
        if instruction.opname == "IMPORT_NAME":
            found = reads.modules.setdefault(instruction.argval, set())
            following = [each for each in instructions[at + 1 :] if each.opname == "IMPORT_FROM"]
            is_from = bool(following) and instructions[at + 1].opname == "IMPORT_FROM"
            found |= {each.argval for each in following} if is_from else {None}
        for name in _loaded(instruction):
            if _is_counted(instructions, at):
                continue
            table = reads.names if instruction.opname in _GLOBAL else reads.variables
            inner = _evaluated(instructions, at) if table is reads.names else None
            if inner is not None:
                _merge(reads, reads_of(inner, lengths), inner)
                continue
            # Of globals() and a constant name, it is the chain of that name.
            is_call = name == "globals" and _is_call(instructions, at + 1, 0)
            for chain in _chains(instructions, at + 1 + is_call):
                if chain.ends == "length" and not lengths:
                    chain = chain._replace(ends="")
                if chain.steps and is_call and chain.steps[0][0] == "attribute":
                    chain = Chain()
                table.setdefault(name, set()).add(chain)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _merge(reads, reads_of(inner, lengths), inner)
    return reads


def _merge(reads: Reads, inner: Reads, code: CodeType) -> None:
    """Add what the code of a function inside reads, but for its own variables."""
    for name, chains in inner.names.items():
        reads.names.setdefault(name, set()).update(chains)
    for name, chains in inner.variables.items():
        if name in code.co_freevars:
            reads.variables.setdefault(name, set()).update(chains)
    for name, found in inner.modules.items():
        reads.modules.setdefault(name, set()).update(found)


def _loaded(instruction: dis.Instruction) -> Sequence[str]:
    """Return the variables that an instruction loads."""
    name = instruction.opname
    if name in _GLOBAL or name in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
        return (instruction.argval,)
    if name.startswith("LOAD_FAST"):
        argument = instruction.argval
        return argument if isinstance(argument, tuple) else (argument,)
    if name == "STORE_FAST_LOAD_FAST":
        return (instruction.argval[1],)
    return ()


def _is_counted(instructions: Sequence[dis.Instruction], at: int) -> bool:
    """Whether a variable is loaded for ``variable += constant`` only."""
    stored = instructions[at : at + 4]
    return (
        len(stored) == 4
        and stored[1].opname in _CONSTANT
        and stored[2].opname == "BINARY_OP"
        and stored[2].argrepr.endswith("=")
        and stored[3].opname.startswith("STORE_")
        and stored[3].argval == stored[0].argval
    )


def _is_call(instructions: Sequence[dis.Instruction], at: int, count: int) -> bool:
    """Whether a function is called with so many arguments."""
    found = instructions[at : at + 1]
    return bool(found) and found[0].opname == "CALL" and found[0].arg == count


def _evaluated(instructions: Sequence[dis.Instruction], at: int) -> CodeType | None:
    """Return the code of ``eval("a constant")``, None where it is something else."""
    if instructions[at].argval not in ("eval", "exec") or not _is_call(instructions, at + 2, 1):
        return None
    text = instructions[at + 1].argval
    if instructions[at + 1].opname != "LOAD_CONST" or not isinstance(text, str):
        return None
    try:
        return compile(text, "<string>", instructions[at].argval)
    except (SyntaxError, ValueError):  # it is for Python to say that when it comes there
        return None


def _chains(instructions: Sequence[dis.Instruction], at: int) -> list[Chain]:
    """Return what is looked up, in a straight line, in a value that was just loaded.

    What `getattr`, `hasattr` and `vars` ask it for comes in a chain of its own: these may be
    functions of the user's, to which the value is given.
    """
    before = instructions[at - 2] if at > 1 else None
    called = before.argval if before is not None and before.opname in _GLOBAL else ""
    steps: list[tuple[str, Any]] = []
    while at + 1 < len(instructions):
        first, second = instructions[at], instructions[at + 1]
        if first.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            steps.append(("attribute", first.argval))
            at += 1
        elif first.opname in _CONSTANT and is_subscript(second):
            steps.append(("entry", first.argval))
            at += 2
        else:
            is_key = first.opname in _CONSTANT or first.opname.startswith("LOAD_FAST")
            ends = first.opname == "STORE_ATTR" or (is_key and second.opname == "STORE_SUBSCR")
            if ends:
                return [Chain(tuple(steps), "write")]
            if called == "len" and _is_call(instructions, at, 1):
                return [Chain(tuple(steps), "length")]
            asked = ""
            if called in ("getattr", "hasattr") and first.opname in _CONSTANT:
                asked = first.argval if isinstance(first.argval, str) else ""
            elif called == "vars" and _is_call(instructions, at, 1):
                asked = "__dict__"
            more = [Chain((*steps, ("attribute", asked)))] if asked else []
            return [Chain(tuple(steps)), *more]
    return [Chain(tuple(steps))]


def is_subscript(instruction: dis.Instruction) -> bool:
    """Whether an instruction asks for an item."""
    name = instruction.opname
    return name == "BINARY_SUBSCR" or (name == "BINARY_OP" and instruction.argrepr == "[]")


def _words(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    stack = list(code.co_consts)
    while stack:
        constant = stack.pop()
        if isinstance(constant, (tuple, frozenset)):
            stack += constant
        elif isinstance(constant, str) and constant.isidentifier():
            yield constant
        elif isinstance(constant, CodeType):
            yield from _words(constant)
