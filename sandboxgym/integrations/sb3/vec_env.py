"""`SandboxVecEnv`: what Stable-Baselines3 trains on, over a pool of forkable environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sandboxgym.core.errors import LaneBusyError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.pool import Call, ForkPool, Reset, Restore, SetAttribute, SnapshotHandle, Step
from sandboxgym.pool.layout import EnvMaker

Moment: TypeAlias = SnapshotHandle | Snapshot
Indices: TypeAlias = int | Iterable[int] | None


class SandboxVecEnv(VecEnv):
    """Many environments at once, as Stable-Baselines3 has them, that can be captured and put back.

    It returns what `DummyVecEnv` and `SubprocVecEnv` return. Environments run in worker processes;
    one that dies is replaced, and the episode goes on.

    >>> from sandboxgym.integrations.sb3.vec_env import SandboxVecEnv
    >>> envs = SandboxVecEnv("CartPole-v1", 4)
    >>> model = PPO("MlpPolicy", envs).learn(2_000)

    Args:
        env: The id of an environment, a function that makes one, or a sequence with one of these
            for each lane. Spaces have to be such that Stable-Baselines3 takes them: no texts.
        num_envs: How many; may be left out where `env` is a sequence.
        begin: Says for a lane where its next episode begins: at a moment, or, with None, by a
            reset. Asked whenever an episode has ended, but not by `reset()`.
        **pool: For `ForkPool`: env_kwargs, workers, time_limit, patience, backend.
    """

    def __init__(
        self,
        env: EnvMaker | Sequence[EnvMaker],
        num_envs: int | None = None,
        *,
        begin: Callable[[int], Moment | None] | None = None,
        **pool: Any,
    ) -> None:
        self.pool = ForkPool(env, num_envs, **pool)
        self.begin = begin
        first = self.pool.introduction(0)
        lanes = len(self.pool.lanes)
        self._obs: list[Any] = [None] * lanes
        self._stepping = False
        try:
            super().__init__(lanes, first.observation_space, first.action_space)
        except BaseException:
            self.pool.close()
            raise

    def reset(self) -> Any:
        """Reset all lanes, with the seeds and options that were given for this; observations."""
        results = self.pool.do(
            {i: Reset(self._seeds[i], self._options[i] or None) for i in range(self.num_envs)}
        )
        self._begun(results)
        self._reset_seeds()
        self._reset_options()
        return self._batch()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Begin a step; `step_wait` brings its result."""
        if self._stepping:
            raise LaneBusyError("a step was begun already: call step_wait() first")
        self.pool.send({lane: Step(actions[lane]) for lane in range(self.num_envs)})
        self._stepping = True

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Wait for the step that was begun; where an episode ended, the next one has begun."""
        if not self._stepping:
            raise LaneBusyError("no step was begun: call step_async(actions) first")
        self._stepping = False
        results = self.pool.wait(range(self.num_envs))
        rewards = np.zeros(self.num_envs, np.float32)
        dones = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = []
        for lane in range(self.num_envs):
            self._obs[lane], rewards[lane], terminated, truncated, info = results[lane]
            dones[lane] = terminated or truncated
            info["TimeLimit.truncated"] = truncated and not terminated
            if dones[lane]:
                info["terminal_observation"] = self._obs[lane]
            infos.append(info)
        ended = [int(lane) for lane in np.flatnonzero(dones)]
        self._begun(self.pool.do({lane: self._beginning(lane) for lane in ended}))
        return self._batch(), rewards, dones, infos

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()

    # --- Forks -----------------------------------------------------------------------------------

    def snapshot(self, lane: int) -> SnapshotHandle:
        """Take a snapshot of a lane; `pool.fetch` makes an ordinary `Snapshot` of it."""
        return self.pool.snapshot(lane)

    def restore(self, moments: Mapping[int, Moment]) -> Any:
        """Return to moments in some lanes; the observations of all lanes as they are now.

        An algorithm acts on the observations that it saw last: between two calls of
        `learn(reset_num_timesteps=False)` give it these, as its `_last_obs`.
        """
        self._begun(self.pool.do({lane: Restore(moment) for lane, moment in moments.items()}))
        return self._batch()

    def branch(self, lane: int, into: Sequence[int]) -> Any:
        """Let other lanes go on from where a lane is; the observations of all lanes, as above."""
        moment = self.snapshot(lane)
        return self.restore(dict.fromkeys(into, moment))

    # --- The rest of a VecEnv --------------------------------------------------------------------

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Read an attribute of some environments, as far as it is plain data."""
        return self.env_method(attr_name, indices=indices)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of some environments."""
        self.pool.do({lane: SetAttribute(attr_name, value) for lane in self._lanes(indices)})

    def env_method(
        self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method of some environments; for looking at them, not for changing them."""
        lanes = self._lanes(indices)
        results = self.pool.do({lane: Call(method_name, args, kwargs) for lane in lanes})
        return [results[lane] for lane in lanes]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Whether a wrapper of this name is around each of some environments."""
        # A wrapper's text is its name and then that of what it wraps: <TimeLimit<CartPoleEnv<...>>>
        name = f"<{wrapper_class.__name__}<"
        return [name in text for text in self.env_method("__str__", indices=indices)]

    def get_images(self) -> list[Any]:
        """What each environment renders."""
        return self.env_method("render")

    def _lanes(self, indices: Indices) -> list[int]:
        return [int(lane) for lane in self._get_indices(indices)]

    def _beginning(self, lane: int) -> Reset | Restore:
        moment = None if self.begin is None else self.begin(lane)
        return Reset() if moment is None else Restore(moment)

    def _begun(self, results: Mapping[int, tuple[Any, dict[str, Any]]]) -> None:
        for lane, (obs, info) in results.items():
            self._obs[lane], self.reset_infos[lane] = obs, info

    def _batch(self) -> Any:
        """The last observations as one, which belongs to the caller."""
        empty: Any = create_empty_array(self.observation_space, self.num_envs, np.zeros)
        return concatenate(self.observation_space, self._obs, empty)
