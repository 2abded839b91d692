"""Where the results of `nn.functional` lie in memory, against PyTorch, over layouts of images.

`tests.ops.test_strides` walks the public operations; these take images, of which PyTorch keeps the
order in memory where the channels are neighbours, or not.
"""

from __future__ import annotations

from random import Random
from types import ModuleType

import pytest

import numgrad as ng
from tests.ops.layouts import Layout
from tests.ops.test_gradient_strides import COTANGENTS, outcome
from tests.ops.test_strides import DRAWS, REFUSED, check_as_in_pytorch, drawn_layout, run

F = "torch.nn.functional"
# Of images x and y, masks k; volumes and lines are views of them.
VOLUME, LINE = "x.unflatten(3, (2, 2))", "x[:, :, 1]"
POOLS = ("avg_pool", "max_pool", "lp_pool")
LINES = [
    *[f"{F}.{name}1d({LINE}, {'2.0, ' * (name == 'lp_pool')}2, 1)" for name in POOLS[::2]],
    *[f"{F}.{name}2d(x, {'2.0, ' * (name == 'lp_pool')}2, 1)" for name in POOLS],
    *[f"{F}.{name}3d({VOLUME}, {'2.0, ' * (name == 'lp_pool')}2, 1)" for name in POOLS],
    f"{F}.max_pool1d({LINE}, 2, 1, return_indices=True)",
    f"{F}.max_pool2d(x, 2, 1, return_indices=True)",
    f"{F}.max_pool3d({VOLUME}, 2, 1, return_indices=True)",
    *[f"{F}.adaptive_{kind}_pool1d({LINE}, 2)" for kind in ("avg", "max")],
    *[f"{F}.adaptive_{kind}_pool2d(x, 2)" for kind in ("avg", "max")],
    *[f"{F}.adaptive_{kind}_pool3d({VOLUME}, 2)" for kind in ("avg", "max")],
    f"{F}.max_unpool2d(*{F}.max_pool2d(x, 2, return_indices=True), 2)",
    *[f"{F}.interpolate({LINE}, 5, mode={mode!r})" for mode in ("nearest", "linear", "area")],
    *[
        f"{F}.interpolate(x, 5, mode={mode!r})"
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    ],
    *[f"{F}.interpolate(x, 3, mode={m!r}, antialias=True)" for m in ("bilinear", "bicubic")],
    *[f"{F}.interpolate({VOLUME}, 3, mode={m!r})" for m in ("nearest", "trilinear", "area")],
    *[
        f"{F}.pad({what}, {(1,) * 2 * dims}, mode={mode!r})"
        for mode in ("constant", "reflect", "replicate", "circular")
        for what, dims in ((LINE, 1), ("x", 2), (VOLUME, 3))
    ],
    f"{F}.conv1d({LINE}, y[:, :, 1, :2])",
    f"{F}.conv2d(x, y[:, :, :2, :2])",
    f"{F}.conv2d(x, y[:, :, :2, :2], y[:, 0, 0, 0])",
    f"{F}.conv_transpose1d({LINE}, y.transpose(0, 1)[:, :, 1, :2])",
    f"{F}.conv_transpose2d(x, y.transpose(0, 1)[:, :, :2, :2])",
    "torch.pixel_shuffle(x, 2)",
    "torch.pixel_unshuffle(x, 2)",
    "torch.channel_shuffle(x, 2)",
    f"{F}.unfold(x, 2)",
    *[f"{F}.{name}(x, x.shape[2:])" for name in ("layer_norm", "rms_norm")],
    f"{F}.layer_norm(x, x.shape[3:], y[0, 0, 0], y[0, 0, 1])",
    *[f"{F}.batch_norm({what}, None, None, training=True)" for what in (LINE, "x", VOLUME)],
    f"{F}.batch_norm(x, y[0, :, 0, 0].clone(), y[1, :, 0, 0].clone())",
    *[f"{F}.instance_norm({what})" for what in (LINE, "x", VOLUME)],
    f"{F}.group_norm(x, 2)",
    f"{F}.local_response_norm(x, 2)",
    f"{F}.normalize(x)",
    f"{F}.linear(x, y[0, 0])",
    f"{F}.bilinear(x, y, x[0])",
    f"{F}.scaled_dot_product_attention(x, y, y)",
    f"{F}.cosine_similarity(x, y)",
    f"{F}.pairwise_distance(x, y)",
    f"{F}.glu(x, 1)",
    f"{F}.prelu(x, y[0, :, 0, 0])",
    *[f"{F}.{name}(x)" for name in ("elu", "gelu", "mish", "silu", "hardswish", "softsign")],
    f"{F}.dropout2d(x, training=False)",
    f"{F}.one_hot(k, 2)",
    f"{F}.embedding(k, y[0, 0])",
    f"{F}.nll_loss(x, k[:, 0], reduction='none')",
    f"{F}.cross_entropy(x, k[:, 0], reduction='none')",
    f"{F}.cross_entropy(x, y, reduction='none')",
    *[
        f"{F}.{name}(x, y, reduction='none')"
        for name in ("mse_loss", "l1_loss", "kl_div", "binary_cross_entropy")
    ],
    *[f"{F}.{name}(x, y)" for name in ("mse_loss", "smooth_l1_loss", "huber_loss")],
    *[f"{F}.{name}(x)" for name in ("leaky_relu", "hardtanh", "softshrink")],
    f"{F}.threshold(x, 0.1, 0.2)",
    f"{F}.conv_transpose2d(x, y.transpose(0, 1)[:, :, :2, :2], stride=2, output_padding=1)",
    f"{F}.multi_margin_loss(x[:, :, 0, 0], k[:, 0, 0, 0], reduction='none')",
    "torch.fft.fft(x, dim=0)",
    "torch.fft.ifft2(x, dim=(0, 2))",
    "torch.linalg.householder_product(x, y[..., 0])",
    "torch.ormqr(x, y[..., 0], y)",
    "torch.pow(2.0, x)",
    "2 ** x",
    "torch.ldexp(x, y)",
    "torch.ldexp(x, k)",
    "torch.unravel_index(k, (2, 3))",
    "torch.einsum('abcd->dc', x[:1, :1])",
    "torch.einsum('abcd->bc', x[:1, :, :, :1])",
    "torch.einsum('abcd,abcd->bc', x[:1], y[:1])",
    "torch.lu_unpack(*torch.linalg.lu_factor(x + torch.eye(4)))",
    "torch.linalg.lstsq(x[..., :2], y).residuals",
    "torch.linalg.vander(z, N=3)",
    "z.sum_to_size(())",
    "torch.view_copy(x, (2, -1))",
    "torch.hash_tensor(z, 0)",
]
# What lies otherwise along dims of length 1, of one image.
OF_SEVERAL_IMAGES = (
    *[f"{F}.{name}(x, x.shape[2:])" for name in ("layer_norm", "rms_norm")],
    *[f"{F}.batch_norm({what}, None, None, training=True)" for what in ("x", VOLUME)],
    f"{F}.mse_loss(x, y, reduction='none')",
)
# PyTorch's `max_pool1d` is no view of a row of images where no gradient is asked for, `conv3d` lies
# as the library does it that computes it, `rrelu` row by row (`tests.ops.nn.rows`), `huber_loss` as
# its input, expanded or not; and the strides of a dim of one image are lost in `unsqueeze` here.
# Lines whose gradients lie otherwise in some layouts, and why.
DIFFERENT_GRADIENTS = {
    f"{F}.layer_norm(x, x.shape[3:], y[0, 0, 0], y[0, 0, 1])": "as the cotangent",
    f"{F}.batch_norm({VOLUME}, None, None, training=True)": "of one image",
    f"{F}.scaled_dot_product_attention(x, y, y)": "PyTorch's kernel has places before heads",
    f"{F}.prelu(x, y[0, :, 0, 0])": "of what is expanded by rows",
    f"{F}.kl_div(x, y, reduction='none')": "the target's as the cotangent",
    "torch.ldexp(x, k)": "of what is expanded by the exponents, as the result",
    f"{F}.rms_norm(x, x.shape[2:])": "by rows of one image, too",
    f"{F}.lp_pool2d(x, 2.0, 2, 1)": "by rows of one image",
}


@pytest.mark.parametrize("line", LINES)
def test_results_lie_as_in_pytorch(torch: ModuleType, line: str) -> None:
    random = Random(line)
    several = LINE in line or line in OF_SEVERAL_IMAGES
    for _ in range(2 * DRAWS):
        shape = (
            random.choice([2] if several else [1, 2]),
            *random.choice([(4, 4, 4), (4, 4, 4), (4, 2, 4)]),
        )
        first = drawn_layout(random)
        second = first if random.random() < 0.5 else drawn_layout(random)
        check_as_in_pytorch(torch, line, first, second, shape)


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize("line", [line for line in LINES if line not in DIFFERENT_GRADIENTS])
def test_gradients_lie_as_in_pytorch(torch: ModuleType, line: str) -> None:
    random = Random(f"gradients of {line}")
    for _ in range(2 * DRAWS):
        shape = (
            random.choice([1, 2] if LINE not in line else [2]),
            *random.choice([(4, 4, 4), (4, 4, 4), (4, 2, 4)]),
        )
        first = drawn_layout(random)
        second = first if random.random() < 0.5 else drawn_layout(random)
        kind = random.choice(COTANGENTS)
        theirs, refused = outcome(torch, line, first, second, shape, kind)
        if refused:
            continue
        ours, error = outcome(ng, line, first, second, shape, kind)
        if not any(words in error for words in REFUSED):
            assert (ours, error) == (theirs, ""), (line, first, second, shape, kind)


def test_every_line_is_a_call(torch: ModuleType) -> None:
    """A misspelt line would be refused by PyTorch, and compare nothing."""
    plain = Layout()
    assert not [line for line in LINES if run(torch, line, plain, plain, (2, 4, 4, 4))[1]]
