"""UntypedStorage and TypedStorage: the memory that tensors lie in.

Programs ask them whether two tensors share memory, where it starts, and how much it is. A storage
is made when it is asked for; two of the same memory are equal, as in PyTorch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.device import CPU
from numgrad.graph.recorder import address_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.graph.upward import upward
from numgrad.ops.movement.casts import cast

__all__ = [
    "LEGACY_STORAGES",
    "NOT_SHARED",
    "STORAGES",
    "TypedStorage",
    "UntypedStorage",
    "as_typed",
    "as_untyped",
    "tensor_in",
    "warn_once",
]

Array = np.ndarray[Any, Any]

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
    "only storage class. This should only matter to you if you are using storages directly.  To "
    "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)

NOT_SHARED = (
    "share_memory_: numgrad has no memory that processes share. What is sent to another process is "
    "copied; for memory that both see, put a numpy array over multiprocessing.shared_memory and "
    "give it to from_numpy in each of them"
)

_warned = False


class _Storage:
    """What both kinds of storages do, over `_flat`: their elements, which tensors lie in."""

    _flat: Array
    # Of all there is one kind: on the CPU, in the memory of this process.
    device = CPU
    is_cuda = False
    is_sparse = False

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return address_of(self._flat)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._flat.nbytes

    def size(self) -> int:
        """Return the number of elements, which are bytes in an untyped storage."""
        return self._flat.size

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self._flat.itemsize

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether the memory is locked for a device: never."""
        return False

    def cpu(self) -> Any:
        """Return the storage itself, which is on the CPU."""
        return self

    def is_shared(self) -> bool:
        """Return whether other processes see the memory: never."""
        return False

    def share_memory_(self) -> None:
        """Refuse: no process sees the memory of another one."""
        raise RuntimeError(NOT_SHARED)

    def resizable(self) -> bool:
        """Return whether `resize_` may change the size: no, tensors' memory does not move."""
        return False

    def resize_(self, size: int) -> Any:
        """Return the storage if it has that size, and refuse any other one.

        Raises
        ------
        RuntimeError
            `Tensor.resize_` gives a tensor more memory.
        """
        if not isinstance(size, int):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size != self.size():
            raise RuntimeError(
                f"Trying to resize storage that is not resizable, from {self.size()} to {size}: "
                "the memory of a tensor stays where and as large as it is. Tensor.resize_ gives a "
                "tensor more memory; where memory is to be freed, drop the tensors in it"
            )
        return self

    def tolist(self) -> list[Any]:
        """Return the elements."""
        found: list[Any] = self._flat.tolist()
        return found

    def _place(self, key: int) -> int:
        """Return where an element lies, counted from the first."""
        size = self.size()
        if not -size <= key < size:
            raise IndexError(f"index {key} out of range for storage of size {size}")
        return key % size

    def _write(self, key: Any, value: Any) -> None:
        if not isinstance(key, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(key)}")
        size = self.size()
        if isinstance(key, int) and not -size <= key < size:
            raise IndexError(f"index {key} is out of bounds for dimension 0 with size {size}")
        self._flat[key] = value

    def fill_(self, value: Any) -> Any:
        """Write one number everywhere, and return the storage."""
        self._flat[...] = value
        return self

    def __len__(self) -> int:
        return self._flat.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __setitem__(self, key: Any, value: Any) -> None:
        self._write(key, value)

    def __eq__(self, other: object) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        own, its = self._flat, other._flat
        return self.data_ptr() == other.data_ptr() and own.nbytes == its.nbytes

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def _title(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "".join(f" {value}\n" for value in self.tolist()) + self._title()


class UntypedStorage(_Storage):
    """The bytes that a tensor, its views and its base lie in; `Tensor.untyped_storage` gives it.

    >>> import numgrad as ng
    >>> x = ng.zeros(4)
    >>> x.untyped_storage().nbytes()
    16
    >>> x[2:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    True
    """

    def __init__(self, *arguments: Any) -> None:
        """Make a storage of a number of bytes, or of the bytes in a sequence."""
        self._flat = _flat_of("UntypedStorage", dtypes.uint8, arguments, None)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return as_untyped(self._flat[key])
        if not isinstance(key, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(key).__name__}")
        return int(self._flat[self._place(key)])

    def clone(self) -> UntypedStorage:
        """Return a copy in new memory."""
        return as_untyped(self._flat.copy())

    def copy_(self, source: Any, non_blocking: bool = False) -> UntypedStorage:
        """Write the bytes of another storage, and return this one."""
        if not isinstance(source, _Storage):
            raise TypeError(
                "copy_(): argument 'src' (position 1) must be torch.Storage, not "
                f"{type(source).__name__}"
            )
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{source.nbytes()} bytes"
            )
        self._flat[...] = source._flat.view(np.uint8)
        return self

    def untyped(self) -> UntypedStorage:
        """Return the storage itself."""
        return self

    def fill_(self, value: Any) -> UntypedStorage:
        """Write one byte everywhere, and return the storage."""
        self._flat[...] = self._byte("fill_ expects int, but got", value)
        return self

    def _write(self, key: Any, value: Any) -> None:
        if not isinstance(key, (int, slice)):
            raise RuntimeError(f"can't index a torch.UntypedStorage with {type(key).__name__}")
        if isinstance(key, int) and not 0 <= key < self.size():
            raise RuntimeError("out of bounds")
        words = "can only set storage content with a int types, but got"
        super()._write(key, self._byte(words, value))

    def _byte(self, words: str, value: Any) -> int:
        if not isinstance(value, int):
            raise RuntimeError(f"{words} {type(value).__name__}" + " instead" * ("set" in words))
        return value % 256

    def _title(self) -> str:
        return f"[torch.storage.UntypedStorage(device=cpu) of size {self.size()}]"


class TypedStorage(_Storage):
    """The elements that a tensor, its views and its base lie in; `Tensor.storage` gives it.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings(action="ignore"):  # PyTorch's: they are deprecated
    ...     ng.arange(4.0)[1:].storage().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    def __init__(self, *arguments: Any, dtype: Any = None, wrap_storage: Any = None) -> None:
        """Make a storage of a size, of a sequence's elements, or of the memory of another one."""
        warn_once(2)
        self._flat = _flat_of(
            "TypedStorage", dtype or dtypes.default_dtype(), arguments, wrap_storage
        )

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.of_numpy(self._flat.dtype)

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return as_untyped(self._flat)

    def clone(self) -> TypedStorage:
        """Return a copy in new memory."""
        return as_typed(self._flat.copy())

    def pickle_storage_type(self) -> str:
        """Return the legacy name of a storage of such elements."""
        return f"{self.dtype.scalar_name}Storage"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(key, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(key)}")
        return self._flat[self._place(key)].item()

    def type(self, dtype: Any = None, non_blocking: bool = False) -> str:
        """Return the legacy name of a storage of such elements."""
        if dtype is not None:
            raise TypeError("type(): a storage keeps its dtype; cast the tensor, or use double()")
        return f"torch.{self.pickle_storage_type()}"

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Write the bytes of another storage of that size, and return this one."""
        self.untyped().copy_(source)
        return self

    def _title(self) -> str:
        return (
            f"[torch.storage.TypedStorage(dtype={self.dtype!r}, device=cpu) of size {self.size()}]"
        )


def _cast(flat: Array, dtype: dtypes.dtype) -> Array:
    return cast(wrap(flat), dtype.numpy)._array


def _cast_to(name: str, dtype: dtypes.dtype) -> Callable[[TypedStorage], TypedStorage]:
    """Make the method that casts a storage to a dtype."""

    def method(self: TypedStorage) -> TypedStorage:
        if self.dtype is dtype:
            return self
        return as_typed(_cast(self._flat, dtype))

    method.__name__ = name
    method.__doc__ = f"Return the elements cast to {dtype.name}; the storage itself if they are."
    return method


for _name, _dtype in {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "complex_float": "complex64",
    "complex_double": "complex128",
}.items():
    setattr(TypedStorage, _name, _cast_to(_name, dtypes.DTYPES[_dtype]))

STORAGES = (UntypedStorage, TypedStorage)

_OPTIONS = (
    "{}.__new__ received an invalid combination of arguments. Expected one of:\n * no arguments\n"
    " * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n{}"
)


def _flat_of(
    name: str, dtype: dtypes.dtype, arguments: tuple[Any, ...], wrap_storage: Any
) -> Array:
    """Return the memory of a new storage of a dtype."""
    if wrap_storage is not None:
        flat: Array = wrap_storage._flat.view(np.uint8)
        return flat[: flat.size // dtype.itemsize * dtype.itemsize].view(dtype.numpy)
    if len(arguments) > 1:
        raise RuntimeError(_OPTIONS.format(name, "Too many positional arguments"))
    first = arguments[0] if arguments else 0
    if isinstance(first, int):
        return np.zeros(first, dtype.numpy)
    if isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    if not isinstance(first, Sequence):
        words = f"Argument type not recognized: {type(first)}"
        raise TypeError(_OPTIONS.format(name, words))
    return np.array(upward.as_tensor(list(first), dtype=dtype)._array).reshape(-1)


class _LegacyStorageType(type):
    """The type of `FloatStorage` and the like: storages are instances of them by their dtypes."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype

    def __call__(cls, *arguments: Any, wrap_storage: Any = None, **keywords: Any) -> TypedStorage:
        for name in keywords:
            words = f"Keyword argument '{name}' cannot be specified"
            raise RuntimeError(_OPTIONS.format(cls, words))
        warn_once(2)
        return as_typed(_flat_of(str(cls), cls.dtype, arguments, wrap_storage))

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _legacy_storage(dtype: dtypes.dtype) -> _LegacyStorageType:
    name = f"{dtype.scalar_name}Storage"
    doc = f"Make a storage of {dtype.name}, as old code does; see `TypedStorage`."
    attributes = {"dtype": dtype, "__doc__": doc, "__module__": "numgrad"}
    return _LegacyStorageType(name, (TypedStorage,), attributes)


LEGACY_STORAGES: dict[str, Any] = {
    f"{dtype.scalar_name}Storage": _legacy_storage(dtype) for dtype in dtypes.DTYPES.values()
}


def as_untyped(flat: Array) -> UntypedStorage:
    """Return the storage of some bytes."""
    made = UntypedStorage.__new__(UntypedStorage)
    made._flat = flat.view(np.uint8)
    return made


def as_typed(flat: Array) -> TypedStorage:
    """Return the storage of some elements."""
    made = TypedStorage.__new__(TypedStorage)
    made._flat = flat
    return made


def warn_once(stacklevel: int) -> None:
    """Warn of typed storages, once a process, as PyTorch."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=stacklevel + 1)


def tensor_in(storage: Any, dtype: dtypes.dtype) -> Tensor:
    """Return a tensor of all the elements of a storage, in its memory."""
    return wrap(storage._flat.view(dtype.numpy))
