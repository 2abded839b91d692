"""Walk PyTorch's own table of operations, and print what of each is here: a line a name.

``python -m tests.opinfos [NAME ...]`` needs PyTorch and its tests' ``expecttest``. The table is
PyTorch's ``op_db``, with its samples of calls and of wrong calls; those that PyTorch differentiates
(in float64 or complex128, of dense tensors on a CPU) are run by both libraries. A column says

- ``val``, ``grad``, ``2nd``, ``fwd``: values, gradients, their gradients and tangents are PyTorch's
  in float64, of random cotangents; ``cval`` ... the same in complex128;
- ``vmap``: a batch of two gives what two calls give; ``jit``, ``jgrad``: traced as eager, with the
  gradient; ``njit``: called from compiled code;
- ``inpl``, ``out``: methods in place and ``out=`` where PyTorch has them; ``err``: wrong calls
  raise PyTorch's error, in its words.

``+`` is the same, ``-`` that PyTorch has it not, ``?`` that it can't be compared (it is drawn at
random), and a letter or number what is not so; the reasons stand below the table.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import torch
from torch.testing._internal import common_methods_invocations as table

import numgrad as ng

REAL, COMPLEX = torch.float64, torch.complex128
COLUMNS = (
    *("val", "grad", "2nd", "fwd", "cval", "cgrad", "c2nd", "cfwd"),
    *("vmap", "jit", "jgrad", "njit", "inpl", "out", "err"),
)
# Not of dense tensors on a CPU, or no operation: a layout, a dtype that NumPy has not.
LEFT_OUT = {"bfloat16", "chalf", "to_sparse", "sparse.mm", "sparse.sampled_addmm"}
# A view of a tensor that is a view of a part itself; there is no way to hand that over.
NOT_HANDED_OVER = {"as_strided (partial_views)"}
NO_PROCESS = table.SampleInput(torch.ones(1)).output_process_fn_grad.__code__
SAMPLES = 6  # of each operation and dtype; jit and vmap take fewer
TRACED = 2


class Missing(Exception):
    """No such operation here."""


class Memory:
    """The storages that some values share, each taken over once."""

    def __init__(self, value: Any) -> None:
        self.taken: dict[int, Any] = {}
        addresses = [_address(each) for each in flat(value)]
        self.shared = {a for a in addresses if a and addresses.count(a) > 1}

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is no more than a way to look at some memory."""
        return not tensor.requires_grad and (
            _address(tensor) in self.shared or 0 in tensor.stride()
        )

    def view(self, tensor: torch.Tensor) -> Any:
        """Return numgrad's tensor on the same elements of what was taken over."""
        if _address(tensor) not in self.taken:
            size = tensor.untyped_storage().nbytes() // tensor.element_size()
            whole = tensor.as_strided((size,), (1,), 0)
            self.taken[_address(tensor)] = ng.from_numpy(whole.clone().numpy())
        whole = self.taken[_address(tensor)]
        return whole.as_strided(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def _address(tensor: Any) -> int:
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
        return 0
    return int(tensor.untyped_storage().data_ptr())


def ours(value: Any, memory: Memory | None = None) -> Any:
    """Return what numgrad is given for a value of PyTorch's."""
    memory = memory or Memory(value)
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.dtype == torch.bfloat16:
            raise Missing(f"{value.layout} {value.dtype}")
        if memory.holds(value):
            return memory.view(value)
        tensor = ng.from_numpy(value.detach().resolve_conj().resolve_neg().clone().numpy())
        if not value.is_contiguous() and value.numel() and 0 not in value.stride():
            made = ng.empty_strided(tuple(value.shape), value.stride(), dtype=tensor.dtype)
            tensor = made.copy_(tensor)
        return tensor.requires_grad_(value.requires_grad)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        name = str(value).removeprefix("torch.")
        if not hasattr(ng, name):
            raise Missing(name)
        return getattr(ng, name)
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(ours(each, memory) for each in value)
    if isinstance(value, (list, tuple)):
        return type(value)(ours(each, memory) for each in value)
    if isinstance(value, dict):
        return {name: ours(each, memory) for name, each in value.items()}
    if isinstance(value, slice):
        return slice(ours(value.start), ours(value.stop), ours(value.step))
    if isinstance(value, torch.nn.Module):  # what it computes is among its functions
        return functools.partial(
            translated(type(value).forward), types.SimpleNamespace(**vars(value))
        )
    if isinstance(value, types.FunctionType):
        return translated(value)
    if isinstance(value, types.BuiltinFunctionType) and hasattr(ng, value.__name__):
        return getattr(ng, value.__name__)
    return value


def translated(function: types.FunctionType) -> types.FunctionType:
    """Return a function of PyTorch's tests that calls numgrad where it says torch."""
    names = {"torch": ng, "F": ng.nn.functional}
    found = {**function.__globals__}
    for name in set(function.__code__.co_names) & set(found):
        value = found[name]
        if name == "wrapper_set_seed":  # of PyTorch's generator
            found[name] = lambda called, *arguments, **keywords: called(*arguments, **keywords)
        elif (
            isinstance(value, types.FunctionType)
            and value is not function
            and value.__module__.startswith("torch.testing")
        ):
            found[name] = translated(value)
    made = types.FunctionType(
        function.__code__,
        {**found, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__
        and tuple(types.CellType(_content(cell)) for cell in function.__closure__),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _content(cell: types.CellType) -> Any:
    value = cell.cell_contents
    if callable(value) and not isinstance(value, table.OpInfo):
        return counterpart(value, getattr(value, "__name__", ""))
    return value


OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "__getitem__": lambda x, *key: x.__getitem__(*key),
    "torch.ops.aten._safe_softmax.default": None,  # type: ignore[dict-item]
    "slice": None,  # type: ignore[dict-item]
}


def named(path: str) -> Any:
    """Return numgrad's function, or method, of a dotted name."""
    found: Any = ng
    for part in path.split("."):
        found = getattr(found, part, None)
    if found is None or isinstance(found, ng.dtype):
        found = getattr(ng.Tensor, path, None)
    if found is None:
        raise Missing(path)
    if isinstance(found, (property, types.GetSetDescriptorType)):
        return lambda x: getattr(x, path)
    return found


def counterpart(function: Any, name: str) -> Callable[..., Any]:
    """Return numgrad's function for one of PyTorch's."""
    if isinstance(function, functools.partial):
        inner = counterpart(function.func, name)
        return functools.partial(inner, *ours(function.args), **ours(function.keywords))
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        return translated(function)
    if isinstance(function, types.FunctionType) and not function.__module__.startswith("torch."):
        return translated(function)
    return named(name)  # type: ignore[no-any-return]


def called(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a function, as a wrapper that changes nothing."""
    return function(*arguments, **keywords)


def flat(value: Any) -> list[Any]:
    """Return the tensors in a result, in order."""
    if isinstance(value, (ng.Tensor, torch.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in flat(part)]
    return []


def array(tensor: Any) -> np.ndarray[Any, Any]:
    if isinstance(tensor, torch.Tensor):
        return tensor.detach().resolve_conj().resolve_neg().numpy()  # type: ignore[no-any-return]
    return np.asarray(tensor.detach().resolve_conj())


def same(mine: Any, theirs: Any, rtol: float = 1e-6, atol: float = 1e-8) -> None:
    """Raise where two lists of tensors differ in number, dtype, shape or value."""
    mine, theirs = flat(mine), flat(theirs)
    if len(mine) != len(theirs):
        raise AssertionError(f"{len(mine)} tensors, not {len(theirs)}")
    for a, b in zip(map(array, mine), map(array, theirs), strict=True):
        if a.dtype != b.dtype:
            raise AssertionError(f"dtype {a.dtype}, not {b.dtype}")
        if a.shape != b.shape:
            raise AssertionError(f"shape {a.shape}, not {b.shape}")
        if a.size:
            if b.dtype in (np.float32, np.complex64):
                rtol, atol = max(rtol, 1e-4), max(atol, 1e-5)
            np.testing.assert_allclose(a, b, rtol, max(atol, rtol * _largest(b)), equal_nan=True)


def _largest(values: np.ndarray[Any, Any]) -> float:
    if values.dtype.kind not in "fc":
        return 0.0
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max()) * 1e-2 if finite.size else 0.0


def leaves(value: Any) -> list[Any]:
    """Return the tensors of arguments that gradients go to."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in leaves(part)]
    if isinstance(value, (ng.Tensor, torch.Tensor)) and value.requires_grad:
        return [value]
    return []


def replaced(value: Any, new: Iterator[Any], chosen: Callable[[Any], bool]) -> Any:
    """Return arguments with their chosen tensors replaced, in order."""
    if isinstance(value, (ng.Tensor, torch.Tensor)):
        return next(new) if chosen(value) else value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(replaced(each, new, chosen) for each in value)
    if isinstance(value, dict):
        return {name: replaced(each, new, chosen) for name, each in value.items()}
    return value


def chosen_of(value: Any, chosen: Callable[[Any], bool]) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in chosen_of(part, chosen)]
    return [value] if isinstance(value, (ng.Tensor, torch.Tensor)) and chosen(value) else []


def differentiable(outputs: Any) -> list[Any]:
    return [t for t in flat(outputs) if t.requires_grad]


def cotangents(outputs: list[Any], seed: int) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    made = []
    for output in outputs:
        values = array(output)
        drawn = random.standard_normal(values.shape)
        if values.dtype.kind == "c":
            drawn = drawn + 1j * random.standard_normal(values.shape)
        made.append(np.asarray(drawn, values.dtype))
    return made


def tensor_of(library: Any, values: np.ndarray[Any, Any]) -> Any:
    return library.from_numpy(values.copy())


def filled(library: Any, like: Any, gradient: Any) -> Any:
    """Return a gradient with zeros where there is none."""
    if library is torch and gradient is not None and gradient._is_zerotensor():
        gradient = None
    return library.zeros_like(like) if gradient is None else gradient


class Operation:
    """One of PyTorch's table, with numgrad's function for it."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self.name = info.name + (f" ({info.variant_test_name})" if info.variant_test_name else "")
        self.random = (
            any("seed" in str(getattr(skip, "test_name", "")) for skip in info.skips)
            or info.name in RANDOM
        )
        function = counterpart(info.op, info.name)
        wrapper = info.gradcheck_wrapper
        if "masked" in wrapper.__name__ or wrapper.__name__ == "wrapper_set_seed":
            wrapper = called  # it hides what a mask leaves nothing of, or seeds PyTorch
        self.function = function
        self.ours = functools.partial(translated(wrapper), function)
        self.theirs = functools.partial(wrapper, info.op)
        self.reasons: list[str] = []

    def samples(self, dtype: torch.dtype, many: int, grad: bool = True) -> Iterator[Any]:
        torch.manual_seed(0)
        drawn = self.info.sample_inputs("cpu", dtype, requires_grad=grad)
        drawn = list(itertools.islice(drawn, 400))
        step = max(1, len(drawn) // many)
        yield from drawn[::step][:many]

    def runs(self, sample: Any) -> tuple[Any, Any, Any, Any]:
        """Return arguments and processed results of both libraries."""
        process = sample.output_process_fn_grad
        arguments = [sample.input, *sample.args], dict(sample.kwargs)
        own = own_arguments(sample)
        theirs = process(self.theirs(*arguments[0], **arguments[1]))
        mine = translated_process(process)(self.ours(*own[0], **own[1]))
        return arguments, theirs, own, mine


RANDOM = {
    *("bernoulli", "normal", "svd_lowrank", "pca_lowrank", "nn.functional.rrelu"),
    *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d"),
    *("nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout"),
    *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
    *("nn.functional.multi_head_attention_forward",),
}


def own_arguments(sample: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return numgrad's arguments for a sample, which share memory where PyTorch's do."""
    arguments, keywords = ours(([sample.input, *sample.args], dict(sample.kwargs)))
    return arguments, keywords


def translated_process(process: Any) -> Callable[[Any], Any]:
    return translated(process) if isinstance(process, types.FunctionType) else process


def all_tensors(value: Any) -> bool:
    return isinstance(value, (ng.Tensor, torch.Tensor))


def floating(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def check_values(op: Operation, dtype: torch.dtype) -> str:
    count = 0
    for sample in op.samples(dtype, SAMPLES):
        _, theirs, _, mine = op.runs(sample)
        if op.random:
            continue
        same(mine, theirs)
        count += 1
    return "?" if op.random else "+" if count else "-"


def check_gradients(op: Operation, dtype: torch.dtype, second: bool = False) -> str:
    if op.random:
        return "?"
    if second and not op.info.supports_gradgrad:
        return "-"
    count = 0
    for sample in op.samples(dtype, SAMPLES):
        gradients = []
        arguments, theirs, own, mine = op.runs(sample)
        outputs_theirs, outputs_mine = differentiable(theirs), differentiable(mine)
        if len(outputs_theirs) != len(outputs_mine):
            raise AssertionError(
                f"{len(outputs_mine)} outputs require grad, not {len(outputs_theirs)}"
            )
        if not outputs_theirs:
            continue
        seeds = cotangents(outputs_theirs, 1)
        for library, (args, kwargs), outputs in (
            (torch, arguments, outputs_theirs),
            (ng, own, outputs_mine),
        ):
            inputs = leaves([args, kwargs])
            made = [tensor_of(library, g) for g in seeds]
            if second:
                made = [g.requires_grad_() for g in made]
            grads = library.autograd.grad(
                outputs, inputs, made, create_graph=second, allow_unused=True
            )
            if second:
                inner = [tensor_of(library, g) for g in cotangents(inputs, 2)]
                kept = [
                    pair
                    for pair in zip(grads, inner, strict=True)
                    if pair[0] is not None and pair[0].requires_grad
                ]
                inputs = [*inputs, *made]
                grads = [None] * len(inputs)
                if kept:
                    outputs, seeded = zip(*kept, strict=True)
                    try:
                        grads = library.autograd.grad(outputs, inputs, seeded, allow_unused=True)
                    except RuntimeError:
                        if library is not torch:
                            raise
                        break  # PyTorch has it not for such a sample
            gradients.append([filled(library, x, g) for x, g in zip(inputs, grads, strict=True)])
        if len(gradients) == 2:
            same(gradients[1], gradients[0], 1e-5, 1e-7)
            count += 1
    return "+" if count else "-"


def check_forward(op: Operation, dtype: torch.dtype) -> str:
    if op.random:
        return "?"
    if not op.info.supports_forward_ad:
        return "-"
    count = 0
    for sample in op.samples(dtype, SAMPLES):
        tangents = []
        process = sample.output_process_fn_grad
        arguments = [sample.input, *sample.args], dict(sample.kwargs)
        primals = leaves(arguments)
        if not primals:
            continue
        seeds = cotangents(primals, 3)
        for library, call, handle, given in (
            (torch, op.theirs, process, arguments),
            (ng, op.ours, translated_process(process), own_arguments(sample)),
        ):
            ad = library.autograd.forward_ad
            with ad.dual_level():
                duals = iter(
                    [
                        ad.make_dual(x.detach(), tensor_of(library, g))
                        for x, g in zip(leaves(given), seeds, strict=True)
                    ]
                )
                args, kwargs = replaced(given, duals, lambda t: t.requires_grad)
                outputs = flat(handle(call(*args, **kwargs)))
                unpacked = [ad.unpack_dual(y) for y in outputs]
                tangents.append([filled(library, p, t) for p, t in unpacked if floating(p)])
        same(tangents[1], tangents[0], 1e-5, 1e-7)
        count += 1
    return "+" if count else "-"


def check_vmap(op: Operation) -> str:
    if op.random:
        return "?"
    count = 0
    for sample in op.samples(REAL, 3, grad=False):
        given = own_arguments(sample)
        tensors = chosen_of(given, floating)
        if not tensors:
            continue

        def call(*new: Any, given: Any = given) -> Any:
            args, kwargs = replaced(given, iter(new), floating)
            return flat(op.function(*args, **kwargs))

        first = [x.clone() for x in tensors]
        other = [x.clone() * 0.875 if x.numel() else x.clone() for x in tensors]
        expected = [call(*[x.clone() for x in each]) for each in (first, other)]
        if any(a.shape != b.shape for a, b in zip(*expected, strict=True)):
            continue
        stacked = [ng.stack(pair) for pair in zip(first, other, strict=True)]
        got = ng.func.vmap(call)(*stacked)
        same(list(got), [ng.stack(pair) for pair in zip(*expected, strict=True)])
        count += 1
    return "+" if count else "-"


def _single(op: Operation, sample: Any) -> tuple[Any, list[Any]]:
    given = own_arguments(sample)
    tensors = [x.detach() for x in chosen_of(given, floating)]

    def call(*new: Any) -> Any:
        args, kwargs = replaced(given, iter(new), floating)
        return tuple(flat(op.function(*args, **kwargs)))

    return call, tensors


def check_jit(op: Operation) -> str:
    if op.random:
        return "?"
    count = 0
    for sample in op.samples(REAL, TRACED, grad=False):
        call, tensors = _single(op, sample)
        if not tensors:
            continue
        same(list(ng.jit(call)(*tensors)), list(call(*tensors)))
        count += 1
    return "+" if count else "-"


def _loss(call: Any) -> Any:
    def loss(*new: Any) -> Any:
        total = 0.0
        for y in call(*new):
            if y.dtype.is_complex:
                y = ng.view_as_real(y)
            if y.dtype.is_floating_point:
                total = total + (y * y).sum() + y.sum()
        return total

    return loss


def check_jit_gradients(op: Operation) -> str:
    if op.random:
        return "?"
    count = 0
    for sample in op.samples(REAL, 1, grad=False):
        call, tensors = _single(op, sample)
        numbers = tuple(k for k, x in enumerate(tensors))
        if not tensors:
            continue
        gradient = ng.func.grad(_loss(call), argnums=numbers)
        try:
            expected = gradient(*tensors)
        except RuntimeError as error:
            if "does not require grad" in str(error):
                continue
            raise
        same(list(ng.jit(gradient)(*tensors)), list(expected), 1e-5)
        count += 1
    return "+" if count else "-"


def check_compiled(op: Operation) -> str:
    if op.random:
        return "?"
    for sample in op.samples(REAL, 1, grad=False):
        call, tensors = _single(op, sample)
        if not tensors:
            continue
        expected = call(*tensors)
        if not expected:
            return "-"
        dispatcher = ng.jit(lambda *new: call(*new)[0]).lower(*tensors).dispatcher
        arrays = [np.array(x.numpy(), order="C") for x in tensors]
        names = ", ".join(f"a{k}" for k in range(len(arrays)))
        scope: dict[str, Any] = {"d": dispatcher}
        exec(f"def f({names}):\n    return d({names})", scope)  # as many arguments as tensors
        result = numba.njit(scope["f"])(*arrays)
        first = np.asarray(result[0])
        if isinstance(result[0], (float, complex)):  # as Numba returns a number of any precision
            first = first.astype(array(expected[0]).dtype)
        same([ng.from_numpy(first)], [expected[0]])
        return "+"
    return "-"


def check_in_place(op: Operation) -> str:
    variant = op.info.inplace_variant
    if variant is None:
        return "-"
    name = getattr(variant, "__name__", None)
    if name is None or not hasattr(torch.Tensor, name):
        return "-"
    if not hasattr(ng.Tensor, name):
        raise Missing(name)
    count = 0
    for sample in op.samples(REAL, 3, grad=False):
        sample_input = sample.input
        if not isinstance(sample_input, torch.Tensor) or op.random:
            continue
        own = ours(sample_input), ours(sample.args), ours(sample.kwargs)
        target = sample_input.clone()
        try:
            theirs = getattr(target, name)(*sample.args, **sample.kwargs)
        except Exception:
            continue
        mine = getattr(own[0], name)(*own[1], **own[2])
        same([mine, own[0]], [theirs, target])
        count += 1
    return "+" if count else "?" if op.random else "-"


def check_out(op: Operation) -> str:
    if not op.info.supports_out:
        return "-"
    count = 0
    for sample in op.samples(REAL, 2, grad=False):
        if op.random:
            return "?"
        arguments = [sample.input, *sample.args], dict(sample.kwargs)
        expected = op.info.op(*arguments[0], **arguments[1])
        tensors = flat(expected)
        try:
            empty = [torch.empty_like(t) for t in tensors]
            out = empty[0] if isinstance(expected, torch.Tensor) else tuple(empty)
            op.info.op(*arguments[0], **arguments[1], out=out)
        except Exception:
            continue
        made = [ng.empty(tuple(t.shape), dtype=ours(t.dtype)) for t in tensors]
        mine = made[0] if isinstance(expected, torch.Tensor) else tuple(made)
        own = own_arguments(sample)
        op.function(*own[0], **own[1], out=mine)
        if sample.output_process_fn_grad.__code__ is not NO_PROCESS:  # signs are not determined
            made, tensors = [m.abs() for m in made], [t.abs() for t in tensors]
        same(made, tensors)
        count += 1
    return "+" if count else "-"


def check_errors(op: Operation) -> str:
    if op.info.error_inputs_func is None:
        return "-"
    wrong, total = [], 0
    for given in op.info.error_inputs("cpu"):
        sample = given.sample_input
        try:
            own = own_arguments(sample)
        except (Missing, TypeError, ValueError):  # of more than 64 dims, say
            continue
        try:
            op.info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            theirs: Any = error
        else:
            continue
        total += 1
        said = f"{type(theirs).__name__}: {_words(theirs)}"
        try:
            op.function(*own[0], **own[1])
        except Exception as error:
            mine = f"{type(error).__name__}: {_words(error)}"
        else:
            mine = "nothing raised"
        if mine != said:
            wrong.append(f"{mine!r}, not {said!r}")
    if wrong:
        raise AssertionError(f"{len(wrong)} of {total} errors: " + " | ".join(wrong))
    return "+" if total else "-"


def _words(error: BaseException) -> str:
    text = str(error).split("\nException raised from")[0].strip()
    return text.replace("numgrad", "torch")


CHECKS: dict[str, Callable[[Operation], str]] = {
    "val": lambda op: check_values(op, REAL),
    "grad": lambda op: check_gradients(op, REAL),
    "2nd": lambda op: check_gradients(op, REAL, second=True),
    "fwd": lambda op: check_forward(op, REAL),
    "cval": lambda op: check_values(op, COMPLEX),
    "cgrad": lambda op: check_gradients(op, COMPLEX),
    "c2nd": lambda op: check_gradients(op, COMPLEX, second=True),
    "cfwd": lambda op: check_forward(op, COMPLEX),
    "vmap": check_vmap,
    "jit": check_jit,
    "jgrad": check_jit_gradients,
    "njit": check_compiled,
    "inpl": check_in_place,
    "out": check_out,
    "err": check_errors,
}


def has(op: Any, column: str) -> bool:
    """Whether PyTorch has what a column is about for an operation."""
    if column[0] == "c":
        return COMPLEX in op.dtypes
    if column in ("inpl", "out", "err"):
        return True
    return REAL in op.dtypes


def walk(info: Any, columns: list[str]) -> tuple[str, dict[str, str], list[str]]:
    """Return the name, a mark for each column, and the reasons of what is not so."""
    name = info.name + (f" ({info.variant_test_name})" if info.variant_test_name else "")
    marks: dict[str, str] = {}
    reasons: list[str] = []
    try:
        op = Operation(info)
    except Missing as missing:
        return name, dict.fromkeys(columns, "M"), [f"missing: {missing}"]
    for column in columns:
        if not has(info, column):
            marks[column] = "-"
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                marks[column] = CHECKS[column](op)
        except Missing as missing:
            marks[column] = "m"
            reasons.append(f"{column}: missing {missing}")
        except Exception as error:
            marks[column] = "X"
            reasons.append(f"{column}: {type(error).__name__}: {' '.join(str(error).split())}")
    return name, marks, reasons


def chosen_infos(words: list[str]) -> list[Any]:
    """Return the operations of the table that PyTorch differentiates, for dense tensors."""
    return [
        info
        for info in table.op_db
        if info.supports_autograd
        and (REAL in info.dtypes or COMPLEX in info.dtypes)
        and info.name not in LEFT_OUT
        and f"{info.name} ({info.variant_test_name})" not in NOT_HANDED_OVER
        and (not words or info.name in words)
    ]


def main() -> None:
    """Print the table, and below it the reasons of what is not so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--columns", nargs="*", default=list(COLUMNS))
    given = parser.parse_args()
    infos = chosen_infos(given.names)
    names = {info.name for info in infos}
    of_complex = {info.name for info in infos if COMPLEX in info.dtypes}
    print(f"{len(names)} operations, {len(of_complex)} of complex numbers", flush=True)
    print(f"{'':44}" + " ".join(f"{column:>5}" for column in given.columns))
    holes: dict[str, list[str]] = {}
    for info in infos:
        name, marks, reasons = walk(info, given.columns)
        print(f"{name:44}" + " ".join(f"{marks[c]:>5}" for c in given.columns), flush=True)
        if reasons:
            holes[name] = reasons
            for reason in reasons:
                print(f"    # {reason[:1500]}", flush=True)
    missing = {name for name, (first, *_) in holes.items() if first.startswith("missing")}
    print(f"{len(names) - len(missing)} here, {len(missing)} missing: {sorted(missing)}")
    print(f"{len(holes)} with holes")
    sys.exit(bool(holes))


if __name__ == "__main__":
    main()
