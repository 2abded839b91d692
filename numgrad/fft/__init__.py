"""Discrete Fourier transforms, as ``torch.fft``: in one dim, two and many.

Each is differentiable to any order; a gradient is the adjoint transform.

>>> import numgrad as ng
>>> x = ng.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
>>> spectrum = ng.fft.rfft(x)
>>> spectrum.detach()
tensor([10.+0.j, -2.+2.j, -2.+0.j])
>>> spectrum.abs().square().sum().backward()
>>> x.grad
tensor([12., 20., 20., 28.])
"""

from numgrad.ops.fourier.frequencies import fft_fftfreq as fftfreq
from numgrad.ops.fourier.frequencies import fft_fftshift as fftshift
from numgrad.ops.fourier.frequencies import fft_ifftshift as ifftshift
from numgrad.ops.fourier.frequencies import fft_rfftfreq as rfftfreq
from numgrad.ops.fourier.transforms import TRANSFORMS

fft, fft2, fftn = (TRANSFORMS[_name] for _name in ("fft", "fft2", "fftn"))
ifft, ifft2, ifftn = (TRANSFORMS[_name] for _name in ("ifft", "ifft2", "ifftn"))
rfft, rfft2, rfftn = (TRANSFORMS[_name] for _name in ("rfft", "rfft2", "rfftn"))
irfft, irfft2, irfftn = (TRANSFORMS[_name] for _name in ("irfft", "irfft2", "irfftn"))
hfft, hfft2, hfftn = (TRANSFORMS[_name] for _name in ("hfft", "hfft2", "hfftn"))
ihfft, ihfft2, ihfftn = (TRANSFORMS[_name] for _name in ("ihfft", "ihfft2", "ihfftn"))

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
