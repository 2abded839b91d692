"""The types of the public functions and methods, numgrad/__init__.pyi: written here, and tested.

``python -m tests.docs.stubs`` writes the file anew from the signatures that the functions have.
They are entered in tables while numgrad is imported, which type checkers cannot see. Before that it
writes the names of what is loaded later (`tests.docs.later_names`).
"""

from __future__ import annotations

import inspect
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numgrad
from numgrad.graph import tensor
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.declared import DECLARED
from numgrad.ops.signatures.kinds import KINDS
from numgrad.ops.signatures.signature import ABSENT, REQUIRED, Signature
from tests.docs import later_names

STUB = Path(__file__).parents[2] / "numgrad" / "__init__.pyi"

_HEAD = """\
# Written by `python -m tests.docs.stubs`, and compared with the functions by the tests.
# ruff: noqa
from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    NoReturn,
    ParamSpec,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    overload,
)

import numpy as np

from numgrad import autograd as autograd
from numgrad import fft as fft
from numgrad import func as func
from numgrad import linalg as linalg
from numgrad import masked as masked
from numgrad import math as math
from numgrad import nn as nn
from numgrad import random as random
from numgrad import special as special
from numgrad import utils as utils
from numgrad.graph.handles import RemovableHandle
from numgrad.jit.front import api as _api
from numgrad.jit.front import lowered as _lowered
from numgrad.ops.creation.legacy_types import tensortype as _TensorType
from numgrad.ops.mutation.storages import _LegacyStorageType as _StorageType
"""

_ALIASES = """
_DType: TypeAlias = dtype
_Device: TypeAlias = device
_Layout: TypeAlias = layout
_MemoryFormat: TypeAlias = memory_format
_Dim: TypeAlias = _int | Sequence[_int] | None
_Array: TypeAlias = np.ndarray[Any, Any]
_Number: TypeAlias = _complex | np.number[Any] | np.bool_
_Operand: TypeAlias = Tensor | _Number
_Index: TypeAlias = (
    SupportsIndex | slice | EllipsisType | None | Tensor | _Array | Sequence["_Index"]
)
_P = ParamSpec("_P")
_R = TypeVar("_R")

class _ValuesIndices(NamedTuple):
    values: Tensor
    indices: Tensor

class _MinMax(NamedTuple):
    min: Tensor
    max: Tensor

class _Frexp(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class _Reflectors(NamedTuple):
    a: Tensor
    tau: Tensor

class _Histogram(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

class _HistogramOfPoints(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]

class _QR(NamedTuple):
    Q: Tensor
    R: Tensor

class _SignLogDet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class _SVD(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor

class _PLU(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class _Solved(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor

class _Compiled(Generic[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: type | None = ...) -> _Compiled[_P, _R]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = ...) -> Callable[..., _R]: ...
    def lower(self, *args: object, **kwargs: object) -> _lowered.Lowered: ...
    def cache_info(self) -> _api.CacheInfo: ...
    def cache_clear(self) -> None: ...
"""

# What returns one thing or another, by the values that it is given: for each way to call it the
# parameters and the result. Where signatures tell, `_ways` does.
_CAST = "non_blocking: _bool = ..., *, memory_format: _MemoryFormat | None = ..."
_STATIC = "static_argnums: _int | Sequence[_int] = ..., static_argnames: str | Sequence[str] = ..."
_OVERLOADS: dict[str, tuple[tuple[str, str], ...]] = {
    "nonzero": (
        ("*, as_tuple: Literal[False] = ...", "Tensor"),
        ("*, as_tuple: Literal[True]", "tuple[Tensor, ...]"),
    ),
    "size": (("dim: None = ...", "Size"), ("dim: _int", "_int")),
    "stride": (("dim: None = ...", "tuple[_int, ...]"), ("dim: _int", "_int")),
    "type": (
        (f"dtype: None = ..., {_CAST}", "str"),
        (f"dtype: _DType | str | type, {_CAST}", "Tensor"),
    ),
}
_JIT = (
    (f"function: Callable[_P, _R], *, {_STATIC}", "_Compiled[_P, _R]"),
    (f"function: None = ..., *, {_STATIC}", "Callable[[Callable[_P, _R]], _Compiled[_P, _R]]"),
)
# What some signatures give where the others give one tensor: for the name of a parameter that they
# have, or that they lack.
_OF_SIGNATURE = {
    **dict.fromkeys(("max", "median", "min", "nanmedian"), ("dim", "_ValuesIndices", "Tensor")),
    "where": ("other", "Tensor", "tuple[Tensor, ...]"),
}
_INPUT = "input: Tensor"  # what functions of several ways to be called begin with

# What parameters of these names take where the function itself says nothing.
_PARAMETERS = {
    "alpha": "_Number",
    "bc_type": "str | Sequence[str | tuple[_int, _float]]",
    "buffer": "object",  # PyTorch's word for what has `__buffer__`, which Python 3.12 names
    "compute_mode": "str | None",
    "data": "object",
    "ext_tensor": "object",
    "iK": "Tensor | None",
    "memo": "dict[_int, Any]",
    "options": "object",
    "ortho_bparams": "dict[str, _bool] | None",
    "ortho_fparams": "dict[str, _float] | None",
    "ortho_iparams": "dict[str, _int] | None",
    "source": "Tensor | UntypedStorage | TypedStorage | None",
    "stream": "_int | None",
    "stride": "_int | Sequence[_int] | None",
    "t": "_DType | str | type",
    "tracker": "Callable[[object], None] | None",
    "ambiguity_check": "_bool | Sequence[_MemoryFormat]",
    "axis": "_Dim",
    "device": "_Device | str | None",
    "dim": "_Dim",
    "dims": "_Dim",
    "dtype": "_DType | None",
    "element": "_Operand",
    "exponent": "_Operand",
    "input": "_Operand",
    "inputs": "Tensor | Sequence[Tensor] | None",
    "layout": "_Layout | None",
    "memory_format": "_MemoryFormat | None",
    "obj": "object",
    "other": "_Operand",
    "out": "Tensor | Sequence[Tensor] | None",
    "seed": "_int",
    "shape": "_int | Sequence[_int]",
    "size": "_int | Sequence[_int] | None",
    "sizes": "_int | Sequence[_int]",
    "tensors": "Tensor | Sequence[Tensor]",
    "tol": "Tensor | _float | None",
    "value": "_Operand",
    **dict.fromkeys(("e", "v"), "Tensor | None"),
}
_NUMPY_NAMES = {"dim": "axis", "dims": "axes", "keepdim": "keepdims"}
# What functions take that are called with any number of arguments.
_ARGUMENTS = {
    "einsum": "str | Tensor | Sequence[Tensor] | Sequence[_int | EllipsisType]",
    "new": "_int | Tensor | _Array | UntypedStorage | Sequence[Any]",
    "to": "_DType | type | _Device | str | Tensor | _bool",
}
# Names that mean something else inside of numgrad, where these are dtypes.
_TAKEN = {"bool": "_bool", "int": "_int", "float": "_float"}
_TAKEN |= {"Array": "_Array", "dtype": "_DType", "complex": "_complex", "Number": "_Number"}
_TAKEN |= {"device": "_Device", "layout": "_Layout", "memory_format": "_MemoryFormat"}
# Methods of another name than their function, and those that give no tensor.
_PROPERTIES = {
    "data": "Any",
    "device": "_Device",
    "dtype": "_DType",
    "grad": "Tensor | None",
    "grad_fn": "Any",
    "itemsize": "_int",
    "layout": "_Layout",
    "nbytes": "_int",
    "ndim": "_int",
    "output_nr": "_int",
    "requires_grad": "_bool",
    "shape": "Size",
}
_SETTABLE = {
    "data": "Tensor",
    "grad": "Tensor | None",
    "imag": "_Operand",
    "real": "_Operand",
    "requires_grad": "_bool",
}
_RETURNS = {
    "lobpcg": "tuple[Tensor, Tensor]",
    "to_dlpack": "object",
    "item": "Any",
    "numpy": "_Array",
    "tolist": "Any",
    "aminmax": "_MinMax",
    "frexp": "_Frexp",
    "geqrf": "_Reflectors",
    "get_default_device": "_Device",
    "histogram": "_Histogram",
    "histogramdd": "_HistogramOfPoints",
    "lu": "tuple[Tensor, ...]",
    "lu_unpack": "_PLU",
    "qr": "_QR",
    "slogdet": "_SignLogDet",
    "svd": "_SVD",
    "triangular_solve": "_Solved",
    "unique": "Tensor | tuple[Tensor, ...]",
    "unique_consecutive": "Tensor | tuple[Tensor, ...]",
    **dict.fromkeys(("eig", "lstsq", "matrix_rank", "solve", "symeig"), "NoReturn"),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), "Tensor | tuple[Tensor, ...]"),
    **dict.fromkeys(("cummax", "cummin", "kthvalue", "mode", "sort", "topk"), "_ValuesIndices"),
    **dict.fromkeys(
        ("dim", "ndimension", "numel", "nelement", "element_size", "storage_offset", "data_ptr"),
        "_int",
    ),
    **dict.fromkeys(("is_floating_point", "is_complex", "is_signed", "is_inference"), "_bool"),
    "__len__": "_int",
    "__bool__": "_bool",
    "__int__": "_int",
    "__index__": "_int",
    "__float__": "_float",
    "__complex__": "_complex",
    "__contains__": "_bool",
    "__hash__": "_int",
    "__iter__": "Iterator[Tensor]",
    "__array__": "_Array",
    "__repr__": "str",
    "__setitem__": "None",
    **dict.fromkeys(("__copy__", "__deepcopy__", "__idiv__", "__rdiv__", "__reversed__"), "Tensor"),
    **dict.fromkeys(("__array_function__", "__array_ufunc__"), "Any"),
    "__dlpack__": "object",
    "__dlpack_device__": "tuple[_int, _int]",
    "__long__": "_int",
}
# Functions that say nothing of what they return, which is a tensor.
_ONE_TENSOR = frozenset(("add", "argwhere", "conj", "float_power", "floor_divide", "fmod", "lerp"))
_ONE_TENSOR |= {"div", "divide", "mul", "multiply", "neg", "negative", "pow", "remainder", "rsub"}
_ONE_TENSOR |= {"square", "sub", "subtract", "true_divide", "addcdiv", "addcmul", "where"}
_OPERATORS = re.compile(
    r"__(r|i)?(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__"
    r"|__(eq|ne|lt|le|gt|ge|neg|pos|abs|invert|getitem)__"
)


def _annotation(annotation: Any, name: str, function: str) -> str:
    """Return a parameter's type, in the words of the stub."""
    text = "Any" if annotation is inspect.Parameter.empty else str(annotation)
    if name in ("arguments", "keywords") and function in _ARGUMENTS:
        return _ARGUMENTS[function] if name == "arguments" else "Sequence[_int]"
    if text in ("Any", "Any | None", "dict[Any, Any]"):
        return _PARAMETERS.get(name, "Any")
    text = text.replace("dtypes.", "")
    return re.sub(r"\b(\w+)\b", lambda found: _TAKEN.get(found[1], found[1]), text)


def _returned(function: Callable[..., Any], name: str, elementwise: bool) -> str:
    """Return the type of what a function returns."""
    if name in _RETURNS:
        return _RETURNS[name]
    text = str(inspect.signature(function).return_annotation)
    if text in ("Any", str(inspect.Signature.empty)):
        return "Tensor" if elementwise or name in _ONE_TENSOR else "Any"
    text = text.replace("dtypes.", "")
    return re.sub(r"\b(\w+)\b", lambda found: _TAKEN.get(found[1], found[1]), text)


def _parameters(function: Callable[..., Any], *, bound: bool) -> str:
    """Return a signature's parameters; of a method with ``self`` for the first."""
    parts: list[str] = []
    named: list[str] = []
    slash = star = False
    given = list(inspect.signature(function).parameters.values())
    if bound:
        given, parts = given[1:], ["self"]
    for parameter in given:
        if parameter.kind is parameter.POSITIONAL_ONLY:
            slash = True
        elif slash:
            parts.append("/")
            slash = False
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star |= parameter.kind is parameter.VAR_POSITIONAL
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(
            parameter.kind, ""
        )
        default = "" if parameter.default is parameter.empty else " = ..."
        kind = _annotation(parameter.annotation, parameter.name, function.__name__)
        text = f"{prefix}{parameter.name}: {kind}{default}"
        if parameter.kind is parameter.VAR_KEYWORD:
            named.append(text)
        else:
            parts.append(text)
    if slash:
        parts.append("/")
    names = {parameter.name for parameter in given}
    aliases = [numpy_name for name, numpy_name in _NUMPY_NAMES.items() if name in names]
    if aliases and not star:
        parts.append("*")
    for alias in aliases:
        parts.append(f"{alias}: {'_bool' if alias == 'keepdims' else '_Dim'} = ...")
    return ", ".join(parts + named)


def _is_elementwise(function: Callable[..., Any]) -> bool:
    """Whether a function returns one tensor although it does not say so."""
    return getattr(function, "__module__", None) == "numgrad"


def _overloads(name: str, ways: Iterable[tuple[str, str]], first: str = "") -> Iterator[str]:
    """Yield a declaration for each way to call a function; `first` is what each begins with."""
    for parameters, returned in ways:
        given = ", ".join(filter(None, (first, parameters)))
        yield "@overload"
        yield f"def {name}({given}) -> {returned}: ..."


def has_ways(function: Any) -> bool:
    """Whether the signatures of a function differ by what one Python signature can't tell."""
    declaration = DECLARED.get(function) if callable(function) else None
    if declaration is None or len(declaration.signatures) == 1:
        return False
    needed = {
        each.name
        for signature in declaration.signatures
        for each in signature.parameters
        if each.default is REQUIRED
    }
    missing = any(
        each.default is ABSENT and each.name in needed for each in declaration.signature.parameters
    )
    return missing or bool(declaration.alternatives) or declaration.signature.name == "where"


def _ways(function: Callable[..., Any], returned: str) -> Iterator[tuple[str, str]]:
    """Yield what each signature of a function takes, and gives."""
    declaration = DECLARED[function]
    for signature in dict.fromkeys(declaration.signatures):
        names = {each.name for each in signature.parameters}
        result = returned
        if declaration.name in _OF_SIGNATURE:
            name, with_it, without = _OF_SIGNATURE[declaration.name]
            result = with_it if name in names else without
        yield _way(declaration, signature), result
        if "dim" in names:
            yield _way(declaration, signature, {"dim": "axis", "keepdim": "keepdims"}), result
        if declaration.bound and declaration.spread and signature.variadic:
            yield f"self, *{signature.positional[0].name}: _int", result


def _way(
    declaration: Declaration,
    signature: Signature,
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return what one signature takes, with NumPy's names for some of it."""
    parts = ["self"] if declaration.bound else []
    star = False
    for each in signature.parameters:
        kind = KINDS[each.kind].annotation
        kind = f"int | {kind}" if each.alone and each.kind != "int" else kind
        kind = re.sub(r"\b(\w+)\b", lambda found: _TAKEN.get(found[1], found[1]), kind)
        if each.name == "out" and each.kind == "Tensor[]":
            kind = "Sequence[Tensor]"
        kind += " | None" if each.optional or each.default is None else ""
        default = "" if each.default is REQUIRED else " = ..."
        by_name = each.keyword_only or each.name in aliases
        if by_name and not star:
            parts.append("*")
            star = True
        if star and not by_name:  # after an alias that is a keyword only
            by_name = True
        parts.append(f"{aliases.get(each.name, each.name)}: {kind}{default}")
    return ", ".join(parts)


def _functions() -> Iterator[str]:
    for name in ("compile", "jit"):
        yield from _overloads(name, _JIT)
    for name, function in sorted(FUNCTIONS.items()):
        if inspect.isclass(function):
            continue
        if name in _OVERLOADS:
            (usual, returned), *ways = _OVERLOADS[name]
            ways = [(f"{usual}, out: Tensor | None = ...", returned), *ways]
            yield from _overloads(name, ways, _INPUT)
            continue
        returned = _returned(function, name, _is_elementwise(function))
        if has_ways(function):
            yield from _overloads(name, _ways(function, returned))
            continue
        yield f"def {name}({_parameters(function, bound=False)}) -> {returned}: ..."


def _methods() -> Iterator[str]:
    """Yield what is bound to `Tensor` outside of its module, in order of the names."""
    for name in sorted(dir(numgrad.Tensor)):
        if name.startswith("_") and not (_OPERATORS.fullmatch(name) or name in _RETURNS):
            continue
        attribute = getattr(numgrad.Tensor, name)
        if isinstance(attribute, property):
            if attribute.fget is not None and attribute.fget.__module__ == tensor.__name__:
                continue  # written, with its type, in the class
            kind = _PROPERTIES.get(name, "_bool" if name.startswith("is_") else "Tensor")
            kind = "_bool" if name == "retains_grad" else kind
            yield f"    @property\n    def {name}(self) -> {kind}: ..."
            if name in _SETTABLE:
                taken = _SETTABLE[name]
                yield f"    @{name}.setter\n    def {name}(self, value: {taken}) -> None: ..."
        elif name in _OVERLOADS:
            for line in _overloads(name, _OVERLOADS[name], "self"):
                yield f"    {line}"
        elif has_ways(attribute):
            returned = _returned(attribute, name, name.endswith("_"))
            for line in _overloads(name, _ways(attribute, returned)):
                yield f"    {line}"
        elif callable(attribute):
            yield f"    {_method(name, attribute)}"


def _method(name: str, function: Callable[..., Any]) -> str:
    """Return the stub of one method or operator."""
    if name in ("__hash__", "__repr__"):
        return f"def {name}(self) -> {_RETURNS[name]}: ..."
    if name in ("__eq__", "__ne__"):
        return f"def {name}(self, other: object) -> Tensor: ...  # type: ignore[override]"
    if name == "__getitem__":
        return "def __getitem__(self, index: _Index) -> Tensor: ..."
    if name == "__setitem__":
        value = "_Operand | _Array"
        return f"def __setitem__(self, index: _Index, value: {value}) -> None: ..."
    if _OPERATORS.fullmatch(name):
        parameters = inspect.signature(function).parameters.values()
        count = sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters)
        operand = "" if count == 1 else ", other: _Operand | _Array"
        return f"def {name}(self{operand}) -> Tensor: ..."
    elementwise = _is_elementwise(function) or name.endswith("_")
    returned = _returned(function, name, elementwise)
    return f"def {name}({_parameters(function, bound=True)}) -> {returned}: ..."


def _values() -> Iterator[str]:
    """Yield what is neither a function of the catalogue nor a class that the head imports."""
    for name in sorted(set(numgrad.__all__) - FUNCTIONS.keys()):
        value = getattr(numgrad, name)
        if name == "Tensor" or isinstance(value, ModuleType):
            continue
        if isinstance(value, numgrad.dtype):
            yield f"{name}: dtype"
        elif isinstance(value, float):
            yield f"{name}: _float"
        elif isinstance(value, bool) or value is None:
            yield f"{name}: {'_bool' if value is not None else value}"
        elif isinstance(value, numgrad.Generator):
            yield f"{name}: Generator"
        elif isinstance(value, numgrad.layout | numgrad.memory_format):
            yield f"{name}: {type(value).__name__}"
        elif inspect.isclass(value) and value.__module__ == "numgrad":
            is_error = issubclass(value, BaseException)
            base = value.__bases__[0].__name__
            kind = "_StorageType" if name.endswith("Storage") else "_TensorType"
            yield f"class {name}({base}): ..." if is_error else f"{name}: {kind}"


def _imports() -> Iterator[str]:
    """Yield imports of classes and functions that are written out elsewhere."""
    yield "from numgrad.graph.tensor import Tensor as Tensor"
    for name in sorted(numgrad.__all__):
        value = getattr(numgrad, name)
        is_listed = name in FUNCTIONS and not inspect.isclass(value)
        is_code = inspect.isclass(value) or inspect.isfunction(value)
        if name in ("Tensor", "compile", "jit") or is_listed or not is_code:
            continue
        if value.__module__ != "numgrad":
            yield f"from {value.__module__} import {value.__name__} as {name}"


def text() -> str:
    """Return what the file has to be."""
    blocks = [
        _HEAD + "\n".join(sorted(_imports())),
        _ALIASES,
        "\n".join(_values()),
        "class _Methods:\n" + "\n".join(_methods()),
        "\n".join(_functions()),
        "def __getattr__(name: str) -> Any: ...  # what others declare",
    ]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


if __name__ == "__main__":
    later_names.FILE.write_text(later_names.text(later_names.declared()))
    later_names.load()
    STUB.write_text(text())
    subprocess.run(["ruff", "format", "--quiet", str(later_names.FILE), str(STUB)], check=True)
