# ruff: noqa: E501 - a line of a table is a line of code with its answer
"""What old programs say: legacy types, `new`, storages, as_strided_, byte masks, other indices."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.creation.legacy_types import LEGACY_TYPES
from tests.ops.recorded import answer, read

SETUP = """
x = torch.arange(12.).reshape(3, 4)
u = torch.tensor([1, 0, 2], dtype=torch.uint8)
none = torch.tensor([], dtype=torch.int64)
def put(key, value):
    z = x.clone()
    z[key] = value
    return z
"""
TYPES = r"""
torch.FloatTensor(2, 3).shape => torch.Size([2, 3])
torch.FloatTensor([1, 2]) => tensor([1., 2.])
torch.FloatTensor(x).data_ptr() == x.data_ptr() => True
torch.FloatTensor(torch.ones(2, dtype=torch.float64)) => TypeError: expected TensorOptions(dtype=float, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)) (got TensorOptions(dtype=double, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)))
torch.LongTensor([1.5]) => tensor([1])
torch.LongTensor(3).dtype => torch.int64
torch.ByteTensor([1, 300]) => RuntimeError: value cannot be converted to type uint8 without overflow
torch.BoolTensor([1, 0]) => tensor([ True, False])
torch.CharTensor([-1]).dtype, torch.ShortTensor([1]).dtype, torch.IntTensor([1]).dtype => (torch.int8, torch.int16, torch.int32)
torch.DoubleTensor(np.ones(2, np.float32)) => tensor([1., 1.], dtype=torch.float64)
isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), isinstance(3, torch.FloatTensor) => (True, False, False)
isinstance(x.long(), torch.LongTensor), isinstance(x > 1, torch.BoolTensor) => (True, True)
issubclass(torch.FloatTensor, torch.Tensor) => False
x[0].type(torch.DoubleTensor) => tensor([0., 1., 2., 3.], dtype=torch.float64)
x[0].type('torch.LongTensor') => tensor([0, 1, 2, 3])
x[0].type(torch.int8) => tensor([0, 1, 2, 3], dtype=torch.int8)
x.type(torch.FloatTensor) is x => True
x.type(), x.long().type() => ('torch.FloatTensor', 'torch.LongTensor')
x.type('a') => ValueError: invalid type: 'a'
x.type(3) => TypeError: dtype must be a type, str, or dtype object
x.type(int) => ValueError: invalid type: 'int'
x.type(torch.Tensor) is x => True
torch.FloatTensor, torch.FloatTensor.__name__, torch.FloatTensor.dtype, torch.FloatTensor.layout => (<class 'torch.FloatTensor'>, 'FloatTensor', torch.float32, torch.strided)
torch.FloatTensor.is_cuda, torch.FloatTensor.is_sparse => (False, False)
torch.FloatTensor(2.5) => TypeError: new(): data must be a sequence (got float)
torch.FloatTensor('a') => TypeError: new(): invalid data type 'str'
torch.FloatTensor() => tensor([])
torch.FloatTensor(torch.Size([2, 3])).shape => torch.Size([2, 3])
torch.FloatTensor(2, 3.) => TypeError: new(): argument 'size' failed to unpack the object at pos 2 with error "type must be tuple of ints,but got float"
torch.FloatTensor(-1) => RuntimeError: Trying to create tensor with negative dimension -1: [-1]
torch.LongTensor([[1, 2], [3]]) => ValueError: expected sequence of length 2 at dim 1 (got 1)
torch.FloatTensor([1.], device='cpu') => tensor([1.])
torch.Tensor(x.long()).dtype => torch.int64
torch.set_default_tensor_type(torch.DoubleTensor); d = torch.tensor(1.).dtype; torch.set_default_tensor_type('torch.FloatTensor') -> d, torch.tensor(1.).dtype => (torch.float64, torch.float32) [torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and torch.set_default_device() as alternatives.]
x.new([1, 2]) => tensor([1., 2.])
x.new(2, 3).shape => torch.Size([2, 3])
x.long().new([1.5, 2]) => tensor([1, 2])
x.new().shape => torch.Size([0])
x.new(x).data_ptr() == x.data_ptr() => True
x.new(x.double()) => TypeError: expected TensorOptions(dtype=float, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)) (got TensorOptions(dtype=double, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)))
x.new('a') => TypeError: new(): invalid data type 'str'
x.new(2.5) => TypeError: new(): data must be a sequence (got float)
torch.empty_strided((2, 3), (1, 2)).stride(), torch.empty_strided((), ()).shape => ((1, 2), torch.Size([]))
torch.empty_strided((2, 3), (0, 1), dtype=torch.int8).untyped_storage().nbytes() => 3
x.long().new_empty_strided((2,), (3,)).dtype, x.new_empty_strided((2,), (3,)).untyped_storage().size() => (torch.int64, 16)
torch.empty_strided((2,), (1, 2)) => RuntimeError: dimensionality of sizes (1) must match dimensionality of strides (2)
torch.empty_strided((2, -1), (1, 2)) => RuntimeError: Trying to create tensor with negative dimension -1: [2, -1]
torch.empty_strided(2, 3) => TypeError: empty_strided(): argument 'size' (position 1) must be tuple of ints, not int
torch.empty_strided((2, 2), (1, 2), requires_grad=True).requires_grad => True
x.double().new(2).dtype => torch.float64
"""
STORAGES = r"""
x.untyped_storage().nbytes(), x.untyped_storage().size(), len(x.untyped_storage()) => (48, 48, 48)
x.untyped_storage().data_ptr() == x.data_ptr() => True
x[1:].untyped_storage().data_ptr() == x.data_ptr() => True
x[1:].untyped_storage().nbytes(), x[1, 1].storage().size() => (48, 12)
x[1:].detach().untyped_storage() == x.untyped_storage() => True
x[1:].data.untyped_storage() == x.untyped_storage() => True
x[1:].detach()[1].storage_offset(), x[1:].data.storage_offset(), x.t()[1:].detach()[1:].storage_offset() => (8, 4, 2)
x.clone().untyped_storage() == x.untyped_storage() => False
(x + 1).untyped_storage() == x.untyped_storage() => False
x.view(-1).untyped_storage() == x.untyped_storage(), x.t().untyped_storage() == x.untyped_storage() => (True, True)
x.numpy().base is not None or torch.from_numpy(x.numpy()).untyped_storage().data_ptr() == x.data_ptr() => True
hash(x[0].untyped_storage()) == hash(x.untyped_storage()) => True
x[0, :2].clone().untyped_storage().tolist() => [0, 0, 0, 0, 0, 0, 128, 63]
x[0, :2].clone().untyped_storage() => 0 0 0 0 0 0 128 63 [torch.storage.UntypedStorage(device=cpu) of size 8]
x.storage().tolist() => [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
x.storage().dtype, x.storage().element_size(), x.storage().nbytes() => (torch.float32, 4, 48)
x[0].clone().storage() => 0.0 1.0 2.0 3.0 [torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 4]
x.storage()[3], x.untyped_storage()[3] => (3.0, 0)
s = x.storage(); s[1] = 7 -> x[0] => tensor([0., 7., 2., 3.])
x.storage().untyped() == x.untyped_storage() => True
torch.is_storage(x.untyped_storage()), torch.is_storage(x.storage()), torch.is_storage(x) => (True, True, False)
x.untyped_storage().is_shared(), x.untyped_storage().is_cuda, x.untyped_storage().device => (False, False, device(type='cpu'))
isinstance(x.untyped_storage(), torch.UntypedStorage), isinstance(x.storage(), torch.TypedStorage) => (True, True)
torch.view_as_real(torch.ones(2, dtype=torch.complex64)).untyped_storage().nbytes() => 16
torch.zeros(2).set_(x.untyped_storage()).shape => torch.Size([12])
torch.zeros(2).set_(x.storage(), 2, (2,), (3,)) => tensor([2., 5.])
x.new(x.storage()).data_ptr() == x.data_ptr() => True
x.is_set_to(x.view(3, 4)), x.is_set_to(x[1:]), x.is_set_to(x.clone()), x.is_set_to(x.t()) => (True, False, False, False)
x.untyped_storage()['a'] => TypeError: can't index a torch.UntypedStorage with str
torch.empty(0).untyped_storage().nbytes() => 0
x.clone().resize_(2).untyped_storage().nbytes() => 48
"""
AS_STRIDED = r"""
x.clone().as_strided_((2, 2), (1, 2)) => tensor([[0., 2.], [1., 3.]])
x.clone().as_strided_((2, 2), (4, 1), 1).storage_offset() => 1
z = x.clone(); w = z.as_strided_((2,), (5,), 1) -> z, w is z, z.stride() => (tensor([1., 6.]), True, (5,))
x.clone().as_strided_((2,), (1,), 4).as_strided_((2,), (1,), 0) => tensor([0., 1.])
x.clone().as_strided_((2,), (1,), 4).as_strided_((2,), (1,)) => tensor([4., 5.])
x.clone().as_strided_((2, 2), (1, 2), 9) => RuntimeError: setStorage: sizes [2, 2], strides [1, 2], storage offset 9, and itemsize 4 requiring a storage size of 52 are out of bounds for storage of size 48
x.clone().requires_grad_().as_strided_((2, 2), (1, 1)) => RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
w = x.clone().requires_grad_(); z = (w * 2).as_strided_((2, 2), (1, 1)); z.sum().backward() -> z, w.grad => (tensor([[0., 2.], [2., 4.]], grad_fn=<AsStridedBackward1>), tensor([[2., 4., 2., 0.], [0., 0., 0., 0.], [0., 0., 0., 0.]]))
z = x.clone(); v = z[0]; v.as_strided_((2,), (4,)).zero_() -> z, v => (tensor([[ 0., 1., 2., 3.], [ 0., 5., 6., 7.], [ 8., 9., 10., 11.]]), tensor([0., 0.]))
x.clone().as_strided_((2,), (1, 1)) => RuntimeError: mismatch in length of strides and shape
"""
INDICES = r"""
x[u] => tensor([[ 0., 1., 2., 3.], [ 8., 9., 10., 11.]]) [indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.]
x[u, 0] => tensor([0., 8.]) [indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.]
x[0, torch.tensor([1, 0, 1, 0], dtype=torch.uint8)] => tensor([0., 2.]) [indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.]
x[:, torch.tensor([1, 0, 1, 0], dtype=torch.uint8)] => tensor([[ 0., 2.], [ 4., 6.], [ 8., 10.]]) [indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.]
x[torch.tensor([1, 0], dtype=torch.int16)] => IndexError: tensors used as indices must be long, int, byte or bool tensors
x[torch.tensor([1, 0], dtype=torch.int8)] => IndexError: tensors used as indices must be long, int, byte or bool tensors
x[torch.tensor([1, 0], dtype=torch.int32)] => tensor([[4., 5., 6., 7.], [0., 1., 2., 3.]])
x[torch.tensor(1, dtype=torch.int16)] => tensor([4., 5., 6., 7.])
x[torch.tensor(1, dtype=torch.uint8)] => tensor([[[ 0., 1., 2., 3.], [ 4., 5., 6., 7.], [ 8., 9., 10., 11.]]])
x[torch.tensor(1, dtype=torch.int8)] => tensor([4., 5., 6., 7.])
x[torch.tensor([1.])] => IndexError: tensors used as indices must be long, int, byte or bool tensors
x.masked_fill(u[:, None], 0) => RuntimeError: masked_fill_ only supports boolean masks, but got mask with dtype unsigned char
x.masked_select(u[:, None]) => RuntimeError: masked_select: expected BoolTensor for mask
torch.where(u[:, None], x, 0) => tensor([[ 0., 1., 2., 3.], [ 0., 0., 0., 0.], [ 8., 9., 10., 11.]]) [where received a uint8 condition tensor]
x.index_select(0, u) => RuntimeError: index_select(): Expected dtype int32 or int64 for index
x.index_select(0, u.int()) => tensor([[ 4., 5., 6., 7.], [ 0., 1., 2., 3.], [ 8., 9., 10., 11.]])
x.index_select(0, u.short()) => RuntimeError: index_select(): Expected dtype int32 or int64 for index
x.gather(0, u[:, None].int()) => tensor([[4.], [0.], [8.]])
x.gather(0, u[:, None].short()) => RuntimeError: gather(): Expected dtype int32/int64 for index
x.take(u.int()) => RuntimeError: take(): Expected a long tensor for index, but got Int
torch.take_along_dim(x, u[:, None].int(), 1) => RuntimeError: torch.take_along_dim(): dtype of indices should be Long but got Int
x.index_add(0, u.int(), x) => tensor([[ 4., 6., 8., 10.], [ 4., 6., 8., 10.], [16., 18., 20., 22.]])
x.index_add(0, u.short(), x) => RuntimeError: index_add_(): Expected dtype int32/int64 for index but got: Short
x.index_copy(0, u.int(), x) => RuntimeError: index_copy_(): Expected a long tensor for index, but got Int
x.index_fill(0, u.int(), 0) => IndexError: index_fill_(): Expected dtype int64 for index.
x.scatter(0, u[:, None].int(), 0.) => tensor([[ 0., 1., 2., 3.], [ 0., 5., 6., 7.], [ 0., 9., 10., 11.]])
none % 0, none // torch.tensor(0), none.fmod(0) => (tensor([], dtype=torch.int64), tensor([], dtype=torch.int64), tensor([], dtype=torch.int64))
x.scatter_add(0, u[:, None].int(), x) => tensor([[ 4., 1., 2., 3.], [ 4., 5., 6., 7.], [16., 9., 10., 11.]])
put(u, torch.zeros(2, 4)) => tensor([[0., 0., 0., 0.], [4., 5., 6., 7.], [0., 0., 0., 0.]]) [indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.]
put(u.int(), 0.) => tensor([[0., 0., 0., 0.], [0., 0., 0., 0.], [0., 0., 0., 0.]])
put(u.short(), 0.) => IndexError: tensors used as indices must be long, int, byte or bool tensors
x.index_put((u,), torch.zeros(2, 4)) => tensor([[0., 0., 0., 0.], [4., 5., 6., 7.], [0., 0., 0., 0.]]) [indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.]
x.index_put((u.int(),), torch.tensor(1.)) => tensor([[1., 1., 1., 1.], [1., 1., 1., 1.], [1., 1., 1., 1.]])
x.index_put((u.short(),), torch.tensor(1.)) => IndexError: tensors used as indices must be long, int, byte or bool tensors
x.index_put((u.long(),), torch.tensor(1)) => RuntimeError: Index put requires the source and destination dtypes match, got Float for the destination and Long for the source.
x.index_put((u.long(),), torch.tensor(1., dtype=torch.float64)) => RuntimeError: Index put requires the source and destination dtypes match, got Float for the destination and Double for the source.
x.index_put((none,), torch.tensor(1.)) => tensor([[ 0., 1., 2., 3.], [ 4., 5., 6., 7.], [ 8., 9., 10., 11.]])
x.index_put((none,), torch.ones(0, 4)) => tensor([[ 0., 1., 2., 3.], [ 4., 5., 6., 7.], [ 8., 9., 10., 11.]])
x.index_put((none,), torch.ones(2, 4)) => RuntimeError: shape mismatch: value tensor of shape [2, 4] cannot be broadcast to indexing result of shape [0, 4]
x.index_put((none,), torch.tensor(1.), accumulate=True) => tensor([[ 0., 1., 2., 3.], [ 4., 5., 6., 7.], [ 8., 9., 10., 11.]])
x.index_put((none, none), torch.ones(0)) => tensor([[ 0., 1., 2., 3.], [ 4., 5., 6., 7.], [ 8., 9., 10., 11.]])
x.index_put((torch.zeros(3, dtype=torch.bool),), torch.ones(2, 4)) => RuntimeError: shape mismatch: value tensor of shape [2, 4] cannot be broadcast to indexing result of shape [0, 4]
x.index_put((torch.zeros(3, dtype=torch.bool),), torch.ones(0, 4)) => tensor([[ 0., 1., 2., 3.], [ 4., 5., 6., 7.], [ 8., 9., 10., 11.]])
torch.zeros(0, 3).index_put((none,), torch.ones(3)) => tensor([], size=(0, 3))
x.index_put([u.long()], 1.) => TypeError: index_put(): argument 'values' (position 2) must be Tensor, not float
x.index_put([[0, 1]], torch.tensor(1.)) => TypeError: expected Tensor as element 0 in argument 0, but got list
x.long().index_put((u.int(),), torch.tensor(7), accumulate=True) => tensor([[ 7, 8, 9, 10], [11, 12, 13, 14], [15, 16, 17, 18]])
(x > 3).index_put((u.long(),), torch.tensor(True)) => tensor([[True, True, True, True], [True, True, True, True], [True, True, True, True]])
put(u.long(), torch.tensor(1)) => RuntimeError: Index put requires the source and destination dtypes match, got Float for the destination and Long for the source.
put(u.bool(), torch.ones(2, 4, dtype=torch.float64)) => RuntimeError: Index put requires the source and destination dtypes match, got Float for the destination and Double for the source.
put((0, torch.tensor([True, False, True, False])), 5.) => tensor([[ 5., 1., 5., 3.], [ 4., 5., 6., 7.], [ 8., 9., 10., 11.]])
x[0, torch.tensor([True, False, True, False])] => tensor([0., 2.])
x[torch.tensor(0), torch.tensor([True, False, True, False])] => tensor([0., 2.])
x[torch.tensor([0, 1]), torch.tensor([True, False, True, False])] => tensor([0., 6.])
x[[0, 1], [True, False, True, False]] => tensor([0., 6.])
x[1, ..., torch.tensor([True, False, True, False])] => tensor([4., 6.])
x[torch.tensor([2]), torch.tensor([True, False, True, False])] => tensor([ 8., 10.])
x[True, 1], x[1, True], x[1, False] => (tensor([[4., 5., 6., 7.]]), tensor([[4., 5., 6., 7.]]), tensor([], size=(0, 4)))
x.view(3, 2, 2)[1, torch.ones(2, 2) > 0] => tensor([4., 5., 6., 7.])
x.view(3, 2, 2)[:, 1, torch.ones(2) > 0].shape => torch.Size([3, 2])
x.view(3, 2, 2)[1, :, torch.ones(2) > 0].shape => torch.Size([2, 2])
x.view(3, 2, 2)[torch.tensor(1), :, torch.ones(2) > 0].shape => torch.Size([2, 2])
x.view(3, 2, 2)[1, torch.ones(3) > 0] => IndexError: The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 2] at index 0
x.view(3, 2, 2)[None, 1, None, torch.ones(2) > 0].shape => torch.Size([1, 1, 2, 2])
torch.unravel_index(torch.tensor([5, 7]), (3, 4)) => (tensor([1, 1]), tensor([1, 3]))
torch.unravel_index(torch.tensor(5), (3, 4)) => (tensor(1), tensor(1))
torch.unravel_index(torch.tensor([12, -1]), (3, 4)) => (tensor([0, 2]), tensor([0, 3]))
torch.unravel_index(torch.tensor([1.]), (3, 4)) => TypeError: expected 'indices' to be integer dtype, but got torch.float32
torch.unravel_index(torch.tensor([True]), (3, 4)) => TypeError: expected 'indices' to be integer dtype, but got torch.bool
torch.unravel_index(u.int(), 4) => (tensor([1, 0, 2]),)
torch.unravel_index(u.long(), ()) => ()
torch.unravel_index(torch.tensor([[1, 2], [3, 4]]), torch.Size([5, 6])) => (tensor([[0, 0], [0, 0]]), tensor([[1, 2], [3, 4]]))
torch.unravel_index(u.long(), (2, -3)) => ValueError: 'shape' cannot have negative values, but got (2, -3)
torch.unravel_index(u.long(), (2.,)) => TypeError: expected 'shape' sequence to only contain ints, but got <class 'float'>
torch.unravel_index(none, (0, 3)) => (tensor([], dtype=torch.int64), tensor([], dtype=torch.int64))
"""
CALLS_UNDER_JIT = [
    "x[i]",
    "x[:, i]",
    "put(x, i)",
    "x.index_put((i,), ng.ones(()))",
    "x.index_put((i,), ng.ones(()), accumulate=True)",
    "x.index_select(0, i)",
    "x.gather(0, i[:, None])",
    "x.take(i)",
    "x.index_add(0, i, x)",
    "x.index_copy(0, i, x)",
    "x.index_fill(0, i, 1.0)",
    "x.scatter(0, i[:, None], 5.0)",
    "ng.take_along_dim(x, i[:, None], 1)",
    "ng.where(i[:, None], x, 0.0)",
    "x.masked_fill(i[:, None], 0.0)",
]
CASES = [case for table in (TYPES, STORAGES, AS_STRIDED, INDICES) for case in read(table)]


@pytest.mark.parametrize(("code", "expected"), CASES, ids=[code for code, _ in CASES])
def test_old_names_do_what_they_did(code: str, expected: str) -> None:
    assert answer(ng, code, SETUP) == expected


def test_pytorch_answers_so(torch: ModuleType) -> None:
    assert {code: answer(torch, code, SETUP) for code, _ in CASES} == dict(CASES)


def test_one_number_is_written_through_a_mask_of_bytes() -> None:
    mask = ng.tensor([1, 0, 2], dtype=ng.uint8)
    x = ng.arange(3.0)
    with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
        x[mask] = 7.0
    assert x.tolist() == [7.0, 1.0, 7.0]


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("call", CALLS_UNDER_JIT)
@pytest.mark.filterwarnings("ignore:.*uint8")
def test_indices_under_jit_are_as_without(call: str, kind: str) -> None:
    """The same numbers, or the same refusal; a mask whose numbers are not known is refused."""
    x = ng.arange(9.0).reshape(3, 3)
    i = ng.tensor([1, 0, 2], dtype=getattr(ng, kind))

    def f(x: ng.Tensor, i: ng.Tensor) -> ng.Tensor:
        names = {"x": x, "i": i, "ng": ng, "put": _put}
        found: ng.Tensor = eval(call, names)
        return found

    expected, found = _outcome(lambda: f(x, i)), _outcome(lambda: ng.jit(f)(x, i))
    unknown = "indexing with a mask"
    assert found == expected or (kind == "uint8" and isinstance(found, str) and unknown in found)


def _outcome(call: Callable[[], ng.Tensor]) -> Any:
    """Return numbers, or an error's first words behind the place where it was traced."""
    try:
        return call().tolist()
    except (RuntimeError, IndexError) as error:
        return str(error)


def _put(x: ng.Tensor, i: ng.Tensor) -> ng.Tensor:
    x = x.clone()
    x[i] = 7.0
    return x


def test_typed_storages_warn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numgrad.ops.mutation.storages._warned", False)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        ng.ones(2).storage()
    ng.ones(2).storage()  # a second warning would be an error


@given(
    st.lists(st.integers(0, 4), max_size=4),
    st.sampled_from(["uint8", "int8", "int16", "int32", "int64"]),
    st.data(),
)
def test_unravel_index_finds_elements(shape: list[int], dtype: str, data: st.DataObject) -> None:
    count = int(np.prod(shape, dtype=int))
    flat = data.draw(st.lists(st.integers(0, max(count, 1) - 1), max_size=5)) if count else []
    found = ng.unravel_index(ng.tensor(flat, dtype=getattr(ng, dtype)), tuple(shape))
    expected = (
        np.unravel_index(np.array(flat, int), shape) if count and shape else [[]] * len(shape)
    )
    assert [each.tolist() for each in found] == [list(each) for each in expected]
    assert all(each.dtype is ng.int64 for each in found)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_storages_say_which_memory_is_shared(shape: list[int], data: st.DataObject) -> None:
    x = ng.arange(float(np.prod(shape))).reshape(shape)
    part: ng.Tensor = x
    for _ in range(data.draw(st.integers(1, 5))):
        dim = data.draw(st.integers(0, x.dim() - 1))
        step = data.draw(
            st.sampled_from(["detach", "data", "transpose", "narrow", "alias", "view_as", "set"])
        )
        length = part.shape[dim]
        part = {
            "detach": lambda: part.detach(),
            "data": lambda: part.data,
            "transpose": lambda: part.transpose(0, dim),
            "narrow": lambda: part.narrow(dim, length // 2, length - length // 2),
            "alias": lambda: part[...],
            "view_as": lambda: part.view_as(part),
            "set": lambda: ng.empty(0).set_(part),
        }[step]()
    assert part.untyped_storage() == x.untyped_storage()
    assert part.untyped_storage().nbytes() == x.nbytes
    offset = part.storage_offset()
    assert part.data_ptr() == x.data_ptr() + 4 * offset
    again = x.as_strided(part.shape, part.stride(), offset)
    assert again.tolist() == part.tolist()
    assert part.clone().untyped_storage() != x.untyped_storage()


@pytest.mark.parametrize("name", sorted(LEGACY_TYPES))
def test_legacy_types_pickle_and_print(name: str) -> None:
    kind = getattr(ng, name)
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert copy.deepcopy(kind) is kind
    made = kind([0, 1])
    assert isinstance(made, kind)
    assert made.type() == f"torch.{name}"
    assert ng.ones(2).type(kind).dtype is made.dtype
