"""`ForkableVectorEnv` returns what Gymnasium's vector environments do, and its lanes fork."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.utils.performance import benchmark_vector_step
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import sandboxgym as sg
from sandboxgym.core.errors import EpisodeEndedError, InvalidActionError, LaneBusyError
from sandboxgym.pool import Restore
from tests.pool.toys import Walk, limited_walk

MODES = list(AutoresetMode)


def cart() -> gym.Env:
    return gym.wrappers.TimeLimit(sg.forkable(gym.make("CartPole-v1")), 12)


def rich_walk() -> gym.Env:
    """Infos of many kinds, some of them only now and then."""
    return RichInfo(limited_walk())


class RichInfo(gym.Wrapper, gym.utils.RecordConstructorArgs):
    def __init__(self, env: gym.Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        info["nested"] = {"position": obs.copy(), "deeper": {"word": f"at {obs[0]}"}}
        info["commands"] = [f"go {i}" for i in range(int(obs[1]))]
        info["np"] = np.float32(obs[0])
        if obs[0] % 2:
            info["sometimes"] = int(obs[0])
        return obs, reward, terminated, truncated, info


sg.stateless_wrapper(RichInfo)


def alfworld() -> gym.Env:
    return gym.make("sandboxgym/ALFWorld-v0", source="synthetic", num_games=1, max_episode_steps=7)


def mixed() -> gym.Env:
    return gym.wrappers.TransformObservation(
        limited_walk(),
        lambda obs: {"pair": (obs, int(obs[1])), "text": "step"},
        gym.spaces.Dict(
            {
                "pair": gym.spaces.Tuple(
                    [gym.spaces.Box(-1e6, 1e6, (2,), np.float64), gym.spaces.Discrete(100)]
                ),
                "text": gym.spaces.Text(10),
            }
        ),
    )


def same(ours: Any, theirs: Any) -> None:
    """Everything that a reset or a step returned, types of arrays included."""
    for left, right in zip(ours, theirs, strict=True):
        assert data_equivalence(left, right, exact=True), f"{left}\n\nis not\n\n{right}"


def choose(envs: VectorEnv, infos: dict[str, Any], dice: np.random.Generator) -> Any:
    if "admissible_commands" in infos:
        return tuple(str(dice.choice(c)) for c in infos["admissible_commands"])
    return dice.integers(2, size=envs.num_envs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [rich_walk, alfworld, mixed])
def test_it_returns_what_a_sync_vector_env_does(make, mode):
    theirs: VectorEnv = SyncVectorEnv([make] * 4, autoreset_mode=mode)
    compare(sg.ForkableVectorEnv(make, 4, autoreset_mode=mode, workers=2), theirs, mode)


@pytest.mark.parametrize("mode", MODES)
def test_it_returns_what_an_async_vector_env_does(mode):
    theirs: VectorEnv = AsyncVectorEnv([cart] * 3, autoreset_mode=mode)
    compare(sg.ForkableVectorEnv([cart] * 3, autoreset_mode=mode, workers=2), theirs, mode)


def compare(ours: sg.ForkableVectorEnv, theirs: VectorEnv, mode: AutoresetMode) -> None:
    dice = np.random.default_rng(0)
    try:
        assert ours.num_envs == theirs.num_envs
        for name in ("observation_space", "action_space"):
            assert getattr(ours, name) == getattr(theirs, name)
            assert getattr(ours, f"single_{name}") == getattr(theirs, f"single_{name}")
        assert ours.metadata == theirs.metadata
        obs, infos = ours.reset(seed=3)
        same((obs, infos), theirs.reset(seed=3))
        assert obs in ours.observation_space
        assert ours.np_random_seed == theirs.np_random_seed
        for _ in range(25):
            actions = choose(ours, infos, dice)
            result = ours.step(actions)
            same(result, theirs.step(actions))
            _, _, terminated, truncated, infos = result
            ended = terminated | truncated
            if mode is AutoresetMode.DISABLED and ended.any():
                obs, fresh = ours.reset(seed=[7] * ours.num_envs, options={"reset_mask": ended})
                same(
                    (obs, fresh),
                    theirs.reset(seed=[7] * ours.num_envs, options={"reset_mask": ended}),
                )
                infos = merged(infos, fresh, ended)
        same(ours.reset(), theirs.reset())
        same(
            ours.reset(seed=[5, None, 6, 7][: ours.num_envs], options={}),
            theirs.reset(seed=[5, None, 6, 7][: theirs.num_envs], options={}),
        )
    finally:
        ours.close()
        theirs.close()


def merged(infos: dict[str, Any], fresh: dict[str, Any], mask: np.ndarray) -> dict[str, Any]:
    if "admissible_commands" not in infos:
        return infos
    commands = infos["admissible_commands"].copy()
    commands[mask] = fresh["admissible_commands"][mask]
    return {**infos, "admissible_commands": commands}


@pytest.fixture(scope="module")
def shared():
    envs = sg.ForkableVectorEnv(limited_walk, 4, workers=2)
    yield envs
    envs.close()


@pytest.fixture
def envs(shared):
    shared.reset(seed=0)
    return shared


def test_a_lane_returns_to_a_moment_and_the_others_go_on(envs):
    moment = envs.snapshot(1)
    first = envs.step([0, 1, 0, 1])[0]
    obs, info = envs.restore(1, moment)
    assert obs[1] == 0
    assert info["word"] == "hello"
    second = envs.step([0, 1, 0, 1])[0]
    assert (second[1] == first[1]).all()
    assert (second[[0, 2, 3], 1] == 2).all()


def test_branches_are_twins_until_they_are_told_otherwise(envs):
    envs.step([0, 1, 0, 1])
    obs = envs.branch(0, [1, 2, 3])
    assert (obs == obs[0]).all()
    obs = envs.step([1, 1, 1, 0])[0]
    assert (obs[:3] == obs[0]).all()
    assert obs[3, 0] == obs[0, 0] - 1
    ways = []
    for _ in range(2):
        envs.branch(0, [1, 2], seeds=[8, 9])
        moment = envs.snapshots()
        ways.append(np.stack([envs.step([0] * 4)[0] for _ in range(4)]))
        envs.restores({lane: Restore(handle) for lane, handle in enumerate(moment)})
    assert (ways[0] == ways[1]).all()
    with pytest.raises(ValueError, match="seeds"):
        envs.branch(0, [1], seeds=[1, 2])


def test_a_restored_end_is_an_end(envs):
    for _ in range(8):
        obs, _, _, truncated, _ = envs.step([0] * 4)
    assert truncated.all()
    end = envs.snapshot(0)
    start = envs.reset(seed=1)[0]
    envs.restore(0, end)
    with pytest.raises(EpisodeEndedError, match=r"lanes \[0\]"):
        envs.step([0] * 4)
    obs, _ = envs.reset(seed=1, options={"reset_mask": np.array([True, False, False, False])})
    assert (obs == start).all()
    envs.step([0] * 4)


def test_the_next_step_resets_a_restored_end():
    envs = sg.ForkableVectorEnv(limited_walk, 2, autoreset_mode="NextStep")
    envs.reset(seed=1)
    for _ in range(8):
        envs.step([0, 0])
    end = envs.snapshot(0)
    envs.step([0, 0])
    envs.step([0, 0])
    envs.restore(0, end)
    obs, reward, _, _, _ = envs.step([0, 0])
    assert obs[0, 1] == 0
    assert reward[0] == 0
    assert obs[1, 1] == 2
    envs.close()


def test_moments_of_a_vector_are_restored_anywhere(envs):
    envs.step([0, 1, 0, 1])
    snapshot = envs.fetch(envs.snapshot(2))
    env = limited_walk()
    sg.restore(env, snapshot)
    expected = env.step(1)[0]
    envs.restore(0, snapshot)
    assert (envs.step([1, 0, 1, 0])[0][0] == expected).all()


def test_observations_belong_to_the_caller(envs):
    obs, *_ = envs.step([0] * 4)
    kept = obs.copy()
    envs.step([0] * 4)
    assert (obs == kept).all()
    obs[:] = -1
    assert (envs.branch(0, [1]) >= 0).all()


def test_methods_of_gymnasiums_vector_environments(envs):
    assert envs.get_attr("end") == (30,) * 4
    envs.set_attr("bonus", [0.0, 5.0, 0.0, 0.0])
    before = envs.step([0] * 4)[0]
    assert envs.get_attr("bonus") == (0.0, 5.0, 0.0, 0.0)
    assert before[1, 0] > 5
    envs.set_attr("bonus", 0.0)
    assert all(text.startswith("at ") for text in envs.call("render"))
    assert envs.render() == envs.call("render")
    with pytest.raises(ValueError, match="3 values"):
        envs.set_attr("bonus", [1.0, 2.0, 3.0])


def test_steps_in_two_halves(envs):
    envs.step_async([0] * 4)
    with pytest.raises(LaneBusyError):
        envs.step_async([0] * 4)
    assert envs.step_wait()[0][:, 1].tolist() == [1] * 4
    with pytest.raises(LaneBusyError):
        envs.step_wait()


def test_the_error_of_one_lane_does_not_lose_the_steps_of_the_others():
    envs = sg.ForkableVectorEnv([partial(Odd, lane) for lane in range(3)], workers=1)
    envs.reset(seed=0)
    with pytest.raises(InvalidActionError, match="lane 1"):
        envs.step([0, 0, 0])
    assert [envs.pool.last(lane)[0][1] for lane in range(3)] == [1, 0, 1]
    envs.close()


class Odd(Walk):
    def __init__(self, lane: int) -> None:
        super().__init__()
        self.lane = lane

    def step(self, action):
        if self.lane == 1:
            raise InvalidActionError("not in this lane")
        return super().step(action)


def test_what_cannot_be_batched_or_is_no_mode_is_refused(envs):
    with pytest.raises(ValueError, match="lane 1 has other spaces"):
        sg.ForkableVectorEnv([limited_walk, cart])
    with pytest.raises(ValueError):
        sg.ForkableVectorEnv(limited_walk, 2, autoreset_mode="Sometimes")
    with pytest.raises(ValueError, match="seeds"):
        envs.reset(seed=[1])
    for mask in (np.zeros(4, np.bool_), np.ones(3, np.bool_)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    with pytest.raises(TypeError, match="reset_mask"):
        envs.reset(options={"reset_mask": [True] * 4})


def test_different_bounds_of_observations_on_request():
    makers = [partial(Bounded, 10.0), partial(Bounded, 20.0)]
    with pytest.raises(ValueError, match="observation_mode"):
        sg.ForkableVectorEnv(makers)
    ours = sg.ForkableVectorEnv(makers, observation_mode="different")
    theirs: VectorEnv = SyncVectorEnv(makers, observation_mode="different")
    assert ours.observation_space == theirs.observation_space
    same(ours.reset(seed=1), theirs.reset(seed=1))
    ours.close()


class Bounded(Walk):
    def __init__(self, bound: float) -> None:
        super().__init__()
        self.observation_space = gym.spaces.Box(-bound, bound, (2,), np.float64)


def test_wrappers_of_vector_environments_go_around_it():
    envs: VectorEnv = sg.ForkableVectorEnv("CartPole-v1", 3, autoreset_mode="NextStep")
    envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    envs = gym.wrappers.vector.NormalizeObservation(envs)
    envs = gym.wrappers.vector.DictInfoToList(envs)
    envs.reset(seed=1)
    ended = 0
    for _ in range(40):
        *_, infos = envs.step(np.ones(3, np.int64))
        ended += sum("episode" in info for info in infos)
    assert ended
    envs.close()


def test_gymnasiums_own_benchmark_runs_it():
    envs = sg.ForkableVectorEnv("CartPole-v1", 2, autoreset_mode="NextStep")
    assert benchmark_vector_step(envs, target_duration=0.2, seed=1) > 0
    envs.close()


def actor_critic_loop(make_envs: Callable[[Sequence[Callable[[], gym.Env]]], VectorEnv]) -> list:
    """A loop in the style of single-file learners: rollouts into arrays, then an update.

    The policy is linear; the update is a plain policy gradient with a baseline.
    """

    def make_env(seed: int) -> Callable[[], gym.Env]:
        def thunk() -> gym.Env:
            env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
            env.action_space.seed(seed)
            return env

        return thunk

    num_envs, num_steps, gamma = 4, 32, 0.99
    envs = make_envs([make_env(seed) for seed in range(num_envs)])
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    dice = np.random.default_rng(1)
    weights = np.zeros((*envs.single_observation_space.shape, envs.single_action_space.n))

    obs = np.zeros((num_steps, num_envs, *envs.single_observation_space.shape))
    actions = np.zeros((num_steps, num_envs, *envs.single_action_space.shape), np.int64)
    rewards = np.zeros((num_steps, num_envs))
    dones = np.zeros((num_steps, num_envs))
    returns_seen = []

    next_obs, _ = envs.reset(seed=1)
    next_done = np.zeros(num_envs)
    for _iteration in range(6):
        for step in range(num_steps):
            obs[step], dones[step] = next_obs, next_done
            logits = next_obs @ weights
            odds = np.exp(logits - logits.max(1, keepdims=True))
            chances = np.cumsum(odds / odds.sum(1, keepdims=True), axis=1)
            action = (dice.random((num_envs, 1)) > chances).sum(1)
            actions[step] = action
            next_obs, reward, terminations, truncations, infos = envs.step(action)
            rewards[step] = reward
            next_done = np.logical_or(terminations, truncations).astype(np.float64)
            if "episode" in infos:
                returns_seen += infos["episode"]["r"][infos["_episode"]].tolist()
        future = np.zeros(num_envs)
        returns = np.zeros_like(rewards)
        for step in reversed(range(num_steps)):
            done = next_done if step == num_steps - 1 else dones[step + 1]
            future = rewards[step] + gamma * future * (1 - done)
            returns[step] = future
        advantages = returns - returns.mean()
        logits = obs @ weights
        odds = np.exp(logits - logits.max(2, keepdims=True))
        chosen = np.eye(2)[actions] - odds / odds.sum(2, keepdims=True)
        gradient = np.einsum("sei,sea->ia", obs, chosen * advantages[..., None])
        weights += 0.01 * gradient / obs.size
    envs.close()
    return [weights, returns_seen]


def test_a_single_file_learner_runs_unchanged():
    ours = actor_critic_loop(partial(sg.ForkableVectorEnv, autoreset_mode="NextStep"))
    theirs = actor_critic_loop(SyncVectorEnv)
    assert (ours[0] == theirs[0]).all()
    assert len(ours[1]) > 5
    assert ours[1] == theirs[1]
