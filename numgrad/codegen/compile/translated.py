"""Kernels made of the loop IR itself, without Numba's way through Python's bytecode.

To Numba such a kernel is a function whose body is not looked at: a pipeline of
`numgrad.codegen.compile.pipelines` takes the types and the instructions from here, where
`numgrad.codegen.llvm.function_ir` writes them down. All the rest, from dispatchers to the cache on
disk, is as for any kernel. The printed source means the same: where a Numba has not
what kernels are made with (`HAS_PIPELINES`), it is compiled instead.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from numgrad.base.tuning import SHARED_FLOPS
from numgrad.codegen.compile.borrowed_arguments import takes
from numgrad.codegen.compile.shared_code import PREFIX, SharedCode
from numgrad.codegen.llvm.function_expressions import parts_of, passed
from numgrad.codegen.llvm.function_ir import FunctionWriter
from numgrad.codegen.llvm.function_types import WITHOUT_SIZES, Part, Signatures, Typed
from numgrad.codegen.loop_passes import rewritten, walk
from numgrad.codegen.loops import (
    Assign,
    Attribute,
    Call,
    For,
    Function,
    Interpreted,
    Name,
    Tuple,
    Unpack,
)
from numgrad.codegen.scalar_ops import SCALAR_OPS

__all__ = [
    "Translation",
    "declared",
    "read_kernel",
    "translated",
    "translation_of",
    "write_functions",
]

# By their keys, while they are in use.
_known: weakref.WeakValueDictionary[str, Translation] = weakref.WeakValueDictionary()


@lru_cache(4)
def _signatures(context: Any) -> Signatures:
    return Signatures(context)


class Translation:
    """Functions of the loop IR, to be translated.

    Parameters
    ----------
    key : str
        Says what they do: functions that do something else have another.
    functions : sequence of Function
        The last is the one to be called.
    namespace : dict
        Of their printed source, when it has run: functions that call the interpreter are compiled
        by Numba.
    """

    def __init__(self, key: str, functions: Sequence[Function], namespace: dict[str, Any]) -> None:
        translated = [_versioned(each) for each in functions if not _is_interpreted(each)]
        self.main = translated[-1]
        self.functions = {each.name: each for each in translated}
        self.__name__, self.namespace, self._given = key, namespace, functions
        self._typed: dict[Any, Typed] = {}

    def __reduce__(self) -> Any:
        """Functions that call the interpreter do so in this process alone, and are left out."""
        return translation_of, (self.__name__, self._given, {})

    def typed(self, name: str, arguments: tuple[Any, ...]) -> Typed | None:
        """Return a function for arguments of some types; None if there is none of this name."""
        function = self.functions.get(name)
        if function is None:
            return None
        found = self._typed.get((name, arguments))
        if found is None:
            has_sizes = function is self.main or self._asks_for_sizes(function)
            found = Typed(function, arguments, self.signatures, self, has_sizes=has_sizes)
            self._typed[name, arguments] = found
        return found

    def _asks_for_sizes(self, function: Function) -> bool:
        """Whether a function calls what may ask for the sizes of arrays."""
        for node in walk(function.body):
            if type(node) is Attribute or type(getattr(node, "index", None)) is Tuple:
                return True
            called = node.function if type(node) is Call else None
            if type(called) is not Name:
                continue
            if not called.module:
                own = self.functions.get(called.id)
                if (own is None and called.id in self.namespace) or (
                    own is not None and self._asks_for_sizes(own)
                ):
                    return True
            elif not called.module.startswith(WITHOUT_SIZES):
                return True
        return False

    def known(self, name: Name) -> Any:
        """Return what a name stands for that is no variable."""
        if not name.module and name.id in self.namespace:
            return self.namespace[name.id]
        return getattr(importlib.import_module(name.module or "builtins"), name.id)

    signatures: Signatures

    def called_with(
        self, context: Any, arguments: tuple[Any, ...], *, alone: bool = False
    ) -> Typed:
        """Return the last function for arguments of some types.

        Parameters
        ----------
        alone : bool
            Whether Python alone calls it, so that of arrays it can be told what it asks for.
        """
        self.signatures = _signatures(context)
        main = self.main
        found = self.typed(main.name, arguments)
        assert found is not None
        if alone and takes(arguments, found.result):
            if not self._asks_for_sizes(main):
                found = Typed(main, arguments, self.signatures, self, has_sizes=False)
            found.is_apart = True
        return found


def write_functions(
    context: Any, main: Any, typed: Typed, shared: SharedCode | None = None
) -> None:
    """Write down a function into one of LLVM's that is there, and those that it calls beside it.

    With `shared` what is dear to compile is called there, and not written down here.
    """
    written = {id(typed): main}

    def function_of(typed: Typed) -> Any:
        function = written.get(id(typed))
        if function is None:
            if shared is not None and _is_dear(typed):
                name = _share(context, typed, shared)
                function = written[id(typed)] = declared(context, main.module, name, typed)
                return function
            name = main.module.get_unique_name(f"numgrad.{typed.function.name}")
            function = written[id(typed)] = declared(context, main.module, name, typed)
            function.linkage = "internal"
            if typed.part is not None and typed.part.is_inlined:
                function.attributes.add("alwaysinline")
            FunctionWriter(context, typed, function, function_of)
        return function

    FunctionWriter(context, typed, main, function_of)


def declared(context: Any, module: Any, name: str, typed: Typed) -> Any:
    """Return a function of LLVM's, without a body, for one that is called beside others."""
    given, convention = passed(typed), context.call_conv
    function = ir.Function(module, convention.get_function_type(typed.result, given), name)
    # Elements of arrays are called as Numba calls them, and as `distinct` looks for.
    parameters = [
        name
        for parameter, kind in zip(typed.function.parameters, typed.arguments, strict=True)
        for name in _names_of_parts(parameter, kind, typed)
    ]
    convention.decorate_function(function, parameters, given)
    return function


def _names_of_parts(name: str, kind: Any, typed: Typed) -> list[str]:
    if not isinstance(kind, types.Array) or (typed.has_sizes and not typed.is_apart):
        return [name]
    numbers = len(parts_of(kind, typed.has_sizes)) - 1
    return [f"{name}.4", *[f"{name}.{5 + number}" for number in range(numbers)]]


def _is_dear(typed: Typed) -> bool:
    """Whether a function is a scalar operation that is long: .1 to .8 s for LLVM."""
    function = None if typed.part is None else typed.part.function
    op = SCALAR_OPS.get(getattr(function, "__name__", ""))
    is_own = getattr(function, "__module__", "").startswith("numgrad.math.")
    return op is not None and is_own and op.flops >= SHARED_FLOPS


def _share(context: Any, typed: Typed, shared: SharedCode) -> str:
    """Compile a function for all kernels that call it, and return its name."""
    kinds = ".".join(map(str, typed.arguments))
    name = f"{PREFIX}{typed.function.name}.{kinds}"
    shared.add(
        context,
        name,
        lambda module: write_functions(context, declared(context, module, name, typed), typed),
    )
    return name


def read_kernel(context: Any, function: Any, arguments: tuple[Any, ...]) -> Typed | None:
    """Return a Python function for arguments of some types, if it can be read.

    It is read anew each time: what its names stand for may have changed.
    """
    return _signatures(context).read(Part(function, is_inlined=False), arguments, has_sizes=True)


def translation_of(
    key: str, functions: Sequence[Function], namespace: dict[str, Any]
) -> Translation:
    """Return the translation of a key: one that is in use, or a new one of these functions."""
    return _known.setdefault(key, Translation(key, functions, namespace))


def _is_interpreted(function: Function) -> bool:
    """Whether a function calls the interpreter."""
    return any(isinstance(line, Interpreted) for line in function.body)


def _versioned(function: Function) -> Function:
    """Return a function whose arguments, where they are assigned anew, have another name then.

    So they can have another type: arguments are made floats under their own name.
    """
    body = list(function.body)
    for position, line in enumerate(body):
        if type(line) is Assign and line.target in function.parameters:
            before, after = line.target, f"{line.target}_{position}"

            def renamed(node: Any, before: str = before, after: str = after) -> Any:
                match node:
                    case Name(name, "") if name == before:
                        return Name(after)
                    case Assign(target) if target == before:
                        return replace(node, target=after)
                    case Unpack(targets) if before in targets:
                        found = tuple([after if each == before else each for each in targets])
                        return replace(node, targets=found)
                    case For(index) if index == before:
                        return replace(node, index=after)
                return node

            body[position] = replace(line, target=after)
            body[position + 1 :] = rewritten(body[position + 1 :], renamed)
    return replace(function, body=body)


def translated(translation: Translation, *arguments: Any) -> Any:
    """Stand in a kernel's body for the last function of a translation, which it is compiled as."""
    raise TypeError("a translated function is a part of kernels: only these can call it")
