"""Scalar functions without branches, translated to LLVM without Numba's type inference.

Such a function is called with numbers that are not known yet, and what it does to them is written
down, as LLVM's instructions, where the kernel calls it. To Numba it is an intrinsic. As functions
that Numba compiles, the dozen of which a sine is made took ten times as long as the loop around
them: each went through its forty passes. And what is written down for a number can be written down
for a vector of them, which needs no vectoriser (`numgrad.codegen.llvm.fold_ir`).

Choices are made by `where`, which computes both: ``if`` asks now, when nothing is known. Numbers
have the types of NumPy's scalars and keep them: int32 and int32 give int32, which wraps around;
types are not mixed; Python's numbers take the type of what they meet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import from_dtype, types
from numba.extending import lower_builtin

from numgrad.codegen.numba_private import AbstractTemplate, infer_global, signature

__all__ = [
    "BranchFree",
    "Number",
    "Unfit",
    "apply",
    "branch_free",
    "cast",
    "copysign",
    "floor",
    "leading_zeros",
    "pick",
    "rarely",
    "sqrt",
    "upper_half",
    "where",
]

_KINDS = (*types.real_domain, *types.integer_domain, types.boolean)


class Unfit(TypeError):
    """The operands are of types that an operation is not for."""


def _kind_of(known: Any) -> Any:
    """Return the Numba type of a number of NumPy's, or of a bool."""
    return from_dtype(np.asarray(known).dtype)


# --- numbers -------------------------------------------------------------------------------------


class Number:
    """A number, or a vector of numbers, that compiled code will have.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder or None
        Where instructions go; None where only types are asked for.
    kind : numba.types.Type
        The type of the number, or of each in the vector.
    value : llvmlite.ir.Value or None
        What holds it.
    """

    __slots__ = ("builder", "kind", "value")
    __array_ufunc__ = None  # so that NumPy's scalars leave operations to this class

    def __init__(self, builder: Any, kind: Any, value: Any) -> None:
        self.builder = builder
        self.kind = kind
        self.value = value

    def __bool__(self) -> bool:
        raise TypeError(
            "a branch-free function can't branch on a value: use where(condition, a, b)"
        )

    def of(self, kind: Any, emit: Callable[[Any, Any], Any]) -> Number:
        """Return the number that ``emit(builder, llvm_type)`` gives, one of a kind."""
        builder = self.builder
        if builder is None:
            return Number(None, kind, None)
        return Number(builder, kind, emit(builder, self.type_of(kind)))

    def type_of(self, kind: Any) -> Any:
        """Return LLVM's type for numbers of a kind, as many as these."""
        if kind == types.boolean:
            one: Any = ir.IntType(1)
        elif kind in types.integer_domain:
            one = ir.IntType(kind.bitwidth)
        else:
            one = ir.FloatType() if kind == types.float32 else ir.DoubleType()
        many = self.value.type
        return ir.VectorType(one, many.count) if isinstance(many, ir.VectorType) else one

    def constant(self, kind: Any, known: Any) -> Number:
        """Return a number that is known already, as many times as there are of these."""
        exact = float(known) if kind in types.real_domain else int(known)

        def emit(builder: Any, to: Any) -> Any:
            return ir.Constant(to, [exact] * to.count if isinstance(to, ir.VectorType) else exact)

        return self.of(kind, emit)

    def beside(self, other: Any) -> Number:
        """Return another operand, which must be of the same kind, as a number."""
        if isinstance(other, Number):
            found = other
        elif isinstance(other, np.generic):
            found = self.constant(_kind_of(other), other)
        elif isinstance(other, bool):
            found = self.constant(types.boolean, other)
        elif isinstance(other, int | float) and self.kind != types.boolean:
            found = self.constant(self.kind, other)
        else:
            raise Unfit(f"{other!r} is no number")
        if found.kind != self.kind:
            raise Unfit(f"{self.kind} meets {found.kind}")
        return found

    def _arithmetic(self, other: Any, of_floats: str, of_integers: str, swap: bool) -> Number:
        x, y = self, self.beside(other)
        if swap:
            x, y = y, x
        name = of_floats if self.kind in types.real_domain else of_integers
        if not name or self.kind == types.boolean:
            raise Unfit(f"no such operation on {self.kind}")
        return self.of(self.kind, lambda builder, _: getattr(builder, name)(x.value, y.value))

    def __add__(self, other: Any) -> Number:
        return self._arithmetic(other, "fadd", "add", False)

    def __radd__(self, other: Any) -> Number:
        return self._arithmetic(other, "fadd", "add", True)

    def __sub__(self, other: Any) -> Number:
        return self._arithmetic(other, "fsub", "sub", False)

    def __rsub__(self, other: Any) -> Number:
        return self._arithmetic(other, "fsub", "sub", True)

    def __mul__(self, other: Any) -> Number:
        return self._arithmetic(other, "fmul", "mul", False)

    def __rmul__(self, other: Any) -> Number:
        return self._arithmetic(other, "fmul", "mul", True)

    def __truediv__(self, other: Any) -> Number:
        return self._arithmetic(other, "fdiv", "", False)

    def __rtruediv__(self, other: Any) -> Number:
        return self._arithmetic(other, "fdiv", "", True)

    def __lshift__(self, other: Any) -> Number:
        return self._arithmetic(other, "", "shl", False)

    def __rshift__(self, other: Any) -> Number:
        is_signed = getattr(self.kind, "signed", False)
        return self._arithmetic(other, "", "ashr" if is_signed else "lshr", False)

    def _bitwise(self, other: Any, name: str) -> Number:
        x, y = self, self.beside(other)
        if self.kind in types.real_domain:
            raise Unfit(f"no such operation on {self.kind}")
        return self.of(self.kind, lambda builder, _: getattr(builder, name)(x.value, y.value))

    def __and__(self, other: Any) -> Number:
        return self._bitwise(other, "and_")

    def __or__(self, other: Any) -> Number:
        return self._bitwise(other, "or_")

    def __xor__(self, other: Any) -> Number:
        return self._bitwise(other, "xor")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Number:
        return self ^ self.constant(self.kind, 1 if self.kind == types.boolean else -1)

    def __neg__(self) -> Number:
        if self.kind in types.real_domain:
            return self.of(self.kind, lambda builder, _: builder.fneg(self.value))
        return 0 - self

    def __abs__(self) -> Number:
        return apply("fabs", self)

    def _compared(self, other: Any, relation: str) -> Number:
        x, y = self, self.beside(other)

        def emit(builder: Any, _: Any) -> Any:
            if self.kind in types.real_domain:  # nan differs from everything
                by = builder.fcmp_unordered if relation == "!=" else builder.fcmp_ordered
            elif getattr(self.kind, "signed", False):
                by = builder.icmp_signed
            else:
                by = builder.icmp_unsigned
            return by(relation, x.value, y.value)

        return self.of(types.boolean, emit)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return self._compared(other, "!=")

    def __lt__(self, other: Any) -> Number:
        return self._compared(other, "<")

    def __le__(self, other: Any) -> Number:
        return self._compared(other, "<=")

    def __gt__(self, other: Any) -> Number:
        return self._compared(other, ">")

    def __ge__(self, other: Any) -> Number:
        return self._compared(other, ">=")

    __hash__ = None  # type: ignore[assignment]


def _one_of(numbers: Any) -> Number | None:
    """Return one of some operands that is not known yet."""
    return next((number for number in numbers if isinstance(number, Number)), None)


def apply(name: str, *numbers: Any) -> Number:
    """Return what LLVM's intrinsic of a name gives for floating point numbers of one type."""
    one = _one_of(numbers)
    if one is None or one.kind not in types.real_domain:
        raise Unfit(f"{name} is for floating point numbers")
    operands = [one.beside(number) for number in numbers]

    def emit(builder: Any, to: Any) -> Any:
        many = f"v{to.count}" if isinstance(to, ir.VectorType) else ""
        function = builder.module.declare_intrinsic(
            f"llvm.{name}.{many}f{one.kind.bitwidth}",
            fnty=ir.FunctionType(to, [to] * len(operands)),
        )
        return builder.call(function, [operand.value for operand in operands])

    return one.of(one.kind, emit)


def sqrt(x: Any) -> Any:
    """Return the square root; nan for negative numbers."""
    return apply("sqrt", x)


def floor(x: Any) -> Any:
    """Return the largest integer not above a number, as a number."""
    return apply("floor", x)


def copysign(x: Any, sign: Any) -> Any:
    """Return the size of a number with the sign of another."""
    return apply("copysign", x, sign)


def leading_zeros(x: Any) -> Any:
    """Return how many zeros stand in front of the first one among the bits of an integer."""
    never = ir.Constant(ir.IntType(1), 0)  # is the result for 0 undefined
    return x.of(x.kind, lambda builder, _: builder.ctlz(x.value, never))


def upper_half(x: Any, y: Any) -> Any:
    """Return the upper 64 of the 128 bits of a product of two uint64."""

    def emit(builder: Any, to: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(x.value, wide), builder.zext(y.value, wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), to)

    return x.of(x.kind, emit)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a if the condition holds, else b: numbers, or as many numbers in each."""
    if not isinstance(condition, Number):
        return a if condition else b
    if isinstance(a, tuple):
        return tuple(where(condition, x, y) for x, y in zip(a, b, strict=True))
    one = _one_of((a, b))
    if one is None:
        one = condition.constant(_kind_of(a), a)
    x, y = one.beside(a), one.beside(b)
    return one.of(one.kind, lambda builder, _: builder.select(condition.value, x.value, y.value))


def cast(number: Any, x: Any) -> Any:
    """Return a number as one of a NumPy scalar type."""
    if not isinstance(x, Number):
        return number(x)
    kind, before = _kind_of(number(0)), x.kind
    is_float, was_float = kind in types.real_domain, before in types.real_domain
    was_signed = getattr(before, "signed", False)
    if kind == before:
        return x
    if is_float and was_float:
        name = "fpext" if kind.bitwidth > before.bitwidth else "fptrunc"
    elif is_float:
        name = "sitofp" if was_signed else "uitofp"
    elif was_float:
        name = "fptosi" if kind.signed else "fptoui"
    elif before != types.boolean and kind.bitwidth == before.bitwidth:
        return Number(x.builder, kind, x.value)
    elif before != types.boolean and kind.bitwidth < before.bitwidth:
        name = "trunc"
    else:
        name = "sext" if was_signed else "zext"
    return x.of(kind, lambda builder, to: getattr(builder, name)(x.value, to))


def pick(table: np.ndarray[Any, Any], index: Any) -> Any:
    """Return an element of a table of constants. The index, an int64, must be in it."""
    kind = _kind_of(table.dtype.type(0))

    def emit(builder: Any, to: Any) -> Any:
        if isinstance(to, ir.VectorType):
            raise Unfit("there is no instruction that picks several elements")
        module, room = builder.module, ir.ArrayType(to, table.size)
        name = f"numgrad.table.{hashlib.sha256(table.tobytes()).hexdigest()[:32]}.{kind}"
        found = module.globals.get(name)
        if found is None:
            found = ir.GlobalVariable(module, room, name)
            found.linkage, found.global_constant = "internal", True
            found.initializer = ir.Constant(room, table.tolist())
        zero = ir.Constant(ir.IntType(64), 0)
        return builder.load(builder.gep(found, [zero, index.value]))

    return index.of(kind, emit)


def rarely(condition: Any, function: BranchFree, x: Any, usual: Any) -> Any:
    """Return ``function(x)`` if the condition holds, else `usual`, behind a branch.

    `function` is not built in but called: it shall cost neither time where it is not needed nor the
    compiler's for every loop that may need it.
    """

    def emit(builder: Any, to: Any) -> Any:
        if isinstance(to, ir.VectorType):
            raise Unfit("vectors do not branch")
        before = builder.block
        with builder.if_then(condition.value, likely=False):
            rare = function.called(x).value
            inside = builder.block
        result = builder.phi(to)
        result.add_incoming(usual.value, before)
        result.add_incoming(rare, inside)
        return result

    return usual.of(usual.kind, emit)


# --- functions -----------------------------------------------------------------------------------


class BranchFree:
    """A function that has no branches.

    Called with `Number`, it writes down what it does. Compiled code calls it as any other function;
    from Python it can't be called.

    Parameters
    ----------
    function : callable
        Of one or several numbers, returns one number or a tuple of them. It may call others of this
        kind, and use Python as it likes where no `Number` is concerned.
    inlined : bool
        Whether it is written down where it is called. Else it becomes a function of its own there.
    """

    def __init__(self, function: Callable[..., Any], inlined: bool = True) -> None:
        self.function = function
        self.inlined = inlined
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self._results: dict[tuple[Any, ...], Any] = {}
        _declare(self)

    def __repr__(self) -> str:
        return f"<branch-free {self.__qualname__}>"

    def __call__(self, *numbers: Any) -> Any:
        """Write down what the function does to numbers."""
        if _one_of(numbers) is None:
            raise TypeError(f"{self.__name__} is a part of kernels: only these can call it")
        return self.function(*numbers) if self.inlined else self.called(*numbers)

    def called(self, *numbers: Any) -> Any:
        """Write down a call of a function that does so and has one result."""
        one = _one_of(numbers)
        assert one is not None
        kinds = tuple([number.kind for number in numbers])
        result = self.result(kinds)
        if not isinstance(result, types.Type) or isinstance(result, types.BaseTuple):
            raise Unfit(f"{self.__name__} must be inlined")

        def emit(builder: Any, to: Any) -> Any:
            module, values = builder.module, [number.value for number in numbers]
            name = ".".join(["numgrad", self.__qualname__, *map(str, kinds)])
            function = next((f for f in module.functions if getattr(f, "of", None) is self), None)
            if function is None:
                kind = ir.FunctionType(to, [value.type for value in values])
                function = ir.Function(module, kind, module.get_unique_name(name))
                function.of = self
                function.linkage = "internal"
                for attribute in ("cold", "noinline", "nounwind"):
                    function.attributes.add(attribute)
                inner = ir.IRBuilder(function.append_basic_block())
                given = zip(kinds, function.args, strict=True)
                inner.ret(self.function(*(Number(inner, k, value) for k, value in given)).value)
            return builder.call(function, values)

        return one.of(result, emit)

    def result(self, kinds: tuple[Any, ...]) -> Any:
        """Return the Numba type of the result for numbers of some types; None if it has none."""
        if kinds not in self._results:
            try:
                found = self.function(*(Number(None, kind, None) for kind in kinds))
            except Unfit:
                kind = None
            else:
                kind = _type_of(found)
            self._results[kinds] = kind
        return self._results[kinds]


def _type_of(found: Any) -> Any:
    """Return the Numba type of a number or a tuple of them."""
    if isinstance(found, tuple):
        return types.Tuple([_type_of(number) for number in found])
    return found.kind


def _declare(own: BranchFree) -> None:
    """Tell Numba the type of a branch-free function and how a call of it is compiled."""
    count = own.function.__code__.co_argcount

    class Template(AbstractTemplate):
        key = own

        def generic(self, args: Any, kws: Any) -> Any:
            kinds = tuple([types.unliteral(kind) for kind in args])
            if kws or len(kinds) != count or not all(kind in _KINDS for kind in kinds):
                return None
            result = own.result(kinds)
            return None if result is None else signature(result, *kinds)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = own(*(Number(builder, *pair) for pair in zip(sig.args, args, strict=True)))
        if isinstance(found, tuple):
            return context.make_tuple(builder, sig.return_type, [number.value for number in found])
        return found.value

    infer_global(own, types.Function(Template))
    lower_builtin(own, *(types.Any,) * count)(lower)


def branch_free(function: Callable[..., Any], *, inlined: bool = True) -> Any:
    """Make a function without branches one that kernels are built of; see `BranchFree`.

    Examples
    --------
    >>> from numgrad.codegen.compile.compile import kernel
    >>> @branch_free
    ... def size(x):
    ...     return where(x < 0, -x, x)
    >>> @kernel
    ... def twice_the_size(x):
    ...     return 2 * size(x)
    >>> twice_the_size(-1.5)
    3.0
    """
    return BranchFree(function, inlined)
