"""The table of PyTorch's names, docs/pytorch-names.md: written here, and checked by the tests.

``python -m tests.docs.pytorch_names`` writes it anew. Where the PyTorch that it is of is installed,
its names are read from it; elsewhere those that are in the file are sorted again into what is here
and what is missing, which is all that adding a function asks for.
"""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

from tests.docs.instead import INSTEAD, group_of

TABLE = Path(__file__).parents[2] / "docs" / "pytorch-names.md"
VERSION = "2.13"

_HEAD = f"""\
# PyTorch's names, here and missing

Every public name of PyTorch {VERSION} for tensors and their derivatives, and whether numgrad has
it; [If you know PyTorch](if-you-know-pytorch.md) says how what is here behaves. A name being here
does not mean that every argument is. Under what is missing stands what to use instead. Left out are
PyTorch's names for storages, TorchScript and the innards of its compiler.

This file is written by `python -m tests.docs.pytorch_names`, and the tests compare it with both
libraries.

PyTorch's own table of operations, with samples of calls and of wrong calls, is walked in both
libraries by `python -m tests.opinfos`. What of it is not here, or not so:

- Inner names: `_softmax_backward_data`, `native_dropout_backward` and
  `max_pool2d_with_indices_backward` are what a backward pass does; for `_segment_reduce`,
  `_native_batch_norm_legit`, `_batch_norm_with_update` and `_upsample_bilinear2d_aa` there are
  `segment_reduce`, `native_batch_norm` and `interpolate`; for `_unsafe_masked_index` and
  `_unsafe_masked_index_put_accumulate` indices and `index_put`; for `_safe_softmax` a `where`
  around `softmax`; for `slice` the slices of Python.
- The `options` of `linear_cross_entropy` say in how many parts PyTorch computes the loss, in less
  memory: give `utils.checkpoint` a function of some rows.
- `jit` refuses what writes to an argument (`batch_norm` and `instance_norm` with running
  statistics, `embedding` with `max_norm`), results whose shape depends on numbers
  (`masked_select`), and computing in float16.
- Numbers are taken where PyTorch wants two tensors (`maximum(x, 0)`); an expanded `out` of another
  shape is given new memory where some functions of PyTorch refuse it (`index_select`); `addbmm_`
  refuses what has another shape than its result, where PyTorch resizes it.
- PyTorch gives another gradient for `as_strided_scatter` of no dims, whose input is overwritten
  (here it is 0), nan for the tangents of `logcumsumexp` of complex numbers, and tangents of
  `cholesky_inverse` that are off in the sixth digit.
"""

# The sections: a heading, and the module or class that the names are attributes of.
SECTIONS = {
    "Functions of `torch`": "torch",
    "Dtypes, layouts, constants and classes of `torch`": "torch",
    "Modules of `torch`": "torch",
    "Methods and attributes of `torch.Tensor`": "torch.Tensor",
    "Operators of `torch.Tensor`": "torch.Tensor",
    "`torch.autograd`": "torch.autograd",
    "`torch.autograd.function`": "torch.autograd.function",
    "`torch.autograd.functional`": "torch.autograd.functional",
    "`torch.autograd.forward_ad`": "torch.autograd.forward_ad",
    "`torch.autograd.graph`": "torch.autograd.graph",
    "`torch.autograd.grad_mode`": "torch.autograd.grad_mode",
    "`torch.autograd.anomaly_mode`": "torch.autograd.anomaly_mode",
    "`torch.autograd.gradcheck`": "torch.autograd.gradcheck",
    "`torch.func`": "torch.func",
    "`torch.utils.checkpoint`": "torch.utils.checkpoint",
    "`torch.utils.hooks`": "torch.utils.hooks",
    "`torch.random`": "torch.random",
    "`torch.linalg`": "torch.linalg",
    "`torch.special`": "torch.special",
    "`torch.fft`": "torch.fft",
    "`torch.masked`": "torch.masked",
    "`torch.nn.functional`": "torch.nn.functional",
}

# PyTorch has more in its namespace, or fewer, as its parts are imported; these are documented.
_NAMES_OF_MODULES = """
    accelerator amp autograd backends compiler cpu cuda distributed distributions export fft func
    futures fx hub jit library linalg masked monitor mps mtia multiprocessing nested nn optim
    overrides package profiler quantization random serialization signal sparse special testing types
    utils xpu
"""
_OF_ANY_CLASS = {
    *("__annotations__", "__dict__", "__module__", "__weakref__", "__annotate__"),
    *("__annotate_func__", "__annotations_cache__", "__firstlineno__", "__static_attributes__"),
    "__slotnames__",  # of what was pickled
}
_FUNCTIONS, _OTHERS, _MODULES, METHODS, _OPERATORS = list(SECTIONS)[:5]


def resolve(library: str, owner: str) -> Any:
    """Return a module or class of PyTorch's, or what has its name here; None if nothing has."""
    path = library + owner.removeprefix("torch")
    if owner == "torch.Tensor":
        return importlib.import_module(library).Tensor
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        return None


def is_here(section: str, name: str) -> bool:
    """Whether a name of a section is one of numgrad's, too."""
    owner = resolve("numgrad", SECTIONS[section])
    if section == _MODULES:
        return name in owner.__all__ and isinstance(getattr(owner, name), ModuleType)
    return hasattr(owner, name)


def _is_left_out(name: str, value: Any) -> bool:
    """Whether a name of the module torch is none for tensors and their derivatives."""
    kind = type(value).__name__
    return (
        isinstance(value, ModuleType)  # which there are depends on what was imported
        or kind in ("pybind11_type", "_LegacyStorageMeta", "OpOverloadPacket", "_Ops", "_Classes")
        or name in ("TYPE_CHECKING", "PRIVATE_OPS", "StorageBase", "TypedStorage", "UntypedStorage")
        or name.startswith(("USE_", "Disable", "JIT", "Sym"))
    )


def _section_of(value: Any) -> str:
    """Return the section of a name of the module torch."""
    is_function = callable(value) and not isinstance(value, type)
    return _FUNCTIONS if is_function and type(value).__name__ != "tensortype" else _OTHERS


def names_of_pytorch() -> dict[str, set[str]]:
    """Return the names of each section, read from the PyTorch that is installed."""
    torch = importlib.import_module("torch")
    found: dict[str, set[str]] = {section: set() for section in SECTIONS}
    for name, value in vars(torch).items():
        if not name.startswith("_") and not _is_left_out(name, value):
            found[_section_of(value)].add(name)
    found[_MODULES].update(_NAMES_OF_MODULES.split())
    for name in dir(torch.Tensor):
        if not name.startswith("_"):
            found[METHODS].add(name)
        elif name.startswith("__") and not hasattr(object, name):
            found[_OPERATORS].add(name)
    found[_OPERATORS] -= _OF_ANY_CLASS
    for section in list(SECTIONS)[5:]:
        module = importlib.import_module(SECTIONS[section])
        names = getattr(module, "__all__", None)
        if names is None:
            names = [
                name
                for name, value in vars(module).items()
                if callable(value) and _belongs(module.__name__, value)
            ]
        found[section].update(name for name in names if name[0] != "_" and name != "Tensor")
        # Functions in C that are bound to a name there, which ``__all__`` may have forgotten.
        found[section].update(
            name
            for name, value in vars(module).items()
            if isinstance(value, BuiltinFunctionType) and name[0] != "_"
        )
    return found


def _belongs(module: str, value: Any) -> bool:
    """Whether a function or class is no import of a module's own."""
    if isinstance(value, type) or hasattr(value, "__origin__"):
        return False
    if value.__name__ in ("assert_int_or_pair", "boolean_dispatch"):
        return False
    origin = getattr(value, "__module__", None) or "torch._C"
    return origin in (module, "torch._jit_internal") or origin.startswith("torch._C")


def names_in_table(text: str | None = None) -> dict[str, set[str]]:
    """Return the names of each section as the table has them, here or missing."""
    found: dict[str, set[str]] = {section: set() for section in SECTIONS}
    for section, kind, names in entries(text):
        if kind != "Only here":
            found[section].update(names)
    return found


def entries(text: str | None = None) -> Iterable[tuple[str, str, list[str]]]:
    """Return the table's paragraphs: section, ``Here``, ``Missing`` or ``Only here``, and names."""
    section = ""
    for paragraph in (TABLE.read_text() if text is None else text).split("\n\n"):
        if paragraph.startswith("## "):
            section = paragraph.removeprefix("## ").strip()
        head = re.match(r"\*\*(Here|Missing|Only here)\b", paragraph)
        if section and head:
            yield section, head[1], re.findall(r"`(\w+)`", paragraph)


def _only_here(section: str, names: dict[str, set[str]]) -> set[str]:
    """Return what the same module of numgrad has and PyTorch's doesn't."""
    known = names[section]
    owner = resolve("numgrad", SECTIONS[section])
    if section == METHODS:
        return {name for name in dir(owner) if not name.startswith("_")} - known
    if not isinstance(owner, ModuleType) or section in (_OTHERS, _MODULES):
        return set()
    if section == _FUNCTIONS:
        known = known | names[_OTHERS] | names[_MODULES]
    beside = {"map"} if owner.__name__ == "numgrad.func" else set()  # no star import has it
    named = beside.union(owner.__all__)
    own = {name for name in named if not isinstance(getattr(owner, name), ModuleType)}
    return own - known


def _groups(names: set[str]) -> Iterable[tuple[str, list[str], str]]:
    """Return the missing names in groups, with what each is and what there is instead."""
    rest = set(names)
    for group in INSTEAD:
        some = {name for name in rest if group_of(name) is group}
        rest -= some
        if some:
            yield f", {group.heading}", sorted(some), group.words
    if rest:
        yield "", sorted(rest), ""


def _paragraph(head: str, names: Iterable[str]) -> str:
    listed = list(names)
    text = f"**{head} ({len(listed)}):** " + ", ".join(f"`{name}`" for name in listed)
    return _filled(text)


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def write(names: dict[str, set[str]]) -> str:
    """Return the text of the table."""
    parts = [_HEAD.rstrip()]
    for section, all_names in names.items():
        here = {name for name in all_names if is_here(section, name)}
        parts.append(f"## {section}")
        if here:
            parts.append(_paragraph("Here", sorted(here)))
        for heading, missing, words in _groups(all_names - here):
            parts.append(_paragraph(f"Missing{heading}", missing))
            if words:
                parts.append(_filled(f"Instead: {words[0].lower()}{words[1:]}"))
        only = _only_here(section, names)
        if only:
            parts.append(_paragraph("Only here", sorted(only)))
    return "\n\n".join(parts) + "\n"


def installed() -> bool:
    """Whether the PyTorch that the table is of is installed."""
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        return False
    return str(torch.__version__).startswith(f"{VERSION}.")


if __name__ == "__main__":
    TABLE.write_text(write(names_of_pytorch() if installed() else names_in_table()))
    print(f"wrote {TABLE}", file=sys.stderr)
