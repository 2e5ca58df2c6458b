"""A word-level tokenizer for the tiny policy, its vocabulary taken from texts of the world."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN, END = "<pad>", "<unk>", "<end>"

_NUMBERS = [str(number) for number in range(100)]


def build_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make a tokenizer of the words, numbers and punctuation marks in `texts`, case ignored.

    The same texts, in any order, give the same vocabulary. The numbers below 100 are always in it;
    any other word that did not occur becomes the unknown token.
    """
    splitter = BertPreTokenizer()  # at white space, and around every punctuation mark
    words = set(_NUMBERS)
    for text in texts:
        words.update(piece for piece, _ in splitter.pre_tokenize_str(text.lower()))
    vocabulary = {word: index for index, word in enumerate([PAD, UNKNOWN, END, *sorted(words)])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = splitter
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNKNOWN, eos_token=END
    )
