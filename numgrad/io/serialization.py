"""Save and load tensors: files of `save` and `load`.

A file is a zip archive, none of it compressed. ``description.json`` says what was saved: plain
values as they are, containers and tensors by tags. Memory stands beside it as ``memory/0.npy`` and
so on, once for all tensors that lie in it, so that ``numpy.load`` can read a file, too. To load one
runs no code: nothing in it names any.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.device import device
from numgrad.base.dtypes import dtype
from numgrad.graph.size import Size
from numgrad.graph.storage import Span, array_within, span_of, tensor_within
from numgrad.graph.tensor import Tensor
from numgrad.io.copying import attributes_of, warn_of_hooks

__all__ = ["load", "save"]

File = str | os.PathLike[str] | IO[bytes]

FORMAT = "numgrad"
VERSION = 1
_DESCRIPTION = "description.json"
_ZIP = b"PK"
_PLAIN = (str, bool, int, type(None))
# Containers that may be filled after they were made, and so hold themselves.
_FILLED: dict[str, type] = {"list": list, "dict": dict, "OrderedDict": OrderedDict, "set": set}


def save(obj: object, f: File) -> None:
    """Write tensors and plain values, nested in any way, to a file.

    Mirrors ``torch.save``, in a format of its own. Tensors that share memory share it in the file,
    and again when they are loaded. With a tensor go its strides, its dtype, whether it requires
    grad, and attributes that were set on it; its history and its gradient do not.

    Parameters
    ----------
    obj : object
        Tensors, numbers, strings, bytes, None, dtypes, devices and sizes, and lists, tuples, sets
        and dicts of them.
    f : path or binary file
        Where to write.

    Raises
    ------
    pickle.PicklingError
        If there is anything else in `obj`.
    RuntimeError
        If there is no such directory.

    Examples
    --------
    >>> import io
    >>> import numgrad as ng
    >>> file = io.BytesIO()
    >>> ng.save({"weight": ng.ones(2, requires_grad=True), "step": 3}, file)
    >>> _ = file.seek(0)
    >>> ng.load(file)
    {'weight': tensor([1., 1.], requires_grad=True), 'step': 3}
    """
    writer = _Writer()
    value = writer.encode(obj)  # before the file is opened: what can't be saved leaves it alone
    if isinstance(f, (str, os.PathLike)):
        parent = os.path.dirname(os.fspath(f))
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
        with open(f, "wb") as file:
            writer.write(value, file)
    elif hasattr(f, "write"):
        writer.write(value, f)
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )


def load(f: File, map_location: Any = None, *, weights_only: bool | None = None) -> Any:
    """Read what `save` wrote.

    Mirrors ``torch.load``. No code is run, whatever is in the file.

    Parameters
    ----------
    f : path or binary file
        What to read; a file has to be seekable.
    map_location : device or str, optional
        Accepted for ``"cpu"``, which is where all tensors are.
    weights_only : bool, optional
        Accepted; loading is always as safe as that.

    Raises
    ------
    RuntimeError
        If it is no such file, or not all of it, or not as it was written.
    EOFError
        If it is empty.

    Examples
    --------
    >>> import io
    >>> import numgrad as ng
    >>> x = ng.arange(3.0)
    >>> file = io.BytesIO()
    >>> ng.save([x, x[1:]], file)
    >>> _ = file.seek(0)
    >>> y, part = ng.load(file)
    >>> part.zero_()
    tensor([0., 0.])
    >>> y
    tensor([0., 0., 0.])
    """
    if map_location is not None and device(map_location).type != "cpu":
        raise RuntimeError(
            f"load() got map_location={map_location!r}, but all tensors are on the cpu: leave it "
            "out, or give 'cpu'"
        )
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _read(file)
    if not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load from a "
            "file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try "
            "to load from it instead."
        )
    return _read(f)


class _Writer:
    """Turns objects into what JSON can say, and collects the tensors among them."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by id, of every object that may occur again
        self._kept: list[Any] = []  # these objects, so that their ids stay theirs
        self._tensors: list[tuple[Tensor, Span, Any]] = []

    def encode(self, value: Any) -> Any:
        """Return the description of a value.

        Raises
        ------
        pickle.PicklingError
            If it has none.
        """
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in _OTHERS:
            tag, encode, _ = _OTHERS[kind]
            return {tag: encode(value)}
        if kind is tuple or kind is frozenset:
            return {kind.__name__: [self.encode(each) for each in value]}
        if id(value) in self._numbers:
            return {"again": self._numbers[id(value)]}
        if isinstance(value, Tensor):
            self._note(value)
            warn_of_hooks(value)
            attributes = attributes_of(value)
            self._tensors.append((value, span_of(value), None))
            at = len(self._tensors) - 1
            described = self.encode(attributes) if attributes else None
            self._tensors[at] = (*self._tensors[at][:2], described)
            return {"tensor": at}
        if kind in (list, set):
            self._note(value)
            return {kind.__name__: [self.encode(each) for each in value]}
        if kind in (dict, OrderedDict):
            self._note(value)
            pairs = [[self.encode(key), self.encode(each)] for key, each in value.items()]
            return {kind.__name__: pairs}
        raise pickle.PicklingError(
            f"can't save an object of type {kind.__module__}.{kind.__qualname__}: files hold "
            "tensors, numbers, strings, bytes, None, dtypes, devices and sizes, and lists, tuples, "
            "sets and dicts of them"
        )

    def _note(self, value: Any) -> None:
        """Give a number to what may occur again; loading counts in the same order."""
        self._numbers[id(value)] = len(self._kept)
        self._kept.append(value)

    def write(self, value: Any, file: IO[bytes]) -> None:
        """Write the archive."""
        memories = _joined([span for _, span, _ in self._tensors])
        tensors = []
        for tensor, span, attributes in self._tensors:
            at = next(i for i, memory in enumerate(memories) if _covers(memory, span))
            array = tensor._array
            tensors.append(
                {
                    "memory": at,
                    "offset": array.__array_interface__["data"][0] - memories[at][0].start,
                    "shape": array.shape,
                    "strides": array.strides,
                    "dtype": tensor.dtype.name,
                    "requires_grad": tensor.requires_grad,
                    "attributes": attributes,
                }
            )
        description = {
            "format": FORMAT,
            "version": VERSION,
            "byteorder": sys.byteorder,
            "value": value,
            "tensors": tensors,
        }
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_DESCRIPTION, json.dumps(description))
            for number, spans in enumerate(memories):
                with archive.open(f"memory/{number}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, _bytes_of(spans), allow_pickle=False)


def _joined(spans: list[Span]) -> list[list[Span]]:
    """Return groups of spans, each one stretch of memory; the first of a group starts it."""
    groups: list[list[Span]] = []
    reach = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.stop)):
        if groups and span.start < reach:
            groups[-1].append(span)
        else:
            groups.append([span])
            reach = span.stop
        reach = max(reach, span.stop)
    return groups


def _covers(group: list[Span], span: Span) -> bool:
    return any(span is member for member in group)


def _bytes_of(group: list[Span]) -> np.ndarray[Any, Any]:
    """Return the memory of a group, of the elements' type where that is one."""
    start = group[0].start
    memory = np.empty(max(span.stop for span in group) - start, np.uint8)
    for span in group:
        memory[span.start - start : span.stop - start] = span.copy()
    kinds = {span.array.dtype for span in group}
    whole = len(kinds) == 1 and memory.size % group[0].array.itemsize == 0
    return memory.view(group[0].array.dtype) if whole else memory


# Values of one piece: their tag, what JSON says of them, and the way back.
_OTHERS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    complex: ("complex", repr, complex),
    bytes: ("bytes", lambda value: base64.b64encode(value).decode("ascii"), base64.b64decode),
    dtype: ("dtype", lambda value: value.name, lambda name: _dtype(name)),
    device: ("device", str, device),
    Size: ("Size", list, lambda lengths: Size([_integer(length) for length in lengths])),
}
_DECODE: dict[str, Callable[[Any], Any]] = {
    "float": float,
    **{tag: decode for tag, _, decode in _OTHERS.values()},
}


def _dtype(name: Any) -> dtype:
    found = dtypes.of_numpy(np.dtype(str(name)))
    if found.name != name:
        raise ValueError(f"there is no dtype {name!r}")
    return found


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"an int is wanted, but there is {value!r}")
    return value


class _Reader:
    """Makes objects of a description."""

    def __init__(self, tensors: list[Any], memories: list[np.ndarray[Any, Any]]) -> None:
        self._described = tensors
        self._memories = memories
        self._numbered: list[Any] = []

    def decode(self, value: Any) -> Any:
        """Return the value that was described."""
        if not isinstance(value, dict):
            if type(value) in _PLAIN or type(value) is float:
                return value
            raise TypeError(f"{type(value).__name__} without a tag")
        ((tag, content),) = value.items()
        if tag in _DECODE:
            return _DECODE[tag](content)
        if tag in ("tuple", "frozenset"):
            members = [self.decode(each) for each in content]
            return tuple(members) if tag == "tuple" else frozenset(members)
        if tag == "again":
            return self._numbered[_index(content, self._numbered)]
        if tag == "tensor":
            return self._tensor(self._described[_index(content, self._described)])
        container = _FILLED[tag]()
        self._numbered.append(container)
        if isinstance(container, dict):
            for key, each in content:
                container[self.decode(key)] = self.decode(each)
        elif isinstance(container, set):
            container.update([self.decode(each) for each in content])
        else:
            container.extend([self.decode(each) for each in content])
        return container

    def _tensor(self, described: dict[str, Any]) -> Tensor:
        memory = self._memories[_index(described["memory"], self._memories)]
        array = array_within(
            memory,
            _dtype(described["dtype"]).numpy,
            tuple([_integer(length) for length in described["shape"]]),
            tuple([_integer(step) for step in described["strides"]]),
            _integer(described["offset"]),
        )
        tensor = tensor_within(array, memory)
        self._numbered.append(tensor)
        if described["requires_grad"] is True:
            tensor.requires_grad = True
        if described["attributes"] is not None:
            attributes = self.decode(described["attributes"])
            if not vars(tensor).keys().isdisjoint(attributes) or not all(
                isinstance(name, str) and not hasattr(Tensor, name) for name in attributes
            ):
                raise ValueError("an attribute has the name of one of a tensor's own")
            vars(tensor).update(attributes)
        return tensor


_FOREIGN = (
    "the file of numgrad.save was written on a machine whose numbers have the other byte order, "
    "and can only be read on such a one"
)


def _index(value: Any, sequence: list[Any]) -> int:
    if not 0 <= _integer(value) < len(sequence):
        raise IndexError(f"{value} of {len(sequence)}")
    return int(value)


def _read(file: IO[bytes]) -> Any:
    """Read a file from where it stands."""
    start = file.tell()
    head = file.read(2)
    if not head:
        raise EOFError("Ran out of input: the file is empty")
    if head != _ZIP:
        raise RuntimeError(
            "this is no file of numgrad.save: it is no zip archive. Files of pickle are not read, "
            "because that may run any code."
        )
    file.seek(start)
    with _complaining():
        archive = zipfile.ZipFile(io.BytesIO(file.read()) if start else file)
    with archive:
        names = archive.namelist()
        if any(name.endswith("data.pkl") for name in names):
            raise RuntimeError(
                "this is a file of torch.save, and numgrad reads only those of numgrad.save. Where "
                "PyTorch is installed, convert it: numgrad.save takes what torch.load returns once "
                "its tensors are made numgrad's, with numgrad.from_numpy(tensor.numpy())."
            )
        if _DESCRIPTION not in names:
            raise RuntimeError(
                f"this is no file of numgrad.save: the zip archive holds no {_DESCRIPTION}"
            )
        with _complaining():
            description = json.loads(_entry(archive, _DESCRIPTION))
            version = description["version"]
            if description["format"] == FORMAT and version != VERSION:
                raise RuntimeError(
                    f"the file has version {version!r} of the format, and this numgrad reads "
                    f"version {VERSION}"
                )
            if description.get("byteorder", sys.byteorder) != sys.byteorder:
                raise RuntimeError(_FOREIGN)
            count = sum(name.startswith("memory/") for name in names)
            memories = [_memory(_entry(archive, f"memory/{at}.npy")) for at in range(count)]
            return _Reader(description["tensors"], memories).decode(description["value"])


@contextmanager
def _complaining() -> Iterator[None]:
    """Turn whatever a damaged file leads to into one kind of error."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        EOFError,
        ValueError,  # JSON's errors among them
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        MemoryError,
        NotImplementedError,
        RecursionError,
    ) as error:
        raise RuntimeError(
            "the file of numgrad.save is damaged: it is not complete, or was changed after it was "
            f"written ({type(error).__name__}: {error})"
        ) from error


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the bytes of an entry, which are no more than the file has."""
    entry = archive.getinfo(name)
    if entry.flag_bits & 1:
        raise zipfile.BadZipFile(f"{name} is said to be encrypted")
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    return archive.read(name)


def _memory(entry: bytes) -> np.ndarray[Any, Any]:
    """Return the bytes that are the elements in an entry of NumPy's format."""
    stream = io.BytesIO(entry)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"an entry has version {version} of NumPy's format")
    shape, _, kind = np.lib.format.read_array_header_1_0(stream)
    memory = np.frombuffer(bytearray(memoryview(entry)[stream.tell() :]), np.uint8)
    if not kind.isnative:
        raise RuntimeError(_FOREIGN)
    if kind.hasobject or math.prod(shape) * kind.itemsize != memory.size:
        raise ValueError("an entry's size is not that of its elements")
    return memory
