"""Short-time Fourier transforms: the spectra of frames that slide along a signal, and back."""

from __future__ import annotations

from numgrad.base.dtypes import of_numpy
from numgrad.graph.recorder import is_traced_array
from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.creation.creation import ones
from numgrad.ops.fourier.primitives import complex_to_complex, complex_to_real, real_to_complex
from numgrad.ops.linalg.permuting import transpose
from numgrad.ops.movement.complex_views import view_as_real
from numgrad.ops.movement.padding import constant_pad_nd
from numgrad.ops.movement.shape import view
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.movement.unit_dims import expand, squeeze, unsqueeze
from numgrad.ops.movement.windows import overlapped, unfold
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.pointwise.division import div
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.padding import pad as padded

__all__ = ["istft", "stft"]

_NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,{}To suppress this warning "
    "and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)
_LEAKAGE = (
    "which is known to cause spectral leakage. Other windows such as torch.hann_window or "
    "torch.hamming_window are recommended to reduce spectral leakage."
)
_INVERSION = "Please provide the same window used by stft to make the inversion lossless."
_ALL_WITHIN = 1e-11  # the least weight that overlapping windows may have, as in PyTorch
_PLAIN, _BY_ROOT, _BY_LENGTH = 0, 1, 2  # how primitives number normalisations


def _flag(value: bool | None) -> str:
    return "None" if value is None else str(int(value))


def _type_of(tensor: Tensor) -> str:
    """Return the name of a tensor's type that PyTorch's messages about these functions have."""
    name = tensor.dtype.scalar_name
    return f"CPU{name}Type" if tensor.dtype.is_complex else f"torch.{name}Tensor"


def _described(window: Tensor | None) -> str:
    """Return a window as PyTorch's messages have it."""
    return "None" if window is None else f"{_type_of(window)}{{{list(window._array.shape)}}}"


def _whole_window(
    window: Tensor | None, win_length: int, n_fft: int, like: Tensor
) -> Tensor | None:
    """Return a window with zeros on both sides, of the length of a transform."""
    if window is None:
        if win_length == n_fft:
            return None
        dtype = of_numpy(like._array.real.dtype)
        window = ones(win_length, dtype=dtype)
    left = (n_fft - win_length) // 2
    whole: Tensor = window
    if win_length < n_fft:
        whole = constant_pad_nd(window, (left, n_fft - win_length - left), 0.0)
    return whole


@declare(
    "stft(Tensor input, int n_fft, int? hop_length=None, int? win_length=None, "
    "Tensor? window=None, bool? center=True, str pad_mode='reflect', bool normalized=False, "
    "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None)"
)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    center: bool | None,
    pad_mode: str,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None,
) -> Tensor:
    """Return the short-time Fourier transform of a signal: spectra of its overlapping frames.

    The frame at position t is ``input[t * hop_length : t * hop_length + n_fft]`` times the window.
    The transform is linear; its gradient is the adjoint one: inverse transforms times the window,
    added up where frames overlap.

    Parameters
    ----------
    input
        A signal, or a batch of signals in rows; real floating point or complex.
    n_fft
        How many points a frame has.
    hop_length
        How far it is from one frame to the next; a quarter of `n_fft` unless given.
    win_length
        How long the window is; `n_fft` unless given. It stands in the middle of a frame.
    window
        What frames are multiplied by; ones unless given, with a warning.
    center
        Whether the signal is padded by half of a frame at both ends, so that frames have their
        middles at multiples of `hop_length`.
    pad_mode
        How: a mode of ``nn.functional.pad``.
    normalized
        Whether spectra are divided by the root of `n_fft`.
    onesided
        Whether there is only the half of spectra that isn't the conjugate of the other; so it is
        unless given where signal and window are real.
    return_complex
        Whether the result is complex, which is to be said where signal and window are real. False,
        which warns, gives real and imaginary parts in a last dim.
    align_to_window
        Whether windows, not frames, begin and end with the signal; only where `center` is False.

    Returns
    -------
    Tensor
        Spectra in columns: of shape (frequencies, frames), behind the batch's length if the input
        has one.

    Raises
    ------
    RuntimeError
        If a length does not fit, the input is of another kind or has no one or two dims, or
        `return_complex` is missing.

    >>> import numgrad as ng
    >>> signal = ng.tensor([1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, 0.0])
    >>> ng.stft(signal, 4, 4, window=ng.ones(4), center=False, return_complex=True).abs()
    tensor([[0., 0.],
            [2., 2.],
            [0., 0.]])
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        lead = (1,) * (3 - input._array.ndim)
        shape = input._array.shape
        input = padded(view(input, (*lead, *shape)), [n_fft // 2, n_fft // 2], pad_mode)
        input = view(input, input._array.shape[3 - len(shape) :])
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        warn(_NO_WINDOW.format(_LEAKAGE))
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will "
            "return complex tensors for all inputs, and return_complex=False will raise an error.\n"
            "Note: you can still call torch.view_as_real on the complex output to recover the old "
            "return format."
        )
    call = (
        f"stft({_type_of(input)}{list(input._array.shape)}, n_fft={n_fft}, "
        f"hop_length={hop}, win_length={width}, window={_described(window)}, "
        f"normalized={int(normalized)}, onesided={_flag(onesided)}, "
        f"return_complex={_flag(return_complex)}, align_to_window={_flag(align_to_window)}) : "
    )
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(f"{call}expected a tensor of floating point or complex values")
    if input._array.ndim not in (1, 2):
        raise RuntimeError(f"{call}expected a 1D or 2D tensor")
    length = input._array.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{call}expected 0 < n_fft < {length}, but got n_fft={width}")
    if hop <= 0:
        raise RuntimeError(f"{call}expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call}expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and window._array.shape != (width,):
        raise RuntimeError(
            f"{call}expected a 1D window tensor of size equal to win_length={width}, but got "
            f"window with size {list(window._array.shape)}"
        )
    signal = unsqueeze(input, 0) if input._array.ndim == 1 else input
    if align_to_window:
        left = (n_fft - width) // 2
        signal = constant_pad_nd(signal, (left, n_fft - width - left), 0.0)
    frames = unfold(signal, 1, n_fft, hop)
    whole = _whole_window(window, width, n_fft, input)
    if whole is not None:
        frames = mul(frames, whole)
    spectra = _spectra(frames, normalized, onesided)
    spectra = transpose(spectra, 1, 2)
    if input._array.ndim == 1:
        spectra = squeeze(spectra, 0)
    return view_as_real(spectra) if return_complex is False else spectra


def _spectra(frames: Tensor, normalized: bool, onesided: bool | None) -> Tensor:
    """Return the transforms of frames along the last of three dims."""
    scale = _BY_ROOT if normalized else _PLAIN
    spectra: Tensor
    if frames.dtype.is_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        spectra = complex_to_complex.apply(frames, dims=(2,), normalization=scale, forward=True)
    else:
        spectra = real_to_complex.apply(
            frames, dims=(2,), normalization=scale, onesided=onesided is not False
        )
    return spectra


@declare(
    "istft(Tensor input, int n_fft, int? hop_length=None, int? win_length=None, "
    "Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, "
    "int? length=None, bool return_complex=False)"
)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> Tensor:
    """Return the signal of a short-time Fourier transform, as `stft` returns it.

    Frames that do not belong together are fitted by least squares: what overlaps is weighted by the
    window and divided by the sum of the squares of windows there (Griffin and Lim, 1984). The
    gradient is the adjoint map.

    Parameters
    ----------
    input
        Spectra in columns, complex: (frequencies, frames), and a batch's length before these.
    n_fft, hop_length, win_length, window, center, normalized, onesided
        As they were for `stft`; `onesided` follows from the number of frequencies unless given.
    length
        How long the signal was; a longer one than frames reach is padded with zeros, which warns.
    return_complex
        Whether the signal is complex: the spectra must have both halves then.

    Raises
    ------
    RuntimeError
        If a length does not fit, the input is not complex, or windows leave gaps (which compiled
        functions do not look for: they divide by 0).

    >>> import numgrad as ng
    >>> signal, window = ng.arange(8.0), ng.hann_window(4)
    >>> spectra = ng.stft(signal, 4, window=window, return_complex=True)
    >>> bool(ng.allclose(ng.istft(spectra, 4, window=window), signal, atol=1e-5))
    True
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        warn(_NO_WINDOW.format(_INVERSION))
    shape = input._array.shape
    call = (
        f"istft({_type_of(input)}{list(shape)}, n_fft={n_fft}, hop_length={hop}, "
        f"win_length={width}, window={_described(window)}, center={int(center)}, "
        f"normalized={int(normalized)}, onesided={_flag(onesided)}, "
        f"length={'None' if length is None else length}, return_complex={int(return_complex)}) "
    )
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if len(shape) < 2:
        size = len(shape) + 1
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{size}, {size - 1}], but got -3)"
        )
    if not input._array.size:
        raise RuntimeError(f"{call}: input tensor cannot be empty.")
    if len(shape) > 3:
        raise RuntimeError(
            f"{call}: expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}"
        )
    one_side = shape[-2] != n_fft if onesided is None else onesided
    expected, what = (n_fft // 2 + 1, "n_fft / 2 + 1") if one_side else (n_fft, "n_fft")
    if shape[-2] != expected:
        raise RuntimeError(
            f"{call}: expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match {what} when onesided={one_side}, but got {shape[-2]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{call}: expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (width,):
        raise RuntimeError(
            f"{call}: Invalid window shape. window has to be 1D and length of `win_length`"
        )
    if return_complex and one_side:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    spectra = transpose(input if len(shape) == 3 else unsqueeze(input, 0), 1, 2)
    frames = _frames(spectra, n_fft, normalized, return_complex)
    whole = _whole_window(window, width, n_fft, frames)
    if whole is None:
        whole = ones(n_fft, dtype=of_numpy(frames._array.real.dtype))
    signal = _added_up(call, mul(frames, whole), whole, hop, center, length)
    return squeeze(signal, 0) if len(shape) == 2 else signal


def _frames(spectra: Tensor, n_fft: int, normalized: bool, return_complex: bool) -> Tensor:
    """Return the inverse transforms of spectra along the last of three dims."""
    scale = _BY_ROOT if normalized else _BY_LENGTH
    frames: Tensor
    if return_complex:
        frames = complex_to_complex.apply(spectra, dims=(2,), normalization=scale, forward=False)
    else:
        half = slice_of(spectra, 2, 0, n_fft // 2 + 1, 1)
        frames = complex_to_real.apply(half, dims=(2,), normalization=scale, last_size=n_fft)
    return frames


def _added_up(
    call: str, frames: Tensor, window: Tensor, hop: int, center: bool, length: int | None
) -> Tensor:
    """Return frames, added up where they overlap and divided by the weight of windows there."""
    batch, count, n_fft = frames._array.shape
    reach = n_fft + hop * (count - 1)
    squares = expand(mul(window, window), (1, count, n_fft))
    signal = overlapped(frames, (batch, reach), 1, n_fft, hop)
    weights = overlapped(squares, (1, reach), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else reach - n_fft // 2 if center else reach
    signal = slice_of(signal, 1, start, min(end, reach), 1)
    weights = slice_of(weights, 1, start, min(end, reach), 1)
    if not is_traced_array(weights._array) and not (abs(weights._array) >= _ALL_WITHIN).all():
        raise RuntimeError(f"{call}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signal = div(signal, weights)
    if end > reach:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings."
        )
        signal = constant_pad_nd(signal, (0, end - reach), 0.0)
    return signal
