"""Files of weights: what is written comes back, and nothing that is cut off, foreign or hostile does any harm."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn, weights

FORMATS = ["npz", "safetensors"]


@pytest.fixture(params=FORMATS)
def ending(request) -> str:
    if request.param == "safetensors":
        pytest.importorskip("safetensors")
    return request.param


def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "W": rng.normal(size=(3, 4)), "turned": rng.normal(size=(3, 4)).T,
        "half": rng.normal(size=5).astype(np.float32), "whole": np.arange(-3, 3),
        "flags": np.array([True, False]), "number": np.array(2.5), "none": np.zeros((0, 3)),
    }  # fmt: skip


def test_what_is_written_comes_back(ending: str, tmp_path: Path, rng) -> None:
    path, given = tmp_path / f"a.{ending}", arrays(rng)
    weights.save_arrays(path, given, notes="查询 ∂")
    found = weights.load_arrays(path)
    assert found.keys() == given.keys() and weights.load_notes(path) == "查询 ∂"
    for name, array in given.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
        assert found[name].shape == array.shape


def test_the_same_arrays_give_the_same_bytes(ending: str, tmp_path: Path, rng) -> None:
    given = arrays(rng)
    for name in "ab":
        weights.save_arrays(tmp_path / f"{name}.{ending}", given)
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_a_model_comes_back_from_both(ending: str, tmp_path: Path) -> None:
    one, other = (nn.GPT(7, 4, 2, 2, 5, rng=seed) for seed in (0, 1))
    weights.save(one, tmp_path / f"a.{ending}")
    weights.load(other, tmp_path / f"a.{ending}")
    assert (one([1, 2]) == other([1, 2])).all()


def test_weights_of_another_model_change_nothing(ending: str, tmp_path: Path) -> None:
    weights.save(nn.Linear(2, 3, rng=0), tmp_path / f"a.{ending}")
    layer = nn.Linear(3, 3, rng=1)
    before = layer.state_dict()
    with pytest.raises(ta.ShapeError, match=r"W is \(3, 3\) here, \(2, 3\)"):
        weights.load(layer, tmp_path / f"a.{ending}")
    assert all(np.array_equal(before[name], array) for name, array in layer.state_dict().items())


def test_numpy_reads_ours_and_we_read_numpys(tmp_path: Path, rng) -> None:
    given = arrays(rng)
    weights.save_arrays(tmp_path / "ours.npz", given)
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as found:
        assert all(np.array_equal(found[name], array) for name, array in given.items())
    np.savez_compressed(tmp_path / "theirs.npz", **given)
    assert all(np.array_equal(a, given[name]) for name, a in weights.load_arrays(tmp_path / "theirs.npz").items())


def test_a_file_that_is_cut_off_anywhere_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    weights.save_arrays(path, {"W": np.ones((2, 2)), "b": np.zeros(3)})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ta.DataFileError, match=r"a\."):
            weights.load_arrays(path)


def test_a_file_with_any_byte_changed_is_refused_or_holds_numbers(ending: str, tmp_path: Path, rng) -> None:
    path = tmp_path / f"a.{ending}"
    weights.save_arrays(path, {"W": np.ones((2, 2)), "b": np.zeros(3)})
    whole = bytearray(path.read_bytes())
    for place in range(len(whole)):
        changed = whole.copy()
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            found = weights.load_arrays(path)
        except ta.DataFileError:
            continue
        assert all(array.dtype.kind in "fiub" and array.nbytes < 1000 for array in found.values())


def npz(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def header(text: str) -> bytes:
    """A .npy that says something and holds nothing."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('run!')",))


@pytest.mark.parametrize(("members", "words"), [
    ({"W.npy": npy(np.array([Bomb()], dtype=object))}, "nothing that could run"),
    ({"W.npy": npy(np.array(["text"]))}, "only numbers"),
    ({"W.npy": npy(np.array([1 + 2j]))}, "only numbers"),
    ({"W.npy": pickle.dumps(Bomb())}, "header"),
    ({"W.npy": header("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,), }\n")}, "000.* 0 bytes"),
    ({"W.npy": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }\n")}, r"\(-1,\)"),
    ({"W.npy": header("{'descr': '<f8', 'fortran_order': False, 'shape': ([[" + "[" * 900 + "\n")}, "cannot be read"),
    ({"W.npy": header("__import__('os').system('true')\n")}, "cannot be read"),
    ({"W.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31)}, "cannot be read"),
    ({"W.npy": npy(np.ones(2)) + b"more"}, "20 bytes follow"),
    ({"../W.npy": npy(np.ones(2))}, "no array of a .npz"),
    ({"/etc/W.npy": npy(np.ones(2))}, "no array of a .npz"),
    ({"C:/W.npy": npy(np.ones(2))}, "no array of a .npz"),
    ({"W.txt": b"words"}, "no array of a .npz"),
])  # fmt: skip
def test_a_hostile_npz_is_refused_in_words(members: dict[str, bytes], words: str, tmp_path: Path) -> None:
    with pytest.raises(ta.DataFileError, match=words):
        weights.load_arrays(npz(tmp_path / "a.npz", members))


def test_a_name_that_comes_twice_and_a_zip_that_claims_too_much_are_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(tmp_path / "twice.npz", "w") as archive:
        archive.writestr("W.npy", npy(np.ones(1)))
        archive.writestr("W.npy", npy(np.zeros(1)))
    with pytest.raises(ta.DataFileError, match="same name"):
        weights.load_arrays(tmp_path / "twice.npz")
    path = npz(tmp_path / "big.npz", {"W.npy": npy(np.ones(2))})
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")  # the directory says how long a member is when unpacked
    data[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(data)
    with pytest.raises(ta.DataFileError, match="claims to hold 4294967294 bytes"):
        weights.load_arrays(path)


def safetensors(path: Path, entries: object, numbers: bytes, length: int | None = None) -> Path:
    text = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + numbers)
    return path


def entry(start: int, end: int, dtype: str = "F64", shape: tuple[int, ...] = (1,)) -> dict[str, object]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


@pytest.mark.parametrize(("entries", "numbers", "length"), [
    ({"W": entry(0, 8)}, b"\0" * 8, 2**62),
    ({"W": entry(0, 8), "b": entry(4, 12)}, b"\0" * 12, None),
    ({"W": entry(0, 8), "b": entry(0, 8)}, b"\0" * 8, None),
    ({"W": entry(8, 16)}, b"\0" * 16, None),
    ({"W": entry(0, 8, "F32")}, b"\0" * 8, None),
    ({"W": entry(0, 8, shape=(3,))}, b"\0" * 8, None),
    ({"W": entry(0, 8, shape=(2**62, 4))}, b"\0" * 8, None),
    ({"W": entry(0, 8, "F9")}, b"\0" * 8, None),
    ({"W": entry(0, 2, "BF16")}, b"\0" * 2, None),
    ({"W": entry(0, 8)}, b"\0" * 8 + b"more", None),
    (["W"], b"", None),
], ids=["huge header", "overlap", "same bytes", "a hole", "wrong dtype", "wrong shape", "overflow", "no dtype",
        "bfloat16", "left over", "a list"])  # fmt: skip
def test_a_hostile_safetensors_is_refused_in_words(entries, numbers: bytes, length, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    with pytest.raises(ta.DataFileError, match=r"a\.safetensors: (cannot be read|holds numbers of type .BF16)"):
        weights.load_arrays(safetensors(tmp_path / "a.safetensors", entries, numbers, length))


def test_a_foreign_file_is_refused(ending: str, tmp_path: Path) -> None:
    for content in (b"", b"PK", b"\x80\x04K\x01.", "一个文本\n".encode() * 9, b"\0" * 999):
        path = tmp_path / f"a.{ending}"
        path.write_bytes(content)
        with pytest.raises(ta.DataFileError, match="cannot be read"):
            weights.load_arrays(path)


@pytest.mark.parametrize(("call", "words"), [
    (lambda folder: weights.save_arrays(folder / "a.pt", {}), "can run code"),
    (lambda folder: weights.load_arrays(folder / "a.bin"), "'.bin' says no format"),
    (lambda folder: weights.save_arrays(folder / "a.npz", {"W": np.array(["a"])}), "no numbers"),
    (lambda folder: weights.save_arrays(folder / "a.npz", {"../W": np.ones(1)}), "no name"),
    (lambda folder: weights.save_arrays(folder / "a.npz", {3: np.ones(1)}), "3 is no name"),
    (lambda folder: weights.save_arrays(folder / "a.npz", {"W": [[1.0], [1.0, 2.0]]}), "W is no array"),
    (lambda folder: weights.save_arrays(folder / "a.npz", [np.ones(1)]), "arrays is a list"),
    (lambda folder: weights.save_arrays(folder / "a.npz", {}, notes=3), "notes is a int"),
    (lambda folder: weights.save_arrays({}, folder / "a.npz"), "a path is needed, not a dict|arrays is a PosixPath"),
    (lambda folder: weights.save_arrays("", {}), "'' is no name of a file"),
    (lambda folder: weights.save_arrays("a\0.npz", {}), "is no name of a file"),
    (lambda folder: weights.save(folder / "a.npz", nn.Linear(1, 1)), r"Write weights.save\(model, path\)"),
    (lambda folder: weights.save(nn.Linear, folder / "a.npz"), r"Make one first: model = Linear\(...\)"),
    (lambda folder: weights.save(nn.Linear(1, 1).state_dict(), folder / "a.npz"), r"Write weights.save_arrays\("),
    (lambda folder: weights.load(folder / "a.npz", nn.Linear(1, 1)), r"Write weights.load\(model, path\)"),
    (lambda folder: weights.load(nn.Linear(1, 1), None), "a path is needed, not a NoneType"),
    (lambda folder: weights.load(nn.Linear(1, 1), file="a.npz"), "Write path=... here"),
])
def test_what_cannot_be_written_or_read_is_refused_in_words(call, words: str, tmp_path: Path) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_told_with_what_there_is_instead(tmp_path: Path) -> None:
    layer, path = nn.Linear(2, 3, rng=0), tmp_path / "wieghts.npz"
    with pytest.raises(ta.MissingFileError, match=r"(?s)there is no file .*wieghts\.npz\.\n  It was looked for in"):
        weights.load(layer, path)
    weights.save(layer, tmp_path / "weights.npz")
    with pytest.raises(FileNotFoundError, match=r"there is weights\.npz\.") as caught:
        weights.load(layer, path)
    assert caught.value.filename == str(path) and caught.value.errno == 2
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.filename == str(path)
    with pytest.raises(ta.MissingFileError, match=r"there is no folder .*nowhere.\n  Make it first"):
        weights.save(layer, tmp_path / "nowhere" / "a.npz")
    with pytest.raises(ta.MissingFileError, match=r"There is no folder .*nowhere either"):
        weights.load_notes(tmp_path / "nowhere" / "a.npz")


def test_a_folder_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "a.npz"
    folder.mkdir()
    with pytest.raises(ta.DataFileError, match="this is a folder"):
        weights.load_arrays(folder)
    with pytest.raises(ta.ArgumentError, match="is a folder"):
        weights.save_arrays(folder, {})
    assert not list(folder.iterdir()) and list(tmp_path.iterdir()) == [folder]


def test_a_tensor_is_written_without_a_warning(tmp_path: Path) -> None:
    weights.save_arrays(tmp_path / "a.npz", {"W": ta.tensor([1.0], requires_grad=True)})
    assert weights.load_arrays(tmp_path / "a.npz")["W"].tolist() == [1.0]


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ta.MissingLibraryError, match="pip install safetensors"):
        weights.save_arrays(tmp_path / "a.safetensors", {"W": np.ones(1)})


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.npz"
    weights.save_arrays(path, {"W": np.ones(1)})

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        weights.save_arrays(path, {"W": np.zeros(1)})
    assert weights.load_arrays(path)["W"] == [1.0] and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["../a", "/a", "a/../b", "C:a", "..\\a", "a\0b"])
def test_no_name_is_written_that_could_not_be_read_again(name: str, tmp_path: Path) -> None:
    with pytest.raises(ta.ArgumentError, match="no name for an array"):
        ta.weights.save_arrays(tmp_path / "a.npz", {name: np.ones(1)})


@pytest.mark.parametrize("name", ["head:0.W", "a\\b", "\u540d", "a.npy"])
def test_an_unusual_name_comes_back(name: str, tmp_path: Path) -> None:
    ta.weights.save_arrays(tmp_path / "a.npz", {name: np.ones(1)})
    assert list(ta.weights.load_arrays(tmp_path / "a.npz")) == [name]


def test_a_name_that_climbs_out_of_a_folder_is_refused_in_safetensors_too(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    (tmp_path / "a.safetensors").write_bytes(library.save({"../a": np.ones(1)}))
    with pytest.raises(ta.DataFileError, match="no name for an array"):
        ta.weights.load_arrays(tmp_path / "a.safetensors")


def test_numbers_that_safetensors_has_not_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    if np.dtype(np.longdouble).itemsize <= 8:
        pytest.skip("no longer numbers here")
    with pytest.raises(ta.TinyattnError, match="64 bits"):
        ta.weights.save_arrays(tmp_path / "a.safetensors", {"a": np.ones(1, np.longdouble)})
    assert not (tmp_path / "a.safetensors").exists()


def test_a_truth_value_as_a_size_is_refused(tmp_path: Path) -> None:
    header = b"{'descr':'<f8','fortran_order':False,'shape':(True,)}\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))
    with pytest.raises(ta.DataFileError, match=r"a in .*a\.npz"):
        ta.weights.load_arrays(tmp_path / "a.npz")
