# ruff: noqa: E501 - a line of a table is a line of code
"""What old programs say: legacy types, `new`, storages, as_strided_, byte masks, other indices."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.creation.legacy_types import LEGACY_TYPES
from tests.ops.lines import answer

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
torch.FloatTensor(2, 3).shape
torch.FloatTensor([1, 2])
torch.FloatTensor(x).data_ptr() == x.data_ptr()
torch.FloatTensor(torch.ones(2, dtype=torch.float64))
torch.LongTensor([1.5])
torch.LongTensor(3).dtype
torch.ByteTensor([1, 300])
torch.BoolTensor([1, 0])
torch.CharTensor([-1]).dtype, torch.ShortTensor([1]).dtype, torch.IntTensor([1]).dtype
torch.DoubleTensor(np.ones(2, np.float32))
isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), isinstance(3, torch.FloatTensor)
isinstance(x.long(), torch.LongTensor), isinstance(x > 1, torch.BoolTensor)
issubclass(torch.FloatTensor, torch.Tensor)
x[0].type(torch.DoubleTensor)
x[0].type('torch.LongTensor')
x[0].type(torch.int8)
x.type(torch.FloatTensor) is x
x.type(), x.long().type()
x.type('a')
x.type(3)
x.type(int)
x.type(torch.Tensor) is x
torch.FloatTensor, torch.FloatTensor.__name__, torch.FloatTensor.dtype, torch.FloatTensor.layout
torch.FloatTensor.is_cuda, torch.FloatTensor.is_sparse
torch.FloatTensor(2.5)
torch.FloatTensor('a')
torch.FloatTensor()
torch.FloatTensor(torch.Size([2, 3])).shape
torch.FloatTensor(2, 3.)
torch.FloatTensor(-1)
torch.LongTensor([[1, 2], [3]])
torch.FloatTensor([1.], device='cpu')
torch.Tensor(x.long()).dtype
torch.set_default_tensor_type(torch.DoubleTensor); d = torch.tensor(1.).dtype; torch.set_default_tensor_type('torch.FloatTensor') -> d, torch.tensor(1.).dtype
x.new([1, 2])
x.new(2, 3).shape
x.long().new([1.5, 2])
x.new().shape
x.new(x).data_ptr() == x.data_ptr()
x.new(x.double())
x.new('a')
x.new(2.5)
torch.empty_strided((2, 3), (1, 2)).stride(), torch.empty_strided((), ()).shape
torch.empty_strided((2, 3), (0, 1), dtype=torch.int8).untyped_storage().nbytes()
x.long().new_empty_strided((2,), (3,)).dtype, x.new_empty_strided((2,), (3,)).untyped_storage().size()
torch.empty_strided((2,), (1, 2))
torch.empty_strided((2, -1), (1, 2))
torch.empty_strided(2, 3)
torch.empty_strided((2, 2), (1, 2), requires_grad=True).requires_grad
x.double().new(2).dtype
"""
STORAGES = r"""
x.untyped_storage().nbytes(), x.untyped_storage().size(), len(x.untyped_storage())
x.untyped_storage().data_ptr() == x.data_ptr()
x[1:].untyped_storage().data_ptr() == x.data_ptr()
x[1:].untyped_storage().nbytes(), x[1, 1].storage().size()
x[1:].detach().untyped_storage() == x.untyped_storage()
x[1:].data.untyped_storage() == x.untyped_storage()
x[1:].detach()[1].storage_offset(), x[1:].data.storage_offset(), x.t()[1:].detach()[1:].storage_offset()
x.clone().untyped_storage() == x.untyped_storage()
(x + 1).untyped_storage() == x.untyped_storage()
x.view(-1).untyped_storage() == x.untyped_storage(), x.t().untyped_storage() == x.untyped_storage()
x.numpy().base is not None or torch.from_numpy(x.numpy()).untyped_storage().data_ptr() == x.data_ptr()
hash(x[0].untyped_storage()) == hash(x.untyped_storage())
x[0, :2].clone().untyped_storage().tolist()
x[0, :2].clone().untyped_storage()
x.storage().tolist()
x.storage().dtype, x.storage().element_size(), x.storage().nbytes()
x[0].clone().storage()
x.storage()[3], x.untyped_storage()[3]
s = x.storage(); s[1] = 7 -> x[0]
x.storage().untyped() == x.untyped_storage()
torch.is_storage(x.untyped_storage()), torch.is_storage(x.storage()), torch.is_storage(x)
x.untyped_storage().is_shared(), x.untyped_storage().is_cuda, x.untyped_storage().device
isinstance(x.untyped_storage(), torch.UntypedStorage), isinstance(x.storage(), torch.TypedStorage)
torch.view_as_real(torch.ones(2, dtype=torch.complex64)).untyped_storage().nbytes()
torch.zeros(2).set_(x.untyped_storage()).shape
torch.zeros(2).set_(x.storage(), 2, (2,), (3,))
x.new(x.storage()).data_ptr() == x.data_ptr()
x.is_set_to(x.view(3, 4)), x.is_set_to(x[1:]), x.is_set_to(x.clone()), x.is_set_to(x.t())
x.untyped_storage()['a']
torch.empty(0).untyped_storage().nbytes()
x.clone().resize_(2).untyped_storage().nbytes()
x.untyped_storage().is_pinned(), x.storage().is_pinned(), x.untyped_storage().untyped().nbytes()
s = x.untyped_storage() -> s.cpu() is s
s = x[0].clone().untyped_storage(); s[0:2] = 3; s[5] = 7 -> s
x.untyped_storage().__setitem__(-1, 1)
x.untyped_storage()[50], x.untyped_storage()[48]
x.storage()[12]
x.storage()[-13]
x.storage().__setitem__(12, 1)
x.untyped_storage().__setitem__(48, 1)
x.untyped_storage().__setitem__(0, 1.5)
x.untyped_storage().__setitem__('a', 1)
x.untyped_storage().fill_(1.5)
x[0].clone().untyped_storage().fill_(3).tolist()
x[0].clone().untyped_storage().fill_(300).tolist()
x.untyped_storage().copy_(torch.ones(2).untyped_storage())
x.untyped_storage().copy_(3)
x[0].clone().untyped_storage().copy_(torch.ones(4).untyped_storage()).tolist()
x.storage().type(), x.long().storage().type(), (x > 1).storage().type()
s = x[0].clone().storage(); s.copy_(torch.ones(4).storage()) -> s
x.storage().copy_(torch.ones(2).storage())
"""
STORAGES += "\n".join(
    f"(x[0] - 1.5).storage().{name}()"
    for name in [
        "double",
        "float",
        "half",
        "long",
        "int",
        "short",
        "char",
        "bool",
        "complex_float",
        "complex_double",
    ]
)
AS_STRIDED = r"""
x.clone().as_strided_((2, 2), (1, 2))
x.clone().as_strided_((2, 2), (4, 1), 1).storage_offset()
z = x.clone(); w = z.as_strided_((2,), (5,), 1) -> z, w is z, z.stride()
x.clone().as_strided_((2,), (1,), 4).as_strided_((2,), (1,), 0)
x.clone().as_strided_((2,), (1,), 4).as_strided_((2,), (1,))
x.clone().as_strided_((2, 2), (1, 2), 9)
x.clone().requires_grad_().as_strided_((2, 2), (1, 1))
w = x.clone().requires_grad_(); z = (w * 2).as_strided_((2, 2), (1, 1)); z.sum().backward() -> z, w.grad
z = x.clone(); v = z[0]; v.as_strided_((2,), (4,)).zero_() -> z, v
x.clone().as_strided_((2,), (1, 1))
"""
INDICES = r"""
x[u]
x[u, 0]
x[0, torch.tensor([1, 0, 1, 0], dtype=torch.uint8)]
x[:, torch.tensor([1, 0, 1, 0], dtype=torch.uint8)]
x[torch.tensor([1, 0], dtype=torch.int16)]
x[torch.tensor([1, 0], dtype=torch.int8)]
x[torch.tensor([1, 0], dtype=torch.int32)]
x[torch.tensor(1, dtype=torch.int16)]
x[torch.tensor(1, dtype=torch.uint8)]
x[torch.tensor(1, dtype=torch.int8)]
x[torch.tensor([1.])]
x.masked_fill(u[:, None], 0)
x.masked_select(u[:, None])
torch.where(u[:, None], x, 0)
x.index_select(0, u)
x.index_select(0, u.int())
x.index_select(0, u.short())
x.gather(0, u[:, None].int())
x.gather(0, u[:, None].short())
x.take(u.int())
torch.take_along_dim(x, u[:, None].int(), 1)
x.index_add(0, u.int(), x)
x.index_add(0, u.short(), x)
x.index_copy(0, u.int(), x)
x.index_fill(0, u.int(), 0)
x.scatter(0, u[:, None].int(), 0.)
none % 0, none // torch.tensor(0), none.fmod(0)
x.scatter_add(0, u[:, None].int(), x)
put(u, torch.zeros(2, 4))
put(u.int(), 0.)
put(u.short(), 0.)
x.index_put((u,), torch.zeros(2, 4))
x.index_put((u.int(),), torch.tensor(1.))
x.index_put((u.short(),), torch.tensor(1.))
x.index_put((u.long(),), torch.tensor(1))
x.index_put((u.long(),), torch.tensor(1., dtype=torch.float64))
x.index_put((none,), torch.tensor(1.))
x.index_put((none,), torch.ones(0, 4))
x.index_put((none,), torch.ones(2, 4))
x.index_put((none,), torch.tensor(1.), accumulate=True)
x.index_put((none, none), torch.ones(0))
x.index_put((torch.zeros(3, dtype=torch.bool),), torch.ones(2, 4))
x.index_put((torch.zeros(3, dtype=torch.bool),), torch.ones(0, 4))
torch.zeros(0, 3).index_put((none,), torch.ones(3))
x.index_put([u.long()], 1.)
x.index_put([[0, 1]], torch.tensor(1.))
x.long().index_put((u.int(),), torch.tensor(7), accumulate=True)
(x > 3).index_put((u.long(),), torch.tensor(True))
put(u.long(), torch.tensor(1))
put(u.bool(), torch.ones(2, 4, dtype=torch.float64))
put((0, torch.tensor([True, False, True, False])), 5.)
x[0, torch.tensor([True, False, True, False])]
x[torch.tensor(0), torch.tensor([True, False, True, False])]
x[torch.tensor([0, 1]), torch.tensor([True, False, True, False])]
x[[0, 1], [True, False, True, False]]
x[1, ..., torch.tensor([True, False, True, False])]
x[torch.tensor([2]), torch.tensor([True, False, True, False])]
x[True, 1], x[1, True], x[1, False]
x.view(3, 2, 2)[1, torch.ones(2, 2) > 0]
x.view(3, 2, 2)[:, 1, torch.ones(2) > 0].shape
x.view(3, 2, 2)[1, :, torch.ones(2) > 0].shape
x.view(3, 2, 2)[torch.tensor(1), :, torch.ones(2) > 0].shape
x.view(3, 2, 2)[1, torch.ones(3) > 0]
x.view(3, 2, 2)[None, 1, None, torch.ones(2) > 0].shape
torch.unravel_index(torch.tensor([5, 7]), (3, 4))
torch.unravel_index(torch.tensor(5), (3, 4))
torch.unravel_index(torch.tensor([12, -1]), (3, 4))
torch.unravel_index(torch.tensor([1.]), (3, 4))
torch.unravel_index(torch.tensor([True]), (3, 4))
torch.unravel_index(u.int(), 4)
torch.unravel_index(u.long(), ())
torch.unravel_index(u[:0].long(), (2, 0))
torch.unravel_index(torch.tensor([[1, 2], [3, 4]]), torch.Size([5, 6]))
torch.unravel_index(u.long(), (2, -3))
torch.unravel_index(u.long(), 'a')
torch.unravel_index(u.long(), '')
torch.unravel_index(u.long(), (2.,))
torch.unravel_index(none, (0, 3))
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
LINES = "".join((TYPES, STORAGES, AS_STRIDED, INDICES))
CODES = list(filter(None, LINES.split("\n")))


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("code", CODES, ids=CODES)
def test_old_names_do_what_they_did(torch: ModuleType, code: str) -> None:
    assert answer(ng, code, SETUP) == answer(torch, code, SETUP)


def test_numbers_are_written_through_a_mask_of_bytes_and_one_number_is_not() -> None:
    mask = ng.tensor([1, 0, 2], dtype=ng.uint8)
    x = ng.arange(3.0)
    with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
        x[mask] = ng.tensor([7.0, 8.0])
    assert x.tolist() == [7.0, 1.0, 8.0]
    with pytest.raises(RuntimeError, match="masked_fill_ only supports boolean masks"):
        x[mask] = 9.0
    assert x.tolist() == [7.0, 1.0, 8.0]


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("call", CALLS_UNDER_JIT)
@pytest.mark.filterwarnings("ignore:.*uint8")
def test_indices_under_jit_are_as_without(call: str, kind: str) -> None:
    """The same numbers, or the same refusal; a mask whose numbers are not known is refused."""
    x = ng.arange(9.0).reshape(3, 3)
    i = ng.tensor([1, 0, 2], dtype=getattr(ng, kind))
    f = eval(f"lambda x, i: {call}", {"ng": ng, "put": _put})
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


@given(st.lists(st.integers(0, 4), max_size=3), st.integers(-1, 200), st.booleans())
def test_storages_keep_their_size_and_their_process(
    shape: list[int], size: int, typed: bool
) -> None:
    x = ng.ones(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = x.storage() if typed else x.untyped_storage()
        assert x.storage_type() is ng.FloatStorage
    assert not storage.resizable()
    assert storage.resize_(storage.size()) is storage
    if size != storage.size():
        with pytest.raises(RuntimeError, match=r"not resizable.*Tensor\.resize_ gives a tensor"):
            storage.resize_(size)
    with pytest.raises(RuntimeError, match="resize_ expects an int, but got str"):
        storage.resize_("2")
    for each in (x, storage):
        assert not each.is_shared()
        with pytest.raises(RuntimeError, match="no memory that processes share"):
            each.share_memory_()
    assert x.tolist() == ng.ones(shape).tolist()


def test_names_of_other_devices_say_where_tensors_are() -> None:
    for name in ("cuda", "mps", "xpu"):
        with pytest.raises(AttributeError, match=f"numgrad has no {name}: tensors are in the mem"):
            getattr(ng, name)
    assert not hasattr(ng, "cuda")
