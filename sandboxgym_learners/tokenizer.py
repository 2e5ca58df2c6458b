"""Tokenizers of tiny policies: words, for scoring commands, and bytes, for writing."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE, WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel
from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN, END = "<pad>", "<unk>", "<end>"
TURN, TURN_END = "<|im_start|>", "<|im_end|>"

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


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Make a tokenizer of single bytes, with the marks of a chat: it reads and writes any text."""
    letters = [PAD, TURN, TURN_END, *sorted(ByteLevel.alphabet())]
    vocabulary = {letter: index for index, letter in enumerate(letters)}
    tokenizer = Tokenizer(BPE(vocabulary, []))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([PAD, TURN, TURN_END])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=TURN_END
    )
