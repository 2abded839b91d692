"""FloatStorage and the like: made as old code makes them, and classes of typed storages."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import numgrad

NAMES = ["Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool"]
NAMES += ["ComplexFloat", "ComplexDouble"]
ARGUMENTS: list[tuple[Any, ...]] = [(), (3,), (0,), ([1, 0, 1],), ((2, 1),), ([1.5],), ([],)]
ARGUMENTS += [("a",), (1, 2), (1.5,), ([1, "a"],), ([[1, 2], [3, 4]],)]


def outcome(m: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    kind = getattr(m, f"{name}Storage")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            storage = kind(*arguments)
        except (TypeError, RuntimeError, ValueError) as error:
            return type(error).__name__
        others = [isinstance(storage, getattr(m, f"{each}Storage")) for each in NAMES]
        empty = arguments and isinstance(arguments[0], int)  # PyTorch does not fill it
        x = m.tensor([], dtype=storage.dtype).set_(storage)
        return [
            None if empty else storage.tolist(),
            None if empty else x.tolist(),
            len(storage),
            storage.nbytes(),
            str(storage.dtype),
            storage.type(),
            others,
            isinstance(storage, m.TypedStorage),
            m.is_storage(storage),
            x.storage_type() is kind,
            issubclass(kind, m.TypedStorage),
            kind.__name__,
            x.untyped_storage().data_ptr() == storage.data_ptr(),
        ]


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_storages_are_made_as_pytorchs(torch: Any, name: str, arguments: tuple[Any, ...]) -> None:
    assert outcome(numgrad, name, arguments) == outcome(torch, name, arguments)


def test_a_typed_storage_has_the_default_dtype_or_a_given_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert numgrad.TypedStorage([1, 2]).dtype is numgrad.float32
        storage = numgrad.TypedStorage([1, 2], dtype=numgrad.int64)
        whole = numgrad.TypedStorage(wrap_storage=storage.untyped(), dtype=numgrad.int32)
        storage[1] = 7
        assert whole.tolist() == [1, 0, 7, 0]
