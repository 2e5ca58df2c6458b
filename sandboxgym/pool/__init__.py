"""Many live environments in worker processes, and forks across them.

    pool.py       ForkPool, the face                     worker.py    the program of a worker
    scheduler.py  branches that wait for a lane          messages.py  what is asked, and its form
    layout.py     which lane belongs to which worker     handles.py   snapshots that stay in workers
    lanes.py      lanes, and what they are at            infos.py     infos of many as one
    crew.py       giving orders, replacing workers       failure.py   exceptions with their lane
    posts.py      what a worker is in charge of          signals.py   keeping interrupts away
    planning.py   what has to be done for an order       backend.py   what is needed of machines
    recovery.py   how a lane came to be where it is      local.py     workers on this machine
    transfers.py  snapshots on their way                 keeper.py, wire.py   their parent; messages

The owner (the user's program) has a `Lane` for each environment and a `Post` for each worker. A
command becomes an `Order`, an order a list of acts, which the worker does one after the other.
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
