from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg
from sandboxgym.cli.play.outline import number, outline
from sandboxgym.cli.play.timeline import PlayError, Timeline
from tests.cli.play.worlds import Corridor, dice


def drawn(timeline):
    return [str(line) for line in outline(timeline, str)]


def test_it_starts_at_a_reset():
    timeline = Timeline(Corridor(), seed=5)
    assert timeline.here.step == 0
    assert timeline.here.origin == "seed 5"
    assert timeline.mechanism == "native"
    assert timeline.branch == "main"
    assert timeline.restore_seconds is None


def test_a_step_extends_the_branch_and_adds_up_the_return():
    timeline = Timeline(Corridor())
    for _ in range(3):
        timeline.step("right")
    assert timeline.here.last.ended
    assert timeline.here.total == 1.0
    assert timeline.tips == {"main": timeline.here}
    assert [moment.action for moment in timeline.here.path()] == [None, "right", "right", "right"]


def test_undo_returns_the_environment_itself():
    env = Corridor()
    timeline = Timeline(env)
    first = timeline.step("right")
    timeline.step("right")
    timeline.undo()
    assert timeline.here is first
    assert env.room == 1
    assert timeline.restore_seconds > 0


def test_undo_works_after_the_end_of_the_episode_and_play_goes_on():
    env = Corridor()
    timeline = Timeline(env)
    for _ in range(3):
        timeline.step("right")
    timeline.undo()
    assert not timeline.here.last.ended
    timeline.step("left")
    assert env.room == 1


def test_there_is_nothing_to_undo_at_the_start():
    timeline = Timeline(Corridor())
    with pytest.raises(PlayError, match="nothing to undo"):
        timeline.undo()


def test_another_action_after_an_undo_starts_a_branch_and_keeps_the_old_future():
    timeline = Timeline(Corridor())
    timeline.step("right")
    old = timeline.step("right")
    timeline.undo()
    assert timeline.branch is None
    new = timeline.step("left")
    assert timeline.branch == "branch 2"
    assert timeline.tips == {"main": old, "branch 2": new}


def test_the_same_action_again_leads_to_the_same_moment():
    timeline = Timeline(Corridor())
    old = timeline.step("right")
    timeline.undo()
    assert timeline.step("right") is old
    assert timeline.branch == "main"
    assert len(list(timeline.moments())) == 2


def test_a_stochastic_environment_draws_the_same_again():
    timeline = Timeline(dice(), seed=3)
    old = timeline.step(np.int64(1))
    timeline.step(np.int64(0))
    timeline.undo()
    timeline.undo()
    assert timeline.step(np.int64(1)) is old
    assert timeline.step(np.int64(1)) is not old


def test_a_fork_starts_at_any_moment_and_is_continued():
    env = Corridor()
    timeline = Timeline(env)
    first = timeline.step("right")
    timeline.step("right")
    name = timeline.fork(first, "zurück")
    assert (name, env.room) == ("zurück", 1)
    timeline.step("left")
    assert env.room == 0
    assert timeline.tips["zurück"] is timeline.here
    with pytest.raises(PlayError, match="'zurück' already"):
        timeline.fork(first, "zurück")


def test_a_fork_here_leaves_the_other_branch_where_it_was():
    timeline = Timeline(Corridor())
    first = timeline.step("right")
    timeline.fork()
    timeline.step("right")
    assert timeline.tips["main"] is first


def test_switching_continues_the_branch():
    env = Corridor()
    timeline = Timeline(env)
    timeline.step("right")
    timeline.fork(timeline.starts[0], "other")
    timeline.step("left")
    timeline.switch("main")
    assert env.room == 1
    timeline.step("right")
    assert timeline.tips["main"].step == 2
    with pytest.raises(PlayError, match="no branch 'third'"):
        timeline.switch("third")


def test_going_to_the_tip_of_a_branch_continues_it():
    timeline = Timeline(Corridor())
    tip = timeline.step("right")
    timeline.fork(timeline.starts[0], "other")
    timeline.go(tip)
    assert timeline.branch == "main"


def test_another_episode_stands_beside_the_first():
    timeline = Timeline(Corridor(), seed=1)
    timeline.step("right")
    timeline.reset(seed=2)
    assert [start.origin for start in timeline.starts] == ["seed 1", "seed 2"]
    assert timeline.branch == "branch 2"
    timeline.switch("main")
    assert timeline.here.step == 1


def test_moments_differ_in_what_is_seen_and_in_what_is_captured():
    timeline = Timeline(Corridor())
    start = timeline.here
    later = timeline.step("right")
    found = timeline.compare(start, later)
    assert [line[:2] for line in found.observation] == ["- ", "+ "]
    assert "['state']['room']" in [difference.path for difference in found.state]
    assert timeline.compare(later, later).observation == []


def test_arrays_are_compared_by_path():
    timeline = Timeline(dice(), seed=3)
    start = timeline.here
    assert timeline.compare(start, timeline.step(np.int64(0))).observation[0].startswith("[0]: ")


def test_a_moment_is_saved_and_loaded_in_another_timeline(tmp_path):
    timeline = Timeline(Corridor())
    moment = timeline.step("right")
    file = tmp_path / "a.snap"
    assert timeline.save(file) == file.stat().st_size
    with pytest.raises(PlayError, match="already"):
        timeline.save(file)
    assert sg.Snapshot.load(file).digest == moment.snapshot.digest

    env = Corridor()
    other = Timeline(env)
    loaded = other.load(file)
    assert env.room == 1
    assert loaded.origin == "a.snap"
    assert other.here is loaded
    other.step("right")
    assert env.room == 2


def test_a_file_that_cannot_be_loaded_changes_nothing(tmp_path):
    timeline = Timeline(Corridor())
    here = timeline.step("right")
    (tmp_path / "bad").write_bytes(b"nonsense")
    with pytest.raises(sg.SandboxGymError, match="not a snapshot"):
        timeline.load(tmp_path / "bad")
    with pytest.raises(FileNotFoundError):
        timeline.load(tmp_path / "none")
    assert timeline.here is here
    assert len(timeline.starts) == 1


def test_a_step_that_fails_half_way_is_taken_back():
    env = Corridor()
    timeline = Timeline(env)
    here = timeline.step("right")
    with pytest.raises(PlayError, match=r"the ceiling is low.*put back to step 1"):
        timeline.step("jump")
    assert (timeline.here, env.room) == (here, 1)
    timeline.step("right")
    assert env.room == 2


def test_a_refused_action_changes_nothing():
    env = Corridor()
    timeline = Timeline(env)
    with pytest.raises(sg.SandboxGymError, match="no wings"):
        timeline.step("fly")
    timeline.step("right")
    assert env.room == 1


def test_a_restore_that_fails_leaves_the_player_where_they_are():
    env = Corridor()
    timeline = Timeline(env)
    timeline.step("right")
    here = timeline.step("right")
    env.trouble = "restore"
    with pytest.raises(sg.SandboxGymError, match="the disk is gone"):
        timeline.undo()
    assert timeline.here is here
    env.trouble = ""
    timeline.undo()
    assert env.room == 1


def test_a_reset_that_fails_says_so():
    with pytest.raises(PlayError, match="the corridor is flooded"):
        Timeline(Corridor(trouble="reset"))


def test_a_later_reset_that_fails_leaves_the_episode_going():
    env = Corridor()
    timeline = Timeline(env)
    timeline.step("right")
    env.trouble = "reset"
    with pytest.raises(PlayError, match="flooded"):
        timeline.reset(seed=1)
    env.trouble = ""
    timeline.step("right")
    assert env.room == 2


def test_the_tree_runs_straight_down_and_branches_stand_beside():
    timeline = Timeline(Corridor(), seed=7)
    timeline.step("right")
    timeline.step("right")
    timeline.undo()
    timeline.step("left").name = "zurück"
    timeline.step("left")
    timeline.switch("main")
    timeline.step("right")
    assert drawn(timeline) == [
        "● seed 7",
        "├ 1 right",
        "├─┬ 2 left  ★ zurück",
        "│ └ 3 left  [branch 2]",
        "├ 2 right",
        "└ 3 right  +1  ■ end  [main]",
    ]


def test_a_branch_of_a_branch_is_drawn_further_in():
    timeline = Timeline(Corridor(), seed=7)
    start = timeline.here
    timeline.step("right")
    for action in ("left", "warte kurz"):
        timeline.go(start)
        timeline.step(action)
    timeline.step("right")
    timeline.undo()
    timeline.step("left")
    assert drawn(timeline) == [
        "● seed 7",
        "├── 1 left  [branch 2]",
        "├─┬ 1 warte kurz",
        "│ ├── 2 left  [branch 4]",
        "│ └ 2 right  [branch 3]",
        "└ 1 right  [main]",
    ]


def test_a_thousand_steps_are_drawn_and_walked():
    timeline = Timeline(gym.make("sandboxgym/ALFWorld-v0", source="synthetic").unwrapped, seed=7)
    for _ in range(1000):
        timeline.step("look")
    assert len(drawn(timeline)) == 1001
    assert len(list(timeline.moments())) == 1001
    assert len(timeline.here.path()) == 1001


@pytest.mark.parametrize(
    ("reward", "spelled"),
    [(1.0, "+1"), (np.float32(-0.5), "-0.5"), (np.array([1.0, 2.0]), "+1 +2")],
)
def test_rewards_are_numbers_or_vectors_of_them(reward, spelled):
    assert number(reward, "+") == spelled
