"""`sandboxgym store`: look into a folder of snapshots, collect its garbage, verify it."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from sandboxgym.cli.outcome import FAILED, OK, Commands, UnusableInputError
from sandboxgym.core.errors import StoreCorruptError, StoreError
from sandboxgym.core.snapshot import DEFAULT_MAX_BYTES
from sandboxgym.store import SnapshotStore


def add_command(commands: Commands) -> None:
    """Add the command's parser and those of its actions."""
    command = commands.add_parser(
        "store",
        help="show, tidy or verify a store of snapshots",
        description="Work on a folder that sandboxgym.SnapshotStore made. Exit status: 0 where all "
        "is well, 1 where the store is damaged, 2 where it could not be used.",
    )
    actions = command.add_subparsers(title="actions", required=True, metavar="ACTION")
    _add_action(actions, "ls", _ls, "show the snapshots")
    gc = _add_action(actions, "gc", _gc, "free the room of what no snapshot needs")
    gc.add_argument(
        "--drop-corrupt",
        action="store_true",
        help="do without what is damaged: states are dropped down to their recipe, snapshots whose "
        "recipe is damaged are removed",
    )
    _add_action(actions, "verify", _verify, "read everything and name what is damaged")


def _add_action(
    actions: Commands,
    name: str,
    run: Callable[[SnapshotStore, argparse.Namespace], int],
    summary: str,
) -> argparse.ArgumentParser:
    action = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
    action.add_argument("directory", metavar="DIR", help="the folder of the store")
    action.add_argument(
        "--max-bytes",
        type=int,
        default=DEFAULT_MAX_BYTES,
        help="how large a snapshot may be (default: %(default)s)",
    )

    def run_on_store(options: argparse.Namespace) -> int:
        try:
            store = SnapshotStore(
                options.directory,
                disk_budget_bytes=None,
                max_bytes=options.max_bytes,
                create=False,
            )
            return run(store, options)
        except StoreCorruptError as error:
            print(error)
            return FAILED
        except StoreError as error:
            raise UnusableInputError(str(error)) from error

    action.set_defaults(run=run_on_store)
    return action


def _ls(store: SnapshotStore, options: argparse.Namespace) -> int:
    entries = store.ls()
    if entries:
        print(f"{'key':32}  {'step':>6}  {'state':7}  environment")
    for entry in entries:
        print(f"{entry.key}  {entry.step:6}  {entry.state:7}  {entry.spec}")
    print(f"{_count(len(entries), 'snapshot')}, {store.size:,} bytes")
    return OK


def _gc(store: SnapshotStore, options: argparse.Namespace) -> int:
    if options.drop_corrupt:
        for fault in store.verify():
            print(f"doing without {fault}")
    before = len(store)
    freed = store.gc(drop_corrupt=options.drop_corrupt)
    removed = before - len(store)
    if removed:
        print(f"removed {_count(removed, 'snapshot')} whose recipe was damaged")
    print(f"freed {freed:,} bytes; {_count(len(store), 'snapshot')}, {store.size:,} bytes")
    return OK


def _verify(store: SnapshotStore, options: argparse.Namespace) -> int:
    faults = store.verify()
    for fault in faults:
        print(fault)
    if faults:
        print(
            f"{_count(len(faults), 'fault')}: `sandboxgym store gc --drop-corrupt "
            f"{options.directory}` keeps the rest"
        )
        return FAILED
    print(f"{_count(len(store), 'snapshot')}, {store.size:,} bytes: all is well")
    return OK


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
