"""Weights from PyTorch and back: which of its names, and which way round, belong to which of ours.

No PyTorch is needed: a state is a mapping from names to arrays, or a `.safetensors` file of one.  Only a module of
PyTorch itself tells also what its weights do not show, such as where its norms stand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tinyattn.arguments import known_arguments
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, listed, message
from tinyattn.nn.gpt import GPT
from tinyattn.nn.layers import ACTIVATIONS, Embedding, LayerNorm, Linear, RMSNorm
from tinyattn.nn.module import Module
from tinyattn.nn.multi_head import MultiHeadAttention
from tinyattn.nn.positions import LearnedPosition
from tinyattn.nn.transformer import TransformerBlock, TransformerEncoder
from tinyattn.weights import load_arrays

__all__ = ["load_torch_state", "torch_state"]


class Piece(NamedTuple):
    """One array of theirs: the named arrays of ours beside each other, and whether its matrices lie on their side."""

    theirs: str
    ours: tuple[str, ...]
    turned: bool = False

    def joined(self, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Their array, from ours."""
        whole = np.concatenate([state[name] for name in self.ours], axis=-1)  # PyTorch computes x @ weight.T
        return whole.T.copy() if self.turned else whole

    def parted(self, theirs: np.ndarray, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Our arrays, from theirs."""
        wanted = self.joined(state).shape
        if theirs.shape != wanted:
            raise ShapeError(
                message(
                    f"load_torch_state: {self.theirs} is {theirs.shape} there, and must be {wanted} for this model.",
                    f"It becomes {', '.join(self.ours)}.",
                    "Make the model with the sizes of the one that was saved; nothing has been changed.",
                )
            )
        edges = np.cumsum([state[name].shape[-1] for name in self.ours])[:-1]
        return dict(zip(self.ours, np.split(theirs.T if self.turned else theirs, edges, axis=-1), strict=True))


@known_arguments
def load_torch_state(module: Module, state: Any, prefix: str = "") -> None:
    """Give a module the weights of its PyTorch counterpart; all of them, or after an error none.

    Parameters
    ----------
    module : MultiHeadAttention, TransformerBlock, TransformerEncoder, GPT, Linear, LayerNorm or Embedding
        Its counterpart is ``torch.nn.MultiheadAttention``, ``TransformerEncoderLayer`` (its norm_first is our
        norm="pre", its bias=False our bias=False and norm_bias=False), ``TransformerEncoder``, a GPT-2, ``Linear``,
        ``LayerNorm`` or ``Embedding``.
    state : module of PyTorch, mapping or path
        The counterpart itself, its ``state_dict()``, or a .safetensors (or .npz) file of one.  Weights alone do not
        tell ``norm_first``, the number of heads, the activation and ``eps``: the module itself does, and what differs
        from ours is refused; of a state you must know.  (A GPT-2 has them in its ``config``, which is not read.)
    prefix : str
        Look only at names that begin with this, and leave it away.

    Raises
    ------
    ArgumentError
        A name is missing, or there is one that has no place here; or their module computes otherwise than ours.
    ShapeError
        An array has another size.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> layer = ta.nn.Linear(2, 1, rng=0)
    >>> load_torch_state(layer, {"weight": np.array([[1.0, 2.0]]), "bias": np.array([3.0])})
    >>> layer.W.tolist(), layer.b.tolist()
    ([[1.0], [2.0]], [3.0])
    """
    if _is_module(state):
        _check_settings(module, state, prefix)
        state = state.state_dict()
    theirs = _arrays(state, prefix)
    pieces = list(_pieces(module, theirs))
    if isinstance(module, GPT):
        _drop_what_gpt2_adds(theirs, pieces)
    missing = [piece.theirs for piece in pieces if piece.theirs not in theirs]
    foreign = sorted(theirs.keys() - {piece.theirs for piece in pieces})
    if missing or foreign:
        raise _other_names(module, missing, foreign, [piece.theirs for piece in pieces])
    own, found = module.state_dict(), {}
    for piece in pieces:
        found.update(piece.parted(theirs[piece.theirs], own))
    module.load_state_dict(found)


def _other_names(module: Module, missing: list[str], foreign: list[str], sought: list[str]) -> ArgumentError:
    """Names that only one of the two has: of biases, which are made with a layer or not, or of another model."""
    kind = type(module).__name__
    said = [f"missing {listed(missing)}"] * bool(missing) + [f"no place here for {listed(foreign)}"] * bool(foreign)
    why = f"The state belongs to another model than this {kind}."
    instead = f"Names that are looked for: {listed(sought)}."
    simple = isinstance(module, (Linear, LayerNorm, MultiHeadAttention))
    if simple and not (missing and foreign) and all(name.endswith("bias") for name in missing + foreign):
        why = f"Theirs adds a bias, this {kind} does not." if foreign else f"This {kind} adds a bias, theirs does not."
        instead = f"Make the {kind} with bias={bool(foreign)}; nothing has been changed."
    return ArgumentError(message(f"load_torch_state: {'; '.join(said)}.", why, instead))


def torch_state(module: Module) -> dict[str, np.ndarray]:
    """The weights of a module under the names of its PyTorch counterpart, for its ``load_state_dict``.

    Returns
    -------
    dict from str to ndarray
        ``{name: torch.tensor(array) for name, array in torch_state(module).items()}`` is what PyTorch wants.

    Examples
    --------
    >>> import tinyattn as ta
    >>> {name: array.shape for name, array in torch_state(ta.nn.MultiHeadAttention(4, 2, bias=True, rng=0)).items()}
    {'in_proj_weight': (12, 4), 'in_proj_bias': (12,), 'out_proj.weight': (4, 4), 'out_proj.bias': (4,)}
    """
    _check_module(module)
    own = module.state_dict()
    return {piece.theirs: piece.joined(own) for piece in _pieces(module, {})}


def _check_module(module: object) -> None:
    if not isinstance(module, Module):
        what = f"torch_state: a {type(module).__name__} was given; a module of tinyattn is needed."
        raise ArgumentTypeError(message(what, "", "Write torch_state(model)."))


def _arrays(state: Any, prefix: str) -> dict[str, np.ndarray]:
    if not isinstance(prefix, str):
        raise ArgumentTypeError(f"load_torch_state: prefix is a {type(prefix).__name__}; a text is needed.")
    given = load_arrays(state) if isinstance(state, (str, os.PathLike)) else state
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            message(
                f"load_torch_state: a {type(given).__name__}; names and arrays are needed.",
                "",
                "Give a module of PyTorch, its state_dict(), or the path of a .safetensors file.",
            )
        )
    found = {str(name): _array(str(name), array) for name, array in given.items()}
    chosen = {name.removeprefix(prefix): array for name, array in found.items() if name.startswith(prefix)}
    for name, array in chosen.items():
        if array.dtype.kind not in "fiub":
            raise ArgumentTypeError(f"load_torch_state: {name} holds {array.dtype}, no numbers.")
    return chosen


def _array(name: str, given: Any) -> np.ndarray:
    """What PyTorch refuses to hand over itself: a tensor that is watched for gradients, or of a type NumPy has not."""
    given = given.detach() if hasattr(given, "detach") else given
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentTypeError(
            message(f"load_torch_state: {name} cannot be had as a NumPy array: {reason}.", "", "Write theirs.float().")
        ) from None


# -- what weights do not show ---------------------------------------------------------------------------------------


def _activation(theirs: Any) -> str | None:
    """Our name for a function or layer of theirs; None where it is none that both have."""
    name = getattr(theirs, "__name__", type(theirs).__name__).lower()
    name = "gelu_tanh" if name == "gelu" and getattr(theirs, "approximate", "none") == "tanh" else name
    return name if name in ACTIVATIONS else None


_SETTINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "norm_first": ("norm", lambda theirs: "pre" if theirs else "post"),
    "num_heads": ("heads", int),
    "activation": ("activation", _activation),
    "eps": ("eps", float),
}
"""Their name of a setting: ours, and our value for theirs."""


def _settings(module: Module, place: str) -> Iterator[tuple[str, Any]]:
    """Where each setting is found in their module, and what it is here."""
    if isinstance(module, LayerNorm):
        yield f"{place}eps", module.eps
    elif isinstance(module, MultiHeadAttention):
        yield f"{place}num_heads", module.heads
    elif isinstance(module, TransformerBlock):
        yield f"{place}norm_first", module.norm
        if isinstance(module.mlp.activation, str):
            yield f"{place}activation", module.mlp.activation
        for theirs, ours in ("self_attn", module.attention), ("norm1", module.norm1), ("norm2", module.norm2):
            yield from _settings(ours, f"{place}{theirs}.")
    elif isinstance(module, TransformerEncoder):
        for at, block in enumerate(module.blocks):
            yield from _settings(block, f"{place}layers.{at}.")
        if module.last_norm is not None:
            yield from _settings(module.last_norm, f"{place}norm.")


def _is_module(state: Any) -> bool:
    """Whether it is a module of PyTorch; ours have other names and layouts, and are refused as a state."""
    return not isinstance(state, (Module, Mapping)) and callable(getattr(state, "state_dict", None))


_NOT_HERE = {"add_zero_attn": False, "max_norm": None}
"""Settings of theirs that ours have nothing like, and what they are when they change nothing."""


def _check_settings(module: Module, theirs: Any, prefix: str) -> None:
    for place, part in getattr(theirs, "named_modules", lambda: ())():
        for name, plain in _NOT_HERE.items():
            if getattr(part, name, plain) != plain:
                where = ".".join(filter(None, (place, name)))
                why = "The weights would fit, but something else would be computed from them."
                raise ArgumentError(message(f"load_torch_state: their {where} is set; nothing here does that.", why))
    for place, ours in _settings(module, prefix):
        name, translated = _SETTINGS[place.rpartition(".")[2]]
        found = theirs
        for part in place.split("."):
            found = getattr(found, part, None)
        there = None if found is None else translated(found)
        if there is not None and there != ours:
            raise ArgumentError(
                message(
                    f"load_torch_state: {place} of their module means {name}={there!r}, and here is {name}={ours!r}.",
                    "The weights would fit, but something else would be computed from them.",
                    f"Make the {type(module).__name__} with {name}={there!r}; nothing has been changed.",
                )
            )


# -- which names belong together ------------------------------------------------------------------------------------


def _pieces(module: Module, theirs: Mapping[str, np.ndarray]) -> Iterator[Piece]:
    if isinstance(module, Linear):
        yield from _linear("", "", module)
    elif isinstance(module, LayerNorm):
        yield from _norm("", "", module)
    elif isinstance(module, Embedding):
        yield Piece("weight", ("table",))
    elif isinstance(module, MultiHeadAttention):
        yield from _attention("", "", module)
    elif isinstance(module, TransformerBlock):
        yield from _block("", "", module)
    elif isinstance(module, TransformerEncoder):
        yield from _encoder(module)
    elif isinstance(module, GPT):
        yield from _gpt(module, theirs)
    else:
        raise ArgumentTypeError(f"{type(module).__name__} has no counterpart in PyTorch.")


def _linear(theirs: str, ours: str, layer: Linear) -> Iterator[Piece]:
    yield Piece(f"{theirs}weight", (f"{ours}W",), turned=True)
    if layer.b is not None:
        yield Piece(f"{theirs}bias", (f"{ours}b",))


def _norm(theirs: str, ours: str, layer: LayerNorm | RMSNorm) -> Iterator[Piece]:
    if isinstance(layer, RMSNorm):
        raise ArgumentTypeError("TransformerBlock with RMSNorm has no counterpart in PyTorch.")
    yield Piece(f"{theirs}weight", (f"{ours}gain",))
    if layer.bias is not None:
        yield Piece(f"{theirs}bias", (f"{ours}bias",))


def _attention(theirs: str, ours: str, layer: MultiHeadAttention) -> Iterator[Piece]:
    _check_attention(layer)
    if layer.W_q.shape == layer.W_k.shape == layer.W_v.shape:
        yield Piece(f"{theirs}in_proj_weight", tuple(f"{ours}W_{which}" for which in "qkv"), turned=True)
    else:
        for which in "qkv":
            yield Piece(f"{theirs}{which}_proj_weight", (f"{ours}W_{which}",), turned=True)
    if layer.b_q is not None:
        yield Piece(f"{theirs}in_proj_bias", tuple(f"{ours}b_{which}" for which in "qkv"))
    yield Piece(f"{theirs}out_proj.weight", (f"{ours}W_o",), turned=True)
    if layer.b_o is not None:
        yield Piece(f"{theirs}out_proj.bias", (f"{ours}b_o",))


def _check_attention(layer: MultiHeadAttention) -> None:
    """PyTorch has one kind of attention: with the weights of another, it would compute something else."""
    usual = {"score": "scaled_dot", "normalise": "softmax", "position": None}
    for name, value in usual.items():
        if getattr(layer, name) != value:
            other = f"{name}={getattr(layer, name)!r}"
            raise ArgumentTypeError(f"MultiHeadAttention with {other} has no counterpart in PyTorch.")


def _block(theirs: str, ours: str, block: TransformerBlock) -> Iterator[Piece]:
    yield from _attention(f"{theirs}self_attn.", f"{ours}attention.", block.attention)
    yield from _linear(f"{theirs}linear1.", f"{ours}mlp.up.", block.mlp.up)
    yield from _linear(f"{theirs}linear2.", f"{ours}mlp.down.", block.mlp.down)
    yield from _norm(f"{theirs}norm1.", f"{ours}norm1.", block.norm1)
    yield from _norm(f"{theirs}norm2.", f"{ours}norm2.", block.norm2)


def _encoder(encoder: TransformerEncoder) -> Iterator[Piece]:
    for place, block in enumerate(encoder.blocks):
        yield from _block(f"layers.{place}.", f"blocks.{place}.", block)
    if encoder.last_norm is not None:
        yield from _norm("norm.", "last_norm.", encoder.last_norm)


def _gpt(model: GPT, theirs: Mapping[str, np.ndarray]) -> Iterator[Piece]:
    """GPT-2's names; its maps compute x @ weight, those of copies of it made of ``Linear`` layers x @ weight.T."""
    if not isinstance(model.position, LearnedPosition):
        raise ArgumentTypeError("load_torch_state: a GPT-2 has learned positions; make GPT(position='learned').")
    first_block = model.decoder.blocks[0]
    if first_block.norm != "pre" or first_block.attention.b_q is None:
        raise ArgumentTypeError("load_torch_state: a GPT-2 has norm='pre' and bias=True; make the GPT so.")
    start = "" if "wte.weight" in theirs else "transformer."
    first = theirs.get(f"{start}h.0.attn.c_attn.weight")
    turned = first is not None and first.ndim == 2 and first.shape[0] > first.shape[1]
    yield Piece(f"{start}wte.weight", ("embedding.table",))
    yield Piece(f"{start}wpe.weight", ("position.P",))
    for place, block in enumerate(model.decoder.blocks):
        _check_attention(block.attention)
        there, here = f"{start}h.{place}.", f"decoder.blocks.{place}."
        yield from _norm(f"{there}ln_1.", f"{here}norm1.", block.norm1)
        yield Piece(f"{there}attn.c_attn.weight", tuple(f"{here}attention.W_{which}" for which in "qkv"), turned)
        yield Piece(f"{there}attn.c_attn.bias", tuple(f"{here}attention.b_{which}" for which in "qkv"))
        yield Piece(f"{there}attn.c_proj.weight", (f"{here}attention.W_o",), turned)
        yield Piece(f"{there}attn.c_proj.bias", (f"{here}attention.b_o",))
        yield from _norm(f"{there}ln_2.", f"{here}norm2.", block.norm2)
        for theirs_name, ours_name in (("c_fc", "up"), ("c_proj", "down")):
            yield Piece(f"{there}mlp.{theirs_name}.weight", (f"{here}mlp.{ours_name}.W",), turned)
            yield Piece(f"{there}mlp.{theirs_name}.bias", (f"{here}mlp.{ours_name}.b",))
    if model.decoder.last_norm is not None:
        yield from _norm(f"{start}ln_f.", "decoder.last_norm.", model.decoder.last_norm)
    if model.head is not None:
        yield Piece("lm_head.weight", ("head.W",), turned=True)


def _drop_what_gpt2_adds(theirs: dict[str, np.ndarray], pieces: list[Piece]) -> None:
    """Causal masks that were saved with the weights, and the embedding a second time."""
    table = next((theirs.get(piece.theirs) for piece in pieces if piece.ours == ("embedding.table",)), None)
    for name in list(theirs):
        mask = name.endswith((".attn.bias", ".attn.masked_bias"))
        again = name == "lm_head.weight" and table is not None and np.array_equal(theirs[name], table)
        if mask or (again and not any(piece.theirs == name for piece in pieces)):
            del theirs[name]
