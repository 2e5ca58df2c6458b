"""The terminal program, driven by its keys in a real (headless) Textual."""

from __future__ import annotations

import asyncio
import re

import gymnasium as gym
import pytest
from textual.widgets import Input, OptionList, Static

import sandboxgym as sg
from sandboxgym.cli.play.app import PlayApp
from sandboxgym.cli.play.timeline import Timeline
from tests.cli.play.worlds import Corridor


def alfworld():
    return gym.make("sandboxgym/ALFWorld-v0", source="synthetic")


def play(env, script, *, size=(120, 36), seed=7):
    """Run the program on an environment, and a script of what a player does."""

    async def run():
        app = PlayApp(Timeline(env, seed), "the game")
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)

    asyncio.run(run())


def text(app, selector):
    return str(app.screen.query_one(selector, Static).render())


def story(app):
    return text(app, "#observation Static")


def offered(app):
    listed = app.query_one("#actions OptionList", OptionList)
    return [str(listed.get_option_at_index(i).prompt) for i in range(listed.option_count)]


def rows(app):
    tree = app.query_one("#tree", OptionList)
    return [str(tree.get_option_at_index(i).prompt) for i in range(tree.option_count)]


async def write(pilot, words):
    await pilot.press(*["space" if letter == " " else letter for letter in words])


async def answer(app, pilot, words):
    """Type over what a dialogue proposes, and confirm."""
    await pilot.pause()
    app.screen.query_one(Input).value = ""
    await write(pilot, words)
    await pilot.press("enter")
    await pilot.pause()


def test_it_shows_the_task_its_actions_and_the_start_of_the_tree():
    async def script(app, pilot):
        assert "Your task is to" in story(app)
        assert offered(app) == app.timeline.here.last.info["admissible_commands"]
        assert rows(app) == ["● seed 7  [main]"]
        assert "step 0 · reward 0 · return 0 · seed 7 · native · snap" in text(app, "#status")

    play(alfworld(), script)


def test_words_filter_the_actions_and_enter_takes_the_first():
    async def script(app, pilot):
        await write(pilot, "fridge go")
        assert offered(app) == ["go to fridge 1", "as typed: fridge go"]
        await pilot.press("enter")
        await pilot.pause()
        assert app.timeline.here.action == "go to fridge 1"
        assert "> go to fridge 1" in story(app)
        assert app.query_one("#actions Input", Input).value == ""
        assert rows(app)[-1] == "└ 1 go to fridge 1  [main]"

    play(alfworld(), script)


def test_any_text_is_taken_as_typed():
    async def script(app, pilot):
        await write(pilot, "go to")
        await pilot.press("up", *["down"] * 50, "enter")
        await pilot.pause()
        assert app.timeline.here.action == "go to"
        assert "Nothing happens" in story(app)

    play(alfworld(), script)


def test_arrows_choose_and_the_choice_stays_for_the_next_step():
    env = sg.forkable(gym.make("CartPole-v1"))

    async def script(app, pilot):
        await pilot.press("down", "enter", "enter", "enter")
        await pilot.pause()
        assert [moment.action for moment in app.timeline.here.path()[1:]] == [1, 1, 1]

    play(env, script)


def test_undo_after_the_end_goes_back_into_the_episode():
    env = sg.forkable(gym.make("CartPole-v1", max_episode_steps=3))

    async def script(app, pilot):
        await pilot.press("enter", "enter", "enter")
        await pilot.pause()
        assert text(app, "#status").startswith("TRUNCATED · step 3 · reward 1 · return 3")
        assert offered(app) == []
        assert "has ended" in app.query_one("#actions Input", Input).placeholder
        await pilot.press("0", "enter")
        await pilot.pause()
        assert "EpisodeEndedError" in text(app, "#message")
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert text(app, "#status").startswith("step 2 ")
        assert re.search(r"restore \d", text(app, "#status"))
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.timeline.here.last.truncated
        assert len(app.timeline.tips) == 2

    play(env, script)


def test_a_won_game_is_undone():
    env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic", expert_plan=True)

    async def script(app, pilot):
        while not app.timeline.here.last.ended:
            command = app.timeline.here.last.info["expert_plan"][0]
            app.query_one("#actions Input", Input).value = command
            await pilot.press("enter")
            await pilot.pause()
            assert app.timeline.here.action == command
        assert text(app, "#status").startswith("TERMINATED")
        assert rows(app)[-1].endswith("+1  ■ end  [main]")
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert offered(app) == app.timeline.here.last.info["admissible_commands"]

    play(env, script)


def test_a_restore_that_fails_is_a_message():
    env = Corridor()

    async def script(app, pilot):
        await write(pilot, "right")
        await pilot.press("enter")
        env.trouble = "restore"
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert "RestoreFailedError" in text(app, "#message")
        assert "the disk is gone" in text(app, "#message")
        assert app.timeline.here.step == 1
        env.trouble = ""
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert app.timeline.here.step == 0
        assert text(app, "#message") == ""

    play(env, script)


def test_a_step_that_fails_is_a_message_and_the_game_goes_on():
    env = Corridor()

    async def script(app, pilot):
        for command in ("right", "jump", "fly"):
            await write(pilot, command)
            await pilot.press("enter")
            await pilot.pause()
        assert "no wings" in text(app, "#message")
        await write(pilot, "right")
        await pilot.press("enter")
        await pilot.pause()
        assert env.room == 2

    play(env, script)


def test_a_moment_is_named_forked_and_reached_through_the_tree():
    async def script(app, pilot):
        await pilot.press("enter", "enter", "ctrl+z", "ctrl+n")
        await answer(app, pilot, "vor der tür")
        assert "★ vor der tür" in rows(app)[1]
        assert app.timeline.here.snapshot.digest[:8] in text(app, "#message")

        await pilot.press("ctrl+t", "home", "ctrl+b")
        await answer(app, pilot, "von vorn")
        assert app.timeline.here.step == 0
        assert app.timeline.branch == "von vorn"
        assert "on von vorn" in text(app, "#title")

        await pilot.press("end", "enter")
        await pilot.pause()
        assert app.timeline.here.step == 2
        assert app.timeline.branch == "main"
        await pilot.press("ctrl+t")
        assert app.query_one("#actions Input", Input).has_focus

    play(Corridor(), script)


def test_a_dialogue_can_be_left():
    async def script(app, pilot):
        for key in ("ctrl+n", "ctrl+b", "ctrl+s", "ctrl+o", "ctrl+r"):
            await pilot.press(key)
            await pilot.pause()
            assert len(app.screen_stack) == 2, key
            await pilot.press("escape")
            await pilot.pause()
            assert len(app.screen_stack) == 1, key
        assert len(list(app.timeline.moments())) == 1

    play(Corridor(), script)


def test_keys_of_the_game_do_nothing_while_a_dialogue_is_open():
    async def script(app, pilot):
        await pilot.press("enter", "ctrl+n", "ctrl+b", "ctrl+z", "ctrl+d")
        await pilot.pause()
        assert len(app.screen_stack) == 2
        assert app.timeline.here.step == 1

    play(Corridor(), script)


def test_two_moments_are_compared():
    async def script(app, pilot):
        await pilot.press("ctrl+d")
        await pilot.pause()
        assert "point at another moment" in text(app, "#message")
        await write(pilot, "right")
        await pilot.press("enter", "ctrl+d")
        await pilot.pause()
        page = text(app, "Static")
        assert "- Du stehst in Raum 0." in page
        assert "+ Du stehst in Raum 1." in page
        assert "['state']['room']" in page
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1

    play(Corridor(), script)


def test_a_moment_is_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(app, pilot):
        await write(pilot, "right")
        await pilot.press("enter", "ctrl+s")
        await pilot.pause()
        await pilot.press("enter")  # the name that is proposed
        await pilot.pause()
        assert sg.Snapshot.load(tmp_path / "the game-step1.snap").step == 1
        await pilot.press("ctrl+o")
        await answer(app, pilot, "nothing.snap")
        assert "FileNotFoundError" in text(app, "#message")
        await pilot.press("ctrl+o")
        await answer(app, pilot, "the game-step1.snap")
        assert [start.origin for start in app.timeline.starts] == ["seed 7", "the game-step1.snap"]

    play(Corridor(), script)


def test_another_episode_is_started_with_a_seed():
    async def script(app, pilot):
        await pilot.press("ctrl+r")
        await answer(app, pilot, "x")
        assert "no seed" in text(app, "#message")
        await pilot.press("ctrl+r")
        await answer(app, pilot, "12")
        assert "seed 12" in text(app, "#status")

    play(alfworld(), script)


def test_pictures_and_text_are_rendered():
    async def script(app, pilot):
        assert "SFFF\nFHFH" in story(app)
        await pilot.press("down", "enter")
        await pilot.pause()
        assert "(Down)" in story(app)

    play(sg.forkable(gym.make("FrozenLake-v1", render_mode="ansi")), script)


def test_a_picture_is_drawn_anew_when_the_window_changes():
    async def script(app, pilot):
        wide = story(app).count("▀")
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        assert 0 < story(app).count("▀") < wide

    play(sg.forkable(gym.make("FrozenLake-v1", render_mode="rgb_array")), script)


def test_a_rendering_that_fails_is_told():
    class Dark(Corridor):
        render_mode = "ansi"

        def render(self):
            raise RuntimeError("no light")

    async def script(app, pilot):
        assert "RuntimeError: no light" in story(app)

    play(Dark(), script)


def test_unicode_and_markup_are_shown_as_they_are():
    async def script(app, pilot):
        assert "🚪 [bold]Türen[/bold] führen weiter: 左右" in story(app)

    play(Corridor(), script)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (20, 6), (300, 80)])
def test_it_works_at_every_size(size):
    async def script(app, pilot):
        await pilot.press("enter", "ctrl+z", "down", "enter", "ctrl+d")
        await pilot.pause()
        await pilot.press("escape", "ctrl+b", "enter")
        await pilot.pause()
        assert app.timeline.here.step == 1

    play(alfworld(), script, size=size)


def test_all_that_matters_fits_in_80_columns():
    async def script(app, pilot):
        await pilot.press("enter", "ctrl+z")
        await pilot.pause()
        assert len(text(app, "#status")) <= 78
        footer = app.query_one("Footer")
        assert sum(key.outer_size.width for key in footer.children) <= 80

    play(alfworld(), script, size=(80, 24))
