"""Backward passes: order, accumulation, ownership of memory, freeing, and errors."""

from __future__ import annotations

import itertools
import threading
import warnings
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.primitive import CATALOGUE

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)
UNUSED = (
    "The differentiated Tensor at index {} appears to not have been used in the graph. Set "
    "allow_unused=True if this is the desired behavior."
)
FLOATING = ["float16", "float32", "float64", "complex64", "complex128"]


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(list(values), requires_grad=True)


# Long and wide graphs


def test_a_chain_of_very_many_nodes_runs_back_and_is_freed() -> None:
    """Every step of building, running and freeing is a loop: recursion would end the process."""
    w = ng.tensor(2.0, requires_grad=True)
    y = w
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert y.item() == 100_002.0 and w.grad is not None and w.grad.item() == 1.0
    y.backward()  # an addition saves nothing
    assert w.grad.item() == 2.0
    del y


def test_a_long_chain_differentiates_twice() -> None:
    w = ng.tensor(1.0, requires_grad=True, dtype=ng.float64)
    y = w
    for _ in range(5_000):
        y = y * (1.0 + 1e-4)
    (first,) = ng.autograd.grad(y * y, w, create_graph=True)
    (second,) = ng.autograd.grad(first, w)
    growth = (1.0 + 1e-4) ** 10_000
    assert first.item() == pytest.approx(2 * growth)
    assert second.item() == pytest.approx(2 * growth)


def test_a_ladder_of_diamonds_visits_every_node_once() -> None:
    """A walk along all paths would take 2**60 steps."""
    w = ng.tensor(1.0, requires_grad=True, dtype=ng.float64)
    y = w
    for _ in range(60):
        y = y + y
    y.backward()
    assert w.grad.item() == 2.0**60
    y = w
    for _ in range(60):
        left, right = y * 0.5, y * 0.5
        y = left + right
    (gradient,) = ng.autograd.grad(y, w)
    assert gradient.item() == 1.0


def test_a_wide_sum_reaches_every_leaf() -> None:
    leaves = [ng.tensor(float(n), requires_grad=True) for n in range(2_000)]
    total = leaves[0] * 0
    for n, each in enumerate(leaves):
        total = total + each * n
    total.backward()
    assert [each.grad.item() for each in leaves] == list(range(2_000))


# Order


def test_nodes_run_from_the_last_recorded_to_the_first(lib: Any) -> None:
    w, order = leaf(lib, 1.0, 2.0), []
    tensors = {"w": w, "a": w * 1}
    tensors["b"] = w * 2
    tensors["c"] = tensors["b"] * 3
    tensors["d"] = tensors["a"] * 4  # recorded after c, although it stands nearer to the leaf
    tensors["e"] = tensors["c"] + tensors["d"]
    for name, tensor in tensors.items():
        tensor.register_hook(lambda g, name=name: order.append(name))
    tensors["e"].sum().backward()
    assert order == ["e", "d", "c", "b", "a", "w"]


def test_a_node_waits_for_all_of_its_gradients(lib: Any) -> None:
    w, seen = leaf(lib, 1.0), []
    middle = w * 2
    middle.register_hook(lambda g: seen.append(g.item()))
    (middle + middle * 3 + (middle * 5).exp() * 0).sum().backward()
    assert seen == [4.0] and w.grad.item() == 8.0


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 3)),
        min_size=1,
        max_size=25,
    )
)
def test_random_graphs_give_the_gradient_that_the_sum_over_paths_gives(
    edges: list[tuple[int, int, int]],
) -> None:
    """Build linear graphs of any shape; the coefficients follow from counting forwards."""
    w = ng.tensor(1.0, dtype=ng.float64, requires_grad=True)
    tensors, slopes = [w], [1.0]
    for left, right, kind in edges:
        a, b = left % len(tensors), right % len(tensors)
        if kind == 0:
            tensors.append(tensors[a] + tensors[b])
            slopes.append(slopes[a] + slopes[b])
        elif kind == 1:
            tensors.append(tensors[a] * 0.5)
            slopes.append(slopes[a] * 0.5)
        elif kind == 2:
            tensors.append(tensors[a] - tensors[b])
            slopes.append(slopes[a] - slopes[b])
        else:
            tensors.append(ng.stack([tensors[a], tensors[b]]).unbind(0)[1])
            slopes.append(slopes[b])
    total = tensors[-1] + sum(tensors[1:], tensors[0] * 0)
    (gradient,) = ng.autograd.grad(total, w, retain_graph=True)
    assert gradient.item() == pytest.approx(slopes[-1] + sum(slopes[1:]))
    total.backward()
    assert w.grad.item() == gradient.item()


# Accumulation


def test_gradients_add_up_in_place(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    (w * 2).sum().backward()
    first = w.grad
    (w * 3).sum().backward()
    assert w.grad is first and first.tolist() == [5.0, 5.0] and first._version == 1


@pytest.mark.filterwarnings("ignore:Using backward")
def test_under_create_graph_gradients_add_up_in_a_new_tensor(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    (w * w).sum().backward()
    first = w.grad
    (w**3).sum().backward(create_graph=True)
    assert first.tolist() == [2.0, 4.0] and w.grad is not first
    assert w.grad.tolist() == [5.0, 16.0] and w.grad.requires_grad


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_gradient_with_a_graph_is_added_to_in_place_without_create_graph(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    (w**3).sum().backward(create_graph=True)
    first = w.grad
    assert first.grad_fn.name() == "torch::autograd::CopyBackwards"
    (w * 2).sum().backward()
    assert w.grad is first and first.tolist() == [5.0, 14.0] and first.requires_grad


def test_leaves_behind_one_addition_do_not_share_their_gradient(lib: Any) -> None:
    x, y = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    given = lib.ones(2)
    (x + y).backward(given)
    x.grad.add_(10)
    given.add_(100)
    assert x.grad.tolist() == [11.0, 11.0] and y.grad.tolist() == [1.0, 1.0]


def test_the_gradient_that_the_user_gave_is_neither_kept_nor_changed(lib: Any) -> None:
    w, given = leaf(lib, 1.0, 2.0), lib.tensor([1.0, 1.0])
    w.backward(given)
    w.backward(given)
    middle = w * 1
    middle.retain_grad()
    (middle + middle + w).backward(given)
    assert given.tolist() == [1.0, 1.0] and given._version == 0
    w.grad.zero_()
    middle.grad.zero_()
    assert given.tolist() == [1.0, 1.0]


def test_every_way_to_pass_a_gradient_on_leaves_other_gradients_alone(lib: Any) -> None:
    """Hooks, retained gradients, leaves and several branches all see the same numbers."""
    x, y = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    seen = []
    a = x + y
    b = a + x
    c = a + b
    for tensor in (a, b, c, x, y):
        tensor.register_hook(seen.append)
    for tensor in (a, b, c):
        tensor.retain_grad()
    c.backward(lib.ones(2))
    want = {"c": 1.0, "b": 1.0, "a": 2.0, "x": 3.0, "y": 2.0}
    for name, tensor in {"a": a, "b": b, "c": c, "x": x, "y": y}.items():
        assert tensor.grad.tolist() == [want[name]] * 2
    assert sorted(g[0].item() for g in seen) == sorted(want.values())
    x.grad.add_(100)
    a.grad.add_(100)
    assert sorted(g[0].item() for g in seen) == sorted(want.values())
    assert y.grad.tolist() == [2.0, 2.0] and b.grad.tolist() == [1.0, 1.0]


def test_results_of_grad_do_not_share_memory() -> None:
    x, y = leaf(ng, 1.0, 2.0), leaf(ng, 3.0, 4.0)
    given = ng.ones(2)
    middle = x + y
    results = ng.autograd.grad(middle + 0, [x, y, middle, x], given)
    for left, right in itertools.combinations([*results, given], 2):
        assert not np.shares_memory(left.numpy(), right.numpy())
    assert [r.tolist() for r in results] == [[1.0, 1.0]] * 4
    assert x.grad is None and y.grad is None


@pytest.mark.sampled(0.11)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize(
    "name",
    sorted(CATALOGUE.keys() - {"linalg_eig"}),  # which refuses most gradients
)
def test_what_a_node_calls_new_memory_is_new(name: str) -> None:
    """The engine adds in place to what a node calls its own: that must be nobody else's."""
    for function, tensors, keywords in sample_calls(CATALOGUE[name]):
        outputs = function(*tensors, **keywords)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        nodes = {id(o.grad_fn): o.grad_fn for o in outputs if o.grad_fn is not None}
        for node in nodes.values():
            gradients: list[Any] = [None] * node.num_outputs
            for output in outputs:
                if output.grad_fn is node:
                    gradients[output.output_nr] = ng.ones_like(output).numpy()
            check_ownership(node, gradients)
        while nodes:
            _, node = nodes.popitem()
            for child, _ in node.next_functions:
                metas = getattr(child, "output_metas", ())
                if metas and all(dtype.kind in "fc" for _, dtype in metas):
                    check_ownership(child, [np.ones(shape, dtype) for shape, dtype in metas])
                if child is not None:
                    nodes[id(child)] = child


@pytest.mark.sampled(0.11)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_results_of_views_that_lost_their_way_require_grad(name: str) -> None:
    """A view that was made in no_grad requires grad as its base does; no gradient comes from it."""
    for function, tensors, keywords in sample_calls(CATALOGUE[name]):
        with ng.no_grad():
            views = [tensor[...] for tensor in tensors]
        expected = function(*tensors, **keywords)
        found = function(*views, **keywords)
        if not isinstance(expected, tuple):
            expected, found = (expected,), (found,)
        for one, other in zip(found, expected, strict=True):
            assert one.requires_grad == other.requires_grad
            assert (one.grad_fn is None) == (other.grad_fn is None)
        for one in found:
            if one.requires_grad:
                one.backward(ng.ones_like(one), retain_graph=True)
        assert all(tensor.grad is None for tensor in tensors)


def sample_calls(primitive: Any) -> Any:
    """Return the calls that a primitive gives as examples, or one on ordinary numbers."""
    generator = np.random.default_rng(0)

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Any:
        array = generator.uniform(low, high, shape)
        if distinct:
            count = array.size
            array = generator.permutation(np.linspace(low, high, count)).reshape(shape)
        return ng.from_numpy(np.asarray(array)).requires_grad_()

    samples = getattr(primitive, "samples", None)
    if samples is not None:
        return [sample(make) for sample in samples]
    if not set("fc") & set(primitive.accepts) or not any(primitive.rules):
        return []  # of integers and bools only, or without a derivative

    def operand(position: int, *shape: int) -> Any:
        if position in primitive.masks:
            return ng.from_numpy(generator.uniform(size=shape) > 0.5)
        tensor = make(*shape, low=0.25, high=0.75)
        return tensor if "f" in primitive.accepts else (tensor * (1 + 1j)).detach().requires_grad_()

    count = primitive.tensor_count
    numbers = [0.5] * (len(primitive.inputs) - count)
    choices = [[(2, 3)] * count, [(3,), *[(2, 3)] * (count - 1)], [(2, 1), *[(1, 3)] * (count - 1)]]
    return [
        (
            lambda *tensors: primitive(*tensors, *numbers),
            [operand(position, *shape) for position, shape in enumerate(shapes)],
            {},
        )
        for shapes in choices
    ]


def check_ownership(node: Any, gradients: list[Any]) -> None:
    """Run a node; True says a result is new, None that it is as much ours as the gradient was."""
    kept = [array for array in gradients if array is not None]
    kept += [entry for entry in node.saved[::3] if isinstance(entry, np.ndarray)]
    found = zip(*node.run_arrays(gradients), strict=True)
    results = [(array, owned) for array, owned in found if array is not None]
    for array, owned in results:
        if owned:
            assert array.flags.writeable
            assert not any(np.shares_memory(array, other) for other in kept)
        elif owned is None:
            assert array is gradients[0]
    for (left, left_owned), (right, right_owned) in itertools.combinations(results, 2):
        if left_owned is not False or right_owned is not False:
            assert not np.shares_memory(left, right)


# Keeping the graph


def test_a_second_backward_through_what_was_freed_raises(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    y = (w * w).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert w.grad.tolist() == [4.0, 8.0]
    for again in (
        lambda: y.backward(),
        lambda: lib.autograd.grad(y, w),
        lambda: y.backward(create_graph=True),
    ):
        with pytest.raises(RuntimeError) as error:
            again()
        assert str(error.value) == SECOND_TIME
    assert w.grad.tolist() == [4.0, 8.0]


def test_a_second_backward_through_nodes_that_saved_nothing_succeeds(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    y = (w + 1).sum()
    y.backward()
    y.backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_two_losses_over_one_graph_need_it_kept(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    shared = w * w
    shared.sum().backward()
    with pytest.raises(RuntimeError) as error:
        (shared * 2).sum().backward()
    assert str(error.value) == SECOND_TIME


def test_create_graph_gives_derivatives_of_any_order(lib: Any) -> None:
    w = lib.tensor(0.7, dtype=lib.float64, requires_grad=True)
    derivative, values = w.sin(), []
    for _ in range(5):
        (derivative,) = lib.autograd.grad(derivative, w, create_graph=True)
        values.append(derivative.item())
    sine, cosine = np.sin(0.7), np.cos(0.7)
    assert values == pytest.approx([cosine, -sine, -cosine, sine, cosine])


def test_create_graph_keeps_the_graph_unless_told(lib: Any) -> None:
    w = leaf(lib, 3.0)
    y = w * w
    lib.autograd.grad(y, w, create_graph=True)
    lib.autograd.grad(y, w, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError) as error:
        lib.autograd.grad(y, w)
    assert str(error.value) == SECOND_TIME


def test_a_gradient_penalty_reaches_the_first_graph(lib: Any) -> None:
    w = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    (g,) = lib.autograd.grad((w**3).sum(), w, create_graph=True)
    ((g * g).sum() + w.sum()).backward()
    assert w.grad.tolist() == [1.0 + 36.0 * 1, 1.0 + 36.0 * 8]


# Asking


def test_backward_on_leaves(lib: Any) -> None:
    w = leaf(lib, 1.0)
    w.backward()
    w.backward(lib.tensor([3.0]))
    assert w.grad.tolist() == [4.0]
    (same,) = lib.autograd.grad(w, w)
    assert same.tolist() == [1.0] and w.grad.tolist() == [4.0]
    first, second = lib.autograd.grad(w * 2, [w, w])
    assert first.tolist() == second.tolist() == [2.0]


def test_grad_with_respect_to_results(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    a = w * 2
    b = a * a
    c = b + a
    gradients = lib.autograd.grad(c.sum(), [a, b, c, w])
    assert [g.tolist() for g in gradients] == [[5.0, 9.0], [1.0, 1.0], [1.0, 1.0], [10.0, 18.0]]
    assert w.grad is None


def test_grad_with_respect_to_some_of_several_results(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0, 4.0], requires_grad=True)
    parts = (x * 1).unbind()
    loss = 3 * parts[0] + 5 * parts[1] * parts[2]
    slopes = [3.0, 20.0, 10.0]
    for count in (1, 2, 3):
        for asked in itertools.permutations(range(3), count):
            found = lib.autograd.grad(loss, [parts[k] for k in asked], retain_graph=True)
            assert [each.item() for each in found] == [slopes[k] for k in asked]


def test_grad_goes_only_where_it_must(lib: Any) -> None:
    """What does not lead to the inputs is not run, so it is not freed either."""
    w, v, seen = leaf(lib, 1.0), leaf(lib, 2.0), []
    a, b = w * w, v * v
    b.register_hook(lambda g: seen.append("b"))
    y = a * 2 + b * 3
    (gradient,) = lib.autograd.grad(y, w)
    assert gradient.tolist() == [4.0] and v.grad is None and seen == []
    (b * 1).backward()  # its graph was not freed
    assert v.grad.tolist() == [4.0]


def test_several_outputs_add_up(lib: Any) -> None:
    w = leaf(lib, 1.0, 2.0)
    a, b = (w * w).sum(), w * 3
    (gradient,) = lib.autograd.grad([a, b], w, [None, lib.tensor([1.0, 10.0])], retain_graph=True)
    assert gradient.tolist() == [5.0, 34.0]
    lib.autograd.backward([a, b, a], [lib.tensor(2.0), lib.ones(2), None])
    assert w.grad.tolist() == [9.0, 15.0]


def test_a_root_below_another_root(lib: Any) -> None:
    w = leaf(lib, 1.0)
    a = w * 2
    b = a * a
    lib.autograd.backward([b, a])
    assert w.grad.tolist() == [10.0]


def test_unused_inputs(lib: Any) -> None:
    w, unused = leaf(lib, 1.0, 2.0), leaf(lib, 1.0)
    y = (w * w).sum()
    with pytest.raises(RuntimeError) as error:
        lib.autograd.grad(y, [w, unused], retain_graph=True)
    assert str(error.value) == UNUSED.format(1)
    used, missing = lib.autograd.grad(y, [w, unused], allow_unused=True, retain_graph=True)
    assert used.tolist() == [2.0, 4.0] and missing is None
    _, zeros = lib.autograd.grad(y, [w, unused], materialize_grads=True)
    assert zeros.tolist() == [0.0] and not zeros.requires_grad
    with pytest.raises(ValueError) as failure:
        lib.autograd.grad(y, w, allow_unused=False, materialize_grads=True)
    assert str(failure.value) == (
        "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
        "allow_unused=False."
    )


def test_backward_with_inputs(lib: Any) -> None:
    w, v = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    middle = w * v
    y = (middle * middle).sum()
    y.backward(inputs=[v], retain_graph=True)
    assert w.grad is None and v.grad.tolist() == [6.0, 32.0]
    y.backward(inputs=w, retain_graph=True)
    assert w.grad.tolist() == [18.0, 64.0] and v.grad.tolist() == [6.0, 32.0]
    y.backward(inputs=[middle, w], retain_graph=True)
    assert middle.grad.tolist() == [6.0, 16.0] and w.grad.tolist() == [36.0, 128.0]
    unused = leaf(lib, 1.0)
    y.backward(inputs=[unused, middle])
    assert unused.grad is None and middle.grad.tolist() == [12.0, 32.0]


@pytest.mark.parametrize(
    ("ask", "kind", "message"),
    [
        (
            lambda lib, w: lib.ones(1).backward(),
            RuntimeError,
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            lambda lib, w: lib.autograd.backward([w.sum(), lib.ones(1)]),
            RuntimeError,
            "element 1 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            lambda lib, w: (w * 2).backward(),
            RuntimeError,
            "grad can be implicitly created only for scalar outputs",
        ),
        (
            lambda lib, w: (w.sum() * 1j).backward(),
            RuntimeError,
            "grad can be implicitly created only for real scalar outputs but got torch.complex64",
        ),
        (
            lambda lib, w: (w * 2).backward(lib.ones(3)),
            RuntimeError,
            "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a "
            "shape of torch.Size([2]).",
        ),
        (
            lambda lib, w: (w * 2).backward(lib.ones(2, dtype=lib.complex64)),
            RuntimeError,
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            "Mismatch in dtype: grad_output[0] has a dtype of torch.complex64 and output[0] has a "
            "dtype of torch.float32.",
        ),
        (
            lambda lib, w: w.sum().backward("one"),
            TypeError,
            "gradients can be either Tensors or None, but got str",
        ),
        (
            lambda lib, w: lib.autograd.backward([w.sum(), w.prod()], [None]),
            RuntimeError,
            "got 2 tensors and 1 gradients",
        ),
        (
            lambda lib, w: w.sum().backward(inputs=[]),
            RuntimeError,
            "`inputs` argument to `backward()` cannot be empty.",
        ),
        (
            lambda lib, w: w.sum().backward(inputs=[lib.ones(1)]),
            RuntimeError,
            "can't retain_grad on Tensor that has requires_grad=False",
        ),
        (
            lambda lib, w: lib.autograd.grad(w.sum(), lib.ones(1)),
            RuntimeError,
            "One of the differentiated Tensors does not require grad",
        ),
        (
            lambda lib, w: lib.autograd.grad(w.sum(), [3]),
            RuntimeError,
            "all inputs have to be Tensors or GradientEdges, but got int",
        ),
        (lambda lib, w: lib.autograd.grad(w.sum(), leaf(lib, 1.0)), RuntimeError, UNUSED.format(0)),
    ],
)
def test_what_cannot_be_asked(lib: Any, ask: Any, kind: Any, message: str) -> None:
    w = leaf(lib, 1.0, 2.0)
    with pytest.raises(kind) as error:
        ask(lib, w)
    assert str(error.value) == message and w.grad is None


@pytest.mark.parametrize("kind", ["one", "tuple", "list"])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_there_are_as_many_gradients_as_outputs(
    lib: Any, outputs: int, count: int, kind: str
) -> None:
    w = leaf(lib, 1.0, 2.0)
    ones = [lib.tensor(1.0)] * count
    given = ones[0] if kind == "one" else (tuple if kind == "tuple" else list)(ones)
    number = 1 if kind == "one" else count
    if number > outputs and lib is not ng:
        return  # PyTorch passes over what there is too much
    for call in (lib.autograd.backward, lambda *both: lib.autograd.grad(both[0], w, both[1])):
        asked = [w.sum() * (each + 1) for each in range(outputs)]
        if number == outputs:
            call(asked, given)
        else:
            words = f"got {outputs} tensors and {number} gradients"
            with pytest.raises(RuntimeError, match=words):
                call(asked, given)
    total = outputs * (outputs + 1) // 2
    assert w.grad is None if number != outputs else w.grad.tolist() == [total, total]


@pytest.mark.parametrize("other", ["bool", "uint8", "int64", *FLOATING])
@pytest.mark.parametrize("dtype", FLOATING)
def test_a_cotangent_is_cast_unless_only_one_of_the_two_is_complex(
    lib: Any, dtype: str, other: str
) -> None:
    w = lib.tensor([1.0, 2.0], dtype=getattr(lib, dtype), requires_grad=True)
    cotangent = lib.ones(2, dtype=getattr(lib, other))
    calls = [
        lambda: (w * 2).backward(cotangent),
        lambda: lib.autograd.grad(w * 2, w, cotangent),
        lambda: lib.autograd.grad(w * 2, w, cotangent[None], is_grads_batched=True),
    ]
    for call in calls[: 3 if lib is ng else 2]:  # PyTorch's words for a batch differ
        if dtype.startswith("complex") == other.startswith("complex"):
            call()
            assert w.grad.tolist() == [2.0, 2.0] and w.grad.dtype is w.dtype
        else:
            with pytest.raises(RuntimeError, match="^For complex Tensors, both grad_output and"):
                call()
            assert w.grad is None


def test_is_grads_batched_gives_a_row_for_every_cotangent(lib: Any) -> None:
    w = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    y = w * w
    (rows,) = lib.autograd.grad(y, w, lib.eye(2, dtype=lib.float64), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_gradients_flow_only_to_outputs_that_were_used(lib: Any) -> None:
    w = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    _, second = w.unbind(0)
    (second * 2).sum().backward()
    assert w.grad.tolist() == [[0.0, 0.0], [2.0, 2.0]]
    values, _ = w.max(1)
    (gradient,) = lib.autograd.grad(values.sum(), w)
    assert gradient.tolist() == [[0.0, 1.0], [0.0, 1.0]]


# Threads


def test_two_threads_run_their_own_backward_passes() -> None:
    start, failures = threading.Barrier(4), []

    def work(seed: int) -> None:
        w = ng.tensor([float(seed), 1.0], dtype=ng.float64, requires_grad=True)
        start.wait(20)
        for _ in range(50):
            w.grad = None
            y = w
            for _ in range(20):
                y = (y * 1.5).sin() + w
            create = bool(seed % 2)
            (gradient,) = ng.autograd.grad(y.sum(), w, create_graph=create)
            if create != gradient.requires_grad:
                failures.append(("graph", seed))
            y = w
            for _ in range(20):
                y = (y * 1.5).sin() + w
            y.sum().backward()
            if w.grad.tolist() != gradient.tolist():
                failures.append(("value", seed))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == [] and not any(thread.is_alive() for thread in threads)


# The order of hooks, and what is left alone


def chain(library: Any, log: list[Any]) -> Any:
    leaves = [library.tensor([1.0, 2.0], requires_grad=True) for _ in range(4)]
    y = leaves[0]
    for leaf in leaves[1:]:
        y = y * leaf
        y.register_hook(lambda g: log.append("product"))
    return leaves, y.sum()


def crossed(library: Any, log: list[Any]) -> Any:
    a, b, c, d = (library.tensor([1.0, 2.0], requires_grad=True) for _ in range(4))
    inner = c * d
    inner.register_hook(lambda g: log.append("product"))
    return [a, b, c, d], ((b * c) * inner + a * (c * b)).sum()


@pytest.mark.parametrize("graph", [chain, crossed])
def test_hooks_of_leaves_run_as_soon_as_their_gradient_is_complete(torch: Any, graph: Any) -> None:
    logs = []
    for library in (ng, torch):
        log: list[Any] = []
        leaves, result = graph(library, log)
        for position, leaf in enumerate(leaves):
            leaf.register_hook(lambda g, p=position, log=log: log.append(p))
            leaf.register_post_accumulate_grad_hook(
                lambda t, p=position, log=log: log.append(("after", p))
            )
        result.backward()
        logs.append(log)
    assert logs[0] == logs[1]


def test_hooks_off_the_way_to_the_inputs_do_not_run(lib: Any) -> None:
    a, b = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    c = b.exp()
    for tensor in (b, c):
        tensor.register_hook(lambda g: pytest.fail("not asked for"))
    (gradient,) = lib.autograd.grad((a * c * b).sum(), a)
    assert gradient.shape == (2,)


def test_gradient_has_the_strides_of_its_leaf(lib: Any) -> None:
    for make in (lambda x: x.t(), lambda x: x[:, ::2], lambda x: x):
        x = make(lib.ones(3, 4)).detach().requires_grad_()
        (x * 2).sum().backward()
        expected = x.stride() if x.stride() == (1, 4) else (x.shape[1], 1)
        assert x.grad.stride() == expected


def test_asking_for_the_gradients_of_nothing_raises(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="cannot be empty"):
        lib.autograd.grad(leaf(lib, 1.0).sum(), [])


@pytest.mark.usefixtures("every_warning")
def test_backward_with_create_graph_warns_of_the_cycle() -> None:
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    message = r"^Using backward\(\) with create_graph=True will create a reference cycle between"
    for backward in (
        lambda: (x**2).sum().backward(create_graph=True),
        lambda: ng.autograd.backward((x**2).sum(), create_graph=True, inputs=[x]),
    ):
        with pytest.warns(UserWarning, match=message) as caught:
            backward()
        assert caught[0].filename == __file__
    with warnings.catch_warnings(record=True) as silent:
        warnings.simplefilter("always")
        ng.autograd.grad((x**2).sum(), x, create_graph=True)
        (x**2).sum().backward(retain_graph=True)
    assert silent == []


@pytest.mark.usefixtures("every_warning")
def test_code_whose_module_has_no_name_is_warned_too() -> None:
    program = "x = ng.ones(2, requires_grad=True)\nx.sum().backward(create_graph=True)"
    with pytest.warns(UserWarning, match="will create a reference cycle") as caught:
        exec(compile(program, "cell", "exec"), {"ng": ng})
    assert (caught[0].filename, caught[0].lineno) == ("cell", 2)


def test_the_warning_of_create_graph_is_pytorchs(torch: ModuleType) -> None:
    said = []
    for library in (torch, ng):
        before = library.is_warn_always_enabled()
        library.set_warn_always(True)
        try:
            x = library.tensor(1.0, requires_grad=True)
            with pytest.warns(UserWarning, match="^Using backward") as caught:
                (x * x).backward(create_graph=True)
            said.append(str(caught[0].message).partition(" (Triggered internally")[0])
        finally:
            library.set_warn_always(before)
    assert said[0] == said[1]


def test_materialised_zeros_are_like_their_inputs(torch: Any) -> None:
    random = Random(4)
    for _ in range(12):
        order, create = random.sample(range(3), 3), random.random() < 0.5
        cut, expanded = random.choice([1, 2]), random.random() < 0.3
        found = []
        for lib in (torch, ng):
            x = lib.ones((2, 3, 4)).permute(order)[::cut]
            x = (x[:1].expand(5, -1, -1) if expanded else x).detach().requires_grad_()
            y = lib.ones(2, requires_grad=True)
            (zeros, _) = lib.autograd.grad(
                (y * 2).sum(), [x, y], materialize_grads=True, create_graph=create
            )
            steps = [step for step, k in zip(zeros.stride(), zeros.shape, strict=True) if k > 1]
            found.append((zeros.tolist(), steps, zeros.requires_grad, zeros.grad_fn))
        assert found[0] == found[1], (order, cut, expanded)
