"""Files of arrays: `.npz` without pickle, and `.safetensors` through its own library; weights of models in them.

Reading trusts nothing: nothing of a file is ever executed, no name in it becomes a path, and what its header claims is
compared with what is there before memory is taken.  Files are written whole or not at all.
"""

from __future__ import annotations

import io
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn.arguments import known_arguments, values_of
from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, message, optional_library
from tinyattn.files import path_text, read_whole, write_whole

if TYPE_CHECKING:
    from tinyattn.nn.module import Module

    Path = str | os.PathLike[str]

__all__ = ["load", "load_arrays", "load_notes", "save", "save_arrays"]

_NOTES = "__notes__"
_MOST = 1 << 34  # bytes: far above any model that this package can train
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError, OSError)
_DENSE = 1100  # deflate cannot do better than about 1 to 1030


@known_arguments
def save(model: Module, path: Path) -> None:
    """Write the weights of a model; the ending of the path says in which format.

    Parameters
    ----------
    model : Module
    path : str or path
        Ends in ``.npz`` or ``.safetensors``.

    Examples
    --------
    >>> import os, tempfile, tinyattn as ta
    >>> path = os.path.join(tempfile.mkdtemp(), "linear.npz")
    >>> one, other = ta.nn.Linear(2, 3, rng=0), ta.nn.Linear(2, 3, rng=1)
    >>> save(one, path)
    >>> load(other, path)
    >>> bool((one.W == other.W).all())
    True
    """
    _check_model(model, "save")
    save_arrays(path, model.state_dict())


@known_arguments
def load(model: Module, path: Path) -> None:
    """Bring back weights that `save` wrote; all of them, or after an error none.

    Parameters
    ----------
    model : Module
        Of the same kind and sizes as the one that was saved.
    path : str or path

    Raises
    ------
    MissingFileError
        When there is no such file.
    DataFileError
        When the file is not what it should be.
    ArgumentError, ShapeError
        When it belongs to another model.

    Examples
    --------
    >>> import os, tempfile, tinyattn as ta
    >>> path = os.path.join(tempfile.mkdtemp(), "linear.npz")
    >>> save(ta.nn.Linear(2, 3, rng=0), path)
    >>> load(ta.nn.Linear(3, 3, rng=0), path)
    Traceback (most recent call last):
        ...
    tinyattn.errors.ShapeError: load_state_dict: W is (3, 3) here, (2, 3) in the state.
      The state belongs to a model of another size; nothing has been changed.
      Make the model with the sizes it was saved with.
    """
    _check_model(model, "load")
    model.load_state_dict(load_arrays(path))


def _check_model(model: object, name: str) -> None:
    """Refuse what has no weights, such as a path in the place of the model."""
    if callable(getattr(model, "state_dict", None)) and not isinstance(model, type):
        return
    kind = model.__name__ if isinstance(model, type) else type(model).__name__
    instead = f"Write weights.{name}(model, path)."
    if isinstance(model, Mapping):
        instead = "Write weights.save_arrays(path, arrays) for a mapping of names to arrays."
    elif isinstance(model, type):
        instead = f"Make one first: model = {kind}(...)."
    raise ArgumentTypeError(message(f"{name}: the model is a {kind}, and has no weights.", "", instead))


@known_arguments
def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], notes: str = "") -> None:
    """Write named arrays, and a text about them.

    Parameters
    ----------
    path : str or path
        Ends in ``.npz`` or ``.safetensors``.
    arrays : mapping from str to ndarray
        Of whole numbers, floating-point numbers or booleans.
    notes : str
        Whatever else belongs to them, such as JSON.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "two.npz")
    >>> save_arrays(path, {"a": np.arange(3.0), "b": np.array(7)}, notes="from a test")
    >>> load_arrays(path)
    {'a': array([0., 1., 2.]), 'b': array(7)}
    >>> load_notes(path)
    'from a test'
    """
    _check_kind("arrays", arrays, Mapping)
    _check_kind("notes", notes, str)
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.kind not in "fiub":
            raise ArgumentTypeError(f"save_arrays: {name} holds {array.dtype}, no numbers.")
        if name == _NOTES or not _is_name(name):
            raise ArgumentError(f"save_arrays: {name!r} is no name for an array.")
    to_bytes = _safetensors_bytes if format_of(path) == "safetensors" else _npz_bytes
    write_whole(path, to_bytes(plain, notes))


def _check_kind(what: str, given: object, kind: type) -> None:
    if not isinstance(given, kind):
        instead = "Write save_arrays(path, {'name': array}, notes='a text')."
        raise ArgumentTypeError(message(f"save_arrays: {what} is a {type(given).__name__}.", "", instead))


def _plain(name: object, array: Any) -> np.ndarray:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"save_arrays: {name!r} is no name for an array; names are texts.")
    try:
        return np.asarray(values_of(array))
    except (ValueError, TypeError) as error:
        raise ArgumentTypeError(f"save_arrays: {name} is no array: {str(error).rstrip('.')}.") from None


def _is_name(name: str) -> bool:
    """Whether it could never be taken for a place elsewhere on the disk; what is written can be read again."""
    parts = name.replace("\\", "/").split("/")
    return bool(parts[0]) and ".." not in parts and "\0" not in name and not re.match("[A-Za-z]:", name)


@known_arguments
def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a file that `save_arrays`, NumPy's ``savez`` or safetensors wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict from str to ndarray

    Raises
    ------
    DataFileError
        When the file is cut off, of another kind, or claims what cannot be.
    MissingFileError
        When there is none.
    OSError
        When it cannot be read.
    MissingLibraryError
        When it is safetensors and that library is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "numpy.npz")
    >>> np.savez(path, W=np.eye(2))
    >>> load_arrays(path)["W"].shape
    (2, 2)
    """
    return _read(path)[0]


@known_arguments
def load_notes(path: Path) -> str:
    """Read the text that `save_arrays` put beside the arrays; empty when there is none.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "noted.npz")
    >>> save_arrays(path, {"W": np.eye(2)}, notes="learned in June")
    >>> load_notes(path)
    'learned in June'
    """
    return _read(path)[1]


def _read(path: Path) -> tuple[dict[str, np.ndarray], str]:
    kind, data = format_of(path), read_whole(path)
    return _from_safetensors(data, str(path)) if kind == "safetensors" else _from_npz(data, str(path))


def format_of(path: Path) -> str:
    """Which format the ending of a path asks for: "npz" or "safetensors"."""
    name = path_text(path)
    ending = os.path.splitext(name)[1].lower()
    if ending not in (".npz", ".safetensors"):
        raise ArgumentError(
            message(
                f"{name}: the ending {ending!r} says no format.",
                "Weights are kept in .npz or .safetensors; reading a .pt or .bin of PyTorch can run code.",
                "Write safetensors.torch.save_file(model.state_dict(), 'weights.safetensors') there.",
            )
        )
    return ending[1:]


# -- .npz -----------------------------------------------------------------------------------------------------------


def _npz_bytes(arrays: Mapping[str, np.ndarray], notes: str) -> bytes:
    """A zip of .npy files with fixed dates: the same arrays give the same bytes."""
    stream = io.BytesIO()
    text = {_NOTES: np.frombuffer(notes.encode("utf-8"), np.uint8)} if notes else {}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {**arrays, **text}.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), part.getvalue())
    return stream.getvalue()


def _from_npz(data: bytes, path: str) -> tuple[dict[str, np.ndarray], str]:
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive, len(data), path)
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                arrays[name] = _from_npy(archive.read(member), f"{name} in {path}")
    except DataFileError:
        raise
    except _ZIP_ERRORS as error:
        raise _unreadable(path, "a .npz file is a zip of .npy files", error) from None
    text = arrays.pop(_NOTES, np.zeros(0, np.uint8))
    return arrays, text.astype(np.uint8).tobytes().decode("utf-8", "replace")


def _check_members(archive: zipfile.ZipFile, size: int, path: str) -> None:
    names = [member.filename for member in archive.infolist()]
    for name in names:
        if not name.endswith(".npy") or not _is_name(name.removesuffix(".npy")):
            raise DataFileError(f"the member {name[:60]!r} is no array of a .npz file.", path)
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in archive.infolist()):
        raise DataFileError("an array is packed in a way that NumPy does not use.", path)
    if len(set(names)) < len(names):
        raise DataFileError("two arrays have the same name.", path)
    total = sum(member.file_size for member in archive.infolist())
    if total > min(_MOST, max(size, 1) * _DENSE):
        raise DataFileError(f"it claims to hold {total} bytes, in a file of {size}.", path)


def _from_npy(data: bytes, path: str) -> np.ndarray:
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = read(stream)
    except (ValueError, KeyError, EOFError, SyntaxError, TypeError, MemoryError, RecursionError, TokenError) as error:
        raise _unreadable(path, "an array begins with a header", error) from None
    if dtype.kind not in "fiub":
        raise DataFileError(f"an array of {dtype} is refused: only numbers are read, nothing that could run.", path)
    there = len(data) - stream.tell()
    if any(type(size) is not int or size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != there:
        raise DataFileError(f"the header says {dtype} of shape {_short(shape)}, but {there} bytes follow.", path)
    array = np.frombuffer(data, dtype, offset=stream.tell())
    return array.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="))


def _short(shape: tuple[int, ...]) -> str:
    return str(shape) if len(str(shape)) < 60 else f"{str(shape)[:60]}..."


def _unreadable(path: str, expected: str, error: BaseException) -> DataFileError:
    reason = [*str(error).splitlines(), "it ends too early"][0][:120]
    return DataFileError(f"cannot be read: {expected}, but: {reason}.", path)


# -- .safetensors ---------------------------------------------------------------------------------------------------


def _library(part: str) -> Any:
    what_for = "It reads and writes .safetensors files; a path that ends in .npz needs no library."
    return optional_library(part, what_for)


def _safetensors_bytes(arrays: Mapping[str, np.ndarray], notes: str) -> bytes:
    whole = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    for name, array in whole.items():
        if array.dtype.itemsize > 8:
            raise ArgumentTypeError(f"save_arrays: {name} holds {array.dtype}; .safetensors has at most 64 bits.")
    written: bytes = _library("safetensors.numpy").save(whole, {_NOTES: notes} if notes else None)
    return written


def _from_safetensors(data: bytes, path: str) -> tuple[dict[str, np.ndarray], str]:
    refused = _library("safetensors").SafetensorError
    try:
        arrays = _library("safetensors.numpy").load(data)
        notes = _metadata(data).get(_NOTES, "")
    except KeyError as error:  # a type that NumPy has not, such as BF16
        raise DataFileError(
            message(
                f"holds numbers of type {str(error)[:40]}, which NumPy does not have.",
                "",
                "Save them as 32-bit numbers there: tensor.float().",
            ),
            path,
        ) from None
    except (refused, ValueError, TypeError, OverflowError, MemoryError) as error:
        expected = "a .safetensors file is a header and the numbers of NumPy types that it lists"
        raise _unreadable(path, expected, error) from None
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise DataFileError(f"{name} holds {array.dtype}, no numbers.", path)
        if not _is_name(name):
            raise DataFileError(f"{name[:60]!r} is no name for an array.", path)
    return dict(arrays), notes


def _metadata(data: bytes) -> dict[str, str]:
    """The texts beside the arrays; the library has checked the header by now."""
    import json

    (length,) = struct.unpack("<Q", data[:8])
    found = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    return {str(key): str(value) for key, value in found.items()}
