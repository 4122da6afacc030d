"""Layers: parts of models with parameters, written in public tensor operations.

>>> import tinyattn as ta
>>> class Tagger(ta.nn.Module):
...     def __init__(self):
...         self.embedding = ta.nn.Embedding(100, 8, rng=0)
...         self.attention = ta.nn.SelfAttention(8, rng=1)
...         self.linear = ta.nn.Linear(8, 5, rng=2)
...
...     def forward(self, ids):
...         x = self.embedding(ids)
...         context = self.attention(x)
...         return self.linear(x + context)
>>> tagger = Tagger()
>>> scores = tagger([3, 1, 4, 1])
>>> scores.shape
(4, 5)
>>> tagger
Tagger(
  embedding: Embedding(100, 8)
  attention: SelfAttention(d=8, d_k=8, d_v=8)
  linear: Linear(8, 5)
)
"""

from typing import TYPE_CHECKING, NoReturn

from tinyattn.nn import init, masks, normalise, scores
from tinyattn.nn.attention import AttentionSteps, SelfAttention, attention
from tinyattn.nn.gpt import GPT
from tinyattn.nn.layers import MLP, Dropout, Embedding, LayerNorm, Linear, RMSNorm
from tinyattn.nn.linear_attention import Fastformer, FastformerSteps, LinearAttention
from tinyattn.nn.module import Module
from tinyattn.nn.multi_head import KeyValueCache, MultiHeadAttention, merge_heads, split_heads
from tinyattn.nn.positions import DistanceBias, LearnedPosition, RotaryPosition, SinusoidalPosition, sinusoidal
from tinyattn.nn.scores import AdditiveScore, GeneralScore
from tinyattn.nn.sequential import Sequential
from tinyattn.nn.transformer import TransformerBlock, TransformerEncoder, mean_over_words

__all__ = [
    "GPT", "MLP", "AdditiveScore", "AttentionSteps", "DistanceBias", "Dropout", "Embedding", "Fastformer",
    "FastformerSteps", "GeneralScore", "KeyValueCache", "LayerNorm", "LearnedPosition", "Linear", "LinearAttention",
    "Module", "MultiHeadAttention", "RMSNorm", "RotaryPosition", "SelfAttention", "Sequential", "SinusoidalPosition",
    "TransformerBlock", "TransformerEncoder", "attention", "init", "masks", "mean_over_words", "merge_heads",
    "normalise", "scores", "sinusoidal", "split_heads",
]  # fmt: skip


if not TYPE_CHECKING:  # type checkers shall still see a misspelt name

    def __getattr__(name: str) -> NoReturn:
        """Answer a name of another library, such as ``nn.ReLU``, with ours."""
        from tinyattn.elsewhere import missing

        raise AttributeError(missing(name, __name__))
