from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg
from sandboxgym.core.errors import RestoreFailedError, UncapturedStateError
from sandboxgym.mechanisms.native import NativeEnv
from sandboxgym.sandboxes.classic.ale import AtariState
from tests.peers.twins import assert_equal, assert_forks_exactly, play_alike, step

ale_py = pytest.importorskip("ale_py", reason="needs ale-py: pip install 'sandboxgym[ale]'")
gym.register_envs(ale_py)
pytestmark = pytest.mark.peers

STICKY = "ALE/Breakout-v5"  # repeats actions with a probability of 0.25


def plain(name: str = STICKY, **kwargs: Any) -> gym.Env[Any, Any]:
    return gym.make(name, **kwargs)


def native(name: str = STICKY, **kwargs: Any) -> gym.Env[Any, Any]:
    return sg.forkable(plain(name, **kwargs), mechanism="native")


@pytest.mark.parametrize("name", [STICKY, "ALE/Adventure-v5", "ALE/MontezumaRevenge-v5"])
def test_seeded_episodes_are_those_of_plain_ale(name):
    play_alike(native(name), plain(name), seed=1, steps=400)


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"repeat_action_probability": 0.0},
        {"repeat_action_probability": 0.9},
        {"frameskip": (2, 5)},
        {"continuous": True},
        {"obs_type": "ram"},
        {"max_num_frames_per_episode": 300},
        {"mode": 4, "difficulty": 1},
    ],
    ids=str,
)
def test_forks_are_exact(kwargs):
    make = {**kwargs, "name": "ALE/Breakout-v5"}
    assert_forks_exactly(native(**make), native(**make), plain(**make), trips=10)


def test_atari_preprocessing_above_it_is_exact():
    pytest.importorskip("cv2", reason="AtariPreprocessing needs OpenCV")

    def make() -> gym.Env[Any, Any]:
        return gym.wrappers.AtariPreprocessing(
            plain(frameskip=1), noop_max=30, terminal_on_life_loss=True
        )

    envs = [sg.forkable(make(), mechanism="native", factory=make) for _ in range(2)]
    assert_forks_exactly(*envs, make(), trips=10)


def test_a_state_of_ales_own_lacks_the_action_that_sticks():
    """The trap that `Console` is there for: if ALE ever closes it, it can go."""
    here, there = plain().unwrapped, plain().unwrapped
    here.reset(seed=1)
    there.reset(seed=2)
    rng = np.random.default_rng(0)
    differ = 0
    for _ in range(200):
        for env in (here, there):
            if env.step(int(rng.integers(4)))[2]:
                env.reset(seed=3)
        there.restore_state(here.clone_state(include_rng=True))
        action = int(rng.integers(4))
        differ += first_frame_differs(here, there, action)
    assert differ > 0


def first_frame_differs(here: Any, there: Any, action: int) -> bool:
    return not np.array_equal(here.step(action)[0], there.step(action)[0])


def test_an_instance_that_was_never_reset_takes_a_snapshot():
    env, twin, fresh = native(), plain(), native()
    play_alike(env, twin, seed=5, steps=60)
    sg.restore(fresh, sg.snapshot(env))
    for _ in range(30):
        action = twin.action_space.sample()
        assert_equal(step(fresh, action), step(twin, action))


def test_the_recipe_of_an_episode_without_a_seed_leads_to_it():
    env = native()
    for _ in range(2):
        env.reset()
        for action in (1, 2, 2, 3, 3, 0) * 4:
            env.step(action)
        sg.restore(native(), sg.snapshot(env).drop_state())  # verified by its digest


def test_seeds_give_forks_sticky_actions_of_their_own():
    env = native(repeat_action_probability=0.5)
    env.reset(seed=0)
    env.step(1)

    def pictures(fork: gym.Env[Any, Any]) -> list[int]:
        return [int(fork.step(2 + i % 2)[0].sum()) for i in range(30)]

    first, second, again = (pictures(fork) for fork in sg.fork(env, 3, seeds=[7, 8, 7]))
    assert first == again != second


def test_a_snapshot_goes_to_another_process(tmp_path: Path):
    env, twin = native(), plain()
    play_alike(env, twin, seed=2, steps=40)
    sg.snapshot(env).save(tmp_path / "s.snap")
    program = (
        "import ale_py, gymnasium as gym, hashlib, sys, sandboxgym as sg\n"
        "gym.register_envs(ale_py)\n"
        f"env = sg.forkable(gym.make({STICKY!r}), mechanism='native')\n"
        "sg.restore(env, sg.Snapshot.load(sys.argv[1]))\n"
        "seen = [env.step(i % 4)[0].tobytes() for i in range(40)]\n"
        "print(hashlib.sha256(b''.join(seen)).hexdigest())\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "s.snap")],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    ).stdout
    seen = [step(twin, i % 4)[0].tobytes() for i in range(40)]
    assert out.strip() == hashlib.sha256(b"".join(seen)).hexdigest()


@pytest.mark.parametrize("game", ["Qbert", "Tetris", "TicTacToe3D", "VideoChess"])
def test_games_whose_frames_are_irregular_are_not_captured_natively(game):
    with pytest.raises(sg.SandboxGymError, match="lines of earlier frames"):
        native(f"ALE/{game}-v5")


@pytest.mark.parametrize("game", ["Hangman", "MiniatureGolf", "Pitfall2"])
def test_games_of_which_ale_saves_too_little_are_not_captured_natively(game):
    with pytest.raises(sg.SandboxGymError, match="leaves a part"):
        native(f"ALE/{game}-v5")


def unguarded(name: str, **kwargs: Any) -> NativeEnv:
    """A game that is refused otherwise."""
    env = NativeEnv(plain(name, **kwargs).unwrapped, AtariState())
    env.reset(seed=0)
    return env


def play_until_refused(env: NativeEnv, before_each_step: Callable[[], Any]) -> str:
    rng = np.random.default_rng(0)
    try:
        for _ in range(3000):
            before_each_step()
            if env.step(int(rng.integers(env.action_space.n)))[2]:
                env.reset(seed=1)
    except UncapturedStateError as error:
        return str(error)
    return "nothing was refused"


def test_a_frame_that_is_half_done_is_no_moment_for_a_snapshot():
    env = unguarded("ALE/TicTacToe3D-v5")
    assert "middle of a frame" in play_until_refused(env, env.snapshot)


def test_old_lines_of_a_picture_are_noticed_after_a_restore():
    env = unguarded("ALE/Koolaid-v5", frameskip=1)
    message = play_until_refused(env, lambda: env.restore(env.snapshot()))
    assert "earlier frames stay visible" in message


def test_what_shines_through_from_another_moment_is_noticed():
    here, there = (unguarded("ALE/YarsRevenge-v5", frameskip=1) for _ in range(2))
    refused = wrong = 0
    rng = np.random.default_rng(0)
    for _ in range(30):
        for env in (here, there):
            for _ in range(int(rng.integers(1, 30))):
                if env.step(int(rng.integers(env.action_space.n)))[2]:
                    env.reset(seed=1)
        state = here.api.get(here.env)
        try:
            there.api.set(there.env, state)
        except UncapturedStateError:
            refused += 1
            continue
        wrong += not np.array_equal(here.env.step(0)[0], there.env.step(0)[0])
    assert refused > 0
    assert wrong == 0


def test_what_ale_keeps_of_its_own_is_refused_not_ignored():
    env = native()
    env.reset(seed=0)
    state = env.unwrapped.clone_state(include_rng=True)
    with pytest.raises(sg.SandboxGymError, match=r"sandboxgym\.restore"):
        env.unwrapped.restore_state(state)


def test_a_state_of_another_game_is_refused_and_the_episode_goes_on():
    env, twin = native(), plain()
    play_alike(env, twin, seed=1, steps=20)
    pong = native("ALE/Pong-v5")
    pong.reset(seed=0)
    foreign = replace(sg.snapshot(env), state=sg.snapshot(pong).state)
    with pytest.raises(sg.SandboxGymError, match="not a state of this game"):
        sg.restore(env, foreign)
    assert_equal(step(env, 1), step(twin, 1))


def test_there_is_no_picture_until_the_first_step_after_a_restore():
    here, there = native(render_mode="rgb_array"), native(render_mode="rgb_array")
    here.reset(seed=0)
    here.step(1)
    there.reset(seed=1)
    sg.restore(there, sg.snapshot(here))
    with pytest.raises(UncapturedStateError, match="until the first step"):
        there.render()
    here.step(2)
    there.step(2)
    np.testing.assert_array_equal(there.render(), here.render())


@pytest.mark.parametrize(
    "change",
    [
        lambda env: setattr(env, "_frameskip", 2),
        lambda env: env.ale.setFloat("repeat_action_probability", 0.5),
    ],
    ids=["frameskip", "repeat_action_probability"],
)
def test_settings_that_were_changed_are_not_lost_in_a_fork(change):
    env = plain()
    change(env.unwrapped)
    env = sg.forkable(env, mechanism="native")
    env.reset(seed=1)
    with pytest.raises(RestoreFailedError, match="settings"):
        sg.fork(env, 1)

    def make() -> gym.Env[Any, Any]:
        made = plain()
        change(made.unwrapped)
        return made

    env = sg.forkable(make(), mechanism="native", factory=make)
    env.reset(seed=1)
    twin = sg.fork(env, 1)[0]
    assert_equal(step(env, 1), step(twin, 1))
