import pytest

from sandboxgym_learners.prompts import Episode, PromptFormat, task_of


def episode(steps: int) -> Episode:
    seen = Episode.start("In a room.\n\nYour task is to: tidy up.")
    for n in range(steps):
        seen = seen.after(f"open box {n}", f"Box {n} is open.")
    return seen


def test_the_task_is_what_the_reset_says_it_is():
    start = Episode.start("Welcome!\n\nYou see  a desk.\n\nYour task is to: put a mug on it.\n")
    assert start.task == "put a mug on it."
    assert start.observations == ("Welcome! You see a desk.",)


def test_without_a_stated_task_the_whole_text_is_the_task():
    assert Episode.start("Find the\n way out.").task == "Find the way out."


def test_a_prompt_shows_task_steps_actions_and_present_observation():
    assert episode(2).prompt(PromptFormat()) == (
        "Task: tidy up.\n"
        "Steps taken: 2\n"
        "> open box 0\n"
        "> open box 1\n"
        "You see: Box 1 is open.\n"
        "Action:"
    )


def test_history_is_cut_to_the_latest_actions_and_observations():
    lines = episode(9).prompt(PromptFormat(actions=4, observations=3)).splitlines()
    assert lines[1:] == [
        "Steps taken: 9",
        "> open box 5",
        "> open box 6 -> Box 6 is open.",
        "> open box 7 -> Box 7 is open.",
        "> open box 8",
        "You see: Box 8 is open.",
        "Action:",
    ]


def test_the_task_can_be_read_back():
    assert task_of(episode(3).prompt(PromptFormat())) == "tidy up."


@pytest.mark.parametrize("bad", [{"actions": -1}, {"observations": 0}])
def test_a_prompt_without_an_observation_is_refused(bad):
    with pytest.raises(ValueError, match="a prompt needs"):
        PromptFormat(**bad)
