"""`SandboxEnvRunner`: RLlib's runner, whose state holds the sandboxes and their episodes too.

RLlib's own leaves them out: after `set_state` all episodes begin anew, and what had been played of
them is lost. With this one a runner goes on where another stopped, in the middle of its episodes.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from sandboxgym.core.errors import NotForkableError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.pool import Restore
from sandboxgym.vector import ForkableVectorEnv

COMPONENT = "sandboxes"
"""The name of the part of the state that this runner adds."""


class SandboxEnvRunner(SingleAgentEnvRunner):
    """Give it to `config.env_runners(env_runner_cls=SandboxEnvRunner)`."""

    @property
    def sandboxes(self) -> ForkableVectorEnv:
        """The vector environment, out of RLlib's wrapper.

        Raises:
            NotForkableError: The environments are of another kind.
        """
        found = self.env.unwrapped
        if not isinstance(found, ForkableVectorEnv):
            raise NotForkableError(
                f"the runner's environments are in a {type(found).__name__}, which cannot be "
                "captured: pass the name that register_sandboxes (sandboxgym.integrations.rllib."
                "vector) returns to config.environment, and gym_env_vectorize_mode=MODE to "
                "config.env_runners"
            )
        return found

    @property
    def _place(self) -> list[Any]:
        """Which of RLlib's runners this is."""
        return [bool(self.config.in_evaluation), self.worker_index]

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """RLlib's state of a runner, and the sandboxes with the episodes that are under way."""
        state: dict[str, Any] = super().get_state(
            components, not_components=not_components, **kwargs
        )
        wanted = self._check_component(COMPONENT, components, not_components)
        if wanted and not self._needs_initial_reset:
            envs = self.sandboxes
            state[COMPONENT] = {
                "runner": self._place,
                "moments": [envs.fetch(moment).to_bytes() for moment in envs.snapshots()],
                "under_way": copy.deepcopy(
                    [self._ongoing_episodes, self._shared_data, self._cached_to_module]
                ),
            }
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a state, with the sandboxes only where they are this runner's.

        RLlib gives the state of its local runner to those that it has to start again, and to the
        one for evaluation: for the weights in it.
        """
        super().set_state(state)
        own = state.get(COMPONENT)
        if own is None or own["runner"] != self._place:
            return
        moments = [Snapshot.from_bytes(moment) for moment in own["moments"]]
        if len(moments) != self.num_envs:
            raise ValueError(
                f"the state holds {len(moments)} sandboxes and this runner has {self.num_envs}: "
                "build it with the same num_envs_per_env_runner"
            )
        self.sandboxes.restores({i: Restore(moment) for i, moment in enumerate(moments)})
        under_way = copy.deepcopy(own["under_way"])
        self._ongoing_episodes, self._shared_data, self._cached_to_module = under_way
        self._needs_initial_reset = False
