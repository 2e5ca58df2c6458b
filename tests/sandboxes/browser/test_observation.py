import io

import numpy as np
from PIL import Image

from sandboxgym.core.spaces import AnyText
from sandboxgym.sandboxes.browser.actions import parse
from sandboxgym.sandboxes.browser.observation import (
    ActionTexts,
    cut,
    observation_space,
    pixels,
)


def test_any_text_is_any_string_up_to_its_length():
    space = AnyText(3)
    assert "äö\n" in space
    assert "four" not in space
    assert 3 not in space
    assert space == AnyText(3) != AnyText(4)


def test_sampled_actions_are_of_the_grammar_and_follow_the_seed():
    first, second = ActionTexts(seed=5), ActionTexts(seed=5)
    drawn = [first.sample() for _ in range(50)]
    assert drawn == [second.sample() for _ in range(50)]
    assert len({parse(text).name for text in drawn}) >= 5


def test_the_picture_is_in_the_space_only_where_it_is_asked_for():
    space = observation_space(screenshot=True, width=40, height=30)
    assert space["screenshot"].shape == (30, 40, 3)
    assert "screenshot" not in observation_space(screenshot=False, width=40, height=30).spaces


def test_pixels_are_those_of_the_picture():
    colours = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    file = io.BytesIO()
    Image.fromarray(colours).save(file, "PNG")
    np.testing.assert_array_equal(pixels(file.getvalue()), colours)


def test_long_texts_are_cut_to_what_the_space_allows():
    assert [len(text) for text in cut(["a", "b" * 2_000_000])] == [1, 1_000_000]
