"""Layouts and memory formats: names for how elements lie in memory, of which there are few."""

from __future__ import annotations

__all__ = ["contiguous_format", "layout", "memory_format", "preserve_format", "strided"]


class _Named:
    """One of few objects that a module has under the name that they print as."""

    __slots__ = ("_name",)

    _name: str

    def __new__(cls) -> _Named:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(_Named):  # noqa: N801 - PyTorch's name
    """How a tensor keeps its elements. There is one way, `strided`.

    >>> import numgrad as ng
    >>> ng.ones(2).layout
    torch.strided
    """

    __slots__ = ()


class memory_format(_Named):  # noqa: N801 - PyTorch's name
    """In which order a copy lies in memory: `contiguous_format`, or `preserve_format`.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).t().clone(memory_format=ng.contiguous_format).stride()
    (2, 1)
    """

    __slots__ = ()


def _named(kind: type[_Named], name: str) -> _Named:
    made = object.__new__(kind)
    made._name = name
    return made


strided = _named(layout, "strided")
contiguous_format = _named(memory_format, "contiguous_format")
preserve_format = _named(memory_format, "preserve_format")
