"""Models that do something: a tagger and a model of characters, as ``tinyattn train`` trains them."""

from tinyattn.models.chars import Characters, read_text, train_chars
from tinyattn.models.tagger import KINDS, Split, Tagger, compare_taggers, split_corpus

__all__ = ["KINDS", "Characters", "Split", "Tagger", "compare_taggers", "read_text", "split_corpus", "train_chars"]
