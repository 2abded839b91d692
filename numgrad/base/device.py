"""Devices: there is one, the CPU."""

from __future__ import annotations

__all__ = ["CPU", "device"]


class device:  # noqa: N801 - PyTorch's name
    """Where a tensor lives: always the CPU. It equals and prints as PyTorch's does.

    Parameters
    ----------
    type : str or device
        ``"cpu"``, or a device.

    Raises
    ------
    RuntimeError
        For any other device.

    >>> import numgrad as ng
    >>> ng.ones(2).device
    device(type='cpu')
    """

    __slots__ = ("type",)
    type: str
    index = None

    def __init__(self, type: str | device) -> None:
        name = type.type if isinstance(type, device) else type
        if name.partition(":")[0] != "cpu":
            raise RuntimeError(f"numgrad computes on the CPU; there is no device {name!r}")
        self.type = "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device)

    def __hash__(self) -> int:
        return hash("cpu")

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"


CPU = device("cpu")
