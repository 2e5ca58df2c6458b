"""What every stack of wrappers has to pass: restored episodes go on as a twin's that never was."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import gymnasium as gym
from gymnasium.wrappers.utils import RunningMeanStd

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from sandboxgym.core.snapshot import Transition
from sandboxgym.core.tensors import plain
from tests.core.wrapper_rules.worlds import ends_itself

Build = Callable[[], gym.Env]
Act = Callable[[gym.Env], object]

NO_STATE = {
    *("episode_start_time", "time_queue"),  # follow the wall clock
    *("checked_reset", "checked_step", "checked_render", "checked_data_reuse", "_previous_data"),
    *("stacked_obs", "padding_value"),  # overwritten before they are read
    *("_saved_kwargs", "_cached_spec"),
    *("screen_size", "window", "clock"),  # of a window
}


def sampled(env: gym.Env) -> object:
    """A policy that draws from the environment's own space, whose generator is state too."""
    return env.action_space.sample()


def begin(env: gym.Env, seed: int) -> list[object]:
    env.action_space.seed(seed)
    return [list(env.reset(seed=seed))]


def play(env: gym.Env, steps: int, ended: bool = False, act: Act = sampled) -> list[object]:
    """Take steps, and begin a new episode where one has ended."""
    seen: list[object] = []
    for _ in range(steps):
        if ended and not ends_itself(env):
            ended = False
            seen.append(list(env.reset()))
        else:
            seen.append(list(env.step(act(env))))
            ended = bool(seen[-1][2] or seen[-1][3])
    return seen


def ended_after(seen: list[object]) -> bool:
    return len(seen[-1]) == 5 and bool(seen[-1][2] or seen[-1][3])


def assert_exact(
    build: Build, *, seed: int = 3, before: int = 7, after: int = 9, act: Act = sampled
) -> None:
    """Compare all ways back to a moment with a twin that was never captured or restored."""
    twin = build()
    past = begin(twin, seed)
    past += play(twin, before, act=act)
    ended, inside = ended_after(past), attributes(twin)
    future = play(twin, after, ended, act)

    env = build()
    assert_capturing_changes_nothing(env, seed, past, act)
    snap = sg.snapshot(env)
    assert_last_is(snap, past[-1])
    children = sg.fork(env, 2)
    assert_same(play(env, after, ended, act), future)
    for child in children:
        assert_equal(attributes(child), inside)
        assert_same(play(child, after, ended, act), future)
    done = [twin, env, *children]
    loaded = sg.Snapshot.from_bytes(snap.to_bytes())
    for way in (snap, snap.drop_state(), loaded, loaded.drop_state()):
        used, fresh = build(), build()
        begin(used, seed + 1)
        play(used, 4, act=act)
        for target in (env, used, fresh):
            back = sg.restore(target, way, rewind_statistics=True, verify=True)
            assert_same([list(back)], [[past[-1][0], past[-1][-1]]])
            assert_equal(attributes(target), inside)
            again = sg.snapshot(target)
            assert again.digest == snap.digest
            assert_last_is(again, past[-1])
            assert_same(play(target, after, ended, act), future)
            target.action_space.seed(seed + 2)
            play(target, 2, ended_after(future), act)
        done += [used, fresh]
    for played in done:  # at the end: closing one window closes all
        played.close()


def assert_capturing_changes_nothing(
    env: gym.Env, seed: int, past: list[object], act: Act = sampled
) -> None:
    seen = begin(env, seed)
    while len(seen) < len(past):
        sg.snapshot(env)
        seen += play(env, 1, ended_after(seen), act)
        assert_same(seen[-1:], past[len(seen) - 1 : len(seen)])


def assert_last_is(snap: sg.Snapshot, result: list[object]) -> None:
    """Whether a snapshot has all that a step returned, and what a reset returned."""
    last: Transition = snap.last
    seen = list(last.as_dict().values())
    assert_same([seen if len(result) == 5 else [seen[0], seen[-1]]], [result])


def assert_same(left: list[object], right: list[object]) -> None:
    assert_equal(_comparable(left), _comparable(right))


def assert_equal(left: object, right: object) -> None:
    difference = first_difference(left, right)
    assert difference is None, str(difference)


def attributes(env: gym.Env) -> list[object]:
    """All plain attributes of all wrappers: a look at their states that knows of no rules."""
    found = []
    while isinstance(env, gym.Wrapper):
        values = {name: value for name, value in vars(env).items() if name not in NO_STATE}
        found.append([type(env).__name__, _plain_part(values)])
        env = env.env
    return found


def _plain_part(values: dict[str, object]) -> dict[str, object]:
    part = {}
    for name, value in values.items():
        value = list(value) if isinstance(value, deque) else value
        value = vars(value) if isinstance(value, RunningMeanStd) else value
        try:
            part[name] = plain(value)
        except errors.StateEncodingError:
            continue
    return part


def _comparable(seen: list[object]) -> list[object]:
    """Results as plain data, without the time that an episode took."""
    results = []
    for result in seen:
        info = dict(result[-1])
        for key, value in info.items():
            if isinstance(value, dict) and set(value) == {"r", "l", "t"}:
                info[key] = {"r": value["r"], "l": value["l"]}
        results.append(plain([*result[:-1], info]))
    return results
