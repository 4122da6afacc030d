"""Sound: WAV files as numbers, a made-up one to practise on, and cutting a signal into frames.

Stands on ``errors``, ``files`` and, for file names, ``lines``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tinyattn.data.lines import Path, file_name
from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, ShapeError, message
from tinyattn.files import read_whole, write_whole

Samples = npt.NDArray[np.float64]

_PCM, _FLOAT, _EXTENSIBLE = 0x0001, 0x0003, 0xFFFE
_OTHER_FORMATS = {0x0002: "ADPCM", 0x0006: "A-law", 0x0007: "mu-law", 0x0011: "IMA ADPCM", 0x0055: "MP3"}
_SAME_GUID = bytes.fromhex(
    "000000001000800000aa00389b71"
)  # what follows the format number in an extensible file


def read_wav(source: Path | bytes) -> tuple[int, Samples]:
    """Read a WAV file: whole numbers of 8, 16, 24 or 32 bits, or floating point of 32 or 64 bits.

    Parameters
    ----------
    source : str, path or bytes
        The file, or what is in it.

    Returns
    -------
    rate : int
        Samples in a second.
    samples : ndarray of float64, shape (n,) or (n, channels)
        From -1 to 1, where -1 is the smallest whole number; a floating-point file may go beyond.  One channel
        gives one axis.

    Raises
    ------
    DataFileError
        When it is no WAV file, is cut short, is compressed, or contradicts itself.
    MissingFileError
        When there is none.
    OSError
        When the file cannot be read.

    Examples
    --------
    >>> rate, samples = read_wav(wav_bytes(8000, [0.0, 0.5, -1.0]))
    >>> rate, samples
    (8000, array([ 0. ,  0.5, -1. ]))
    >>> read_wav(b"OggS" + bytes(60))
    Traceback (most recent call last):
        ...
    tinyattn.errors.DataFileError: no WAV file: it begins with b'OggS'; b'RIFF', ...
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        path, data = "", bytes(source)
    else:
        path = file_name(source, "")
        data = read_whole(path)
    _check_riff(data, path)
    layout: _Layout | None = None
    for name, body, size, start in _chunks(data, path):
        if name == b"fmt ":
            layout = _Layout(body, path)
        elif name == b"data":
            if layout is None:
                raise DataFileError("the part 'data' comes before 'fmt ', which says how to read it.", path)
            if len(body) < size:
                raise DataFileError(
                    f"cut short: {size} bytes of sound were expected from byte {start} on,"
                    f" {len(body)} are there.",
                    path,
                )
            return layout.rate, layout.samples(body, path)
    raise DataFileError("no part 'data' in it, which would hold the sound.", path)


def write_wav(path: Path, rate: int, samples: npt.ArrayLike) -> None:
    """Write a WAV file with 16 bits a sample.

    Parameters
    ----------
    path : str or path
        Where the file goes; its folder must exist.
    rate : int
        Samples in a second.
    samples : array_like, shape (n,) or (n, channels)
        From -1 to 1; a number beyond is refused, not clipped.

    Raises
    ------
    OSError
        When the folder is missing or cannot be written; an old file is then untouched.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "tones.wav")
    >>> write_wav(path, 8000, made_up_wave(8000))
    >>> rate, samples = read_wav(path)
    >>> rate, samples.shape
    (8000, (6880,))
    """
    name = file_name(path, "")
    write_whole(name, wav_bytes(rate, samples))


def wav_bytes(rate: int, samples: npt.ArrayLike) -> bytes:
    """What `write_wav` writes, as bytes.

    Parameters
    ----------
    rate, samples
        As for `write_wav`.

    Returns
    -------
    bytes

    Examples
    --------
    >>> wav_bytes(8000, [0.5])[-2:].hex()
    '0040'
    """
    rate = _whole("wav_bytes: rate", rate, 1)
    sound = _signal(samples, "wav_bytes", most_axes=2)
    channels = sound.shape[1] if sound.ndim == 2 else 1
    if not 1 <= channels <= 0xFFFF:
        raise ShapeError(f"wav_bytes: samples has shape {sound.shape}; (n,) or (n, channels) was expected.")
    if sound.size and not np.abs(sound).max() <= 1:
        worst = sound.flat[int(np.argmax(~(np.abs(sound) <= 1)))]
        raise ArgumentError(
            message(
                f"wav_bytes: a sample is {worst:g}.",
                "The file holds numbers from -1 to 1, and cutting the others off would be heard.",
                "Write samples / np.abs(samples).max().",
            )
        )
    if 2 * channels * rate >= 1 << 32 or 2 * sound.size >= (1 << 32) - 64:
        raise ArgumentError(
            f"wav_bytes: {sound.size} samples, {channels} channels at rate {rate}; a WAV file counts to 2**32 bytes."
        )
    body = np.minimum(np.round(sound * 32768), 32767).astype("<i2").tobytes()
    layout = struct.pack(
        "<4sIHHIIHH", b"fmt ", 16, _PCM, channels, rate, 2 * channels * rate, 2 * channels, 16
    )
    parts = layout + struct.pack("<4sI", b"data", len(body)) + body
    return struct.pack("<4sI4s", b"RIFF", 4 + len(parts), b"WAVE") + parts


def made_up_wave(
    rate: int = 8000,
    chords: Sequence[Sequence[float]] = ((220, 440), (330,), (262, 330, 392)),
    seconds: float = 0.22,
    gap: float = 0.1,
) -> Samples:
    """A signal without any recording: sums of tones with silence between, the same at every call.

    Parameters
    ----------
    rate : int
        Samples in a second.
    chords : sequence of sequences of float
        The tones, in Hertz, that sound together; one chord after the other.
    seconds, gap : float
        How long each chord lasts, and the silence between two.

    Returns
    -------
    ndarray of float64, shape (n,)
        At most 0.5 in size.  Each chord swells and fades like half a sine.

    Examples
    --------
    >>> wave = made_up_wave(rate=8000)
    >>> wave.shape
    (6880,)
    >>> bool(np.abs(wave).max() <= 0.5), float(np.abs(wave[1760:2560]).max())
    (True, 0.0)
    """
    rate = _whole("made_up_wave: rate", rate, 1)
    if not (0 < seconds <= 3600 and 0 <= gap <= 3600):
        raise ArgumentError(
            f"made_up_wave: seconds={seconds}, gap={gap}; from 0 to 3600 was expected, a chord above 0."
        )
    time = np.arange(round(seconds * rate)) / rate
    swell = np.sin(np.pi * time / seconds)
    pieces: list[Samples] = []
    for chord in chords:
        if not len(chord) or not all(0 < tone < rate / 2 for tone in chord):
            raise ArgumentError(
                message(
                    f"made_up_wave: the chord {tuple(chord)} cannot be made at rate {rate}.",
                    f"A chord has tones, each above 0 and below half the rate, {rate / 2:g} Hertz.",
                )
            )
        tones = np.sin(2 * np.pi * np.multiply.outer(np.asarray(chord, dtype=np.float64), time))
        pieces += [np.zeros(round(gap * rate))] if pieces else []
        pieces.append(0.5 * swell * tones.mean(axis=0))
    if not pieces:
        raise ArgumentError("made_up_wave: there is no chord; one or more were expected.")
    return np.concatenate(pieces)


def frames(samples: npt.ArrayLike, length: int, hop: int, pad: bool = False) -> Samples:
    """Cut a signal into pieces of equal length, one every `hop` samples: the "words" of a recording.

    Parameters
    ----------
    samples : array_like, shape (n,)
        The signal, one channel.
    length, hop : int
        Samples in a frame, and from the start of one to the start of the next.
    pad : bool, optional
        False: only whole frames; the rest at the end is left out.  True: enough frames that the last sample
        is in one, filled up with zeros.

    Returns
    -------
    ndarray of float64, shape (n_frames, length)
        Without `pad` n_frames is 1 + (n - length) // hop, and 0 for a signal shorter than a frame.

    Examples
    --------
    >>> frames([1, 2, 3, 4, 5], length=2, hop=2)
    array([[1., 2.],
           [3., 4.]])
    >>> frames([1, 2, 3, 4, 5], length=2, hop=2, pad=True)[-1]
    array([5., 0.])
    """
    length, hop = _whole("frames: length", length, 1), _whole("frames: hop", hop, 1)
    signal = _signal(samples, "frames", most_axes=1)
    if length > 1 << 34:
        raise ShapeError(f"frames: length={length} samples are more than any computer has room for.")
    over = len(signal) - length  # samples beyond the first frame
    if pad:
        count = 0 if not len(signal) else 1 + -(-max(over, 0) // hop)
        signal = np.concatenate(
            [signal, np.zeros(max(0, (count - 1) * hop + length - len(signal)) if count else 0)]
        )
    else:
        count = 0 if over < 0 else 1 + over // hop
    cut = np.empty((count, length))
    for place in range(count):
        cut[place] = signal[place * hop : place * hop + length]
    return cut


class _Layout:
    """What the part ``fmt `` says: kind and width of the numbers, channels, rate."""

    def __init__(self, body: bytes, path: str) -> None:
        if len(body) < 16:
            raise DataFileError(f"the part 'fmt ' has {len(body)} bytes; at least 16 were expected.", path)
        kind, self.channels, self.rate, _, self.block, self.bits = struct.unpack("<HHIIHH", body[:16])
        if kind == _EXTENSIBLE:
            if len(body) < 40 or body[26:40] != _SAME_GUID:
                raise DataFileError(
                    "an extensible format that is neither whole numbers nor floating point.", path
                )
            kind = struct.unpack("<H", body[24:26])[0]
        self.floating = kind == _FLOAT
        allowed = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64)}.get(kind)
        if allowed is None:
            name = _OTHER_FORMATS.get(kind, f"format {kind:#06x}")
            raise DataFileError(
                f"the sound is stored as {name}; whole numbers or floating point were expected.", path
            )
        if self.bits not in allowed:
            what = "floating point" if self.floating else "whole numbers"
            raise DataFileError(
                f"{what} of {self.bits} bits; one of {', '.join(map(str, allowed))} was expected.", path
            )
        if not self.channels or not self.rate:
            raise DataFileError(
                f"{self.channels} channels at rate {self.rate}; at least 1 was expected of both.", path
            )
        if self.block != self.channels * self.bits // 8:
            raise DataFileError(
                f"{self.block} bytes for {self.channels} samples of {self.bits} bits that belong together;"
                f" {self.channels * self.bits // 8} were expected.",
                path,
            )

    def samples(self, body: bytes, path: str) -> Samples:
        if len(body) % self.block:
            raise DataFileError(
                f"{len(body)} bytes of sound are no whole number of samples of {self.block} bytes each.", path
            )
        flat = self._numbers(body)
        if self.floating and not np.isfinite(flat).all():
            place = int(np.argmin(np.isfinite(flat)))
            raise DataFileError(
                f"sample {place // self.channels} is {flat[place]}; finite numbers were expected.", path
            )
        return flat if self.channels == 1 else flat.reshape(-1, self.channels)

    def _numbers(self, body: bytes) -> Samples:
        if self.floating:
            with np.errstate(invalid="ignore"):
                return np.frombuffer(body, dtype=f"<f{self.bits // 8}").astype(np.float64)
        if self.bits == 8:
            return (np.frombuffer(body, dtype=np.uint8) - 128.0) / 128  # eight bits alone are without sign
        if self.bits == 24:  # three bytes become the upper three of four: the sign comes out right
            wide = np.zeros((len(body) // 3, 4), dtype=np.uint8)
            wide[:, 1:] = np.frombuffer(body, dtype=np.uint8).reshape(-1, 3)
            whole = wide.view("<i4")[:, 0]
        else:
            whole = np.frombuffer(body, dtype=f"<i{self.bits // 8}")
        return whole / 2.0 ** (8 * whole.itemsize - 1)


def _check_riff(data: bytes, path: str) -> None:
    if data[:4] in (b"RIFX", b"RF64"):
        raise DataFileError(f"a WAV file of the kind {data[:4].decode()}; only b'RIFF' is read here.", path)
    if not data:
        raise DataFileError("nothing in it; a WAV file was expected.", path)
    if data[:4] != b"RIFF" or (len(data) >= 12 and data[8:12] != b"WAVE"):
        found = data[:4] if data[:4] != b"RIFF" else data[:12]
        raise DataFileError(
            f"no WAV file: it begins with {found!r}; b'RIFF', a size and b'WAVE' were expected.", path
        )
    if len(data) < 12:
        raise DataFileError(f"cut short: {len(data)} bytes, where the head alone has 12.", path)


def _chunks(data: bytes, path: str) -> Iterator[tuple[bytes, bytes, int, int]]:
    """The parts of the file: name, content, the size it should have, and where it starts."""
    start = 12
    while start + 8 <= len(data):
        name, size = struct.unpack("<4sI", data[start : start + 8])
        start += 8
        yield name, data[start : start + size], size, start
        if start + size > len(data):
            raise DataFileError(
                f"cut short: part {name!r} should have {size} bytes from byte {start} on,"
                f" {len(data) - start} are there.",
                path,
            )
        start += size + size % 2  # a part of odd length is filled up with one byte


def _signal(samples: npt.ArrayLike, where: str, most_axes: int) -> Samples:
    try:
        signal = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{where}: samples holds something that is no number.") from None
    if not 1 <= signal.ndim <= most_axes:
        expected = "(n,)" if most_axes == 1 else "(n,) or (n, channels)"
        instead = "Take one channel, samples[:, 0], or their mean." if signal.ndim == 2 else ""
        raise ShapeError(
            message(
                f"{where}: samples has shape {signal.shape}.", f"The shape {expected} was expected.", instead
            )
        )
    return signal


def _whole(name: str, value: int, least: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{name} is {value!r}; a whole number was expected.")
    if value < least:
        raise ArgumentError(f"{name} is {value}; it must be at least {least}.")
    return int(value)
