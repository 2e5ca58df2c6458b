"""A sandbox served by OpenEnv's protocol, and branches of it in sessions of their own.

    pip install "sandboxgym[openenv]"
    python examples/openenv_branches.py

An evaluation: from the middle of an episode, which of the next commands can still win within the
steps that the plan takes? Each is tried in its own session, on the same moment.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator

import gymnasium as gym
import uvicorn

import sandboxgym as sg  # noqa: F401 - registers the sandboxes
from sandboxgym.integrations.openenv.client import SandboxClient
from sandboxgym.integrations.openenv.server import LOG_LEVEL, create_app


def make_env() -> gym.Env[str, str]:
    """A short household task, generated."""
    return gym.make(
        "sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy", expert_plan=True
    )


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """A server on a free port of this machine; its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(make_env), log_level=LOG_LEVEL))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def main(branches: int = 4) -> dict[str, float]:
    """Play half of a plan, then branch; the return of every branch."""
    returns: dict[str, float] = {}
    with serving() as address, SandboxClient(address).sync() as trunk:
        result = trunk.reset(seed=3)
        plan = result.observation.info["expert_plan"]
        for command in plan[: len(plan) // 2]:
            result = trunk.act(command)
        moment = trunk.snapshot()
        print(f"after {trunk.state().step_count} steps: a moment of {len(moment.to_bytes())} bytes")
        others = [c for c in result.observation.info["admissible_commands"] if c not in plan]
        choices = random.Random(0).sample(others, branches - 1)
        for first in [plan[len(plan) // 2], *choices]:
            with SandboxClient(address).sync() as branch:
                branch.restore(moment)
                outcome = branch.act(first)
                rest = outcome.observation.info["expert_plan"]
                for command in rest[: len(plan) - len(plan) // 2 - 1]:
                    outcome = branch.act(command)
                returns[first] = outcome.reward
                print(f"{first!r}: return {outcome.reward}")
    return returns


if __name__ == "__main__":
    main()
