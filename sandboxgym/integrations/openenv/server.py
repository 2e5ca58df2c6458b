"""Serves any sandbox to OpenEnv's clients.

    python -m sandboxgym.integrations.openenv.server sandboxgym/ALFWorld-v0 --port 8000

Every session has an environment of its own, in a thread of its own. Snapshots travel to the client
and back, so a session may restore what another took, on this server or on the next.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.core.forking import AnyEnv, Stack, restore, snapshot
from sandboxgym.core.snapshot import Transition
from sandboxgym.integrations.openenv.messages import (
    SandboxAction,
    SandboxObservation,
    SandboxState,
    packed,
    unpacked,
)

try:
    from openenv.core.env_server import Environment, create_fastapi_app
except ImportError as error:
    raise MissingDependencyError(
        'the server is made of OpenEnv\'s: pip install "sandboxgym[openenv]"'
    ) from error

LOG_LEVEL = "critical"
"""For uvicorn: OpenEnv 0.3 lets it report every client that leaves as an error."""


class SandboxServer(Environment[SandboxAction, SandboxObservation, SandboxState]):
    """One session."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, make: Callable[[], AnyEnv]) -> None:
        super().__init__()
        self._env = make()
        # OpenEnv asks for it from another thread, where the environment must not be touched.
        self._state = SandboxState(sandbox=Stack.of(self._env).base.sandbox_spec.id)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> SandboxObservation:
        """Start an episode, as `gymnasium.Env.reset` does."""
        seen, info = self._env.reset(seed=seed, options=options)
        self._state.episode_id, self._state.step_count = episode_id, 0
        return SandboxObservation(seen=seen, info=info)

    def step(self, action: SandboxAction, timeout_s: float | None = None) -> SandboxObservation:
        """Act, take a snapshot, or restore one. What is refused leaves the session as it was."""
        if action.kind == "snapshot":
            now = snapshot(self._env)
            return _told(now.last, moment=packed(now))
        if action.kind == "restore":
            then = unpacked(action.snapshot)
            restore(self._env, then)
            self._state.step_count = then.step
            return _told(then.last)
        seen, reward, terminated, truncated, info = self._env.step(action.command)
        self._state.step_count += 1
        return _told(Transition(seen, reward, terminated, truncated, info))

    @property
    def state(self) -> SandboxState:
        """Where the session is."""
        return self._state

    def close(self) -> None:
        """End the session."""
        self._env.close()


def create_app(make: Callable[[], AnyEnv], *, sessions: int = 16) -> Any:
    """The application to serve, with uvicorn or whatever else serves ASGI.

    Args:
        make: Makes the environment of a session.
        sessions: How many there may be at a time.
    """
    return create_fastapi_app(
        lambda: SandboxServer(make), SandboxAction, SandboxObservation, max_concurrent_envs=sessions
    )


def _told(last: Transition, *, moment: str | None = None) -> SandboxObservation:
    return SandboxObservation(
        seen=last.obs,
        reward=float(last.reward),
        done=last.ended,
        terminated=bool(last.terminated),
        truncated=bool(last.truncated),
        info=last.info,
        snapshot=moment,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve an environment that is registered with Gymnasium."""
    import uvicorn

    import sandboxgym  # noqa: F401 - registers the sandboxes

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("id", help="such as sandboxgym/ALFWorld-v0")
    parser.add_argument("--kwargs", type=json.loads, default={}, help="for gymnasium.make, as JSON")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--sessions", type=int, default=16, help="how many at a time")
    given = parser.parse_args(arguments)
    app = create_app(lambda: gym.make(given.id, **given.kwargs), sessions=given.sessions)
    uvicorn.run(app, host=given.host, port=given.port, log_level=LOG_LEVEL)


if __name__ == "__main__":
    main()
