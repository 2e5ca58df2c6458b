from __future__ import annotations

import contextlib
import math
import struct
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sandboxgym.core import codec, errors
from sandboxgym.core.digest import differences, digest, first_difference
from sandboxgym.core.plain import owned

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**140), 2**140)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.binary(max_size=8)
    | hnp.arrays(
        st.sampled_from([np.int8, np.float32, np.uint64, np.bool_, np.complex64, "<U3", "S2"]),
        hnp.array_shapes(min_dims=0, max_dims=3, max_side=3, min_side=0),
    )
    | st.builds(np.float32, st.floats(width=32))
    | st.sampled_from([np.str_(""), np.str_("ab"), np.bytes_(b""), np.bytes_(b"xy")])
    | st.builds(np.int16, st.integers(-100, 100))
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.integers(-5, 5)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=15,
)


@given(trees)
def test_decoding_gives_back_exactly_what_was_encoded(tree):
    assert first_difference(codec.decode(codec.encode(tree)), tree) is None


@given(trees)
def test_a_copy_is_equal_and_shares_no_container(tree):
    copy = owned(tree)
    assert first_difference(copy, tree) is None
    if isinstance(tree, list | dict | np.ndarray):
        assert copy is not tree


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers()))
def test_the_order_of_keys_does_not_change_a_digest(tree):
    assert digest(tree) == digest(dict(reversed(tree.items())))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        ([1], (1,)),
        ("a", b"a"),
        (None, False),
        (np.float32(1), np.float64(1)),
        (np.zeros(2, np.int32), np.zeros(2, np.int64)),
        (np.zeros((1, 2)), np.zeros((2, 1))),
        ({"a": 1}, {"a": 1, "b": None}),
        ({1: "x"}, {"1": "x"}),
        ([], {}),
    ],
)
def test_values_that_are_not_the_same_have_other_digests_and_a_difference(left, right):
    assert digest(left) != digest(right)
    assert first_difference(left, right) is not None


def test_a_nan_equals_itself():
    assert (
        first_difference([math.nan, np.array([math.nan])], [math.nan, np.array([math.nan])]) is None
    )


def test_differences_are_named_by_path():
    left = {"a": [1, {"b": np.array([[1, 2], [3, 4]])}], "c": 1}
    right = {"a": [1, {"b": np.array([[1, 2], [9, 4]])}], "d": 1}
    assert [d.path for d in differences(left, right)] == ["['a'][1]['b'][1, 0]", "['c']", "['d']"]


def test_a_digest_is_the_same_under_any_hash_seed():
    program = (
        "from sandboxgym.core.digest import digest; import numpy as np;"
        "print(digest({k: [k, (1, 2.5)] for k in {'x', 'y', 'zz', 'w'}} | {'n': np.arange(3)}))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


class Sub(int):
    pass


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [object()]}, r"state\['a'\]\[0\] is a builtins.object"),
        ({"a": np.array([None])}, r"state\['a'\] is a numpy.ndarray of dtype object"),
        ({(1, 2): 3}, "key"),
        ({1, 2}, "builtins.set"),
        (Sub(3), "Sub"),
        (OrderedDict(a=1), "OrderedDict"),
    ],
)
def test_what_is_not_plain_is_refused_by_name_and_path(value, path):
    with pytest.raises(errors.StateEncodingError, match=path):
        owned(value, "state")
    with pytest.raises(errors.StateEncodingError):
        codec.encode(value)


def test_data_that_contains_itself_is_refused():
    loop: list = []
    loop.append(loop)
    for call in (owned, codec.encode):
        with pytest.raises(errors.StateEncodingError, match="nested deeper"):
            call(loop)


def test_numbers_too_long_to_spell_can_be_compared():
    (difference,) = differences([10**5000], [10**5000 + 1])
    assert "too long" in difference.left


def test_a_lone_surrogate_is_refused():
    with pytest.raises(errors.StateEncodingError, match="surrogate"):
        codec.encode(["\ud800"])


@settings(max_examples=300)
@given(st.binary(max_size=64))
def test_arbitrary_bytes_are_data_or_corrupt(data):
    with contextlib.suppress(errors.SnapshotCorruptError):
        codec.decode(data)


def ext(code: int, data: bytes) -> bytes:
    return b"\xc9" + len(data).to_bytes(4, "big") + bytes([code]) + data


def nested(data: bytes, levels: int) -> bytes:
    for _ in range(levels):
        data = ext(1, b"\x91" + data)
    return data


def array(dtype: str, shape: object, raw: bytes) -> bytes:
    return ext(2, codec.encode([dtype, shape, raw]))


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd\x7f\xff\xff\xff",
        b"\x91" * 100_000,
        codec.encode(np.zeros(3)).replace(b"<f8", b"|O8"),
        codec.encode(np.zeros(3)).replace(b"\x93\xa3<f8\x91\x03", b"\x93\xa3<f8\x91\x7f"),
        b"\xd4\x63\x00",
        b"\xdd\x00\x7f\xff\xff" + b"\x90" * 0x7FFFFF,  # empty lists: 64 bytes of memory each
        b"\xdd\x00\x7f\xff\xff" + b"\x80" * 0x7FFFFF,
        nested(b"\xc6\x00\x20\x00\x00" + b"x" * 0x200000, 60),  # copied at every level
        nested(b"\xc0", 1000),
        b"\x81\xcb" + struct.pack(">d", 1.5) + b"\x01",  # a float as key
        array("(1,i4", [], b"\x00" * 4),
        array("<U1", [], b"\xff" * 4),
        array("<U1", [1], b"\x00\xd8\x00\x00"),
        array("|b1", [1], b"\x07"),
        array("<M8", [], b"\x00" * 8),
        array("<i4", "", b"\x00" * 4),
        array("<i4", [-1, -1], b"\x00" * 4),
    ],
)
def test_hostile_encodings_are_refused(data):
    with pytest.raises(errors.SnapshotCorruptError):
        codec.decode(data)
