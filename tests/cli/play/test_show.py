from __future__ import annotations

import numpy as np

from sandboxgym.cli.play.show import LONGEST, is_picture, observation, picture, printable


def shown(obs, width=40, height=20):
    return observation(obs, width, height).plain


def test_text_is_shown_as_it_is():
    assert shown("Räume [b]und[/b] 左右\n🚪") == "Räume [b]und[/b] 左右\n🚪"
    assert shown("") == "(empty)"


def test_what_would_steer_the_terminal_is_replaced():
    assert "\x1b" not in shown("\x1b[2J\x07gone\u202e\x1b]0;title\x07")
    assert (
        printable("a\x00b\ud800c\r\nd")
        == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c\nd"
    )


def test_colours_are_kept():
    text = observation("\x1b[41mS\x1b[0mFFF", 40)
    assert text.plain == "SFFF"
    assert [(span.start, span.end, str(span.style)) for span in text.spans] == [
        (0, 1, "on color(1)")
    ]


def test_a_huge_text_is_cut():
    text = shown("x" * 10_000_000)
    assert len(text) < LONGEST + 100
    assert f"({10_000_000 - LONGEST} more characters)" in text


def test_small_arrays_are_shown_in_full_and_large_ones_summed_up():
    assert "0.25" in shown(np.array([0.25, 1.0]))
    text = shown(np.ones((84, 84, 4), np.float32))
    assert "float32 array of shape (84, 84, 4)" in text
    assert "mean 1" in text
    assert len(shown(np.zeros(10_000_000))) < 200


def test_odd_arrays_are_described():
    assert "bool array of shape (100,)" in shown(np.ones(100, bool))
    assert shown(np.array([], np.float32)) == "[]"
    assert "nan" in shown(np.array([np.nan]))


def test_dicts_and_tuples_are_shown_part_by_part():
    text = shown({"place": "kitchen", "inner": {"hp": np.int64(3)}, "pair": (1, None)})
    assert text.splitlines() == ["place:", "kitchen", "inner:", "hp: 3", "pair:", "0: 1", "1: None"]
    assert shown({}) == "(empty)"


def test_a_picture_is_drawn_in_the_room_there_is():
    pixels = np.zeros((210, 160, 3), np.uint8)
    pixels[:, :80] = (255, 0, 0)
    lines = picture(pixels, 40, 15).plain.split("\n")
    assert len(lines) == 15
    assert {len(line) for line in lines} == {22}
    drawn = picture(pixels, 40, 15)
    colours = {span.style.color.name for span in drawn.spans}
    assert {"#ff0000", "#000000"} <= colours


def test_small_and_gray_pictures_are_drawn():
    assert len(picture(np.zeros((8, 9), np.uint8), 40, 20).plain.split("\n")) == 4
    assert is_picture(np.zeros((8, 8, 1), np.uint8))
    assert not is_picture(np.zeros((8, 8, 3), np.float32))
    assert not is_picture(np.zeros((2, 8), np.uint8))


def test_a_picture_survives_having_no_room():
    assert picture(np.zeros((20, 20, 3), np.uint8), 0, 0).plain
