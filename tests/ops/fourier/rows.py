"""Rows of Fourier transforms in the tables that walk the catalogue."""

from __future__ import annotations

from numgrad import fft
from numgrad.ops.fourier import transforms

NODES = {
    "torch.fft.fftn(c, dim=(1, 0))": ("FftC2CBackward0", "dim forward normalization"),
    "torch.fft.rfft(m)": ("FftR2CBackward0", "dim normalization onesided self"),
    "torch.fft.irfft(c)": ("FftC2RBackward0", "dim normalization"),
}
NOT_KEPT = {"FftR2CBackward0": "self"}
DISPATCH = {
    **{f"fft.{name}": lambda x, y, f=f: f(x).abs() for name, f in transforms.TRANSFORMS.items()},
    "fft.fftshift": lambda x, y: fft.fftshift(x) * fft.ifftshift(y, 0),
}
COMPLEX = {
    "fft_c2c": ["torch.fft.fft(m)", "torch.fft.ifft2(m)", "torch.fft.fftn(m, (3, 5))"],
    "fft_r2c": ["torch.fft.rfft(r)", "torch.fft.ihfftn(r)"],
    "fft_c2r": ["torch.fft.irfft(m)", "torch.fft.hfft2(m)"],
}
PARTS_FOR_REAL = {"fft_r2c"}
