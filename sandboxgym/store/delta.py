"""Short forms of a blob's content: compressed alone, or against a similar content (its base)."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import zstandard

_PREFIX_LIMIT = 2**17
_MAX_WINDOW = 2**27


class Form(IntEnum):
    """How a content is written; each is one zstd frame (RFC 8878)."""

    ALONE = 0
    PREFIX = 1
    """The base is the dictionary of the frame."""
    XOR = 2
    """The frame holds the exclusive or with the base, which has the same length."""


def shorten(content: bytes, base: bytes | None) -> tuple[Form, bytes]:
    """The shorter of the forms that fit."""
    forms = [(Form.ALONE, zstandard.ZstdCompressor(level=_level(content)).compress(content))]
    if base is not None and max(len(base), len(content)) <= _PREFIX_LIMIT:
        forms.append((Form.PREFIX, _with_prefix(content, base)))
    elif base is not None and len(base) == len(content):
        forms.append((Form.XOR, zstandard.ZstdCompressor(level=3).compress(_xor(content, base))))
    return min(forms, key=lambda form: len(form[1]))


def lengthen(form: Form, short: bytes, size: int, base: bytes | None) -> bytes:
    """The content that `shorten` was given, of `size` bytes.

    Raises:
        ValueError: It is not such a form of so many bytes.
    """
    if (base is None) != (form is Form.ALONE):
        raise ValueError("a base is missing, or there is one too many")
    prefix = None
    if form is Form.PREFIX:
        assert base is not None
        prefix = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    try:
        if zstandard.get_frame_parameters(short).content_size != size:
            raise ValueError("the compressed data is of another size")
        decompressor = zstandard.ZstdDecompressor(dict_data=prefix, max_window_size=_MAX_WINDOW)
        content: bytes = decompressor.decompress(short, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if form is Form.XOR:
        assert base is not None
        if len(base) != size:
            raise ValueError("the base is of another size")
        content = _xor(content, base)
    return content


def _level(content: bytes) -> int:
    return 6 if len(content) <= _PREFIX_LIMIT else 3


def _with_prefix(content: bytes, base: bytes) -> bytes:
    prefix = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    # Parameters for the sum of both: those for the content alone do not reach back far enough.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        6, source_size=len(content), dict_size=len(base), write_content_size=1, write_dict_id=0
    )
    compressor = zstandard.ZstdCompressor(dict_data=prefix, compression_params=parameters)
    short: bytes = compressor.compress(content)
    return short


def _xor(left: bytes, right: bytes) -> bytes:
    return (np.frombuffer(left, np.uint8) ^ np.frombuffer(right, np.uint8)).tobytes()
