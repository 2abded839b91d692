"""numgrad: PyTorch's tensors and autograd, on NumPy arrays and kernels compiled by Numba.

>>> import numgrad as torch
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> (x**2).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from __future__ import annotations

import importlib
from math import e, inf, nan, pi
from typing import Any

from numgrad.runtime.garbage import without_collections

# A quarter of the time of this import would go into looking for garbage.
with without_collections(lasting=True):
    # First, and from here: CPython (3.11) keeps its frames in blocks, and a loop whose calls cross
    # the end of one maps and unmaps memory at each. Below the frames of our own imports one of
    # Numba's loops did: 15,000 times, which doubled the time of this import.
    import numba  # noqa: F401

    from numgrad import autograd, func, utils
    from numgrad.base.device import device
    from numgrad.base.dtypes import (
        bool_ as bool,
    )
    from numgrad.base.dtypes import (
        can_cast,
        complex64,
        complex128,
        dtype,
        finfo,
        float16,
        float32,
        float64,
        get_default_dtype,
        iinfo,
        int8,
        int16,
        int32,
        int64,
        promote_types,
        set_default_dtype,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from numgrad.base.layouts import (
        channels_last,
        channels_last_3d,
        contiguous_format,
        layout,
        memory_format,
        preserve_format,
        strided,
    )
    from numgrad.codegen.compile.cache_files import cache_dir
    from numgrad.func import vmap
    from numgrad.func.control.branches import cond_of_operands as cond
    from numgrad.func.control.loops import while_loop
    from numgrad.graph.modes.anomaly import (
        is_anomaly_check_nan_enabled,
        is_anomaly_enabled,
        set_anomaly_enabled,
    )
    from numgrad.graph.modes.grad_modes import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        is_inference_mode_enabled,
        no_grad,
        set_grad_enabled,
    )
    from numgrad.graph.recorder import TraceError
    from numgrad.graph.size import Size
    from numgrad.graph.tensor import is_inference
    from numgrad.io.printing import get_printoptions, printoptions, set_printoptions
    from numgrad.io.serialization import load, save
    from numgrad.jit.front.decorator import jit
    from numgrad.jit.front.unrolled import UnrolledWarning
    from numgrad.ops.core.catalogue import CATALOGUE, RESERVED
    from numgrad.ops.core.registry import FUNCTIONS
    from numgrad.ops.creation.from_data import tensor
    from numgrad.ops.creation.generator import default_generator
    from numgrad.ops.creation.legacy_types import LEGACY_TYPES
    from numgrad.ops.mutation.storages import LEGACY_STORAGES, TypedStorage, UntypedStorage
    from numgrad.runtime.memory import empty_cache, memory_stats
    from numgrad.runtime.threads import get_num_threads, set_num_threads
    from numgrad.tensor import Tensor

float = float32
double = float64
half = float16
int = int32
long = int64
short = int16
compile = jit
cfloat = complex64
cdouble = complex128
legacy_contiguous_format = contiguous_format
newaxis = None
# What PyTorch was built with, as programs ask for it: LAPACK comes with NumPy.
has_lapack = has_spectral = True
has_mkl = has_openmp = False

__version__ = "0.1.0"

__all__ = [
    "Size",
    "Tensor",
    "TraceError",
    "TypedStorage",
    "UnrolledWarning",
    "UntypedStorage",
    "autograd",
    "bool",
    "cache_dir",
    "can_cast",
    "cdouble",
    "cfloat",
    "channels_last",
    "channels_last_3d",
    "compile",
    "complex64",
    "complex128",
    "cond",
    "contiguous_format",
    "default_generator",
    "device",
    "double",
    "dtype",
    "e",
    "empty_cache",
    "enable_grad",
    "fft",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "func",
    "get_default_dtype",
    "get_num_threads",
    "get_printoptions",
    "half",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "iinfo",
    "inf",
    "inference_mode",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "jit",
    "layout",
    "legacy_contiguous_format",
    "linalg",
    "load",
    "long",
    "masked",
    "memory_format",
    "memory_stats",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "pi",
    "preserve_format",
    "printoptions",
    "promote_types",
    "random",
    "save",
    "set_anomaly_enabled",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "short",
    "special",
    "strided",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "utils",
    "vmap",
    "while_loop",
]

# The functions of the catalogue, under their public names.
globals().update(FUNCTIONS, **LEGACY_TYPES, **LEGACY_STORAGES)
_NAMESPACES = {"fft", "linalg", "masked", "nn", "random", "special"}
__all__ += sorted({*FUNCTIONS, *LEGACY_TYPES, *LEGACY_STORAGES, *FUNCTIONS.later} - set(__all__))


# From here on these names are taken: whoever declares an operation of their own finds another.
RESERVED.update(CATALOGUE, FUNCTIONS, globals(), dir(Tensor), FUNCTIONS.later, _NAMESPACES)
RESERVED.update(CATALOGUE.later)


# What is loaded when it is first asked for, and functions that others declared. It tells type
# checkers that there are names they cannot see: the functions entered above.
_DEVICES = ("cuda", "mps", "mtia", "xpu")


def __getattr__(name: str) -> Any:
    if name in _NAMESPACES:
        return importlib.import_module(f"numgrad.{name}")
    function = FUNCTIONS.find(name)
    if function is not None:
        if name in RESERVED:
            globals()[name] = function
        return function
    if name == "bfloat16":
        raise AttributeError(
            "numgrad has no bfloat16, because NumPy has no such dtype: use float16, which keeps "
            "more digits and less range, or float32"
        )
    if name in _DEVICES:  # where PyTorch has torch.cuda.FloatTensor, torch.cuda.is_available() ...
        raise AttributeError(
            f"numgrad has no {name}: tensors are in the memory of the CPU, and FloatTensor and its "
            "like are names of numgrad itself"
        )
    raise AttributeError(f"module 'numgrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *FUNCTIONS})
