"""Files of tensors: what comes back, what is refused, and that nothing in a file can do harm."""

from __future__ import annotations

import io
import json
import math
import pickle
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import numgrad as ng

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.fixture(params=["numgrad", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request: pytest.FixtureRequest) -> Any:
    """Return numgrad, then PyTorch: what a test says of one has to hold for the other."""
    return ng if request.param == "numgrad" else request.getfixturevalue("torch")


def there_and_back(value: Any, lib: Any = ng) -> Any:
    """Save a value and load it."""
    file = io.BytesIO()
    lib.save(value, file)
    file.seek(0)
    return lib.load(file)


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    ng.save(value, file)
    return file.getvalue()


def rewritten(data: bytes, change: Any) -> io.BytesIO:
    """Return a file whose description was changed."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(result, "w") as target:
        for name in source.namelist():
            entry = source.read(name)
            if name == "description.json":
                description = json.loads(entry)
                change(description)
                entry = json.dumps(description).encode()
            target.writestr(name, entry)
    result.seek(0)
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 2)])
def test_tensors_come_back_with_their_bits(dtype: str, shape: tuple[int, ...]) -> None:
    count = math.prod(shape)
    raw = np.random.default_rng(3).integers(0, 256, (count, 16), dtype=np.uint8)
    numpy_dtype = np.dtype(dtype)
    array = raw[:, : numpy_dtype.itemsize].copy().view(numpy_dtype).reshape(shape)
    if dtype == "bool":
        array = (raw[:, 0] > 99).reshape(shape)
    x = ng.from_numpy(array.copy())
    y = there_and_back(x)
    assert y.dtype is x.dtype and y.shape == x.shape
    assert y.numpy().tobytes() == array.tobytes()


_PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
    st.sampled_from([ng.float32, ng.bool, ng.device("cpu"), ng.Size([2, 3]), math.inf, -0.0]),
)
_KEYS = st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()), st.none())
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(_KEYS, inner),
        st.dictionaries(_KEYS, inner).map(OrderedDict),
        st.sets(st.integers(), max_size=1),  # of more, the order would be seen
        st.frozensets(st.text(), max_size=1),
    ),
    max_leaves=12,
)


@given(value=_VALUES)
def test_plain_values_come_back_as_they_are(value: Any) -> None:
    assert repr(there_and_back(value)) == repr(value)


def test_leaves_come_back_as_leaves_without_gradient(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    plain = lib.ones(2)
    loaded, other = there_and_back([x, plain], lib)
    assert loaded.requires_grad and loaded.is_leaf and loaded.grad is None
    assert not other.requires_grad
    (loaded * loaded).sum().backward()
    assert loaded.grad.tolist() == [2, 4]


def test_results_come_back_as_leaves(lib: Any) -> None:
    y = there_and_back(lib.tensor([1.0, 2.0], requires_grad=True) * 2, lib)
    assert y.is_leaf and y.requires_grad and y.tolist() == [2, 4]


def test_tensors_that_share_memory_share_it_again(lib: Any) -> None:
    x = lib.arange(6.0).reshape(2, 3)
    row, column, flipped, alias = there_and_back([x[1], x[:, 2], x.t(), x.detach()], lib)
    row.zero_()
    assert column.tolist() == [2, 0]
    assert flipped.tolist() == [[0, 0], [1, 0], [2, 0]] and flipped.stride() == (1, 3)
    assert alias.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert not row._is_view()  # as it is in PyTorch: they share memory, and no history


def test_views_that_lie_apart_do_not_overlap_when_they_come_back() -> None:
    x = ng.arange(8.0)
    first, second = there_and_back([x[:2].detach(), x[5:].detach()])
    first.zero_()
    assert second.tolist() == [5, 6, 7]


def test_complex_numbers_share_memory_with_their_parts() -> None:
    z = ng.tensor([1 + 2j, 3 - 1j])
    whole, parts = there_and_back([z, ng.view_as_real(z)])
    parts.zero_()
    assert whole.tolist() == [0, 0]


def test_repeated_elements_stay_repeated(lib: Any) -> None:
    x = there_and_back(lib.tensor([[1.0], [2.0]]).expand(2, 3), lib)
    assert x.stride() == (1, 0) and x.tolist() == [[1] * 3, [2] * 3]


def test_one_object_comes_back_as_one_object(lib: Any) -> None:
    x, both = lib.ones(2), [1]
    a, b, c, d = there_and_back([x, x, both, both], lib)
    assert a is b and c is d


def test_containers_may_hold_themselves(lib: Any) -> None:
    ring: list[Any] = [1]
    ring.append({"ring": ring})
    loaded = there_and_back(ring, lib)
    assert loaded[1]["ring"] is loaded


def test_attributes_go_with_their_tensor(lib: Any) -> None:
    x = lib.ones(2)
    x.note = {"of": [1, "a"]}
    assert there_and_back(x, lib).note == x.note


def test_an_attribute_may_hold_its_tensor() -> None:
    x = ng.ones(2)
    x.note = [x]
    loaded = there_and_back(x)
    assert loaded.note[0] is loaded


def test_hooks_are_left_out_with_a_warning(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="backward hook <built-in function print> on tensor will"):
        loaded = there_and_back(x, lib)
    loaded.sum().backward()


def test_paths_are_opened_and_closed(tmp_path: Path, lib: Any) -> None:
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        lib.save(lib.ones(2), path)
        assert lib.load(path, map_location="cpu", weights_only=True).tolist() == [1, 1]


def test_a_file_is_read_from_where_it_stands() -> None:
    file = io.BytesIO(b"header" + saved([1, ng.ones(2)]))
    file.seek(6)
    assert ng.load(file)[1].tolist() == [1, 1]


def test_numpy_reads_the_memory_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    ng.save({"x": ng.arange(3.0)}, path)
    with np.load(path) as archive:
        assert archive["memory/0"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [object(), len, [1, {"a": range(3)}], np.ones(2), np.float64(1)])
def test_other_objects_are_refused_before_anything_is_written(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"kept")
    with pytest.raises(pickle.PicklingError, match="can't save an object of type"):
        ng.save(value, path)
    assert path.read_bytes() == b"kept"


def test_places_that_cannot_be_written_or_read(lib: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist\."):
        lib.save(1, tmp_path / "nowhere" / "x")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        lib.save(1, 3)
    with pytest.raises(FileNotFoundError):
        lib.load(tmp_path / "nothing")
    with pytest.raises(AttributeError, match="'int' object has no attribute 'seek'. You can only"):
        lib.load(3)
    with pytest.raises(EOFError):
        lib.load(io.BytesIO())


def test_what_has_no_numbers_yet_is_not_saved() -> None:
    def saving(x: Any) -> Any:
        ng.save(x, io.BytesIO())
        return x

    with pytest.raises(ng.TraceError, match="a NumPy array"):
        ng.jit(saving)(ng.ones(2))


def test_other_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="there is no device 'cuda'"):
        ng.load(io.BytesIO(saved(1)), map_location="cuda")


class Trap:
    """What pickle would run code for."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("loading ran code",)


def test_files_of_others_are_refused_and_run_nothing() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("archive/data.pkl", pickle.dumps(Trap()))
    objects = io.BytesIO()
    np.savez(objects, x=np.array([Trap()], dtype=object))
    for data, message in (
        (pickle.dumps(Trap()), "Files of pickle are not read"),
        (archive.getvalue(), "this is a file of torch.save"),
        (objects.getvalue(), "holds no description.json"),
        (b"hello", "it is no zip archive"),
    ):
        with pytest.raises(RuntimeError, match=message):
            ng.load(io.BytesIO(data))


def test_a_file_of_pytorchs_is_named_as_such(torch: Any) -> None:
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"this is a file of torch\.save"):
        ng.load(file)


def test_objects_in_the_memory_of_a_file_are_refused() -> None:
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(ng.ones(2)))) as source:
        description = source.read("description.json")
    with zipfile.ZipFile(result, "w") as target:
        target.writestr("description.json", description)
        with target.open("memory/0.npy", "w") as entry:
            np.lib.format.write_array(entry, np.array([Trap()], dtype=object), allow_pickle=True)
    result.seek(0)
    with pytest.raises(RuntimeError, match="damaged"):
        ng.load(result)


def test_a_file_cut_off_anywhere_is_damaged() -> None:
    data = saved([ng.ones(5), "a"])
    for length in range(1, len(data)):
        with pytest.raises(RuntimeError, match=r"damaged|it is no zip archive"):
            ng.load(io.BytesIO(data[:length]))


_DATA = saved({"x": ng.arange(4.0, requires_grad=True), "n": [1, (2.5, None)], "c": 1j})


def outcome(file: io.BytesIO) -> str:
    """Return how loading ends; what was loaded is looked at."""
    try:
        repr(ng.load(file))
    except RuntimeError as error:
        return "refused" if "numgrad" in str(error) else str(error)
    return "loaded"


@example(changes=[(_DATA.rindex(b"PK\1\2") + 8, 1)])  # the last entry is said to be encrypted
@given(changes=st.lists(st.tuples(st.integers(0, len(_DATA) - 1), st.integers(0, 255)), min_size=1))
def test_a_file_changed_anywhere_loads_or_is_damaged(changes: list[tuple[int, int]]) -> None:
    data = bytearray(_DATA)
    for position, value in changes:
        data[position] = value
    assert outcome(io.BytesIO(bytes(data))) in ("loaded", "refused")


_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-9, 99), st.sampled_from(["x", "float64", "O"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["tensor", "list", "dict", "again", "dtype", "Size", "complex", "set"]),
            inner,
            max_size=2,
        ),
    ),
    max_leaves=5,
)


@given(
    field=st.sampled_from(["memory", "offset", "shape", "strides", "dtype", "attributes", "value"]),
    put=_JSON,
)
def test_a_description_changed_anywhere_stays_within_the_memory(field: str, put: Any) -> None:
    def change(description: dict[str, Any]) -> None:
        (description if field == "value" else description["tensors"][0])[field] = put

    assert outcome(rewritten(_DATA, change)) in ("loaded", "refused")


@pytest.mark.parametrize("name", ["backward", "_array", "_edge", "grad", "__class__"])
def test_a_file_cannot_replace_what_belongs_to_a_tensor(name: str) -> None:
    def change(description: dict[str, Any]) -> None:
        description["tensors"][0]["attributes"] = {"dict": [[name, 1]]}

    with pytest.raises(RuntimeError, match="damaged"):
        ng.load(rewritten(_DATA, change))


def test_later_versions_are_told() -> None:
    with pytest.raises(RuntimeError, match="has version 2 of the format, and this numgrad reads"):
        ng.load(rewritten(_DATA, lambda description: description.update(version=2)))


_MULTIBYTE = [name for name in DTYPES if getattr(ng, name).itemsize > 1]


@given(
    dtype=st.sampled_from(_MULTIBYTE),
    shape=st.sampled_from([(), (3,), (2, 3)]),
    named=st.booleans(),
)
def test_numbers_in_the_other_byte_order_are_refused_not_misread(
    dtype: str, shape: tuple[int, ...], named: bool
) -> None:
    """Whether the memory's own header says so or, where it is only bytes, the description."""
    data = saved(ng.ones(shape, dtype=getattr(ng, dtype)))
    other = "big" if sys.byteorder == "little" else "little"
    if named:
        file = rewritten(data, lambda description: description.update(byteorder=other))
    else:
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(file, "w") as target:
            target.writestr("description.json", source.read("description.json"))
            array = np.lib.format.read_array(io.BytesIO(source.read("memory/0.npy")))
            with target.open("memory/0.npy", "w") as entry:
                np.lib.format.write_array(entry, array.astype(array.dtype.newbyteorder()))
        file.seek(0)
    with pytest.raises(RuntimeError, match="the other byte order"):
        ng.load(file)
