"""Reading what lessons and demo need: tagged sentences, word vectors, sound; and from words to numbers.

Only NumPy and the standard library.  A file that is not what it should be gives a `DataFileError` with file,
line and what was expected.  Nothing of the engine is used here: all results are arrays, lists and texts.
"""

from tinyattn.data.audio import frames, made_up_wave, read_wav, wav_bytes, write_wav
from tinyattn.data.batches import MostFrequentTag, pad_batch, tagged_batch, tagging_accuracy
from tinyattn.data.conllu import UPOS, Sentence, parse_conllu, read_conllu, sample_corpus
from tinyattn.data.text import Vocabulary, split_sentence
from tinyattn.data.vectors import WordVectors, parse_glove, read_glove, vectors_for

__all__ = [
    "UPOS",
    "MostFrequentTag",
    "Sentence",
    "Vocabulary",
    "WordVectors",
    "frames",
    "made_up_wave",
    "pad_batch",
    "parse_conllu",
    "parse_glove",
    "read_conllu",
    "read_glove",
    "read_wav",
    "sample_corpus",
    "split_sentence",
    "tagged_batch",
    "tagging_accuracy",
    "vectors_for",
    "wav_bytes",
    "write_wav",
]
