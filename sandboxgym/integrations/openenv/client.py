"""Talks to a sandbox that is served by `server`, also on another machine.

```
with SandboxClient("http://localhost:8000").sync() as env:
    env.reset(seed=7)
    moment = env.snapshot()
    env.act("look")
    env.restore(moment)
```
"""

from __future__ import annotations

from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.integrations.openenv.messages import (
    SandboxAction,
    SandboxObservation,
    SandboxState,
    packed,
    unpacked,
)

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
except ImportError as error:
    raise MissingDependencyError(
        'the client is made of OpenEnv\'s: pip install "sandboxgym[openenv]"'
    ) from error


class SandboxClient(EnvClient[SandboxAction, SandboxObservation, SandboxState]):
    """A session of its own on the server. `sync()` gives a client without `await`."""

    async def act(self, command: Any) -> StepResult[SandboxObservation]:
        """Take an action."""
        result: StepResult[SandboxObservation] = await self.step(SandboxAction(command=command))
        return result

    async def snapshot(self) -> Snapshot:
        """Take the moment home: it can be saved, and restored in any session of such a sandbox."""
        result = await self.step(SandboxAction(kind="snapshot"))
        return unpacked(result.observation.snapshot)

    async def restore(self, snapshot: Snapshot) -> StepResult[SandboxObservation]:
        """Return to a moment, and to what was seen then."""
        moment = packed(snapshot)
        result: StepResult[SandboxObservation] = await self.step(
            SandboxAction(kind="restore", snapshot=moment)
        )
        return result

    def _step_payload(self, action: SandboxAction) -> dict[str, Any]:
        payload: dict[str, Any] = action.model_dump(exclude_none=True, exclude={"metadata"})
        return payload

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[SandboxObservation]:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        observation = SandboxObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> SandboxState:
        return SandboxState(**payload)
