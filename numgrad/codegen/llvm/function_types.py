"""The types of what functions of the loop IR compute, found in one walk.

Numba finds types by passes over bytecode: a milliseconds for each statement. The loop IR has no
jumps, and its variables keep their types, so that a walk from the first statement to the last
knows them. What operations and functions give for which types, Numba is asked: `Signatures`.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from numba import errors, types

from numgrad.codegen.function_reader import Unreadable, read_function, scope_of
from numgrad.codegen.llvm.plain_signatures import (
    plain_attribute,
    plain_signature,
    plain_type,
    signature_of_intrinsic,
)
from numgrad.codegen.llvm.quick_calls import QUICK, Quick
from numgrad.codegen.loop_passes import walk
from numgrad.codegen.loops import (
    PREFIXES,
    SIGNS,
    Assign,
    Attribute,
    Break,
    Call,
    Choice,
    Do,
    Expression,
    For,
    Function,
    If,
    Infix,
    Load,
    Name,
    Number,
    Prefix,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
)
from numgrad.codegen.numba_private import CPUDispatcher, Intrinsic, fill_tables, type_of_value

__all__ = ["WITHOUT_SIZES", "Module", "Part", "Signatures", "Typed", "nested"]

#: Whose functions go by where the elements of arrays are, and by sizes that they are told.
WITHOUT_SIZES = "numgrad.codegen.", "numgrad.math.", "numpy"


class Part(NamedTuple):
    """A Python function that is built into kernels.

    Parameters
    ----------
    function : callable
    is_inlined : bool
        Whether it is inlined whatever its size; else LLVM decides.
    """

    function: Callable[..., Any]
    is_inlined: bool


class Module(Protocol):
    """Functions that can call each other."""

    def typed(self, name: str, arguments: tuple[Any, ...]) -> Typed | None:
        """Return one of the functions for some types; None if there is none of this name."""

    def known(self, name: Name) -> Any:
        """Return what is called so elsewhere."""


class _Scope:
    """The module that a Python function is in."""

    def __init__(self, function: Any) -> None:
        self.names = scope_of(function)

    def typed(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Return nothing: what the function calls is from elsewhere."""

    def known(self, name: Name) -> Any:
        if name.id not in self.names:
            raise errors.TypingError(f"nothing is called {name.id}")
        return self.names[name.id]


def nested(statement: Statement) -> Iterator[Sequence[Statement]]:
    """Yield the lists of statements in a statement."""
    if isinstance(statement, If):
        yield statement.then
        yield statement.otherwise
    elif isinstance(statement, For | While):
        yield statement.body


def _has_arrays(kind: Any) -> bool:
    """Whether a type is one of arrays, or of a tuple with some in it."""
    parts: Any = kind if isinstance(kind, types.BaseTuple) else ()
    return isinstance(kind, types.Array) or any(map(_has_arrays, parts))


def _always_returns(body: Sequence[Statement]) -> bool:
    """Whether nothing goes on behind some statements."""
    match body[-1:]:
        case [Return()]:
            return True
        case [If(_, then, otherwise)]:
            return _always_returns(then) and _always_returns(otherwise)
        case [While(Number(True), inner)]:
            return not any(isinstance(each, Break) for each in walk(inner))
    return False


class Signatures:
    """What Numba says operations and functions give for operands of some types.

    Parameters
    ----------
    context : numba.core.typing.Context
    """

    def __init__(self, context: Any) -> None:
        self.context = context
        self._found: dict[Any, tuple[Any, Any]] = {}
        self._parts: dict[Any, Typed | None] = {}
        self.reading: set[Any] = set()  # Python functions whose types are being found

    def of(self, function: Any, operands: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return Numba's type of a function, or of a type that is one, and the call's signature."""
        key = function, operands
        found = self._found.get(key)
        if found is None:
            asks = isinstance(function, types.Type | Intrinsic)
            own = function if asks else plain_type(function)
            kind = function if own is None else own
            found = kind, plain_signature(kind, operands)
            if found[1] is None:
                found = self._asked(kind, operands)
            self._found[key] = found
        return found

    def _asked(self, function: Any, operands: tuple[Any, ...]) -> tuple[Any, Any]:
        if isinstance(function, Intrinsic):
            declared = signature_of_intrinsic(self.context, function, operands)
            if declared is not None:
                return declared
        is_type = isinstance(function, types.Type)
        kind = function if is_type else self.of_value(function)
        found = self._answer(lambda: self.context.resolve_function_type(kind, operands, {}))
        if found is None:
            raise errors.TypingError(f"no {function} of {operands}")
        return kind, found

    def of_value(self, value: Any) -> Any:
        """Return Numba's type of something that is known."""
        own = plain_type(value)
        return self._answer(lambda: type_of_value(self.context, value)) if own is None else own

    def of_attribute(self, kind: Any, name: str) -> Any:
        """Return Numba's type of an attribute of something of some type."""
        own = plain_attribute(kind, name)
        if own is None and isinstance(kind, types.Module):
            own = self.of_value(getattr(kind.pymod, name))
        if own is None:
            own = self._answer(lambda: self.context.resolve_getattr(kind, name))
        if own is None:
            raise errors.TypingError(f"{kind} has no {name}")
        return own

    def _answer(self, ask: Callable[[], Any]) -> Any:
        """Return what Numba answers, if need be when its tables have what it knows by now."""
        with contextlib.suppress(errors.NumbaError, ValueError):
            found = ask()
            if found is not None:
                return found
        fill_tables()
        return ask()

    def part(self, part: Part, operands: tuple[Any, ...]) -> Typed | None:
        """Return a part for operands of some types, if it can be read."""
        key = part.function, operands
        if key not in self._parts:
            module = part.function.__module__ or ""  # of what was made by `exec`: none
            has_sizes = not module.startswith(WITHOUT_SIZES)
            self._parts[key] = self.read(part, operands, has_sizes=has_sizes)
        return self._parts[key]

    def read(self, part: Part, operands: tuple[Any, ...], *, has_sizes: bool) -> Typed | None:
        """Return a Python function for operands of some types, if it can be read.

        What calls itself, or what is being read, is Numba's.
        """
        if part.function in self.reading:
            return None
        self.reading.add(part.function)
        try:
            function, scope = read_function(part.function), _Scope(part.function)
            return Typed(function, operands, self, scope, has_sizes=has_sizes, part=part)
        except (Unreadable, errors.NumbaError):
            return None
        finally:
            self.reading.remove(part.function)

    def unified(self, one: Any, other: Any) -> Any:
        """Return the type of what is of one type or of another."""
        if one == other:
            return one
        found = self.context.unify_types(one, other)
        if found not in (one, other):  # it would not be what Numba makes of either by itself
            raise errors.TypingError(f"{one} meets {other}")
        return found


class Typed:
    """A function for arguments of some types.

    Parameters
    ----------
    function : Function
    arguments : tuple of numba.types.Type
    signatures : Signatures
    module : Module
        What else the function can call.
    has_sizes : bool
        Whether it is given whole arrays; else where their elements are, without the sizes.
    part : Part, optional
        The Python function that it was read of.

    Attributes
    ----------
    is_apart : bool
        Whether arrays come as what is known of them, each an argument of its own: where their
        elements are, and the sizes.

    Raises
    ------
    numba.errors.TypingError
        If it is for other types; or was read, and Numba would find other ones in its Python.
    """

    def __init__(
        self,
        function: Function,
        arguments: tuple[Any, ...],
        signatures: Signatures,
        module: Module,
        *,
        has_sizes: bool,
        part: Part | None = None,
    ) -> None:
        self.function, self.arguments, self.has_sizes = function, arguments, has_sizes
        self.part, self.is_apart = part, False
        self.signatures, self.module = signatures, module
        self.variables = dict(zip(function.parameters, arguments, strict=True))
        self.result: Any = None
        self._known: dict[int, Any] = {}  # types of expressions, by identity
        while True:  # what a loop assigns may have another type in its second turn
            before = dict(self.variables)
            self._known.clear()
            self.result = None
            self._walk(function.body)
            self.result = types.none if self.result is None else self.result
            if self.variables == before:
                break
        if part is not None:
            self._check()

    # --- statements ---

    def _walk(self, body: Sequence[Statement]) -> None:
        for line in body:
            match line:
                case Assign(target, value):
                    self._assign(target, self.of(value))
                case Unpack(targets, value):
                    for target, kind in zip(targets, self.of(value), strict=True):
                        self._assign(target, kind)
                case For(index):
                    self._assign(index, types.intp)
                case Return(value):
                    found, kind = self.result, self.plain(value)
                    self.result = kind if found is None else self.signatures.unified(found, kind)
            for inner in nested(line):
                self._walk(inner)

    def _check(self) -> None:
        """Raise for what has not the types that Numba would find."""
        for node in walk(self.function.body):
            match node:
                case Do(value) | If(value) | While(value) | Choice(value):
                    self.of(value)
                case Store(array, index, value) if not self.takes(array, index, value):
                    self.signature(operator.setitem, array, index, value)
                case Infix("and" | "or", left, right):
                    if {self.plain(left), self.plain(right)} != {types.boolean}:
                        raise errors.TypingError("one of two values, neither true nor false")
                case For(_, first, last, _, step):
                    if {self.plain(each) for each in (first, last, step)} != {types.intp}:
                        raise errors.TypingError("an index of another type")
                case Unpack(targets) if any(
                    isinstance(self.variables[each], types.Array) for each in targets
                ):
                    raise errors.TypingError("an array in a tuple")
        if _has_arrays(self.result):
            raise errors.TypingError("an array is returned")
        if self.result != types.none and not _always_returns(self.function.body):
            raise errors.TypingError("a number is returned, or none")

    def _assign(self, target: str, kind: Any) -> None:
        kind = types.unliteral(kind)
        known = self.variables.get(target, kind)
        if self.part is not None and known != kind:  # to Numba, these are two variables
            raise errors.TypingError(f"{target} is {known} and {kind}")
        self.variables[target] = self.signatures.unified(known, kind)

    # --- expressions ---

    def of(self, node: Expression) -> Any:
        """Return the type of an expression; numbers that are written out have literal types."""
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = self._found(node)
        return found

    def _found(self, node: Expression) -> Any:
        match node:
            case Name():
                known = self.variables.get(node.id) if not node.module else None
                return self.of_value(self.module.known(node)) if known is None else known
            case Number(value):
                return self.of_value(value)
            case Infix("and" | "or"):
                return types.boolean
            case Infix(sign, left, right):
                return self.signature(SIGNS[sign].operator, left, right)[1].return_type
            case Prefix(sign, operand):
                return self.signature(PREFIXES[sign], operand)[1].return_type
            case Choice(_, yes, no):
                kinds = [types.unliteral(self.of(each)) for each in (yes, no)]
                return self.signatures.unified(*kinds)
            case Attribute(value, name):
                if not self.has_sizes and isinstance(self.plain(value), types.Array):
                    raise TypeError(f"of {value} the elements are known, not the {name}")
                return self.signatures.of_attribute(self.plain(value), name)
            case Tuple(items):
                return types.Tuple([self.plain(item) for item in items])
            case Load(array, _, False):
                return self.plain(array).dtype
            case Load(array, Number(position)) if isinstance(self.plain(array), types.BaseTuple):
                return self.plain(array)[position]
            case Load(array, index) if self.indices(array, index):
                return self.plain(array).dtype
            case Load(array, index):
                return self.signature(operator.getitem, array, index)[1].return_type
            case Call():
                return self._of_call(node)
        raise TypeError(f"no expression: {node!r}")

    def plain(self, node: Expression) -> Any:
        """Return the type of an expression, that of a number not being a literal one."""
        return types.unliteral(self.of(node))

    def of_value(self, value: Any) -> Any:
        """Return the type of something that is known."""
        if isinstance(value, tuple):
            return types.Tuple([types.unliteral(self.of_value(item)) for item in value])
        if type(value) in (int, str, bool):
            return types.literal(value)
        return self.signatures.of_value(value)

    def indices(self, array: Expression, index: Expression) -> Sequence[Expression]:
        """Return the integers that a subscript of an array has, one for each dim; else none."""
        kind = self.plain(array)
        nodes = index.items if isinstance(index, Tuple) else [index]
        if (
            not (isinstance(array, Name) and isinstance(kind, types.Array))
            or not isinstance(kind.dtype, types.Number | types.Boolean)
            or len(nodes) != kind.ndim
            or (not self.has_sizes and kind.ndim != 1)
        ):
            return ()
        return nodes if all(isinstance(self.plain(n), types.Integer) for n in nodes) else ()

    def takes(self, array: Expression, index: Expression, value: Expression) -> bool:
        """Whether an element of an array is given a number that it can hold."""
        if not self.indices(array, index):
            return False
        kind, given = self.plain(array).dtype, self.plain(value)
        is_real = isinstance(given, types.Float | types.Integer | types.Boolean)
        return is_real or (isinstance(given, types.Complex) and isinstance(kind, types.Complex))

    def signature(self, function: Any, *operands: Expression) -> tuple[Any, Any]:
        """Return a function's type and signature for operands, none of which is a literal."""
        return self.signatures.of(function, tuple([self.plain(each) for each in operands]))

    def helper(self, node: Call) -> Typed | None:
        """Return the function of the loop IR that is called, for the types of the arguments."""
        function, kinds = node.function, tuple([self.plain(each) for each in node.arguments])
        if isinstance(function, Name) and not function.module:
            own = self.module.typed(function.id, kinds)
            if own is not None:
                return own
        if self.quick(node) is not None:
            return None
        # What is built into kernels says so.
        part: Part | None = getattr(self.named(function), "part_of_kernels", None)
        return None if part is None else self.signatures.part(part, kinds)

    def named(self, function: Expression) -> Any:
        """Return what a name stands for, or one in a module; None for what is no name."""
        if isinstance(function, Attribute):
            module = self.named(function.value)
            return getattr(module, function.name, None) if type(module) is ModuleType else None
        if not isinstance(function, Name) or (
            not function.module and function.id in self.variables
        ):
            return None
        return self.module.known(function)

    def called(self, node: Call) -> tuple[Any, Any]:
        """Return the type and signature of what is called that is from elsewhere.

        Kernels are compiled once for integers, whichever are written out.
        """
        function = node.function
        found = self.module.known(function) if isinstance(function, Name) else self.of(function)
        if isinstance(found, CPUDispatcher) and found.py_func in self.signatures.reading:
            raise errors.TypingError("a function that calls itself")
        kind = self.plain if isinstance(found, CPUDispatcher) else self.of
        known = self.signatures.of(found, tuple([kind(each) for each in node.arguments]))
        any_number = types.StarArgTuple, types.StarArgUniTuple
        wanted = known[1].args
        if len(wanted) != len(node.arguments) or any(isinstance(w, any_number) for w in wanted):
            raise errors.TypingError("arguments that are left out, or of any number")
        return known

    def quick(self, node: Call) -> Quick | None:
        """Return how a call of a function is compiled that would take Numba long."""
        known = self.named(node.function)
        found = QUICK.get(known) if isinstance(known, Callable) else None  # type: ignore[arg-type]
        kinds = [self.plain(each) for each in node.arguments]
        return None if found is None or found.result(*kinds) is None else found

    def _of_call(self, node: Call) -> Any:
        helper = self.helper(node)
        if helper is not None:
            return helper.result
        quick = self.quick(node)
        if quick is not None:
            return quick.result(*[self.plain(each) for each in node.arguments])
        return self.called(node)[1].return_type
