"""Rows of convolutions, pooling and resampling in the tables that walk the catalogue."""

from __future__ import annotations

import numgrad as ng
import numgrad.nn.functional as _F

PARTS_FOR_REAL = {"fractional_max_pool2d", "fractional_max_pool3d"} | {
    f"{kind}{dims}d{form}"
    for dims in (2, 3)
    for kind, form in (
        ("avg_pool", ""),
        ("avg_pool", "_backward"),
        ("adaptive_avg_pool", ""),
        ("adaptive_avg_pool", "_backward"),
        ("max_pool", "_with_indices"),
        ("adaptive_max_pool", "_with_indices"),
    )
}
# An operand of so many spatial dims.
_OF = {1: "x", 2: "x.reshape(1, 2, 3, 4)", 3: "x.reshape(1, 2, 2, 3, 2)"}
_POOL = "ceil_mode kernel_size padding self stride"
NODES = {
    "F.fractional_max_pool2d(x, 2, 2, _random_samples=x.detach()[:1, :2, :2])": (
        "FractionalMaxPool2DBackward0",
        "kernel_size output_size result1 self",
    ),
    "F.fractional_max_pool3d(x[None], 1, 1, _random_samples=x.detach()[:1, :1, :3])": (
        "FractionalMaxPool3DBackward0",
        "kernel_size output_size result1 self",
    ),
    "F.conv2d(m.reshape(1, 1, 3, 4), s.reshape(1, 1, 3, 3), padding=1)": (
        "ConvolutionBackward0",
        "bias_sym_sizes_opt dilation groups input output_padding padding stride transposed weight",
    ),
    "F.unfold(x, 2)": (
        "Im2ColBackward0",
        "dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride",
    ),
    "F.fold(x.reshape(1, 4, 6), (3, 4), 2)": (
        "Col2ImBackward0",
        "dilation kernel_size padding stride",
    ),
    "F.pixel_shuffle(x.reshape(4, 2, 3), 2)": ("PixelShuffleBackward0", "upscale_factor"),
    "F.pixel_unshuffle(x.reshape(1, 4, 6), 2)": ("PixelUnshuffleBackward0", "downscale_factor"),
    "torch.channel_shuffle(x.reshape(1, 6, 2, 2), 3)": ("ChannelShuffleBackward0", "groups"),
}
for _dims in (2, 3):
    NODES |= {
        f"F.avg_pool{_dims}d({_OF[_dims]}, 2)": (
            f"AvgPool{_dims}DBackward0",
            f"{_POOL} count_include_pad divisor_override",
        ),
        f"F.adaptive_avg_pool{_dims}d({_OF[_dims]}, 2)": (
            f"AdaptiveAvgPool{_dims}DBackward0",
            "self",
        ),
        f"F.max_pool{_dims}d({_OF[_dims]}, 2)": (
            f"MaxPool{_dims}DWithIndicesBackward0",
            f"{_POOL} dilation result1",
        ),
        f"F.adaptive_max_pool{_dims}d({_OF[_dims]}, 2)": (
            f"AdaptiveMaxPool{_dims}DBackward0",
            "result1 self",
        ),
    }
_SCALES = {1: "scales", 2: "scales_h scales_w", 3: "scales_d scales_h scales_w"}
for _dims in (1, 2, 3):
    _all = f"output_size {_SCALES[_dims]} self_sym_sizes"
    for _mode, _node in (("reflect", "ReflectionPad"), ("replicate", "ReplicationPad")):
        _line = f"F.pad({_OF[_dims]}, {(1, 1) * _dims}, mode='{_mode}')"
        NODES[_line] = (f"{_node}{_dims}DBackward0", "padding self")
    for _mode, _node in (("nearest", "Nearest"), ("nearest-exact", "NearestExact")):
        _line = f"F.interpolate({_OF[_dims]}, size=5, mode='{_mode}')"
        NODES[_line] = (f"Upsample{_node}{_dims}DBackward0", _all)
for _mode, _node, _dims in (
    ("linear", "Linear1D", 1),
    ("bilinear", "Bilinear2D", 2),
    ("trilinear", "Trilinear3D", 3),
    ("bicubic", "Bicubic2D", 2),
):
    _all = f"align_corners output_size {_SCALES[_dims]} self_sym_sizes"
    NODES[f"F.interpolate({_OF[_dims]}, size=5, mode='{_mode}')"] = (
        f"Upsample{_node}Backward0",
        _all,
    )
    if _dims == 2:
        _line = f"F.interpolate({_OF[_dims]}, size=5, mode='{_mode}', antialias=True)"
        NODES[_line] = (f"Upsample{_node}AaBackward0", _all)
_NOT_READ = {"result1", "weight"}
NOT_KEPT = {
    node: " ".join(sorted(set(saved.split()) - _NOT_READ)) for node, saved in NODES.values()
}
KEPT_TOO = {"ConvolutionBackward0": "self"}
# Derivatives of derivatives, and what PyTorch makes of copies.
PARTS = {
    name.replace("Backward0", "BackwardBackward0")
    for name in NOT_KEPT
    if name.startswith(
        ("Convolution", "AvgPool", "AdaptiveAvgPool", "Reflect", "Replic", "Upsample")
    )
} | {f"CircularPad{dims}D{form}Backward0" for dims in (1, 2, 3) for form in ("", "Backward")}
# Their results lie row by row here, whichever way the input does.
LEFT_OUT = {
    *("affine_grid_generator", "conv_tbc", "native_channel_shuffle"),
    *("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"),
    "convolution",
    "channel_shuffle",
    "pixel_shuffle",
    "pixel_unshuffle",
    *(f"conv{form}{dims}d" for form in ("", "_transpose") for dims in (1, 2, 3)),
    *("adaptive_avg_pool1d", "adaptive_max_pool1d", "avg_pool1d", "max_pool1d_with_indices"),
    *(f"max_pool{dims}d" for dims in (1, 2, 3)),
}
# Of which PyTorch has no complex forms, or which are parts of derivatives.
_OF_REAL = """
adaptive_avg_pool2d adaptive_avg_pool2d_backward adaptive_avg_pool3d
adaptive_avg_pool3d_backward adaptive_max_pool2d_with_indices
adaptive_max_pool3d_with_indices avg_pool2d avg_pool2d_backward avg_pool3d
avg_pool3d_backward circular_pad1d circular_pad1d_backward circular_pad2d
circular_pad2d_backward circular_pad3d circular_pad3d_backward col2im
convolution_weight im2col max_pool2d_with_indices max_pool3d_with_indices
reflection_pad1d reflection_pad1d_backward reflection_pad2d
reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward
replication_pad1d replication_pad1d_backward replication_pad2d
replication_pad2d_backward replication_pad3d replication_pad3d_backward
upsample_bicubic2d upsample_bicubic2d_aa upsample_bicubic2d_aa_backward
upsample_bicubic2d_backward upsample_bilinear2d upsample_bilinear2d_aa
upsample_bilinear2d_aa_backward upsample_bilinear2d_backward upsample_linear1d
upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward
upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d
upsample_nearest3d_backward upsample_nearest_exact1d
upsample_nearest_exact1d_backward upsample_nearest_exact2d
upsample_nearest_exact2d_backward upsample_nearest_exact3d
upsample_nearest_exact3d_backward upsample_trilinear3d
upsample_trilinear3d_backward fractional_max_pool2d fractional_max_pool3d
"""
COMPLEX: dict[str, list[str]] = {
    # Compositions of convolutions of parts in PyTorch, with nodes of sums.
    "convolution": [],
    "convolution_with_bias": [],
    "pixel_shuffle": ["torch.pixel_shuffle(y[:, :, :2].reshape(4, 2, 2), 2)"],
    "pixel_unshuffle": ["torch.pixel_unshuffle(x[:, :2], 2)"],
    "channel_shuffle": ["torch.channel_shuffle(x.mT, 2)"],
    **{name: [] for name in _OF_REAL.split()},
}
DISPATCH = {
    "local_response_norm": lambda x, y: _F.local_response_norm(x[None], 2),
    "constant_pad_nd": lambda x, y: ng.constant_pad_nd(x, (1, 2), 0.5),
    "conv_tbc": lambda x, y: ng.conv_tbc(x[None], y[:, :2].repeat(2, 1)[None, :4], y[0, :2]),
    "native_channel_shuffle": lambda x, y: ng.native_channel_shuffle(x.mT[None, ..., None], 2),
    "adaptive_avg_pool1d": lambda x, y: ng.adaptive_avg_pool1d(x, 2),
    "adaptive_max_pool1d": lambda x, y: ng.adaptive_max_pool1d(x, 2)[0],
    "avg_pool1d": lambda x, y: ng.avg_pool1d(x, 2),
    "avg_pool2d": lambda x, y: _F.avg_pool2d(x[None], 2),
    "avg_pool3d": lambda x, y: _F.avg_pool3d(x[None, None], (1, 2, 2)),
    "conv1d": lambda x, y: ng.conv1d(x, y[None, :, :2]),
    "conv2d": lambda x, y: ng.conv2d(x[None], y[None, None, :2, :2]),
    "conv3d": lambda x, y: ng.conv3d(x[None, None], y[None, None, None, :2, :2]),
    "conv_transpose1d": lambda x, y: ng.conv_transpose1d(x, y[:, None]),
    "conv_transpose2d": lambda x, y: ng.conv_transpose2d(x[None], y[None, None, :2, :2]),
    "conv_transpose3d": lambda x, y: ng.conv_transpose3d(
        x[None, None], y[None, None, None, :2, :2]
    ),
    "convolution": lambda x, y: ng.convolution(
        x[None], y[None, :, :2], None, (1,), (0,), (1,), False, (0,), 1
    ),
    "max_pool1d": lambda x, y: ng.max_pool1d(x, 2),
    "functional max_pool1d": lambda x, y: _F.max_pool1d(x, 2, ceil_mode=True),
    "max_pool2d": lambda x, y: ng.max_pool2d(x[None], 2),
    "functional max_pool2d": lambda x, y: _F.max_pool2d(x[None], 2, stride=1),
    "max_pool3d": lambda x, y: ng.max_pool3d(x[None, None], (1, 2, 2)),
    "functional max_pool3d": lambda x, y: _F.max_pool3d(x[None, None], (1, 2, 2)),
    "max_pool1d_with_indices": lambda x, y: ng.max_pool1d_with_indices(x, 2)[0],
    "functional max_pool1d_with_indices": lambda x, y: _F.max_pool1d_with_indices(x, 2)[0],
    "max_pool2d_with_indices": lambda x, y: _F.max_pool2d_with_indices(x[None], 2)[0],
    "max_pool3d_with_indices": lambda x, y: _F.max_pool3d_with_indices(x[None, None], (1, 2, 2))[0],
    "nn.functional.pad": lambda x, y: _F.pad(x, (1, 1), "reflect"),
}
