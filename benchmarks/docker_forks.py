"""What forking costs with Docker, and with overlays above the same image, in one run by turns.

Called by `repo_forks.py`, or on its own: `python -m benchmarks.docker_forks TREE`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.docker.backend import DockerBackend, connect
from sandboxgym.sandboxes.repo.docker.images import base_of_image
from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend
from tests.sandboxes.repo.docker_daemon import NoDaemonError, daemon, make_image

IMAGE = "sandboxgym-benchmark:latest"
TURNS = 8


def docker_fork_latencies(tree: Path, turns: int = TURNS) -> dict[str, Any]:
    """Milliseconds of each act in both backends; `absent` says why where there is no daemon."""
    try:
        with daemon() as address:
            client = connect(address)
            make_image(client, IMAGE, tree)
            try:
                return _both(client, address, turns)
            finally:
                client.images.remove(IMAGE, force=True)
                client.close()
    except (NoDaemonError, MissingDependencyError) as error:
        return {"absent": str(error)}


def _both(client: Any, address: str, turns: int) -> dict[str, Any]:
    taken: dict[str, dict[str, list[float]]] = {}
    with (
        tempfile.TemporaryDirectory() as cache,
        DockerBackend(Limits(), address) as docker,
        OverlayBackend(Limits()) as overlay,
    ):
        start = time.perf_counter()
        unpacked = base_of_image(client, IMAGE, cache=Path(cache))
        unpacking = time.perf_counter() - start
        start = time.perf_counter()
        docker.create(docker.base(IMAGE)).close()
        preparing = time.perf_counter() - start
        pairs: list[tuple[str, Any, Any]] = [
            ("docker", docker, docker.create(docker.base(IMAGE))),
            ("overlay", overlay, overlay.create(unpacked)),
        ]
        for name, _, sandbox in pairs:
            taken[name] = defaultdict(list)
            sandbox.run("export x=1; f() { echo $x; }; cd package0")
        for turn in range(turns):
            for name, backend, sandbox in pairs:
                _one_turn(taken[name], backend, sandbox, turn)
        for _, _, sandbox in pairs:
            sandbox.close()
    medians = {
        name: {act: _spread(times) for act, times in acts.items()} for name, acts in taken.items()
    }
    return {
        "turns": turns,
        **medians,
        "docker_over_overlay": {
            act: round(medians["docker"][act]["median"] / medians["overlay"][act]["median"], 1)
            for act in medians["docker"]
        },
        "once_an_image_s": {
            "unpack for overlays": round(unpacking, 1),
            "prepare for docker": round(preparing, 1),
        },
    }


def _one_turn(taken: dict[str, list[float]], backend: Any, sandbox: Any, turn: int) -> None:
    def timed(act: str, call: Any, *arguments: Any) -> Any:
        start = time.perf_counter()
        result = call(*arguments)
        taken[act].append(time.perf_counter() - start)
        return result

    timed("command", sandbox.run, f"echo {turn} > changed")
    moment = timed("snapshot", sandbox.snapshot)
    sandbox.run("echo more >> changed")
    timed("restore", sandbox.restore, moment)
    twin = timed("fork", backend.fork, moment)
    assert twin.run("f; cat changed").output == f"1\n{turn}\n"
    twin.close()


def _spread(seconds: list[float]) -> dict[str, float]:
    taken = sorted(1000 * second for second in seconds)
    return {
        "median": round(taken[len(taken) // 2], 1),
        "least": round(taken[0], 1),
        "most": round(taken[-1], 1),
    }


if __name__ == "__main__":
    print(json.dumps(docker_fork_latencies(Path(sys.argv[1])), indent=2))
