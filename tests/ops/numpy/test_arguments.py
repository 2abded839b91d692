"""NumPy's functions on tensors with NumPy's own arguments: its numbers, or an error where it has.

What tensors don't have (`order="F"`, say) is refused by name. Reductions are drawn: the dtype, axes
and every other argument.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd.gradcheck.gradcheck import gradcheck

Array = np.ndarray[Any, Any]
EXAMPLES = settings(max_examples=max(10, settings.default.max_examples // 8))

# --- reductions -----------------------------------------------------------------------------------

# The arguments behind `axis` of each function.
REDUCTIONS: dict[str, str] = {
    **dict.fromkeys(["sum", "prod"], "dtype keepdims initial where out"),
    **dict.fromkeys(["add.reduce", "multiply.reduce"], "dtype keepdims initial where out"),
    **dict.fromkeys(["max", "min", "amax", "amin"], "keepdims initial where out"),
    **dict.fromkeys(["maximum.reduce", "minimum.reduce"], "keepdims initial where out"),
    **dict.fromkeys(["mean", "nanmean"], "dtype keepdims where out"),
    **dict.fromkeys(["std", "var"], "dtype keepdims where ddof correction out"),
    **dict.fromkeys(["any", "all"], "keepdims where out"),
    **dict.fromkeys(["ptp", "argmax", "argmin"], "keepdims out"),
    **dict.fromkeys(["logical_and.reduce", "logical_or.reduce"], "keepdims where out"),
    **dict.fromkeys(["cumsum", "cumprod", "add.accumulate", "multiply.accumulate"], "dtype out"),
    "count_nonzero": "keepdims",
}
DTYPES = ["float64", "float64", "float32", "int64", "uint8", "bool", "complex128"]
OPTIONS: dict[str, Any] = {
    "dtype": st.sampled_from(["float64", "float32", "int64", "complex128", None]),
    "keepdims": st.booleans(),
    "initial": st.sampled_from([0, 2, 5, 1.5]),
    "where": st.sampled_from([True, "mask", "row"]),
    "ddof": st.sampled_from([0, 1, 0.5]),
    "correction": st.sampled_from([0, 1]),
    "out": st.sampled_from(["right", "right", "wrong"]),
}
axes = st.one_of(
    st.none(),
    st.integers(-4, 3),
    st.lists(st.integers(-3, 2), max_size=3).map(tuple),
    st.sampled_from([[0, 1], 1.5, np.int64(1), (0, 0)]),
)
# What numgrad has not, and says so: an order of complex numbers, means and variances in integers.
REFUSED = "not implemented for|does not support complex|it is floating point or complex|is complex"


def find(name: str) -> Any:
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    return function


def call(function: Any, *arguments: Any, **options: Any) -> tuple[Any, Exception | None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*arguments, **options), None
        except (TypeError, ValueError, RuntimeError, NotImplementedError, IndexError) as error:
            return None, error


def assert_same(found: Any, expected: Any, exact: bool = True) -> None:
    """Assert that results are tensors with NumPy's numbers, in its dtypes if they should be."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, exact)
        return
    if isinstance(expected, bool):
        assert found is expected
        return
    assert isinstance(found, ng.Tensor)
    array = np.asarray(expected)
    tolerance = 1e-5 if "32" in f"{array.dtype}{found.dtype}" else 1e-12
    np.testing.assert_allclose(found.detach().numpy(), array, tolerance, 1e-6 * (tolerance > 1e-9))
    if exact and array.dtype != np.uint64:
        assert found.numpy().dtype == array.dtype


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("name", REDUCTIONS)
@EXAMPLES
@given(data=st.data())
def test_reductions_take_numpys_arguments(name: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(DTYPES))
    shape = data.draw(st.sampled_from([(2, 3, 4), (2, 3), (3,), (), (2, 1, 3)]))
    random = np.random.default_rng(data.draw(st.integers(0, 3)))
    array = (random.integers(0, 3, shape) + random.integers(0, 2, shape) / 4).astype(kind)
    names = data.draw(st.sets(st.sampled_from(REDUCTIONS[name].split()), max_size=3))
    options = {each: data.draw(OPTIONS[each]) for each in sorted(names)}
    if data.draw(st.booleans()):
        options["axis"] = data.draw(axes)
    if options.get("where") in ("mask", "row"):
        row = shape if options["where"] == "mask" else shape[-1:]
        options["where"] = random.random(row) > 0.4
    wanted = options.pop("out", "")
    function = find(name)
    expected, error = call(function, array, **options)
    if wanted and error is None:
        out = np.zeros_like(np.asarray(expected))
        if wanted == "wrong" and "cum" not in name and "accumulate" not in name:
            out = np.zeros((*out.shape, 5), out.dtype)
        if out.dtype == np.uint64:
            return
        expected, error = call(function, array, **options, out=out.copy())
        options["out"] = out
    found, refused = call(function, ng.tensor(array), **options)
    if refused is not None and any(word in str(refused) for word in REFUSED.split("|")):
        return
    assert (refused is None) == (error is None), (refused, error)
    if error is None:
        assert_same(found, expected)
        if "out" in options:
            assert np.shares_memory(found.numpy(), options["out"]) or not found.numel()


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("axis", [0, -1, 1, None])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_a_number_take_its_only_axis(name: str, axis: int | None) -> None:
    for number in (2.5, 2, True):
        expected, error = call(find(name), np.array(number), axis=axis)
        found, refused = call(find(name), ng.tensor(np.array(number)), axis=axis)
        assert (refused is None) == (error is None), (number, refused, error)
    if error is None:
        assert_same(found, expected)


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nanmean", "std", "var", "max", "cumsum"])
@settings(max_examples=5)
@given(data=st.data())
def test_reductions_are_differentiated(name: str, data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = ng.tensor(random.permutation(18).reshape(3, 3, 2) / 16 + 0.5, requires_grad=True)
    options: dict[str, Any] = {"axis": data.draw(st.sampled_from([None, 1, -1]))}
    if name != "cumsum":
        options["axis"] = data.draw(st.sampled_from([None, 0, (0, 2), (1, -1)]))
        options["keepdims"] = data.draw(st.booleans())
        if data.draw(st.booleans()):
            options["where"] = np.arange(18).reshape(3, 3, 2) != 4
            options |= {"initial": 0.5} if name == "max" else {}
    assert gradcheck(lambda x: find(name)(x, **options), (x,))
    lowered = ng.jit(lambda x: find(name)(x, **options))(x)
    np.testing.assert_allclose(
        lowered.detach().numpy(), find(name)(x.detach().numpy(), **options), 1e-12
    )


# --- other functions ------------------------------------------------------------------------------

# `x` of shape (4,), `m`, `n` of (3, 4), `q` of integers, `b` of bools, `F` and complex `C` of three
# dims, `s3` square, `i` positions.
CALLS = """
np.repeat(m, 2); np.repeat(m, [1,2,0], axis=0); np.repeat(m, [1,2], 0); np.repeat(x,[1,2,0,1]);
np.repeat(m,np.array([1,0,2]),axis=0); np.repeat(m,3,axis=-1); np.repeat(m,[2]);
np.repeat(m,[2],axis=1); np.repeat(q,(1,0,2),axis=0); np.repeat(m,-1);
np.repeat(m,[1,-1,2],axis=0); np.repeat(m,2,axis=5); np.trace(s3); np.trace(s3,1);
np.trace(s3,offset=-1); np.trace(F,0,0,2); np.trace(F,axis1=-1,axis2=0);
np.trace(s3,dtype=np.float32); np.trace(q[:3,:3],dtype=float); np.trace(s3,out=np.zeros(()));
np.trace(q); np.trace(x); np.take(m,i); np.take(m,[0,1]); np.take(m,[[0,1],[2,3]],axis=1);
np.take(m,2); np.take(m,-1,axis=0); np.take(m,i,axis=-1); np.take(m,[0,9],mode='clip');
np.take(m,[0,9],mode='wrap'); np.take(m,[0,9],axis=0); np.take(m,[9]);
np.take(m,[0,1],out=np.zeros(2)); np.take(m,np.int64(1),axis=0); np.take(m,[-1,-2],1);
np.take(m,(0,1),0); np.sort(m); np.sort(m,0); np.sort(m,None); np.sort(m,axis=-2);
np.sort(m,kind='stable'); np.sort(m,kind='mergesort'); np.sort(m,stable=True);
np.sort(m,axis=4); np.sort(m,kind='x'); np.argsort(m); np.argsort(m,None);
np.argsort(q,kind='stable'); np.argsort(m,0,'stable'); np.argsort(m,axis=-2); np.roll(m,1);
np.roll(m,(1,2),(0,1)); np.roll(m,1,(0,1)); np.roll(m,(1,2),0); np.roll(m,-1,-1);
np.roll(m,[1,2],[0,1]); np.roll(m,0); np.roll(m,5,0); np.roll(m,1,3); np.clip(m,-.5,.5);
np.clip(m,None,.5); np.clip(m,-.5,None); np.clip(m,min=-.5,max=.5);
np.clip(m,a_min=-.5,a_max=n); np.clip(m,[-.5]*4,.5); np.clip(q,-1,1); np.clip(m,None,None);
np.clip(m,n,.9); np.clip(m,-.5,.5,out=np.zeros((3,4))); np.clip(q,0,np.array([1,2,3,1]));
np.clip(m); np.round(m); np.round(m,2); np.round(m,decimals=-1); np.round(q); np.around(m,1);
np.round(m,1,np.zeros((3,4))); np.reshape(m,12); np.reshape(m,(4,3)); np.reshape(m,(-1,6));
np.reshape(m,-1,order='C'); np.reshape(m,-1,order='F'); np.reshape(m,[2,6]);
np.reshape(m,shape=(2,6)); np.reshape(m,(5,5)); np.reshape(m,(2,6),order='A');
np.reshape(m,(4,3),copy=True); np.reshape(m,np.int64(12)); np.ravel(m); np.ravel(m,'F');
np.ravel(m,order='C'); np.ravel(m.T,'K'); np.ravel(m.T,'A'); np.squeeze(m[None]);
np.squeeze(m[None],0); np.squeeze(m[None,:,None],(0,2)); np.squeeze(m,0);
np.squeeze(m[None],axis=-3); np.squeeze(m[None],axis=()); np.expand_dims(m,0);
np.expand_dims(m,(0,-1)); np.expand_dims(m,[0,1]); np.expand_dims(m,-1); np.expand_dims(m,5);
np.expand_dims(m,(0,0)); np.expand_dims(m,(2,0)); np.moveaxis(F,0,-1);
np.moveaxis(F,[0,1],[-1,-2]); np.moveaxis(F,(0,1),(1,0)); np.moveaxis(F,0,5);
np.moveaxis(F,[0,0],[1,2]); np.swapaxes(F,0,2); np.swapaxes(F,-1,0); np.swapaxes(F,0,3);
np.transpose(F); np.transpose(F,(1,0,2)); np.transpose(F,[2,0,1]); np.transpose(F,(-1,0,1));
np.transpose(F,(0,1)); np.transpose(F,axes=None); np.transpose(x); np.broadcast_to(x,(2,4));
np.broadcast_to(x,4); np.broadcast_to(m,(3,3)); np.broadcast_to(x,[2,4]);
np.broadcast_to(x,shape=(1,4)); np.tile(m,2); np.tile(m,(2,1)); np.tile(m,[1,2]);
np.tile(x,(2,1,2)); np.tile(F,2); np.tile(m,()); np.tile(m,0); np.flip(m); np.flip(m,0);
np.flip(m,(0,1)); np.flip(m,-1); np.flip(m,()); np.flip(m,[0,1]); np.flip(m,2); np.fliplr(m);
np.flipud(x); np.fliplr(x); np.rot90(m); np.rot90(m,-1); np.rot90(F,2,(1,2));
np.rot90(F,axes=(0,1)); np.rot90(m,k=5); np.rot90(m,1,(0,0)); np.diagonal(m); np.diagonal(m,1);
np.diagonal(F,0,1,2); np.diagonal(F,offset=-1,axis1=2,axis2=0); np.diagonal(x);
np.diagonal(m,9); np.diag(m); np.diag(x,1); np.diag(m,k=-1); np.diag(F); np.diagflat(m);
np.diagflat(x,-1); np.diagflat(2.0*m,k=1); np.tril(m); np.tril(m,-1); np.triu(F,1);
np.triu(m,k=-1); np.concatenate((m,n)); np.concatenate([m,n],1); np.concatenate([m,n],axis=-1);
np.concatenate([m,n],axis=None); np.concatenate((m,x)); np.concatenate((m,q));
np.concatenate((m,n),dtype=np.float32); np.concatenate((m,n),0,np.zeros((6,4)));
np.concatenate((m,n),axis=2); np.concatenate((m,n),casting='unsafe'); np.concatenate(F);
np.stack((m,n)); np.stack([m,n],1); np.stack([m,n],axis=-1);
np.stack([m,n],out=np.zeros((2,3,4))); np.stack([m,x]); np.stack([m,n],3); np.stack(F);
np.stack([m,q]); np.vstack((m,x)); np.vstack([x,x]); np.hstack((m,n)); np.hstack([x,x]);
np.dstack((m,n)); np.dstack([x,x]); np.column_stack((x,x)); np.column_stack([s3[:,0],s3]);
np.vstack(m); np.hstack((m,x)); np.split(m,3); np.split(m,[1,2]); np.split(m,2,axis=1);
np.split(m,2); np.split(m,[1],-1); np.split(m,[-1]); np.split(m,(1,2));
np.split(m,np.array([1,2])); np.split(m,[2,1]); np.split(m,[5]); np.array_split(m,2);
np.array_split(m,2,1); np.array_split(m,[1,3],axis=1); np.array_split(m,0); np.hsplit(m,2);
np.hsplit(x,[1]); np.vsplit(m,3); np.dsplit(F,2); np.dsplit(m,2); np.split(m,np.int64(3));
np.split(m,3,5); np.meshgrid(x,s3[0]); np.meshgrid(x,s3[0],indexing='ij');
np.meshgrid(x,s3[0],x); np.meshgrid(x,s3[0],sparse=True); np.meshgrid(x,s3[0],copy=False);
np.meshgrid(x); np.where(b,m,n); np.where(b,m,0); np.where(m>0,m,-m); np.where(b);
np.where(q,m,n); np.where(b,m,q); np.where(True,m,n); np.where(m); np.where(b,m);
np.nan_to_num(m); np.nan_to_num(m/0.0*0,nan=1.); np.nan_to_num(m,copy=False);
np.nan_to_num(m,posinf=3); np.nan_to_num(q); np.nan_to_num(m/0,True,0.,1.,2.); np.sinc(m);
np.real(C); np.imag(C); np.real(m); np.imag(m); np.angle(C); np.angle(C,True); np.angle(m);
np.isposinf(m); np.isneginf(m/0); np.isreal(C); np.isreal(m);
np.isposinf(m,np.zeros((3,4),bool)); np.isclose(m,n); np.isclose(m,m+1e-9);
np.isclose(m,m,rtol=0,atol=0); np.isclose(m,np.nan,equal_nan=True); np.allclose(m,m);
np.allclose(m,n,1e-3); np.array_equal(m,m); np.array_equal(m,m,equal_nan=True);
np.array_equal(m,n); np.isclose(m,x); np.isclose(q,q); np.isclose(m,q); np.allclose(q,q);
np.take_along_axis(m,q%4,1); np.take_along_axis(m,q%3,axis=0); np.take_along_axis(m,i,None);
np.take_along_axis(m,q%4,-1); np.take_along_axis(m,q%4); np.nonzero(m); np.argwhere(b);
np.nonzero(q); np.argwhere(x); np.copy(m); np.copy(m,'F'); np.copy(m.T,order='K');
np.zeros_like(m); np.zeros_like(m,dtype=int); np.zeros_like(m,shape=(2,));
np.zeros_like(m,shape=3); np.ones_like(m,float,'C'); np.ones_like(q); np.full_like(m,3);
np.full_like(q,2.7); np.full_like(m,[1,2,3,4]); np.full_like(m,3,dtype=int);
np.full_like(m,3,order='F'); np.zeros_like(m,order='F'); np.zeros_like(m,dtype='f4');
np.full_like(m,x); np.dot(m,n.T); np.dot(x,x); np.dot(m,x); np.dot(2,m); np.dot(m,2);
np.dot(F,n.T); np.dot(m,n); np.dot(m,n.T,np.zeros((3,3))); np.vdot(m,n); np.vdot(C,C);
np.inner(m,n); np.inner(x,2); np.inner(m,x); np.inner(F,m); np.outer(x,x); np.outer(m,x);
np.outer(2,x); np.outer(x,x,np.zeros((4,4))); np.kron(m,n); np.kron(x,m); np.kron(2,m);
np.dot(q,q.T); np.dot(q,m.T); np.vdot(q,m); np.inner(q,m); np.outer(q,m); np.tensordot(m,n);
np.tensordot(m,n,1); np.tensordot(m,n.T,1); np.tensordot(m,n,([0,1],[0,1]));
np.tensordot(m,n,(0,0)); np.tensordot(m,n,axes=[[0],[0]]); np.tensordot(m,n,0);
np.tensordot(F,F,((0,1),(0,1))); np.tensordot(m,n,axes=(-1,-1));
np.tensordot(q,m,([0,1],[0,1])); np.einsum('ij,kj->ik',m,n); np.einsum('ij->',m);
np.einsum('ij,kj',m,n); np.einsum('...j->...',F); np.einsum('ij,kj->ik',m,n,optimize=True);
np.einsum('ij,kj->ik',m,n,out=np.zeros((3,3))); np.einsum('ij,kj->ik',m,n,dtype=np.float32);
np.einsum(m,[0,1],n,[2,1],[0,2]); np.einsum('ij,kj->ik',m,n,order='K'); np.einsum('ij,ik',m,q);
np.linalg.norm(m); np.linalg.norm(x); np.linalg.norm(x,1); np.linalg.norm(x,np.inf);
np.linalg.norm(x,-np.inf); np.linalg.norm(x,0); np.linalg.norm(x,3.5); np.linalg.norm(m,'fro');
np.linalg.norm(m,1); np.linalg.norm(m,axis=0); np.linalg.norm(m,2,1);
np.linalg.norm(m,axis=(0,1)); np.linalg.norm(F,axis=(1,2)); np.linalg.norm(F);
np.linalg.norm(m,axis=1,keepdims=True); np.linalg.norm(m,keepdims=True); np.linalg.norm(q);
np.linalg.norm(q,axis=1); np.linalg.norm(m,None,None,True); np.linalg.norm(m,'nuc');
np.linalg.norm(x,'fro'); np.linalg.norm(m,ord='fro',axis=(1,0)); np.linalg.norm(m,axis=[0,1]);
np.linalg.norm(C); np.matrix_transpose(m); np.matrix_transpose(F); np.atleast_1d(m,x);
np.atleast_2d(x); np.atleast_3d(m); np.atleast_1d(x); np.broadcast_arrays(x,m); np.unstack(m);
np.unstack(m,axis=-1); np.fix(3*m); np.fix(3*m,np.zeros((3,4))); np.unstack(m,axis=1);
np.add.reduce(m); np.add.reduce(m,1); np.add.reduce(m,axis=None); np.add.reduce(m,(0,1));
np.add.reduce(m,axis=-1,keepdims=True); np.add.reduce(m,0,None,np.zeros(4));
np.add.reduce(m,initial=3); np.add.reduce(m,where=b); np.multiply.reduce(m,(0,1));
np.multiply.reduce(q); np.maximum.reduce(m,axis=None); np.maximum.reduce(m,initial=5);
np.minimum.reduce(m,1,where=b,initial=9); np.logical_or.reduce(m); np.logical_and.reduce(q,1);
np.add.accumulate(m); np.add.accumulate(m,1); np.add.accumulate(m,axis=-1,dtype=np.float32);
np.multiply.accumulate(q,1); np.add.outer(x,x); np.add.outer(m,x,out=np.zeros((3,4,4)));
np.add.reduceat(x,[0,1]); np.subtract.reduce(m); np.add.reduce(q,dtype=float);
np.maximum.accumulate(m); np.add.at(m,[0],1); np.multiply.outer(2,x); np.logical_xor.reduce(b);
np.add.accumulate(m,None); np.add.accumulate(m,out=np.zeros((3,4)))
"""
LINES = [each.strip() for each in CALLS.replace("\n", " ").split(";")]
# Dtypes of results that are those of tensors: integers become the default dtype.
OF_TENSORS = ("clip", "angle")


def operands(tensors: bool) -> dict[str, Any]:
    random = np.random.default_rng(0)
    F = random.uniform(-1, 1, (2, 3, 4))
    made = {"F": F, "C": F + 1j * random.uniform(-1, 1, F.shape), "x": F[0, 0], "m": F[0]}
    made |= {"n": F[1], "q": random.integers(-3, 4, (3, 4)), "b": F[0] > 0.1}
    made |= {"s3": random.uniform(-1, 1, (3, 3)), "i": np.array([2, 0, 1])}
    return {name: ng.tensor(array) if tensors else array.copy() for name, array in made.items()}


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("line", LINES)
def test_functions_take_numpys_arguments(line: str) -> None:
    expected, error = call(eval, line, {"np": np, **operands(tensors=False)})
    found, refused = call(eval, line, {"np": np, **operands(tensors=True)})
    if error is not None:
        assert refused is not None
    elif refused is not None:
        assert "numgrad has" in str(refused)
    else:
        assert_same(found, expected, not any(word in line for word in OF_TENSORS))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_are_rounded_to_decimals_only(dtype: str) -> None:
    numbers = np.array([15, 25, 104], dtype)
    for decimals in range(4):
        out = ng.zeros(3, dtype=getattr(ng, dtype))
        for found in (
            np.round(ng.tensor(numbers), decimals),
            np.around(ng.tensor(numbers), decimals, out),
        ):
            assert found.numpy().dtype == dtype
            np.testing.assert_array_equal(found.numpy(), np.round(numbers, decimals))
        assert found is out
    with pytest.raises(TypeError, match=r"numpy.round\(decimals=-1\) for tensors of torch"):
        np.round(ng.tensor(numbers), -1)
