"""Many live environments in worker processes, and forks across them.

pool.py       ForkPool, the face                  worker.py   the program of a worker
lanes.py      lanes, and what they are at         messages.py what can be asked, and its form
crew.py       giving orders, replacing workers    handles.py  snapshots that stay in workers
recovery.py   how a lane came to be where it is   failure.py  exceptions with their lane
scheduler.py  branches that wait for a lane       backend.py  what is needed of the machine
local.py, keeper.py, wire.py                      this machine: processes and sockets
"""

from sandboxgym.pool.handles import SnapshotHandle
from sandboxgym.pool.messages import Call, Reset, Restore, SetAttribute, Step, Take
from sandboxgym.pool.pool import ForkPool
from sandboxgym.pool.recovery import LaneRestarted
from sandboxgym.pool.scheduler import Begun, Branch, BranchQueue

__all__ = [
    "Begun",
    "Branch",
    "BranchQueue",
    "Call",
    "ForkPool",
    "LaneRestarted",
    "Reset",
    "Restore",
    "SetAttribute",
    "SnapshotHandle",
    "Step",
    "Take",
]
