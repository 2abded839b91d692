"""Scalar types: PyTorch's names over NumPy's dtypes, and PyTorch's promotion rules.

A `dtype` prints as PyTorch prints it (``torch.float32``), because printed output is part of
the semantics we keep and ``import numgrad as torch`` is the documented idiom.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "DTYPES",
    "can_cast",
    "default_complex_dtype",
    "default_dtype",
    "defaults",
    "dtype",
    "finfo",
    "get_default_dtype",
    "iinfo",
    "is_int64",
    "kind_of_number",
    "of_numpy",
    "promote_types",
    "scalar_dtype",
    "set_default_dtype",
    "to_dtype",
]

# Categories in promotion order: a result has the highest category of its operands.
BOOL, INTEGER, FLOATING, COMPLEX = range(4)

_CPP_NAMES = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


class dtype:  # noqa: N801 - PyTorch's own spelling of the class
    """The element type of a tensor; there is exactly one instance for each type.

    Attributes
    ----------
    name : str
        PyTorch's short name, such as ``"float32"``.
    numpy : numpy.dtype
        The NumPy dtype of the storage.
    scalar_name : str
        The name PyTorch's error messages use (``"Float"``, ``"Long"``, ...).
    category : int
        0 for bool, 1 for integers, 2 for floating point, 3 for complex.
    """

    __slots__ = ("category", "name", "numpy", "scalar_name")

    def __init__(self, name: str, scalar_name: str, category: int) -> None:
        self.name = name
        self.numpy = np.dtype(name)
        self.scalar_name = scalar_name
        self.category = category

    @property
    def cpp_name(self) -> str:
        """What C++ calls the type itself, in some of PyTorch's messages."""
        return _CPP_NAMES.get(self.name, self.name)

    @property
    def c_name(self) -> str:
        """What C++ code calls it, in PyTorch's messages about numbers that do not fit."""
        has_size = self.category == INTEGER and self.name != "int32"
        return f"{self.name}_t" if has_size else self.cpp_name

    @property
    def is_floating_point(self) -> bool:
        """Whether this is a real floating point type."""
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        """Whether this is a complex type."""
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        """Whether the type can hold negative numbers."""
        return self.numpy.kind in "ifc"

    @property
    def itemsize(self) -> int:
        """Bytes in one element."""
        return self.numpy.itemsize

    def to_real(self) -> dtype:
        """Return the real type of the same precision (``complex64`` gives ``float32``)."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """Return the complex type of the same precision (``float32`` gives ``complex64``).

        There is none of float16: it gives ``complex64``, too.
        """
        return _COMPLEX.get(self, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return to_dtype, (self.name,)


DTYPES: dict[str, dtype] = {
    name: dtype(name, scalar_name, category)
    for name, scalar_name, category in [
        ("bool", "Bool", BOOL),
        ("uint8", "Byte", INTEGER),
        ("int8", "Char", INTEGER),
        ("int16", "Short", INTEGER),
        ("int32", "Int", INTEGER),
        ("int64", "Long", INTEGER),
        ("uint16", "UInt16", INTEGER),
        ("uint32", "UInt32", INTEGER),
        ("uint64", "UInt64", INTEGER),
        ("float16", "Half", FLOATING),
        ("float32", "Float", FLOATING),
        ("float64", "Double", FLOATING),
        ("complex64", "ComplexFloat", COMPLEX),
        ("complex128", "ComplexDouble", COMPLEX),
    ]
}

bool_ = DTYPES["bool"]
uint8, uint16, uint32, uint64 = (DTYPES[f"uint{bits}"] for bits in (8, 16, 32, 64))
int8, int16, int32, int64 = (DTYPES[f"int{bits}"] for bits in (8, 16, 32, 64))
float16, float32, float64 = DTYPES["float16"], DTYPES["float32"], DTYPES["float64"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]

# PyTorch promotes these with floating point types only.
_BARE = {uint16, uint32, uint64}
_REAL = {complex64: float32, complex128: float64}
# PyTorch has a complex type of two float16, NumPy has none.
_COMPLEX = {float16: complex64, float32: complex64, float64: complex128}
# `array.dtype` is nearly always the interned NumPy dtype, so this lookup is one hash of a pointer.
_OF_NUMPY: dict[Any, dtype] = {d.numpy: d for d in DTYPES.values()}
_OF_PYTHON: dict[Any, dtype] = {bool: bool_, int: int64, complex: complex128}


class _Defaults:
    """What can be set; read by code that asks in every call."""

    floating: dtype = float32  # what Python floats become


defaults = _Defaults()


def of_numpy(numpy_dtype: Any) -> dtype:
    """Return the `dtype` of a NumPy dtype.

    Raises
    ------
    TypeError
        If tensors cannot hold elements of that type (strings, objects, float128, ...).
    """
    found = _OF_NUMPY.get(numpy_dtype)
    if found is None:
        supported = ", ".join(DTYPES)
        raise TypeError(
            f"can't convert np.ndarray of type {np.dtype(numpy_dtype)}. "
            f"The only supported types are: {supported}."
        )
    return found


def to_dtype(value: Any) -> dtype:
    """Convert a `dtype`, NumPy dtype, Python type or name to a `dtype`.

    Raises
    ------
    TypeError
        If `value` does not name a type that tensors can hold.
    """
    if isinstance(value, dtype):
        return value
    if value is float:
        return float64
    try:
        if value in _OF_PYTHON:
            return _OF_PYTHON[value]
        if isinstance(value, str):  # NumPy has many more names, and warns of some
            return DTYPES[value]
        if value is None:  # which NumPy takes for float64
            raise TypeError
        return of_numpy(np.dtype(value))
    except (KeyError, TypeError):
        raise TypeError(f"dtype must be a numgrad dtype, not {value!r}") from None


def get_default_dtype() -> dtype:
    """Return the floating point type that Python floats become (``float32`` at first)."""
    return defaults.floating


def default_dtype() -> dtype:
    """Return the default floating point type; the internal spelling of `get_default_dtype`."""
    return defaults.floating


def default_complex_dtype() -> dtype:
    """Return the complex type with the precision of the default floating point type."""
    return _COMPLEX[defaults.floating]


def set_default_dtype(d: Any) -> None:
    """Set the floating point type that Python floats become.

    Raises
    ------
    TypeError
        If `d` is not a real floating point `dtype`.
    """
    only = "only floating-point types are supported as the default type"
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: {only}")
    if not d.is_floating_point:
        raise TypeError(only)
    defaults.floating = d


def _read_dtype(function: str, name: str, position: int, value: Any) -> dtype:
    """Return a dtype, or that of a Python type; raise PyTorch's error where it is neither."""
    if isinstance(value, dtype):
        return value
    if value in (bool, int, float, complex):
        return to_dtype(value)
    raise TypeError(
        f"{function}(): argument '{name}' (position {position}) must be torch.dtype, not "
        f"{type(value).__name__}"
    )


def scalar_dtype(value: Any) -> dtype:
    """Return the type of a Python scalar as a tensor: bool, int64, the default float or complex.

    Raises
    ------
    OverflowError
        As `kind_of_number`.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        kind_of_number(value)
        return int64
    if isinstance(value, (float, np.floating)):
        return defaults.floating
    if isinstance(value, (complex, np.complexfloating)):
        return default_complex_dtype()
    raise TypeError(f"expected a number, not {type(value).__name__}")


def is_int64(value: int) -> bool:
    """Whether int64 holds an int."""
    return -(2**63) <= value < 2**63


def kind_of_number(value: Any) -> Any:
    """Return what kernels for a number depend on: its type, and of an int whether int64 holds it.

    Raises
    ------
    OverflowError
        In PyTorch's words, for an int that neither int64 nor uint64 holds.

    Examples
    --------
    >>> kind_of_number(1), kind_of_number(2**63)
    (<class 'int'>, 'unsigned')
    """
    kind = type(value)
    if kind is not int or -(2**63) <= value < 2**63:
        return kind
    if 0 < value < 2**64:
        return "unsigned"
    raise OverflowError(
        "int too big to convert" if value > 0 else "can't convert negative int to unsigned"
    )


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest type to which both types convert, by PyTorch's table.

    It differs from NumPy's where an integer meets a floating point type: the floating point type
    wins whatever its size, so ``int64`` with ``float32`` gives ``float32``.

    Raises
    ------
    RuntimeError
        If one is uint16, uint32 or uint64 and the other neither the same nor floating point.
    """
    if type(type1) is not dtype or type(type2) is not dtype:
        type1 = _read_dtype("promote_types", "type1", 1, type1)
        type2 = _read_dtype("promote_types", "type2", 2, type2)
    if type1 is type2:
        return type1
    if (type1 in _BARE or type2 in _BARE) and FLOATING not in (type1.category, type2.category):
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{type1.scalar_name} and {type2.scalar_name}"
        )
    low, high = (type1, type2) if type1.category <= type2.category else (type2, type1)
    if low.category < high.category:
        if low.category == FLOATING:  # with complex: keep the wider precision
            return high if low.itemsize * 2 <= high.itemsize else complex128
        return high
    return of_numpy(np.promote_types(low.numpy, high.numpy))


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether PyTorch casts `from_` to `to` without being asked (category may not go down)."""
    if type(from_) is not dtype or type(to) is not dtype:
        from_ = _read_dtype("can_cast", "from_", 1, from_)
        to = _read_dtype("can_cast", "to", 2, to)
    return from_.category <= to.category


class finfo:  # noqa: N801 - PyTorch's own spelling
    """Limits of a floating point type, as in PyTorch: eps, max, min, tiny, bits, resolution."""

    def __init__(self, type: Any = None) -> None:
        self._dtype = defaults.floating if type is None else to_dtype(type)
        if self._dtype.category < FLOATING:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        info = np.finfo(self._dtype.to_real().numpy)
        self.bits = int(info.bits)
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = 10.0**-info.precision
        self.dtype = self._dtype.to_real().name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801 - PyTorch's own spelling
    """Limits of an integer type, as in PyTorch: max, min, bits."""

    def __init__(self, type: Any) -> None:
        self._dtype = to_dtype(type)
        if self._dtype is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if self._dtype.category != INTEGER:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        info = np.iinfo(self._dtype.numpy)
        self.bits, self.max, self.min = info.bits, int(info.max), int(info.min)
        self.dtype = self._dtype.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
