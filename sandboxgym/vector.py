"""`ForkableVectorEnv`: a pool of environments as a Gymnasium `VectorEnv`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import (
    batch_differing_spaces,
    batch_space,
    concatenate,
    create_empty_array,
    iterate,
)
from numpy.typing import NDArray

from sandboxgym.core.errors import EpisodeEndedError, LaneBusyError, NotResetError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.pool.handles import SnapshotHandle
from sandboxgym.pool.infos import add_info
from sandboxgym.pool.layout import EnvMaker
from sandboxgym.pool.messages import Call, Command, Reset, Restore, SetAttribute, Step, Take
from sandboxgym.pool.pool import ForkPool

VectorStep = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class ForkableVectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """Many environments at once, each of which can be captured, put back and forked.

    It returns what Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv` return. Beside their methods it
    has `snapshot`, `restore` and `branch` for single lanes, and the `pool` below.

    >>> import sandboxgym as sg
    >>> envs = sg.ForkableVectorEnv("CartPole-v1", 3)
    >>> obs, infos = envs.reset(seed=0)
    >>> moment = envs.snapshot(0)
    >>> obs, *_ = envs.step(envs.action_space.sample())
    >>> obs = envs.branch(0, [1, 2])
    >>> bool((obs[0] == obs[1]).all())
    True
    >>> envs.close()

    Args:
        env: The id of an environment, a function that makes one, or a sequence with one of these
            for each lane.
        num_envs: How many; may be left out where `env` is a sequence.
        autoreset_mode: What happens at the end of an episode: nothing ("Disabled", the default: the
            caller resets with `options={"reset_mask": ...}`, or restores), a reset by the next step
            ("NextStep"), or one within the same step ("SameStep").
        observation_mode: "same" for spaces that are equal, "different" for such that have bounds of
            their own, as in Gymnasium.
        **pool: For `ForkPool`: env_kwargs, workers, time_limit, patience, backend.

    Raises:
        ValueError: The environments have spaces that cannot be batched.
    """

    def __init__(
        self,
        env: EnvMaker | Sequence[EnvMaker],
        num_envs: int | None = None,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.DISABLED,
        observation_mode: str = "same",
        **pool: Any,
    ) -> None:
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        if observation_mode not in ("same", "different"):
            raise ValueError(f"observation_mode {observation_mode!r} is not 'same' or 'different'")
        self.pool = ForkPool(env, num_envs, **pool)
        self.num_envs = len(self.pool.lanes)
        try:
            self._take_spaces(observation_mode)
        except BaseException:
            self.pool.close()
            raise
        self._obs: list[Any] = [None] * self.num_envs
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._resetting: set[int] | None = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all lanes, or those of `options["reset_mask"]`.

        Args:
            seed: One number, from which the lanes count up, or one seed for each lane.
            options: For each environment's `reset`.
        """
        seeds: Sequence[int | None]
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = seed
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds were given for {self.num_envs} environments")
        lanes: Iterable[int] = self.pool.lanes
        if options is not None and "reset_mask" in options:
            mask, options = _reset_mask(options, self.num_envs)
            lanes = np.flatnonzero(mask).tolist()
        results = self.pool.do({lane: Reset(seeds[lane], options) for lane in lanes})
        infos: dict[str, Any] = {}
        for lane, (obs, info) in results.items():
            self._obs[lane], self._ended[lane] = obs, False
            add_info(infos, info, lane, self.num_envs)
        return self._batch(), infos

    def step(self, actions: Any) -> VectorStep:
        """Take an action in each lane."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Begin a step; `step_wait` brings its result.

        Raises:
            EpisodeEndedError: An episode is over, and the lane was not reset. Nothing was begun.
        """
        if self._resetting is not None:
            raise LaneBusyError("a step was begun already: call step_wait() first")
        ended = set(np.flatnonzero(self._ended).tolist())
        if ended and self.autoreset_mode is AutoresetMode.DISABLED:
            raise EpisodeEndedError(
                f"the episodes of lanes {sorted(ended)} have ended: restore a snapshot there, or "
                'reset them with options={"reset_mask": mask}, or choose an autoreset_mode'
            )
        commands: dict[int, Command] = {}
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        for lane, action in enumerate(iterate(self.action_space, actions)):
            commands[lane] = Reset() if lane in ended and not same_step else Step(action, same_step)
        if len(commands) != self.num_envs:
            raise ValueError(f"{len(commands)} actions were given for {self.num_envs} environments")
        self.pool.send(commands)
        self._resetting = set() if same_step else ended

    def step_wait(self) -> VectorStep:
        """Wait for the step that was begun.

        Where a lane has an error, that is raised when all are done: the others have taken their
        step, which is in `pool.last(lane)`.
        """
        if self._resetting is None:
            raise LaneBusyError("no step was begun: call step_async(actions) first")
        resetting, self._resetting = self._resetting, None
        results = self.pool.wait(self.pool.lanes, on_error="return")
        rewards = np.zeros(self.num_envs, np.float64)
        terminations = np.zeros(self.num_envs, np.bool_)
        truncations = np.zeros(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        errors = [result for result in results.values() if isinstance(result, Exception)]
        for lane, result in results.items():
            if isinstance(result, Exception):
                terminations[lane], truncations[lane] = self._ended[lane], False
                continue
            if lane in resetting:
                self._obs[lane], info = result
            else:
                self._obs[lane], rewards[lane], terminations[lane], truncations[lane], info = result
            add_info(infos, info, lane, self.num_envs)
        self._ended = terminations | truncations
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._ended = np.zeros(self.num_envs, np.bool_)
        if errors:
            raise errors[0]
        return self._batch(), rewards, terminations, truncations, infos

    # --- Forks -----------------------------------------------------------------------------------

    def snapshot(self, lane: int) -> SnapshotHandle:
        """Take a snapshot of a lane; `fetch` makes an ordinary `Snapshot` of it."""
        return self.pool.snapshot(lane)

    def snapshots(self) -> list[SnapshotHandle]:
        """Take a snapshot of each lane."""
        return list(self.pool.do({lane: Take() for lane in self.pool.lanes}).values())

    def fetch(self, snapshot: SnapshotHandle) -> Snapshot:
        """Get a snapshot as one that can be saved, sent and restored anywhere."""
        return self.pool.fetch(snapshot)

    def restore(
        self, lane: int, snapshot: SnapshotHandle | Snapshot, *, seed: int | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Return to the moment of a snapshot in one lane; that lane's observation and info."""
        return self.restores({lane: Restore(snapshot, seed)})[lane]

    def restores(self, commands: Mapping[int, Restore]) -> dict[int, tuple[Any, dict[str, Any]]]:
        """Return to moments in several lanes at once; their observations and infos."""
        results = self.pool.do(commands)
        for lane, (obs, _) in results.items():
            last = self.pool.last(lane)
            assert last is not None
            self._obs[lane], self._ended[lane] = obs, last[2] or last[3]
        return results

    def branch(self, lane: int, into: Sequence[int], *, seeds: Sequence[int] | None = None) -> Any:
        """Let other lanes continue from where a lane is; what they were at before is given up.

        Args:
            lane: The lane; it is not changed.
            into: The other lanes.
            seeds: One for each of these, for randomness of its own. None makes exact twins.

        Returns:
            The batch of observations as it is now.
        """
        if seeds is not None and len(seeds) != len(into):
            raise ValueError(f"{len(seeds)} seeds were given for {len(into)} lanes")
        moment = self.snapshot(lane)
        self.restores(
            {other: Restore(moment, seeds[i] if seeds else None) for i, other in enumerate(into)}
        )
        return self._batch()

    # --- The rest of a VectorEnv -----------------------------------------------------------------

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]  # as Gymnasium
        """The seeds of all environments."""
        return self.get_attr("np_random_seed")

    def render(self) -> tuple[Any, ...]:
        """What each environment renders."""
        return self.call("render")

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute, as far as it is plain data."""
        command = Call(name, args, kwargs)
        return tuple(self.pool.do(dict.fromkeys(self.pool.lanes, command)).values())

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: a list or tuple with a value for each, or one."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"{len(values)} values were given for {self.num_envs} environments")
        self.pool.do({lane: SetAttribute(name, value) for lane, value in enumerate(values)})

    def close_extras(self, **kwargs: Any) -> None:
        """Close the pool."""
        self.pool.close()

    def _batch(self) -> Any:
        """The last observations as one, which belongs to the caller."""
        missing = [lane for lane, obs in enumerate(self._obs) if obs is None]
        if missing:
            raise NotResetError(f"lanes {missing} were never reset: call reset() without a mask")
        space = self.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs, np.zeros)
        return concatenate(space, self._obs, empty)

    def _take_spaces(self, observation_mode: str) -> None:
        lanes = [self.pool.introduction(lane) for lane in self.pool.lanes]
        first = lanes[0]
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        for number, lane in enumerate(lanes):
            same = (
                lane.observation_space == first.observation_space
                if observation_mode == "same"
                else is_space_dtype_shape_equiv(lane.observation_space, first.observation_space)
            )
            if not same or lane.action_space != first.action_space:
                raise ValueError(
                    f"lane {number} has other spaces than lane 0 ({lane.observation_space}, "
                    f"{lane.action_space}; {first.observation_space}, {first.action_space}); where "
                    "only the bounds of observations differ, pass observation_mode='different'"
                )
        self.action_space = batch_space(first.action_space, self.num_envs)
        self.observation_space = (
            batch_space(first.observation_space, self.num_envs)
            if observation_mode == "same"
            else batch_differing_spaces([lane.observation_space for lane in lanes])
        )


def _reset_mask(options: dict[str, Any], num_envs: int) -> tuple[NDArray[np.bool_], dict[str, Any]]:
    """The mask out of the options of a reset, and the other options."""
    others = {name: value for name, value in options.items() if name != "reset_mask"}
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f'options["reset_mask"] has to be a numpy array of bool; got {mask!r}')
    if mask.shape != (num_envs,) or not mask.any():
        raise ValueError(
            f'options["reset_mask"] has to have the shape ({num_envs},) and one True at least; got '
            f"{mask}"
        )
    return mask, others
