"""A call of every public function and method, to be made on operands of any layout.

`CALLS` has lines for each name, as PyTorch spells them. They are made from the table `ARGUMENTS`:
what stands there behind a name are the arguments behind the first tensor, `x`, or a whole call, in
which ``@`` is the function or method; alternatives are parted by a bar. What is not in the table
takes only `x`. The lines name `torch` (which is either library) and the operands of `layouts`: `x`
and `y` of the same shape, `k` of integers and `b` of bools in that shape, `c` complex, `d` with a
last dim of 2, matrices `m`, `n`, `s`, `g`, vectors `v`, `u`, `z` of no dims, batches of matrices
`q`, `p`, `o`, and indices `i`, `j`.
"""

from __future__ import annotations

import inspect

from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS
from tests.rows import names_of, rows_of

__all__ = ["CALLS"]

_PAIRS = """
add arctan2 atan2 copysign div divide eq floor_divide fmax fmin fmod ge greater greater_equal gt
hypot isclose le less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor lt maximum
minimum mul multiply ne not_equal remainder rsub sub subtract true_divide xlogy heaviside view_as
reshape_as expand_as type_as pow float_power
"""
_SCANS = "cumsum cumprod cummax cummin logcumsumexp softmax log_softmax"
_REDUCTIONS = "sum mean nansum nanmean prod all any argmax argmin max min std var norm"
ARGUMENTS: dict[str, str] = {
    **dict.fromkeys(_PAIRS.split(), "y | @(c, c) | @(y, x) | @(x, y[:1]) | @(x[:1], y) | @(k, x)"),
    **dict.fromkeys(_SCANS.split(), "1 | 0 | 2"),
    **dict.fromkeys(_REDUCTIONS.split(), " | dim=1 | dim=0, keepdim=True"),
    **dict.fromkeys(
        ["amax", "amin", "logsumexp", "std_mean", "var_mean"], "1 | (0, 2) | 0, keepdim=True"
    ),
    **dict.fromkeys(["addcdiv", "addcmul"], "y, y | y, x, value=2"),
    **dict.fromkeys(
        ["mT", "mH", "adjoint", "fliplr", "flipud", "tensor", "as_tensor", "asarray"], ""
    ),
    **dict.fromkeys(["mm"], "@(m, s)"),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], "@(k, k) | @(b, b)"),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], "@(k, k)"),
    **dict.fromkeys(["t", "t_", "T", "H", "diagflat"], "@(m)"),
    **dict.fromkeys(["dot", "vdot"], "@(v, v)"),
    **dict.fromkeys(["outer", "ger"], "@(v, u)"),
    **dict.fromkeys(
        [
            "transpose",
            "swapaxes",
            "swapdims",
            "movedim",
            "moveaxis",
            "transpose_",
            "swapaxes_",
            "swapdims_",
        ],
        "0, 1 | 0, 2",
    ),
    **dict.fromkeys(["hsplit", "vsplit", "dsplit"], "1"),
    **dict.fromkeys(["tril", "triu", "tril_", "triu_"], " | 1 | @(m)"),
    **dict.fromkeys(["repeat", "tile"], "@(x, (1, 2, 1)) | @(x, (2, 1, 1, 1)) | @(x, (1, 1, 1))"),
    **dict.fromkeys(["cat", "concat", "concatenate"], "@([x, y]) | @([x, y], 1) | @([x])"),
    **dict.fromkeys(["hstack", "vstack", "row_stack", "dstack", "column_stack"], "@([x, y])"),
    **dict.fromkeys(["atleast_1d", "atleast_2d", "atleast_3d"], "@(x) | @(m) | @(v) | @(z)"),
    **dict.fromkeys(["scatter", "scatter_add", "scatter_", "scatter_add_"], "1, k, y"),
    **dict.fromkeys(["index_add", "index_copy"], "0, i, y[i]"),
    **dict.fromkeys(["clamp", "clip"], "0.1, 0.5 | y, y"),
    **dict.fromkeys(["clamp_min", "clamp_max"], "0.5 | y"),
    **dict.fromkeys(["polar", "complex"], "@(x, y)"),
    **dict.fromkeys(["nonzero", "argwhere"], "@(b)"),
    **dict.fromkeys(
        ["zeros_like", "ones_like", "rand_like", "randn_like", "empty_like"],
        " | dtype=torch.float64 | memory_format=torch.contiguous_format",
    ),
    **dict.fromkeys(["new_empty", "new_zeros", "new_ones", "resize_"], "@(x, x.shape)"),
    **dict.fromkeys(["softplus", "logsigmoid"], "torch.nn.functional.@(x)"),
    **dict.fromkeys(["unsqueeze", "unsqueeze_"], "0 | 1 | 3"),
    **dict.fromkeys(["expand", "broadcast_to"], "@(x, (2, *x.shape)) | @(x, x.shape)"),
    "norm": " | 2, 1 | 2, 0, keepdim=True",
    "aminmax": " | dim=1",
    "sort": " | 0 | 2, descending=True | 1, stable=True",
    "argsort": " | 0 | 2, descending=True",
    "kthvalue": "1, 1 | 1, 2",
    "topk": "1, 1 | 2, 2",
    "bitwise_not": "@(k) | @(b)",
    "bmm": "@(q, p)",
    "matmul": "@(q, p) | @(m, s) | @(m, v) | @(v, v) | @(q, s) | @(s, s)",
    "mm": "@(m, s)",
    "mv": "@(m, v)",
    "inner": "@(m, n) | @(v, v)",
    "kron": "@(m, n)",
    "addmm": "@(m, m, s)",
    "addmv": "@(u, m, v)",
    "addr": "@(m, u, v) | @(v, u, v)",
    "addbmm": "@(g, q, p)",
    "baddbmm": "@(o, q, p)",
    "tensordot": "@(q, p, ([1, 2], [2, 1])) | @(m, s, 1)",
    "einsum": "@('bij,bjk->bik', q, p) | @('ij->ji', m) | @('ij->i', m) | @('ij,jk->ki', m, s)",
    "trace": "@(m)",
    "permute": "(1, 2, 0) | (2, 1, 0)",
    "squeeze": " | 0 | 1",
    "flatten": " | 1 | 0, 1",
    "reshape": "(-1,) | (x.shape[0], -1) | (-1, x.shape[2])",
    "view": "-1 | x.shape | *x.shape, 1 | x.shape[0], -1 | torch.int32 | torch.int16 | torch.int64"
    " | @(c, torch.float32) | @(d, torch.complex64) | @(b, dtype=torch.uint8)",
    "unflatten": "0, (x.shape[0], 1) | 2, (1, -1)",
    "unfold": "0, 1, 1 | 2, 2, 1",
    "broadcast_tensors": "@(x, z) | @(x, y)",
    "chunk": "2 | 1, 0",
    "tensor_split": "2 | 2, 1",
    "split": "1 | 1, 1 | [1, x.shape[2] - 1], 2",
    "split_with_sizes": "[1, x.shape[2] - 1], 2",
    "unbind": " | 1",
    "narrow": "2, 1, 2",
    "select": "0, -1 | 1, 0",
    "diagonal": " | 1, 0, 2 | 9",
    "diag": "@(m) | @(v) | @(m, 1)",
    "diag_embed": " | 1 | @(v)",
    "as_strided": "(2, 2), (1, 2)",
    "as_strided_scatter": "@(x, z.expand(2), (2,), (1,))",
    "select_scatter": "@(x, x[0], 0, 0)",
    "slice_scatter": "@(x, x[:1], 0, 0, 1)",
    "diagonal_scatter": "@(x, x.diagonal())",
    "flip": "(0,) | (0, 2) | ()",
    "roll": "1 | -3, 0 | (1, 2), (0, 2)",
    "rot90": " | 2 | 1, (0, 2) | -1, (2, 1) | 0",
    "repeat_interleave": "2 | 2, 1",
    "stack": "@([x, y]) | @([x, y], 3)",
    "meshgrid": "@(v, u)",
    "where": "@(b, x, y) | @(b, x, 1.0) | @(b)",
    "masked_fill": "b, 1.0 | b[0], 1.0",
    "masked_select": "b",
    "masked_scatter": "b, y",
    "gather": "1, k",
    "take_along_dim": "k, 1 | k",
    "take": "k",
    "index_select": "0, i | 2, i",
    "index_fill": "0, i, 1.0",
    "put": "k, y | k, y, True",
    "index_put": "(i,), y[i] | (i,), y[i], True",
    "lerp": "y, 0.5 | y, y",
    "view_as_real": "@(c)",
    "imag": "@(c)",
    "view_as_complex": "@(d)",
    "count_nonzero": "@(b) | @(b, 1)",
    "sum_to_size": "@(x, (1, *x.shape[1:])) | @(x, x.shape)",
    "to": "torch.float64 | torch.float32 | torch.float64, memory_format=torch.contiguous_format"
    " | torch.float32, copy=True | torch.complex64",
    "clone": " | memory_format=torch.contiguous_format | memory_format=torch.preserve_format",
    "contiguous": " | memory_format=torch.contiguous_format",
    "type": "torch.float64 | 'torch.DoubleTensor'",
    "full_like": "1.0 | 1.0, dtype=torch.float64 | 1.0, memory_format=torch.contiguous_format",
    "randint_like": "3",
    "new_full": "x.shape, 1.0",
    "constant_pad_nd": "(1, 2), 1.5 | (0, 1, -1, 1)",
    "fill": "1.0 | z",
    "fill_": "1.0 | z",
    "copy_": "y | z",
    "bernoulli": " | 0.5",
    "geometric_": "0.5",
    "normal": "@(x, y) | @(x, 1.0) | @(0.0, y)",
    "normal_": "",
    "bernoulli_": "",
    "resize_as_": "y",
    "logit": "0.1",
    "squeeze_": " | 0",
    "__getitem__": "x[1:] | x[..., ::2] | x[0] | x[None] | x[:, 0] | x[...] | x[True]"
    " | x[i] | x[:, i] | x[i, i] | x[i, :, i] | x[b] | x[:, :, i] | x[i, 0] | x[..., None, i]"
    " | x[j] | x[:, j] | x[:, j, i[:1]] | x[j, :, j] | x[b[0, 0]] | x[b[:, :, 0]] | y[j]",
    **rows_of("ARGUMENTS"),
}
# What has no tensor to lay out, or returns none.
_LEFT_OUT = """
Generator arange broadcast_shapes empty eye from_numpy full get_rng_state initial_seed is_complex
is_conj is_floating_point is_neg is_nonzero is_signed is_tensor linspace logspace manual_seed numel
ones rand randint randn randperm scalar_tensor seed set_rng_state tril_indices triu_indices zeros
empty_strided is_set_to new_empty_strided set_default_tensor_type unravel_index is_contiguous
result_type allclose equal is_same_size new_tensor is_shared share_memory_ storage_type dim_order
detach_
"""
_ATTRIBUTES = ("H", "T", "mT", "mH")


def _lines(name: str) -> list[str]:
    """Return the calls of one function or method."""
    lines = []
    plain = name.removesuffix("_")
    default = ARGUMENTS.get(plain, ARGUMENTS.get(plain.removesuffix("_copy"), " | @(c) | @(k)"))
    for arguments in ARGUMENTS.get(name, default).split(" | "):
        inside = arguments if "@" in arguments or name[0] == "_" else f"@(x, {arguments})"
        inside = inside.replace("(x, )", "(x)")
        if not inside.startswith("@"):
            lines.append(inside.replace("@", name))
        elif name in _ATTRIBUTES:
            lines.append(f"{inside[2:-1]}.{name}")
        elif name in FUNCTIONS:
            lines.append(inside.replace("@", f"torch.{name}"))
            # Of `take`, an empty `out` lies as the index in PyTorch, and row by row without one.
            if "out" in inspect.signature(FUNCTIONS[name]).parameters and name != "take":
                lines.append(f"{lines[-1][:-1]}, out=torch.empty(0))")
        else:
            first, _, rest = inside[2:-1].partition(", ")
            lines.append(f"{first}.{name}({rest})")
    return lines


_NAMES = (
    {*FUNCTIONS, *METHODS, *INPLACE, "__getitem__"} - set(_LEFT_OUT.split()) - names_of("LEFT_OUT")
)
# A name with one underscore is of what a test declared, which may have been imported before.
CALLS: dict[str, list[str]] = {
    name: _lines(name) for name in sorted(_NAMES) if name[0] != "_" or name[:2] == "__"
}
