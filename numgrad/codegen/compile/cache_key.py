"""Cache keys: what a compiled kernel depends on (source, globals, versions, CPU), as text.

A file of the cache is named after a hash of this, so it is never stale: whatever changes the
machine code changes the name.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib.resources
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba import config
from numba import types as numba_types
from numba.extending import is_jitted

from numgrad.codegen.llvm.map_ir import Map
from numgrad.codegen.llvm.scalar_ir import BranchFree
from numgrad.codegen.llvm.width import VECTORISES_STRAIGHT_CODE

__all__ = [
    "CODEGEN_OPTIONS",
    "FOLDERS",
    "Indescribable",
    "describe",
    "environment",
    "toolchain",
    "versions",
]

# What Numba reads from the environment and compiles differently for.
CODEGEN_OPTIONS = (
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
    "USING_SVML",
)
# Modules that the environment covers: what is in them need not be described.
FOLDERS = ("base", "runtime", "codegen", "math", "kernels")  # all that kernels are made of
_COVERED = (
    *(f"numgrad.{folder}." for folder in FOLDERS),
    *("numpy.", "numba.", "math.", "cmath.", "operator.", "builtins."),
)

_LOAD_GLOBAL, _EXTENDED_ARG = dis.opmap["LOAD_GLOBAL"], dis.opmap["EXTENDED_ARG"]


class Indescribable(Exception):
    """A kernel refers to something that can't be compared with what it was in another process."""


# --- the environment -----------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Return the versions that machine code depends on.

    Examples
    --------
    >>> versions()["numba"] == numba.__version__
    True
    """
    return {
        "numgrad": getattr(sys.modules["numgrad"], "__version__", ""),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "Python": f"{sys.implementation.name} {sys.version}" + getattr(sys, "abiflags", ""),
    }


@functools.cache
def toolchain() -> bytes | None:
    """Hash the versions and this package's source; None if that can't be read."""
    package = importlib.resources.files("numgrad")
    sources = sorted(
        source for folder in FOLDERS for source in _sources(package / folder, f"{folder}/")
    )
    if not sources:
        return None
    digest = hashlib.sha256()
    for name, content in sources:
        digest.update(name.encode() + b"\0" + content + b"\0")
    digest.update(repr(versions()).encode())
    return digest.digest()


def _sources(folder: Any, path: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of every Python file under a folder of this package."""
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield path + entry.name, entry.read_bytes()
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{path}{entry.name}/")


def environment(codegen: Any) -> bytes | None:
    """Hash everything but the kernel: versions, processor, options; None without a toolchain.

    Parameters
    ----------
    codegen : numba.core.codegen.Codegen
        Numba's own, which knows the processor: its name, and the features that are compiled for.
    """
    described = toolchain()
    if described is None:
        return None
    options = tuple([(option, getattr(config, option, None)) for option in CODEGEN_OPTIONS])
    options += (("straight-line code", VECTORISES_STRAIGHT_CODE),)
    return _digest(described, _processor(codegen), options)


@functools.lru_cache(maxsize=4)
def _processor(codegen: Any) -> tuple[str, ...]:
    """Return what Numba knows of the processor; it takes asking LLVM a millisecond."""
    return tuple(codegen.magic_tuple())


@functools.lru_cache(maxsize=4)
def _digest(toolchain: bytes, processor: tuple[str, ...], options: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(toolchain + f"{processor}\n{options}\n".encode()).digest()


# --- the kernel ----------------------------------------------------------------------------------


def describe(function: Callable[..., Any]) -> Iterator[str]:
    """Say in lines of text what a function compiles to: its code, and all that its names mean.

    Functions that it calls, kernels or not, are numbered as they are met and described in the same
    way, once each.
    """
    pending: list[Any] = [function]
    numbers = {id(function): 0}
    for current in pending:  # which grows meanwhile
        yield f"{current.__module__} {current.__qualname__}"
        yield _describe_value(current.__defaults__ or ())
        yield from _describe_code(current.__code__)
        for name, value in _references(current):
            inner, options = _inside(value)
            if inner is None:
                yield f"{name} = {_describe_value(value)}"
                continue
            if id(inner) not in numbers:
                numbers[id(inner)] = len(pending)
                pending.append(inner)
            yield f"{name} = function {numbers[id(inner)]} {options}"


def _inside(value: Any) -> tuple[Any, str]:
    """Return the Python function that a value is or compiles, None if there is none; its options.

    Functions of NumPy and the like are values: the versions say what is in them. So are branch-free
    functions of this package.
    """
    options = ""
    if isinstance(value, BranchFree | Map) and not f"{value.__module__}.".startswith(_COVERED):
        return value.function, type(value).__name__
    if is_jitted(value):
        options = repr(sorted(value.targetoptions.items(), key=str))
        value = value.py_func
    elif hasattr(value, "_dispatcher"):  # what numba.vectorize returns
        value = getattr(value._dispatcher, "py_func", None)
        if value is None:
            raise Indescribable
    if not isinstance(value, types.FunctionType):
        return None, ""
    return value, options


def _describe_code(code: types.CodeType) -> Iterator[str]:
    """Yield the instructions with their constants and names, those of nested functions included."""
    yield f"{code.co_firstlineno} {code.co_code.hex()} {code.co_names} {code.co_varnames}"
    yield f"{code.co_freevars} {code.co_cellvars} {code.co_flags}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _describe_code(constant)
        else:
            yield _describe_value(constant)


def _references(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the global and enclosed variables that a function uses, with their present values.

    So are the variables of modules that it may use: whatever name of the function they have.
    """
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not bound yet
            raise Indescribable from None
    codes = [function.__code__]
    for code in codes:  # which grows meanwhile
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for name in global_names(code):
            if name in function.__globals__:
                found.append((name, function.__globals__[name]))
    names = sorted({name for code in codes for name in code.co_names})
    modules = {id(value) for _, value in found if isinstance(value, types.ModuleType)}
    for path, value in found:  # which grows meanwhile
        yield path, value
        if not isinstance(value, types.ModuleType) or f"{value.__name__}.".startswith(_COVERED):
            continue
        for name in names:
            inner = getattr(value, name, None)
            if isinstance(inner, types.ModuleType):
                if id(inner) in modules:
                    continue  # modules may refer to each other
                modules.add(id(inner))
            if inner is not None:
                found.append((f"{path}.{name}", inner))


def global_names(code: types.CodeType) -> list[str]:
    """Return the names that instructions look up among the globals, sorted.

    `co_names` has attributes too, and a global that shares its name with one would be taken for
    something that the kernel uses. `dis` says the same as this and takes a hundred times as long,
    which counts here: it is done for every kernel that is loaded.
    """
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    names = set()
    place = operations.find(_LOAD_GLOBAL)
    while place >= 0:
        index = arguments[place]
        before = place - 1
        while before >= 0 and operations[before] == _EXTENDED_ARG:
            index |= arguments[before] << 8 * (place - before)
            before -= 1
        names.add(code.co_names[index >> 1])  # the lowest bit is about the call that follows
        place = operations.find(_LOAD_GLOBAL, place + 1)
    return sorted(names)


def _describe_value(value: Any) -> str:
    """Return text that is the same for equal values in every process, and for them alone."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple | list):
        fields = getattr(value, "_fields", "")
        return f"{type(value).__name__}{fields}({', '.join(map(_describe_value, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_describe_value, value)))}}}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, np.dtype | numba_types.Type):
        return f"{type(value).__name__} {value}"
    # Modules, builtins, types: this package and the versions say what is in them.
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if name is None:
        raise Indescribable
    return f"{type(value).__name__} {getattr(value, '__module__', None)} {name}"
