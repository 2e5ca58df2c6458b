"""A Ray cluster of several nodes on this machine, parts of which can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import ray
from ray.cluster_utils import Cluster

import sandboxgym as sg

_ROOT = Path(__file__).parents[1]
_MARK = "SANDBOXGYM_BENCHMARK_NODES"  # a variable by which all processes of the cluster are known
_TRIES = 4


class Nodes:
    """A cluster, with this process connected to its first node, until it is closed.

    Args:
        count: How many nodes; each has one processor in Ray's account.

    Attributes:
        address: Of the cluster.
    """

    def __init__(self, count: int) -> None:
        os.environ[_MARK] = uuid.uuid4().hex  # before a node is started
        os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
        node = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
        head = {**node, "include_dashboard": False}
        self._cluster = _tried(lambda: Cluster(initialize_head=True, head_node_args=head))
        for _ in range(count - 1):
            _tried(lambda: self._cluster.add_node(**node))
        self.address: str = self._cluster.address
        ray.init(self.address, log_to_driver=False)

    def processes(self) -> dict[int, str]:
        """Command lines of the cluster and of what it started, whoever their parent is by now."""
        mark, found = f"{_MARK}={os.environ[_MARK]}".encode(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
                if int(folder.name) != os.getpid() and mark in (folder / "environ").read_bytes():
                    line = (folder / "cmdline").read_bytes().decode(errors="replace")
                    found[int(folder.name)] = line.replace("\0", " ")
        return found

    def of_pools(self) -> set[int]:
        """Actors of pools, keepers and workers."""
        return {
            pid
            for pid, line in self.processes().items()
            if "sandboxgym.pool" in line or line.startswith("ray::Station")
        }

    def kill_one(self, pool: sg.ForkPool) -> str:
        """Kill a node that has lanes, other than the one that this process is at; its name."""
        own = ray.get_runtime_context().get_node_id()
        lanes = [where for where in map(pool.where, pool.lanes) if where is not None]
        name = next(where.node for where in lanes if where.node != own)
        lost = next(node for node in self._cluster.worker_nodes if node.node_id == name)
        there = {pid for where in lanes if where.node == name for pid in chain(where.pid)}
        self._cluster.remove_node(lost, allow_graceful=False)
        for pid in there:  # they would find out after a second that their node is gone
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return name

    def close(self) -> None:
        """End the cluster."""
        ray.shutdown()
        self._cluster.shutdown()

    def __enter__(self) -> Nodes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def chain(worker: int) -> list[int]:
    """A worker below an actor, its keeper, and the process of the actor; [] where it is gone."""
    found = [worker]
    try:
        for _ in range(2):
            fields = Path(f"/proc/{found[-1]}/stat").read_text().rpartition(")")[2].split()
            found.append(int(fields[1]))
    except OSError:
        return []
    return found


def _tried(start: Callable[[], Any]) -> Any:
    """Start a node; Ray gives it less than 30 seconds, which is little on a busy machine."""
    for left in reversed(range(_TRIES)):
        try:
            return start()
        except Exception:
            if not left:
                raise
    return None
