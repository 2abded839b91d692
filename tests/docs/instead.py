"""What to use in the place of PyTorch's names that are missing, or why there is nothing: as data.

`tests.docs.pytorch_names` writes a missing name under the first heading whose pattern it matches,
with the words of that. A test fails when there is none.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["INSTEAD", "Instead", "group_of"]


class Instead(NamedTuple):
    """A group of names.

    Attributes
    ----------
    heading : str
        What they are.
    names : str
        Patterns, any of which their names match as a whole.
    words : str
        What to use instead, or why there is nothing.
    """

    heading: str
    names: str
    words: str


INSTEAD = (
    Instead(
        "kernels of vendors",
        "(cudnn|miopen|mkldnn).* to_mkldnn is_vulkan_available batch_norm_(stats|elemt) "
        "batch_norm_(backward|gather|update)_.* grouped_mm scaled_(grouped_)?mm",
        "Kernels of GPUs and of libraries under their own names: call the plain one, such as "
        "`conv2d`, `batch_norm` or `matmul`.",
    ),
    Instead(
        "quantized tensors",
        ".*quant.* q_.* qscheme fbgemm.* int_repr fused_moving.* choose_qparams.* qint.* quint.* "
        "per_(channel|tensor)_.*",
        "There are no quantized tensors. `round`, `clamp` and a scale give the numbers, "
        "`to(numgrad.int8)` stores them.",
    ),
    Instead(
        "sparse and nested tensors",
        ".*sparse.* jagged nested s?s?p?mm [dh]sp?mm sspaddmm saddmm (.*_)?indices(_copy)? "
        "values(_copy)? .*coalesced? to_padded_tensor native_norm .*_indices_copy",
        "All tensors are dense. `index_add`, `scatter_add` and `index_select` do what products "
        "with sparse matrices mostly are for; for large ones there is SciPy's sparse package. Rows "
        "of several lengths are padded, or lie one behind the other, as for `embedding_bag`.",
    ),
    Instead(
        "mixed precision and formats that NumPy has not",
        "autocast.* .*_autocast_.* amp GradScaler b?float.* bfloat16 BFloat16Tensor chalf "
        "complex32 bit bits.* int[1-7] uint[1-7]",
        "NumPy has no such dtypes: `float16` stores, float32 computes, and nothing is converted "
        "unasked.",
    ),
    Instead(
        "other devices",
        "cuda xpu ipu mtia mps accelerator cpu record_stream pin_memory Stream Event "
        "(Accelerator|OutOfMemory)Error get_device_module __cuda_array_interface__ "
        ".*_capture_stream .*stream_mismatch DefaultDeviceType [gs]et_device_states",
        "numgrad computes on the CPU, whose device every tensor has; memory that is out raises "
        "Python's MemoryError.",
    ),
    Instead(
        "processes and machines",
        "distributed futures multiprocessing monitor AVG SUM fork wait prepare_multi.* "
        "thread_safe_generator .*reduceop",
        "A program is one process: threads share an operation by themselves, and Python's "
        "multiprocessing runs several programs.",
    ),
    Instead(
        "the compiler and TorchScript",
        "sym_.* parse_.* import_ir.* merge_type.* unify.* prof.*cuda.* compiled_.* classproperty "
        "jit fx export compiler library package hub functionalize FatalError backends "
        "get_file_path kineto_available is_view_replay_enabled",
        "`numgrad.jit` compiles Python functions as they are, `numgrad.jit(f).lower(x)` shows what "
        "came of it; operations of one's own are declared as CONTRIBUTING.md says.",
    ),
    Instead(
        "subclasses and overrides",
        "overrides as_subclass has_torch_function.* __torch_(function|dispatch)__ __array_wrap__ "
        "__setstate__ module_load FunctionMeta BackwardCFunction NestedIOFunction "
        "(is_|as_)?masked_tensor MaskedTensor",
        "`Tensor` is not made for subclasses. `autograd.Function` is for rules of one's own, "
        "`autograd.graph.saved_tensors_hooks` for what is saved, and NumPy's functions take "
        "tensors by ``__array_ufunc__`` and ``__array_function__``. A mask is an argument.",
    ),
    Instead(
        "layers of modules",
        "functional_call stack_module_state replace_all_batch_norm_modules_",
        "There are functions, no modules: parameters are arguments. `stack` joins parameters for "
        "`func.vmap`.",
    ),
    Instead(
        "optimizers, distributions and other packages",
        "optim distributions testing signal types profiler serialization",
        "An optimizer's step is a line under `no_grad`, or SciPy's `minimize` of "
        "`func.value_and_grad`; distributions are `rand`, `randn`, `multinomial` and their like "
        "and formulas of `special`; `numpy.testing` compares; windows are "
        "`hann_window` and its like; `save` and `load` keep tensors; Python's cProfile measures.",
    ),
    Instead(
        "settings",
        "init_num_threads set_num_interop_threads",
        "`set_num_threads` says how many threads an operation may have, and operations run one "
        "after the other.",
    ),
    Instead(
        "parts of autograd",
        "enforce_grad_layout_policy region_activation_memory_budget grad_dtype "
        "get_(analytical|numerical)_jacobian.* CheckpointPolicy SAC_IGNORED_OPS "
        ".*[Ss]elective_?[Cc]heckpoint.* BackwardHook unserializable_hook warn_if_has_hooks "
        "debug_unwrap",
        "`autograd.functional.jacobian` and `func.jacrev` give Jacobians, `autograd.gradcheck` "
        "compares them; `utils.checkpoint` computes a whole function again; a gradient has its "
        "tensor's dtype, and lies as PyTorch's does without a policy.",
    ),
    Instead(
        "what is gone or an inner part",
        "reinforce index slice_inverse rearrange __dlpack_c_exchange_api__ __array_priority__",
        "PyTorch's own `reinforce` raises; `index` and `rearrange` bind dims of functorch's: "
        "`x[...]`, `permute` and `reshape` do that; `slice_inverse` is `as_strided`; `from_dlpack` "
        "reads what others have.",
    ),
)


def group_of(name: str) -> Instead | None:
    """Return the group of a missing name, None if nobody has said what to use instead."""
    for group in INSTEAD:
        if re.fullmatch("|".join(group.names.split()), name):
            return group
    return None
