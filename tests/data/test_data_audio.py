"""WAV files byte by byte, the made-up signal, and frames."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from tinyattn.data import frames, made_up_wave, read_wav, wav_bytes, write_wav
from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, ShapeError

GUID = bytes.fromhex("000000001000800000aa00389b71")


def part(name: bytes, body: bytes) -> bytes:
    return struct.pack("<4sI", name, len(body)) + body + b"\0" * (len(body) % 2)


def layout(kind: int, bits: int, channels: int = 1, rate: int = 8000, block: int | None = None) -> bytes:
    block = channels * bits // 8 if block is None else block
    return struct.pack("<HHIIHH", kind, channels, rate, rate * block, block, bits)


def riff(*parts: bytes) -> bytes:
    body = b"WAVE" + b"".join(parts)
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def wav(kind: int, bits: int, body: bytes, channels: int = 1) -> bytes:
    return riff(part(b"fmt ", layout(kind, bits, channels)), part(b"data", body))


KINDS = {
    "8 bits": (wav(1, 8, bytes([128, 192, 0, 255])), [0, 0.5, -1, 127 / 128]),
    "16 bits": (wav(1, 16, bytes.fromhex("000000400080ff7f")), [0, 0.5, -1, 32767 / 32768]),
    "24 bits": (wav(1, 24, bytes.fromhex("000040000080ffffff")), [0.5, -1, -(2.0**-23)]),
    "32 bits": (wav(1, 32, struct.pack("<3i", 2**30, -(2**31), -1)), [0.5, -1, -(2.0**-31)]),
    "floating point 32": (wav(3, 32, struct.pack("<3f", 0.25, -1, 1.5)), [0.25, -1, 1.5]),
    "floating point 64": (wav(3, 64, struct.pack("<2d", 0.1, -0.3)), [0.1, -0.3]),
}


@pytest.mark.parametrize("kind", KINDS, ids=list(KINDS))
def test_each_kind_of_number_is_read_exactly(kind: str, tmp_path: Path) -> None:
    data, wanted = KINDS[kind]
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    for source in (data, bytearray(data), path, str(path)):
        rate, samples = read_wav(source)  # type: ignore[arg-type]
        assert rate == 8000 and type(rate) is int
        assert samples.dtype == np.float64 and samples.tolist() == wanted


@pytest.mark.parametrize(("kind", "bits"), [(1, 24), (3, 32)])
def test_extensible_files_are_read(kind: int, bits: int) -> None:
    more = struct.pack("<HHIH", 22, bits, 0, kind) + GUID
    body = bytes.fromhex("000040") if bits == 24 else struct.pack("<f", 0.5)
    data = riff(part(b"fmt ", layout(0xFFFE, bits) + more), part(b"data", body))
    assert read_wav(data)[1].tolist() == [0.5]


def test_channels_are_columns() -> None:
    _, samples = read_wav(wav(1, 16, struct.pack("<6h", 0, 8192, 16384, -8192, -16384, 0), channels=2))
    assert samples.tolist() == [[0, 0.25], [0.5, -0.25], [-0.5, 0]]


def test_other_parts_are_passed_over_and_odd_ones_filled_up() -> None:
    before = (part(b"LIST", b"abc"), part(b"fmt ", layout(1, 16) + b"\0\0"), part(b"fact", b"1234"))
    data = riff(*before, part(b"data", b"\0\x20\0\xe0"), part(b"tail", b"x"))
    assert read_wav(data)[1].tolist() == [0.25, -0.25]
    assert read_wav(data + b"rest")[1].tolist() == [0.25, -0.25]


def test_size_in_the_head_is_not_trusted_and_silence_is_allowed() -> None:
    data = wav(1, 16, b"\0\x20")
    assert read_wav(data[:4] + b"\xff\xff\xff\xff" + data[8:])[1].tolist() == [0.25]
    assert read_wav(wav(1, 16, b""))[1].shape == (0,)
    assert read_wav(wav(1, 16, b"", channels=2))[1].shape == (0, 2)


FMT = part(b"fmt ", layout(1, 16))
REFUSALS = {
    "empty": (b"", "nothing in it; a WAV file was expected"),
    "Ogg": (b"OggS" + bytes(40), "begins with b'OggS'; b'RIFF', a size and b'WAVE' were expected"),
    "AVI": (b"RIFF\0\0\0\0AVI " + bytes(40), "no WAV file"),
    "RIFX": (b"RIFX" + bytes(40), "of the kind RIFX"),
    "RF64": (b"RF64" + bytes(40), "of the kind RF64"),
    "only a head": (b"RIFF\0\0", "cut short: 6 bytes, where the head alone has 12"),
    "no parts": (riff(), "no part 'data'"),
    "no sound": (riff(FMT), "no part 'data'"),
    "sound first": (riff(part(b"data", b"ab"), FMT), "'data' comes before 'fmt '"),
    "sound cut short": (
        wav(1, 16, bytes(100))[:-60],
        "cut short: 100 bytes of sound were expected from byte 44 on, 40",
    ),
    "part cut short": (
        riff(part(b"LIST", bytes(50)))[:-20],
        "part b'LIST' should have 50 bytes from byte 20 on, 30",
    ),
    "short layout": (riff(part(b"fmt ", layout(1, 16)[:14])), "'fmt ' has 14 bytes; at least 16"),
    "half a sample": (wav(1, 16, b"abc"), "3 bytes of sound are no whole number of samples of 2 bytes"),
    "half a pair": (
        wav(1, 16, b"abcdef", channels=2),
        "6 bytes of sound are no whole number of samples of 4 bytes",
    ),
    "12 bits": (wav(1, 12, b""), "whole numbers of 12 bits; one of 8, 16, 24, 32"),
    "64 bits": (wav(1, 64, b""), "whole numbers of 64 bits"),
    "float of 16 bits": (wav(3, 16, b""), "floating point of 16 bits; one of 32, 64"),
    "mu-law": (wav(7, 8, b""), "stored as mu-law"),
    "ADPCM": (wav(2, 4, b""), "stored as ADPCM"),
    "unknown kind": (wav(0x1234, 16, b""), "stored as format 0x1234"),
    "unknown extension": (
        riff(part(b"fmt ", layout(0xFFFE, 16) + bytes(24))),
        "extensible format that is neither",
    ),
    "short extension": (riff(part(b"fmt ", layout(0xFFFE, 16))), "extensible format that is neither"),
    "no channel": (riff(part(b"fmt ", layout(1, 16, channels=0))), "0 channels at rate 8000"),
    "no rate": (riff(part(b"fmt ", layout(1, 16, rate=0))), "1 channels at rate 0"),
    "wrong block": (
        riff(part(b"fmt ", layout(1, 16, 2, block=3))),
        "3 bytes for 2 samples of 16 bits that belong together; 4",
    ),
    "nan": (wav(3, 32, struct.pack("<4f", 0, 0, 0, np.nan), channels=2), "sample 1 is nan; finite numbers"),
}


@pytest.mark.parametrize("case", REFUSALS, ids=list(REFUSALS))
def test_refusal_names_file_and_expectation(case: str, tmp_path: Path) -> None:
    data, says = REFUSALS[case]
    path = tmp_path / "mine.wav"
    path.write_bytes(data)
    with pytest.raises(DataFileError) as caught:
        read_wav(path)
    assert caught.value.path == str(path) and str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    with pytest.raises(DataFileError):
        read_wav(data)


def test_missing_files_are_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere\.wav"):
        read_wav(tmp_path / "nowhere.wav")
    with pytest.raises(ArgumentTypeError, match="not int"):
        read_wav(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(5,), (5, 2), (0,)])
def test_what_is_written_is_read_back_within_half_a_step(
    shape: tuple[int, ...], tmp_path: Path, rng: np.random.Generator
) -> None:
    sound = rng.uniform(-1, 1, size=shape)
    path = tmp_path / "a.wav"
    write_wav(path, 16000, sound)
    rate, back = read_wav(path)
    assert rate == 16000 and back.shape == shape
    assert np.abs(back - sound).max(initial=0) <= 1 / 65536 + 1e-12
    with wave.open(str(path)) as other:
        assert (other.getframerate(), other.getnchannels(), other.getsampwidth(), other.getnframes()) == (
            16000, 1 if len(shape) == 1 else 2, 2, shape[0],
        )  # fmt: skip


def test_full_scale_is_written_without_wrapping_round() -> None:
    assert read_wav(wav_bytes(8000, [1.0, -1.0]))[1].tolist() == [32767 / 32768, -1.0]


def test_what_cannot_be_written_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"old")
    for bad, error, says in (
        ([0.5, 1.5], ArgumentError, "a sample is 1.5"),
        ([np.nan], ArgumentError, "a sample is nan"),
        ([[[0.0]]], ShapeError, r"shape \(1, 1, 1\)"),
        (np.zeros((3, 0)), ShapeError, r"shape \(3, 0\)"),
        (["x"], ArgumentTypeError, "no number"),
        ([[1.0], [1.0, 0.0]], ArgumentTypeError, "no number"),
    ):
        with pytest.raises(error, match=says):
            write_wav(path, 8000, bad)
    for rate, error in ((0, ArgumentError), (8000.0, ArgumentTypeError), (True, ArgumentTypeError)):
        with pytest.raises(error, match="rate"):
            write_wav(path, rate, [0.0])  # type: ignore[arg-type]
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(OSError):
        write_wav(tmp_path / "no folder" / "a.wav", 8000, [0.0])


def test_made_up_wave_has_its_tones_and_its_gaps() -> None:
    rate = 8000
    sound = made_up_wave(rate, chords=[(250,), (500, 1000)], seconds=0.5, gap=0.25)
    assert sound.shape == (4000 + 2000 + 4000,) and np.abs(sound).max() <= 0.5
    assert not sound[4000:6000].any()
    for piece, tones in ((sound[:4000], [250]), (sound[6000:], [500, 1000])):
        strength = np.abs(np.fft.rfft(piece))
        loudest = sorted(2 * int(place) for place in np.argsort(strength)[-len(tones) :])
        assert loudest == tones
    assert np.array_equal(sound, made_up_wave(rate, chords=[(250,), (500, 1000)], seconds=0.5, gap=0.25))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"chords": []}, "no chord"),
        ({"chords": [()]}, "cannot be made at rate 8000"),
        ({"chords": [(4000,)]}, "below half the rate, 4000"),
        ({"chords": [(-1,)]}, "cannot be made"),
        ({"chords": [(float("nan"),)]}, "cannot be made"),
        ({"seconds": 0}, "seconds=0"),
        ({"gap": -1}, "gap=-1"),
        ({"seconds": float("inf")}, "seconds=inf"),
        ({"rate": 0}, "rate is 0"),
    ],
)
def test_made_up_wave_refuses_what_cannot_sound(options: dict[str, object], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        made_up_wave(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "length", "hop", "whole", "padded"),
    [(10, 4, 3, 3, 3), (11, 4, 3, 3, 4), (3, 4, 2, 0, 1), (0, 4, 2, 0, 0), (4, 4, 2, 1, 1), (5, 4, 2, 1, 2)]
    + [(9, 2, 5, 2, 3)],
)  # fmt: skip
def test_frames_are_counted_right(n: int, length: int, hop: int, whole: int, padded: int) -> None:
    signal = np.arange(1.0, n + 1)
    cut, filled = frames(signal, length, hop), frames(signal, length, hop, pad=True)
    assert cut.shape == (whole, length) and filled.shape == (padded, length)
    for place, frame in enumerate(filled):
        assert frame.tolist() == [k + 1 if k < n else 0 for k in range(place * hop, place * hop + length)]
    assert np.array_equal(cut, filled[:whole])


def test_frames_do_not_share_memory_with_the_signal() -> None:
    signal = np.ones(4)
    frames(signal, 2, 2)[:] = 0
    assert signal.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("signal", "length", "hop", "error", "says"),
    [
        (np.ones((4, 2)), 2, 1, ShapeError, r"shape \(4, 2\)"),
        (1.0, 2, 1, ShapeError, r"shape \(\)"),
        ([1.0], 0, 1, ArgumentError, "length is 0; it must be at least 1"),
        ([1.0], 1, -1, ArgumentError, "hop is -1"),
        ([1.0], 1.5, 1, ArgumentTypeError, "length is 1.5; a whole number"),
        ([1.0], 1, True, ArgumentTypeError, "hop is True"),
        (["a"], 1, 1, ArgumentTypeError, "no number"),
    ],
)
def test_bad_frames_are_refused(
    signal: object, length: int, hop: int, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        frames(signal, length, hop)  # type: ignore[arg-type]


def test_real_speech_is_read(shared: Path) -> None:
    rate, samples = read_wav(shared / "data/audio/Front_Center.wav")
    assert rate == 48000 and samples.shape == (68545,) and round(float(np.abs(samples).max()), 3) == 0.473
    assert frames(samples, 1200, 480).shape == (141, 1200)


@pytest.mark.parametrize("rate", [2**31, 2**40])
def test_a_rate_that_the_format_cannot_hold_is_refused(rate: int) -> None:
    with pytest.raises(ArgumentError, match="counts to"):
        wav_bytes(rate, [0.0])
