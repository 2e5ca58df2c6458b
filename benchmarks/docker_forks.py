"""What forking costs with Docker, and with overlays above the same image, in one run by turns.

Once with a small change between moments, and once with an agent that has written 200 MB. A fork is
measured until its first command is done, as overlays start while one goes on. Called by
`repo_forks.py`, or on its own: `python -m benchmarks.docker_forks TREE`.
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
TURNS, LARGE_TURNS = 8, 3
WRITE_200_MB = (
    "mkdir -p /home/agent/new; cd /home/agent/new; "
    "head -c 200000000 /dev/urandom | split -b 100000 -a 4 -; ls | wc -l"
)


def docker_fork_latencies(tree: Path, turns: int = TURNS) -> dict[str, Any]:
    """Milliseconds of each act in both backends, or why Docker was not measured."""
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
        return {"measured": False, "why_not": str(error)}


def _both(client: Any, address: str, turns: int) -> dict[str, Any]:
    small: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    large: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
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
        for _, _, sandbox in pairs:
            sandbox.run("export x=1; f() { echo $x; }; cd package0")
        for turn in range(turns):
            for name, backend, sandbox in pairs:
                _one_turn(small[name], backend, sandbox, f"echo {turn} > changed")
        begin = {name: sandbox.snapshot() for name, _, sandbox in pairs}
        for _ in range(LARGE_TURNS):
            for name, backend, sandbox in pairs:
                sandbox.restore(begin[name])
                _one_turn(large[name], backend, sandbox, WRITE_200_MB)
        for _, _, sandbox in pairs:
            sandbox.close()
    return {
        "measured": True,
        "a_small_change": {"turns": turns, **_compared(small)},
        "200_MB_written": {"turns": LARGE_TURNS, **_compared(large)},
        "once_an_image_s": {
            "unpack for overlays": round(unpacking, 1),
            "prepare for docker": round(preparing, 1),
        },
    }


def _compared(taken: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    medians = {
        name: {act: _spread(times) for act, times in acts.items()} for name, acts in taken.items()
    }
    ratios = {
        act: round(medians["docker"][act]["median"] / medians["overlay"][act]["median"], 1)
        for act in medians["docker"]
    }
    return {**medians, "docker_over_overlay": ratios}


def _one_turn(taken: dict[str, list[float]], backend: Any, sandbox: Any, command: str) -> None:
    def timed(act: str, call: Any, *arguments: Any) -> Any:
        start = time.perf_counter()
        result = call(*arguments)
        taken[act].append(time.perf_counter() - start)
        return result

    def forked() -> Any:
        twin = backend.fork(moment)
        assert twin.run("f").output == "1\n"
        return twin

    done = timed("command", sandbox.run, command)
    assert done.returncode == 0, done.output
    moment = timed("snapshot", sandbox.snapshot)
    sandbox.run("echo more >> changed")
    timed("restore", sandbox.restore, moment)
    timed("fork_and_a_command", forked).close()


def _spread(seconds: list[float]) -> dict[str, float]:
    taken = sorted(1000 * second for second in seconds)
    return {
        "median": round(taken[len(taken) // 2], 1),
        "least": round(taken[0], 1),
        "most": round(taken[-1], 1),
    }


if __name__ == "__main__":
    print(json.dumps(docker_fork_latencies(Path(sys.argv[1])), indent=2))
