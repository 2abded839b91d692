"""Devices as arguments: PyTorch's words for whatever is not the CPU."""

from __future__ import annotations

from typing import Any

__all__ = ["check_device"]

_DEVICE_TYPES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


def check_device(device: Any) -> None:
    """Raise unless `device` is the CPU."""
    name = device if isinstance(device, str) else getattr(device, "type", None)
    if not isinstance(name, str):  # a number, as accelerators have
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if not name:
        raise RuntimeError("Device string must not be empty")
    kind, separator, index = name.partition(":")
    if kind not in _DEVICE_TYPES.split(", "):
        raise RuntimeError(
            f"Expected one of {_DEVICE_TYPES} device type at start of device string: {kind}"
        )
    if separator and not index.isdecimal():
        raise RuntimeError(f"Invalid device string: '{name}'")
    if kind == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    if kind != "cpu":
        raise RuntimeError(f"PyTorch is not linked with support for {kind} devices")
