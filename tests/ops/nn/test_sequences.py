"""ctc_loss, embedding_bag and cells of recurrent networks beside PyTorch's, and by mathematics."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn import functional as F
from tests.ops.nn.calls import agree

LINES = """
F.ctc_loss(p, _t, (5, 4), (3, 2))
F.ctc_loss(p, _t, a, b, reduction='none')
F.ctc_loss(p, _t, a, b, reduction='sum')
F.ctc_loss(p, _t, (5, 4), (0, 2), 3, 'none')
F.ctc_loss(p, _t.flatten()[:5], a, b, 3)
F.ctc_loss(p, _t.flatten()[:4], a, b)
F.ctc_loss(p, _t, (2, 4), (3, 2), reduction='none', zero_infinity=True)
F.ctc_loss(p, _t, (0, 4), (0, 2), reduction='none')
F.ctc_loss(p, _t, (0, 4), (3, 2), reduction='none')
F.ctc_loss(p[:, 0], _t[0], (5,), (3,), reduction='none')
F.ctc_loss(p[:, 0], _t[0], a[:1], b[:1])
F.ctc_loss(p, _t.int(), a.int(), b)
torch.ctc_loss(p, _t, (5, 4), b)
F.ctc_loss(p, _t, a * 1.0, b)
F.ctc_loss(p, _t, a, b * 1.0)
F.ctc_loss(p, _t, (6, 4), (3, 2))
F.ctc_loss(p, _t, (5, 4), (4, 2))
F.ctc_loss(p, _t, (-1, 4), (3, 2))
F.ctc_loss(p, _t, (5, 4), (-3, 2))
F.ctc_loss(p, _t, (5,), (3, 2))
F.ctc_loss(p, _t, (5, 4), (3,))
F.ctc_loss(p, _t, a, b, 4)
F.ctc_loss(p, _t, a, b, -1)
F.ctc_loss(p, _t, a, b, reduction='abc')
F.ctc_loss(p.long(), _t, a, b)
F.ctc_loss(p[:, 0], _t, a[:1], b[:1])
F.ctc_loss(p[None], _t, a, b)
F.ctc_loss(p, _t[None], a, b)
F.ctc_loss(p, _t[:1], a, b)
F.ctc_loss(p[:, :0], _t[:0], (), ())
torch.ctc_loss(p, _t, (5, 4), (3, 2))
torch.ctc_loss(p, _t, a, b, 0, 1)
F.embedding_bag(i, w, o)
F.embedding_bag(i, w, o, mode='sum')
F.embedding_bag(i, w, o, mode='max')
F.embedding_bag(i, w, o, mode='sum', per_sample_weights=s)
F.embedding_bag(i, w, o, mode='mean', per_sample_weights=s)
F.embedding_bag(i, w, o, mode='sum', per_sample_weights=s[:3])
F.embedding_bag(i, w, o, mode='abc')
F.embedding_bag(i, w)
F.embedding_bag(i.reshape(2, 3), w)
F.embedding_bag(i.reshape(2, 3), w, mode='sum', per_sample_weights=s.reshape(2, 3))
F.embedding_bag(i.reshape(1, 2, 3), w, o)
F.embedding_bag(i, w, o[None])
F.embedding_bag(i, w[0], o)
F.embedding_bag(i, w, o, padding_idx=4)
F.embedding_bag(i, w, o, padding_idx=-2, mode='sum')
F.embedding_bag(i, w, o, padding_idx=4, mode='max')
F.embedding_bag(i, w, o, padding_idx=9)
F.embedding_bag(i.clamp(max=4), w, o, scale_grad_by_freq=True)
F.embedding_bag(i.clamp(max=4), w, o, scale_grad_by_freq=True, mode='sum', padding_idx=3)
F.embedding_bag(i, w, o, scale_grad_by_freq=True, mode='max')
F.embedding_bag(i, w, torch.cat((o, 0 * o[:1] + 6)), include_last_offset=True)
F.embedding_bag(i, _m, o, max_norm=0.5)
F.embedding_bag(i, w, o + 1)
F.embedding_bag(i, w, o * 2)
F.embedding_bag(i + 9, w, o)
F.embedding_bag(i - 9, w, o)
F.embedding_bag(i.int(), w, o.int())
F.embedding_bag(i * 1.0, w, o)
F.embedding_bag(i.short(), w, o.short())
F.embedding_bag(w, i, o)
F.embedding_bag(i, w.long(), o)
F.embedding_bag(i[:0], w, o[:2] * 0)
torch.embedding_bag(w, i, o)[0]
torch.embedding_bag(w, i, o, False, 1)[1] * 1.0
torch.embedding_bag(w, i, o, False, 2)[2] * 1.0
torch.embedding_bag(w, i, o, False, 2)[3] * 1.0
torch.embedding_bag(w, i[:4], o, False, 0, False, s[:4], True, 4)[0]
torch.embedding(w, i)
torch.embedding(w, i, 4)
torch.embedding(w, i, 99)
torch.embedding(w, i * 1.0)
torch.embedding_renorm_(_m, i, 0.5, 2.0)
torch.rnn_tanh_cell(x, h, u, v, c, c)
torch.rnn_relu_cell(x, h, u, v)
torch.rnn_relu_cell(x, h[:, :2], u, v)
torch.gru_cell(x, h, w3, v3, b3, b3)
torch.gru_cell(x, h, w3, v3)
torch.gru_cell(x, h, u, v3)
torch.gru_cell(x, h[:2], w3, v3)
torch.gru_cell(x[:, :2], h, w3, v3)
torch.lstm_cell(x, (h, h), w4, v4, b4, b4)[0]
torch.lstm_cell(x, (h, h), w4, v4)[1]
torch.lstm_cell(x, (h,), w4, v4)
torch.lstm_cell(x, (h, h[:, :1]), w4, v4)
torch.lstm_cell(x, h, w4, v4)
""".strip().splitlines()


def operands(seed: int, dtype: str = "float64") -> dict[str, Any]:
    random = np.random.default_rng(seed)
    shapes = {
        **{"w": (6, 3), "_m": (6, 3), "s": (6,), "x": (4, 3), "h": (4, 2), "u": (2, 3)},
        **{"v": (2, 2), "c": (2,), "w3": (6, 3), "v3": (6, 2), "b3": (6,), "w4": (8, 3)},
        **{"v4": (8, 2), "b4": (8,)},
    }
    found = {name: random.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    logs = random.normal(size=(5, 2, 4))
    found["p"] = (logs - np.log(np.exp(logs).sum(2, keepdims=True))).astype(dtype)
    found["_t"] = np.array([[1, 2, 2], [2, 1, 0]])
    found |= {"a": np.array([5, 4]), "b": np.array([3, 2]), "o": np.array([0, 2, 2, 4])}
    return {**found, "i": np.array([1, 2, 4, 5, 4, 3])}


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_gradients_and_refusals_are_pytorchs(torch, dtype):
    for line in LINES:
        agree(torch, line, operands(0, dtype), 1e-10)


def paths_of(labels: list[int], frames: int, classes: int) -> Any:
    """Return the paths that become a label sequence: without repetitions, then without blanks."""
    for path in itertools.product(range(classes), repeat=frames):
        kept = [label for label, _ in itertools.groupby(path)]
        if [each for each in kept if each] == labels:
            yield path


@pytest.mark.parametrize("labels", [[], [1], [1, 2], [1, 1], [2, 1, 2], [1, 1, 1]])
def test_the_loss_is_that_of_all_paths_that_become_the_labels(labels):
    frames, classes = 4, 3
    random = np.random.default_rng(len(labels))
    scores = ng.tensor(random.normal(size=(frames, classes)), requires_grad=True)
    target = ng.tensor(labels, dtype=ng.int64)

    def summed(scores: Any) -> Any:
        logs = scores.log_softmax(1)
        paths = [*paths_of(labels, frames, classes)]
        if not paths:
            return None
        totals = [logs[range(frames), list(path)].sum() for path in paths]
        return -ng.stack(totals).logsumexp(0)

    def loss(scores: Any) -> Any:
        logs = scores.log_softmax(1)
        return F.ctc_loss(logs, target, (frames,), (len(labels),), reduction="sum")

    expected = summed(scores)
    if expected is None:
        assert loss(scores) == ng.inf
        return
    np.testing.assert_allclose(loss(scores).item(), expected.item(), rtol=1e-12)
    for of in (ng.func.grad, ng.func.hessian):
        np.testing.assert_allclose(
            of(loss)(scores.detach()).numpy(), of(summed)(scores.detach()).numpy(), atol=1e-12
        )


def test_what_is_not_aligned_with_frames_has_no_derivative_behind_them():
    names = {name: ng.tensor(each) for name, each in operands(1).items()}

    def loss(x: Any) -> Any:
        return F.ctc_loss(x.log_softmax(2), names["_t"].flatten()[:4], (3, 5), (2, 2))

    x = names["p"].requires_grad_()
    assert ng.autograd.gradcheck(loss, (x,))
    assert ng.autograd.gradgradcheck(loss, (x,))
    hessian = ng.func.hessian(loss)(x.detach())
    assert not hessian[3:, 0].any() and hessian[:3].any()


def test_labels_that_are_no_classes_are_refused():
    logs = ng.full((2, 1, 2), 0.5).log()
    with pytest.raises(IndexError, match="a label is no class"):
        F.ctc_loss(logs, ng.tensor([[2]]), (2,), (1,))


def test_second_derivatives_are_those_of_finite_differences():
    for line in (
        "F.embedding_bag(i, w * w.sum(), o)",
        "F.embedding_bag(i, w * w.sum(), o, mode='max')",
        "F.embedding_bag(i, w, o, mode='sum', per_sample_weights=w.sum(1), padding_idx=4)",
        "torch.gru_cell(w, w[:, :2], w3, v3, b3)",
        "torch.lstm_cell(w, (w[:, :2], w[:, 1:]), w4, v4, b4)[0]",
        "torch.rnn_tanh_cell(w, w[:, :2], u, v)",
    ):
        names = {name: ng.tensor(value) for name, value in operands(2).items()}

        def called(w: Any, line: str = line, names: Any = names) -> Any:
            return eval(line, {"torch": ng, "F": F, **names, "w": w})

        w = names["w"].requires_grad_()
        assert ng.autograd.gradcheck(called, (w,), fast_mode=True), line
        assert ng.autograd.gradgradcheck(called, (w,), fast_mode=True), line


def test_what_is_behind_the_last_offset_is_in_no_bag():
    table, numbers = ng.tensor([[1.0], [2.0], [4.0]]), ng.tensor([0, 1, 2, 2])
    for mode, expected in (
        ("sum", [[1.0], [6.0]]),
        ("mean", [[1.0], [3.0]]),
        ("max", [[1.0], [4.0]]),
    ):
        found = F.embedding_bag(
            numbers, table, ng.tensor([0, 1, 3]), mode=mode, include_last_offset=True
        )
        assert found.tolist() == expected
