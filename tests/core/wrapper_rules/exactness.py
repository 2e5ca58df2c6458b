"""What every stack of wrappers has to pass: restored episodes go on as a twin's that never was."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium as gym

import sandboxgym as sg
from sandboxgym.core.digest import first_difference
from sandboxgym.core.snapshot import Transition
from sandboxgym.core.tensors import plain
from tests.core.wrapper_rules.worlds import ends_itself

Build = Callable[[], gym.Env]
Act = Callable[[gym.Env], object]


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


def assert_same(left: object, right: object) -> None:
    difference = first_difference(_comparable(left), _comparable(right))
    assert difference is None, str(difference)


def _comparable(seen: object) -> object:
    """Results as plain data, without the time that an episode took."""
    results = []
    for result in seen:
        info = dict(result[-1])
        for key, value in info.items():
            if isinstance(value, dict) and set(value) == {"r", "l", "t"}:
                info[key] = {"r": value["r"], "l": value["l"]}
        results.append(plain([*result[:-1], info]))
    return results


def assert_exact(
    build: Build, *, seed: int = 3, before: int = 7, after: int = 9, act: Act = sampled
) -> None:
    """Compare all ways back to a moment with a twin that was never captured or restored."""
    twin = build()
    past = begin(twin, seed)
    past += play(twin, before, act=act)
    ended = ended_after(past)
    future = play(twin, after, ended, act)

    env = build()
    _assert_capturing_changes_nothing(env, seed, past, act)
    snap = sg.snapshot(env)
    moment = [past[-1][0], past[-1][-1]]
    children = sg.fork(env, 2)
    assert_same(play(env, after, ended, act), future)
    for child in children:
        assert_same(play(child, after, ended, act), future)
    loaded = sg.Snapshot.from_bytes(snap.to_bytes())
    for way in (snap, snap.drop_state(), loaded, loaded.drop_state()):
        used, fresh = build(), build()
        begin(used, seed + 1)
        play(used, 4, act=act)
        for target in (env, used, fresh):
            back = sg.restore(target, way, rewind_statistics=True, verify=True)
            assert_same([list(back)], [moment])
            assert sg.snapshot(target).digest == snap.digest
            _assert_last(sg.snapshot(target).last, snap.last)
            assert_same(play(target, after, ended, act), future)
            target.action_space.seed(seed + 2)
            play(target, 2, ended_after(future), act)
    for used_up in (twin, env, *children):
        used_up.close()


def _assert_capturing_changes_nothing(
    env: gym.Env, seed: int, past: list[object], act: Act
) -> None:
    seen = begin(env, seed)
    while len(seen) < len(past):
        sg.snapshot(env)
        seen += play(env, 1, ended_after(seen), act)
        assert_same(seen[-1:], past[len(seen) - 1 : len(seen)])


def _assert_last(left: Transition, right: Transition) -> None:
    assert_same([list(left.as_dict().values())], [list(right.as_dict().values())])
