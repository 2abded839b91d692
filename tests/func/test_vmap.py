"""vmap: arguments, results, nesting, writes, random numbers, Functions, and PyTorch's words."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import numpy as np
import pytest

import numgrad as ng
from numgrad.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from numgrad.graph.recorder import Traced

X = ng.arange(12, dtype=ng.float64).reshape(3, 4) / 7


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)


def looped(function: Any, batch: ng.Tensor = X) -> ng.Tensor:
    """Return what a function gives for each row."""
    return ng.stack([function(row) for row in batch])


# --- arguments and results ------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_any_dim_of_arguments_and_results(dim):
    close(vmap(ng.sin, dim, dim)(X), X.sin())
    close(vmap(lambda row: row.cumsum(0), dim)(X), looped(lambda r: r.cumsum(0), X.movedim(dim, 0)))


def test_trees_of_arguments_and_results():
    def f(parameters, row):
        return {"y": parameters["w"] @ row + parameters["b"], "n": row.norm()}

    parameters = {"w": X[:2], "b": X[:, 0]}
    found = vmap(f, ({"w": None, "b": 0}, 0), {"y": 1, "n": 0})(parameters, X)
    close(found["y"], (X @ X[:2].T + X[:, :1]).T)
    close(found["n"], X.norm(dim=1))


def test_numpy_arrays_and_settings():
    assert vmap(lambda x, n: x**n, (0, None))(np.arange(3.0), 2).tolist() == [0, 1, 4]
    assert vmap(lambda x, n=1: x**n)(ng.arange(3), n=3).tolist() == [0, 1, 8]


def test_results_that_are_one_for_all():
    one = vmap(lambda row: ng.ones(2))(X)
    assert one.shape == (3, 2) and one.stride() == (0, 1)
    assert vmap(lambda row: ng.ones(2), out_dims=None)(X).shape == (2,)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5])
def test_chunks_change_nothing(chunk_size):
    def f(row, other):
        return row * other.sum(), (row @ other, ng.ones(2))

    wanted = vmap(f, (0, 1), (0, (0, 1)))(X, X.T)
    found = vmap(f, (0, 1), (0, (0, 1)), chunk_size=chunk_size)(X, X.T)
    close(found[0], wanted[0])
    close(found[1][0], wanted[1][0])
    close(found[1][1], wanted[1][1])


def test_strides_inside_are_those_of_an_example():
    seen = []
    vmap(lambda row: seen.append((row.shape, row.stride(), row.is_contiguous())) or row, 1)(X)
    assert seen == [((3,), (4,), False)]


def test_no_examples_at_all():
    nothing = ng.ones(0, 3)
    assert vmap(lambda row: row[1:].cumsum(0))(nothing).shape == (0, 2)
    assert vmap(grad(lambda row: (row @ row).sin()))(nothing).shape == (0, 3)


def test_what_requires_grad_outside_is_a_constant_inside():
    seen = []
    y = vmap(lambda row: seen.append(row.requires_grad) or row * 2)(X.clone().requires_grad_())
    assert seen == [False] and y.requires_grad


# --- transformations ------------------------------------------------------------------------------


def scalar(row: ng.Tensor) -> ng.Tensor:
    return (row.sin() * row[0]).sum() ** 2


@pytest.mark.parametrize(
    "transformed",
    [
        grad(scalar),
        grad(lambda row: grad(scalar)(row).sum()),
        jacrev(lambda row: row.sin() * row[1]),
        jacfwd(lambda row: row.sin() * row[1]),
        hessian(scalar),
        lambda row: jvp(scalar, (row,), (row.cos(),))[1],
        lambda row: vjp(ng.tanh, row)[1](row)[0],
        lambda row: vmap(lambda x: x * row.sum())(row),
        lambda row: vmap(grad(lambda x: (x * row).sum() * x))(row),
    ],
)
def test_transformations_inside(transformed):
    close(vmap(transformed)(X), looped(transformed))


def total(function: Any) -> Any:
    return lambda x: vmap(function)(x).sum()


def test_transformations_outside():
    close(grad(total(scalar))(X), looped(grad(scalar)))
    close(
        jvp(vmap(scalar), (X,), (X.cos(),))[1], looped(lambda r: jvp(scalar, (r,), (r.cos(),))[1])
    )
    inner = grad(scalar)
    close(
        grad(total(lambda r: inner(r).sin().sum()))(X), looped(grad(lambda r: inner(r).sin().sum()))
    )


def test_gradients_of_what_the_function_captured():
    w = X[0].clone().requires_grad_()
    vmap(lambda row: (w * row).sum() ** 2)(X).sum().backward()
    close(w.grad, sum(grad(lambda w, r=r: (w * r).sum() ** 2)(X[0]) for r in X))
    per_example = vmap(grad(lambda row: (w * row).sum() ** 2))(X)
    assert per_example.requires_grad
    (second,) = ng.autograd.grad(per_example.sum(), w)
    close(second, grad(lambda w: total(grad(lambda r: (w * r).sum() ** 2))(X))(X[0]))


def test_what_is_detached_or_not_recorded_inside_is_so_outside():
    def f(row):
        with ng.no_grad():
            factor = row.sum()
        return (row * factor * row.detach()).sum()

    close(grad(total(f))(X), X * X.sum(1, keepdim=True))


def test_forward_mode_outside():
    with ng.autograd.forward_ad.dual_level():
        dual = ng.autograd.forward_ad.make_dual(X, X.cos())
        tangent = ng.autograd.forward_ad.unpack_dual(vmap(scalar)(dual)).tangent
    close(tangent, looped(lambda r: jvp(scalar, (r,), (r.cos(),))[1]))


@pytest.mark.usefixtures("traced")
def test_compiled():
    mapped = vmap(grad(lambda w, row: (w * row).sum() ** 2), (None, 0))
    close(ng.jit(mapped)(X[0], X), mapped(X[0], X))
    close(vmap(ng.jit(scalar))(X), looped(scalar))


# --- Jacobians ------------------------------------------------------------------------------------


def many(x: ng.Tensor) -> ng.Tensor:
    """Return what views, sums, scans, products and writes give, of twelve elements."""
    y = x.sin().t() @ x + x.cumsum(0).prod(1).sum()
    y[1, 1:] = x[0, 1:].exp() * x[0, 0]
    return y


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians_at_once_are_those_row_by_row(jacobian, monkeypatch):
    w = X.clone().requires_grad_()
    for function in (
        jacobian(many),
        jacobian(lambda x: many(x) * w.sum()),
        jacobian(jacobian(lambda x: many(x)[0])),
        vmap(jacobian(lambda row: many(row.expand(3, 4)))),
    ):
        found = []
        for few in (0, 10**9):
            monkeypatch.setattr("numgrad.autograd.forward.linear_maps.FEW_DIRECTIONS", few)
            result = function(X)
            gradient = None
            if result.requires_grad:
                (gradient,) = ng.autograd.grad(result.sin().sum(), w)
            found.append((result, gradient))
        close(found[0][0], found[1][0])
        assert found[0][0].stride() == found[1][0].stride()
        assert (found[0][1] is None) == (found[1][1] is None)
        if found[0][1] is not None:
            close(found[0][1], found[1][1])


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians_at_once_record_nothing_that_is_not_asked_for(jacobian):
    assert not jacobian(many)(X).requires_grad
    w = X.clone().requires_grad_()
    with ng.no_grad():
        assert not jacobian(lambda x: many(x) * w.sum())(X).requires_grad


def test_hooks_see_the_rows_of_a_jacobian():
    seen = []

    def f(x):
        y = x.sin()
        y.register_hook(lambda g: seen.append(g.tolist()))
        return y.reshape(-1)

    jacrev(f)(X)
    assert len(seen) == 12


# --- writes ---------------------------------------------------------------------------------------


def test_writes_to_arguments_show_outside():
    x = X.clone()
    vmap(lambda row: row.mul_(2))(x)
    close(x, X * 2)
    vmap(lambda row: row[1:].zero_())(x)
    assert x[:, 1:].sum() == 0


def test_writes_through_views_inside():
    def f(row):
        out = ng.zeros(2, 4, dtype=ng.float64)  # PyTorch refuses to write an example here
        out[0] = row
        out.T[:, 1] = out[0] * 2
        out[1, ::2] += 1
        return out

    close(vmap(f)(X), looped(f))
    close(grad(lambda x: (vmap(f)(x) ** 2).sum())(X), grad(lambda x: (looped(f, x) ** 2).sum())(X))
    close(vmap(grad(lambda r: (f(r) ** 2).sum()))(X), looped(grad(lambda r: (f(r) ** 2).sum())))


def test_writes_to_what_is_from_outside():
    counts = ng.zeros(2)
    vmap(lambda row: counts.add_(1) + row.sum())(X)
    assert counts.tolist() == [1, 1]
    with pytest.raises(
        RuntimeError, match=r"vmap: inplace arithmetic\(self, \*extra_args\) is not"
    ):
        vmap(lambda row: counts.add_(row[:2]))(X)


def test_views_in_place():
    assert vmap(lambda row: row.clone().unsqueeze_(0).t_())(X).shape == (3, 4, 1)


def test_what_is_saved_and_overwritten_is_noticed():
    def f(row):
        y = row.exp()
        z = y.sum()
        y.zero_()
        return z + (y * 0).sum()

    def bad(row):
        y = row.exp()
        y.add_(1)
        return y.sum()

    vmap(f)(X)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vmap(grad(bad))(X)


# --- random numbers -------------------------------------------------------------------------------

DRAWS = {
    "rand": lambda row: ng.rand(2),
    "randn": lambda row: row[:2] * 0 + ng.randn(2, dtype=ng.float64),
    "randint": lambda row: ng.randint(0, 10**9, (2,)),
    "randperm": lambda row: ng.randperm(40),
    "rand_like": ng.rand_like,
    "randn_like": ng.randn_like,
    "normal": lambda row: ng.normal(0.0, 1.0, (3,)),
    "uniform_": lambda row: row.clone().uniform_(),
    "normal_": lambda row: row.clone().normal_(1, 2),
    "exponential_": lambda row: row.clone().exponential_(),
    "uniform_ of constants": lambda row: ng.zeros(3).uniform_(),
    "nested": lambda row: vmap(lambda x: ng.rand(2), randomness="same")(row),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_random_numbers(draw):
    ng.manual_seed(3)
    same = vmap(draw, randomness="same")(X)
    assert all(bool((one == same[0]).all()) for one in same)
    different = vmap(draw, randomness="different")(X)
    assert len({str(one.tolist()) for one in different}) == 3
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        vmap(draw)(X)


def test_random_numbers_of_one_seed():
    ng.manual_seed(3)
    wanted = ng.randn(3, 2)
    ng.manual_seed(3)
    close(vmap(lambda row: ng.randn(2), randomness="different")(X), wanted)


def test_random_numbers_by_examples():
    chances = ng.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert vmap(ng.bernoulli, randomness="different")(chances).tolist() == chances.tolist()
    assert vmap(ng.normal, (0, None), randomness="different")(chances, 0.0).equal(chances)
    for draw in (ng.bernoulli, lambda p: ng.normal(p, p)):
        with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
            vmap(draw, randomness="same")(chances)


# --- custom Functions -----------------------------------------------------------------------------


class Cube(ng.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x**3 * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2 * ctx.factor, None


class CubeOfBatch(Cube):
    generate_vmap_rule = False
    calls: ClassVar[list[Any]] = []

    @staticmethod
    def vmap(info, in_dims, x, factor):
        CubeOfBatch.calls.append((info.batch_size, info.randomness, in_dims, x.shape))
        return CubeOfBatch.apply(x.movedim(in_dims[0], 0), factor).movedim(0, -1), x.dim() - 1


@pytest.mark.parametrize("function", [Cube, CubeOfBatch])
def test_functions(function):
    def f(row):
        return function.apply(row, 2.0)

    wanted = 2 * X**3
    close(vmap(f)(X), wanted)
    close(vmap(f, 1, 1)(X), wanted)
    close(vmap(vmap(f))(X), wanted)
    close(grad(total(f))(X), 6 * X**2)
    close(vmap(grad(lambda row: f(row).sum()))(X), 6 * X**2)
    close(vmap(grad(lambda row: grad(lambda row: f(row).sum())(row).sum()))(X), 12 * X)


class Straight(ng.autograd.Function):
    """Signs, through which gradients go as if they were a factor."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x.sign() * factor, x > 0

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[1], None)
        ctx.twice = inputs[1] * 2

    @staticmethod
    def backward(ctx, g, _):
        factor, _ = ctx.saved_tensors
        return g * factor + g * ctx.twice, (g * factor).sum()

    @staticmethod
    def jvp(ctx, x, factor):
        return x * 3, None


def test_the_backward_pass_of_a_function_counts_outside():
    def f(row, factor):
        signs, positive = Straight.apply(row, factor)
        return (signs * (1 + positive.to(ng.float64))).sum()

    factor = X[1, 2]
    for dims, given in (((0, None), factor), ((0, 0), X[:, 1])):

        def outside(x, factor, dims=dims):
            return vmap(f, dims)(x, factor).sum()

        found = grad(outside, (0, 1))(X, given)
        rows = [
            grad(f, (0, 1))(row, given if dims[1] is None else given[number])
            for number, row in enumerate(X)
        ]
        inside = vmap(grad(f, (0, 1)), dims)(X, given)
        close(found[0], ng.stack([row[0] for row in rows]))
        close(inside[0], found[0])
        factors = ng.stack([row[1] for row in rows])
        close(inside[1], factors)
        close(found[1], factors.sum() if dims[1] is None else factors)
        nested = grad(
            lambda x, dims=dims, given=given: vmap(lambda x: outside(x, given, dims))(x[None]).sum()
        )(X)
        close(nested, found[0])
    tangent = vmap(lambda row: jvp(lambda row: Straight.apply(row, factor)[0], (row,), (row,))[1])
    close(tangent(X), 3 * X)
    close(jvp(vmap(lambda row: Straight.apply(row, factor)[0]), (X,), (X,))[1], 3 * X)


def test_what_the_library_does_not_record_is_recorded_outside():
    def f(row):
        tangent = jvp(lambda row: row.cumsum(0).prod(), (row,), (row.sin(),))[1]
        return tangent * (row * row).sum()

    close(grad(total(f))(X), looped(grad(f)))


def test_the_vmap_of_a_function_is_told_of_the_batch():
    CubeOfBatch.calls.clear()
    vmap(lambda row: CubeOfBatch.apply(row, 2.0), randomness="same")(X)
    assert CubeOfBatch.calls == [(3, "same", (0, None), (3, 4))]
    CubeOfBatch.calls.clear()
    vmap(lambda row: CubeOfBatch.apply(X[0], 2.0) + row)(X)
    assert CubeOfBatch.calls == []  # nothing of it is a batch


# --- bad input ------------------------------------------------------------------------------------


def _functions(lib: Any) -> dict[str, Any]:
    """Return what raises, as functions of a tensor and an unbatched one."""
    vmap = lib.func.vmap

    class Plain(lib.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    class Old(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Both(Plain):
        generate_vmap_rule = True

        @staticmethod
        def vmap(info, in_dims, x):
            return x, 0

    class One(Plain):
        @staticmethod
        def vmap(info, in_dims, x):
            return (x,)

    class Unlike(Plain):
        @staticmethod
        def vmap(info, in_dims, x):
            return x, (0, 0)

    def f(a: Any, *others: Any) -> Any:
        return a

    return {
        "item": lambda x: vmap(lambda a: a.sum().item())(x),
        "float": lambda x: vmap(lambda a: a * float(a.sum()))(x),
        "branch": lambda x: vmap(lambda a: a if a.sum() > 0 else -a)(x),
        "nonzero": lambda x: vmap(lambda a: a.nonzero())(x),
        "mask": lambda x: vmap(lambda a: a[a > 0])(x),
        "numpy": lambda x: vmap(lambda a: a.numpy())(x),
        "random": lambda x: vmap(lambda a: a + lib.randn(3))(x),
        "randomness": lambda x: vmap(f, randomness="x")(x),
        "number": lambda x: vmap(lambda a: 3.0)(x),
        "None": lambda x: vmap(lambda a: None)(x),
        "no inputs": lambda x: vmap(f)(),
        "in_dims None": lambda x: vmap(f, in_dims=None)(x),
        "in_dims str": lambda x: vmap(f, in_dims="a")(x),
        "in_dims list": lambda x: vmap(f, in_dims=[0])(x),
        "in_dims short": lambda x: vmap(f, in_dims=(0,))(x, x),
        "in_dims float": lambda x: vmap(f, in_dims=(0.5,))(x),
        "in_dims of a number": lambda x: vmap(f)(x, 3),
        "in_dims too large": lambda x: vmap(f, in_dims=2)(x),
        "in_dims too small": lambda x: vmap(f, in_dims=-3)(x),
        "in_dims of a scalar": lambda x: vmap(f)(x.sum()),
        "in_dims that are all None": lambda x: vmap(f, in_dims=(None,))(x),
        "requires_grad_": lambda x: vmap(lambda a: a.requires_grad_())(x.clone()),
        "sizes": lambda x: vmap(f)(x, x.t()),
        "out_dims too large": lambda x: vmap(f, out_dims=2)(x),
        "out_dims too small": lambda x: vmap(f, out_dims=-3)(x),
        "out_dims short": lambda x: vmap(lambda a: (a, a), out_dims=(0,))(x),
        "out_dims long": lambda x: vmap(f, out_dims=(0, 1))(x),
        "out_dims str": lambda x: vmap(f, out_dims="x")(x),
        "out_dims None": lambda x: vmap(f, out_dims=None)(x),
        "chunk_size": lambda x: vmap(f, chunk_size=0)(x),
        "backward": lambda x: vmap(lambda a: a.sum().backward())(x.clone().requires_grad_()),
        "Function": lambda x: vmap(Plain.apply)(x),
        "Function of old": lambda x: vmap(Old.apply)(x),
        "Function with both": lambda x: vmap(Both.apply)(x),
        "Function that returns one": lambda x: vmap(One.apply)(x),
        "Function of other dims": lambda x: vmap(Unlike.apply)(x),
    }


@pytest.mark.parametrize("name", list(_functions(ng)))
def test_errors_are_pytorchs(name, torch):
    messages = []
    for lib in (torch, ng):
        with pytest.raises(Exception) as caught:
            _functions(lib)[name](lib.ones(2, 3))
        kind = type(caught.value).__mro__
        text = (
            str(caught.value).replace("torch.Tensor", "Tensor").replace("numgrad.Tensor", "Tensor")
        )
        text, _, _ = text.partition(". Please file an issue")  # here it says what to write instead
        text, _, _ = text.partition(": use ")
        messages.append((next(k for k in kind if k.__module__ == "builtins"), text))
    assert messages[0] == messages[1]


def test_a_tensor_that_left_the_function_is_an_error():
    left = []
    vmap(lambda row: left.append(row) or row)(X)
    with pytest.raises(ng.TraceError, match="that vmap maps has left it") as caught:
        left[0] + 1
    assert caught.type.__name__ == "TraceError"


def test_a_tensor_that_left_the_function_is_printed_as_inside():
    left, texts = [], []

    def inner(x):
        left.extend((x, x.exp(), ng.ones(2)))
        texts.extend(map(repr, left[-3:]))
        return x

    vmap(lambda row: vmap(inner)(row))(ng.ones(2, 2))
    assert list(map(repr, left)) == list(map(str, left)) == texts
    assert texts[0].startswith(
        "BatchedTensor(lvl=2, bdim=0, value=\n    BatchedTensor(lvl=1, bdim=0"
    )


def test_printing():
    texts = []
    vmap(lambda row: texts.append(repr(row)) or row)(ng.ones(2, 2))
    assert texts == [
        "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1., 1.],\n            [1., 1.]])\n)"
    ]


# --- what is the same for all examples ------------------------------------------------------------

NUMBERS = """
list(a[0]) | a[1] < 3.0 | a[1] <= 3.0 | a[1] > 3.0 | a[1] >= 3.0 | a.tolist() | np.asarray(a)
np.asarray(a, np.float32) | float(a[0, 1]) | int(a[1, 2]) | complex(a[0, 0]) | bool(a[0, 0])
operator.index(n) | a.sum() | a.item(1, 2) | len(a) | np.asarray(a.transpose(1, 0))
np.asarray(a.swapaxes(0, 1)) | np.asarray(a.reshape(3, -1)) | np.asarray(a.reshape((6,)))
np.asarray(a.transpose(1, 0).reshape(2, -1)) | np.asarray(a[..., 0, 1]) | np.asarray(a[:, ::2])
"""


def test_arrays_that_are_the_same_for_all_examples_have_numbers() -> None:
    """What stands for an array in the transformed function gives what the array would."""
    lines = [each for row in NUMBERS.strip().splitlines() for each in row.split(" | ")]
    real = np.array([[1.0, 2.5, 0.0], [3.0, -4.0, 7.0]])

    def checked(x: ng.Tensor) -> ng.Tensor:
        names = {"np": np, "operator": operator}
        a, n = (ng.from_numpy(real) * 1)._array, ng.tensor(5)._array
        assert type(a) is type(n) is Traced
        for line in lines:
            found = eval(line, {"a": a, "n": n, **names})
            wanted = eval(line, {"a": real, "n": np.array(5), **names})
            assert type(found) is type(wanted), line
            np.testing.assert_array_equal(found, wanted, line)
        return x

    vmap(checked)(X[:, :3])
