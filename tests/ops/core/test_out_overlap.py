"""An `out` on memory that is read: refused where PyTorch refuses it, and right elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad
from numgrad.ops.signatures.declared import DECLARED

# Calls on vectors of four, matrices `m` and `q`; `i` are indices, and `none` is room for some.
CALLS = """
index_add(x, 0, i, s, out=out) | index_copy(x, 0, i, s, out=out) | take(x, i, out=out)
index_reduce(x, 0, i, s, 'prod', out=out) | scatter(x, 0, i, s, out=out)
gather(x, 0, i, out=out) | scatter(x, 0, i, s, reduce='add', out=out)
scatter(x, 0, i, 1., out=out) | scatter_add(x, 0, i, s, out=out)
scatter_reduce(x, 0, i, s, 'sum', out=out) | sin(x, out=out) | take_along_dim(x, i, 0, out=out)
index_select(x, 0, i, out=out) | cumsum(x, 0, out=out) | masked_select(x, x > -1, out=out)
addmv(x, m, s, out=out) | addmm(q, q, q, out=out.view(2, 2))
addbmm(q, q[None], q[None], out=out.view(2, 2)) | mv(m, s, out=out) | cumprod(x, 0, out=out)
baddbmm(q[None], q[None], q[None], out=out.view(1, 2, 2)) | logcumsumexp(x, 0, out=out)
sort(x, out=(out, none)) | msort(x, out=out) | cat((x[:2], s[:2]), out=out)
topk(x, 4, out=(out, none)) | stack((x[:2], s[:2]), out=out.view(2, 2))
kthvalue(q, 1, 1, True, out=(out[:2, None], none))
median(x[:, None], 1, True, out=(out[:, None], none)) | hstack((x[:2], s[:2]), out=out)
nanmedian(x[:, None], 1, True, out=(out[:, None], none)) | ceil(x, out=out)
mode(x[:, None], 1, True, out=(out[:, None], none)) | clamp(x, 0, 1, out=out)
renorm(q, 2, 0, 1., out=out.view(2, 2)) | bernoulli(x, out=out) | normal(x, s, out=out)
cross(x[:3], s[:3], 0, out=out[:3]) | kron(x[:2], s[:2], out=out)
addr(q, x[:2], s[:2], out=out.view(2, 2)) | outer(x[:2], s[:2], out=out.view(2, 2))
masked_select(s > 0, p, out=p.view(4)) | masked_select(s > 0, p[:2].repeat(2), out=p)
amax(x[:, None], 1, out=out) | softmax(x, 0, out=out)
vstack((x[:2], s[:2]), out=out.view(2, 2)) | dstack((x[:2], s[:2]), out=out.view(1, 2, 2))
column_stack((x[:2], s[:2]), out=out.view(2, 2)) | conj_physical(x, out=out)
tril(q, out=out.view(2, 2)) | max(x, s, out=out) | min(x, s, out=out) | max(x, out=out[0])
max(q, 0, out=(out[:2], none)) | min(q, 0, out=(out[:2], none)) | add(x[:, None], 1, out=out[None])
"""
LINES = [line.strip() for row in CALLS.strip().splitlines() for line in row.split(" | ")]
OUTS = ["x", "memory_x[:4]", "memory_x[1:5]", "s", "memory_s[:4]", "memory_s[1:5]"]


def outcome(library: Any, line: str, out: str) -> Any:
    memory = {each: library.tensor([1.0, 0, 1, 0.5, 1, 0, 1, 1, 0]) for each in "xs"}
    names: dict[str, Any] = {"torch": library, "memory_x": memory["x"], "memory_s": memory["s"]}
    names |= {"x": memory["x"][:4], "s": memory["s"][:4], "i": library.tensor([1, 0, 2, 3])}
    names |= {"m": library.ones(4, 4), "q": names["x"].view(2, 2)}
    names["p"] = names["x"] > 0
    names["out"] = eval(out, names)
    names["none"] = library.empty(0, dtype=library.int64)
    library.manual_seed(0)
    try:
        result = eval(f"torch.{line}", names)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    result = result if isinstance(result, tuple) else (result,)
    return [each.tolist() for each in result]


@pytest.mark.filterwarnings("ignore")  # of what is new or old, and of another shape
@pytest.mark.parametrize("line", LINES)
def test_an_out_on_memory_that_is_read_is_refused_as_in_pytorch(torch: Any, line: str) -> None:
    for out in OUTS:
        ours, theirs = (outcome(library, line, out) for library in (numgrad, torch))
        if isinstance(theirs, str) or isinstance(ours, str):
            assert ours == theirs, out


@pytest.mark.filterwarnings("ignore")  # of what is new or old, and of another shape
@pytest.mark.parametrize("line", LINES)
def test_what_is_not_refused_is_right(line: str) -> None:
    if line.startswith(("normal", "bernoulli")):
        return  # drawn
    apart = outcome(numgrad, line, "torch.zeros(9)[:4]")
    for out in OUTS:
        found = outcome(numgrad, line, out)
        assert isinstance(found, str) or found == apart, out


def test_what_is_declared_to_lie_apart_is_a_tensor_of_the_signature() -> None:
    declared = [each for each in DECLARED.values() if each.apart or each.in_step]
    assert len(declared) > 40
    for each in declared:
        names = {one.name for one in each.signature.parameters}
        in_step = [one for some in each.in_step for one in ([some] if some in names else some)]
        assert each.bound or names >= {*each.apart, *in_step}, each.name
