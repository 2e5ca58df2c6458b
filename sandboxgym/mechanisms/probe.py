"""The probe: whether a mechanism really is exact for an environment, tried on scratch instances.

It restores in the instance that made a snapshot after that went elsewhere, in one that was never
reset, and in siblings that are stepped in turns; each has to continue exactly as the original did,
over the end of the episode into the next one. The number of steps is fixed, so that the outcome is
the same on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import numpy as np

from sandboxgym.core import forking
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.mechanisms.player import SEEDS, Move, NotExactError, Player, Seen, expect
from sandboxgym.mechanisms.twins import AnyEnv

STRETCHES = (0, 4, 5, 7)  # steps between two snapshots
STEPS_OF_THE_NEXT_EPISODE = 4
RESET = Move(is_reset=True)


@dataclass
class Script:
    """What the maker of the snapshots did and saw: `trace[i]` follows `moves[i - 1]`."""

    seed: int
    trace: list[Seen]
    moves: list[Move] = field(default_factory=list)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    def add(self, moves: list[Move], seen: list[Seen]) -> None:
        """Append moves and what followed them."""
        self.moves.extend(moves)
        self.trace.extend(seen)

    @property
    def end(self) -> int:
        """How many moves the first of the two episodes has."""
        return next(step for step, move in enumerate(self.moves) if move.is_reset)

    @property
    def middle(self) -> int:
        """Where the siblings are forked."""
        return sorted(self.snapshots)[len(self.snapshots) // 2]


def probe(make: Callable[[], AnyEnv], *, restores: bool = True) -> str | None:
    """Why a mechanism is not exact for an environment, or None where nothing speaks against it.

    Args:
        make: Makes a scratch instance under the mechanism.
        restores: Whether to try each kind of restore. A mechanism that verifies each of them can do
            without: then siblings are stepped in turns, and no more.
    """
    try:
        with ExitStack() as scratch:
            maker = Player(scratch.enter_context(closing(make())))
            script = _play(maker, SEEDS[0])
            twin = _fork(maker, script, scratch)
            if restores:
                _restore_all(maker, twin, [script, *(_play(maker, seed) for seed in SEEDS[1:])])
    except (NotExactError, SandboxGymError) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - the environment may raise anything
        return f"{type(error).__name__}: {error}"
    return None


def _restore_all(maker: Player, twin: Player, scripts: list[Script]) -> None:
    """Restore every snapshot, the latest first, in both instances."""
    for script in reversed(scripts):
        for at in sorted(script.snapshots, reverse=True):
            # Resets can be slow, so not every continuation has one.
            _continues(maker, script, at, "restored in the same instance", onward=at == script.end)
            _continues(twin, script, at, "restored in another instance", onward=at == 0)


def _play(maker: Player, seed: int) -> Script:
    """Play an episode and the beginning of the next one, with snapshots on the way."""
    rng = np.random.default_rng(seed)
    script = Script(seed, [maker.reset(seed)])
    for steps in STRETCHES:
        explored = maker.explore(script.trace[-1], steps, rng)
        script.add(explored.moves, explored.trace)
        if explored.stop:
            break
        script.snapshots[len(script.moves)] = forking.snapshot(maker.env)
    script.add([RESET], [maker.make(RESET)])
    explored = maker.explore(script.trace[-1], STEPS_OF_THE_NEXT_EPISODE, rng)
    script.add(explored.moves, explored.trace)
    return script


def _fork(maker: Player, script: Script, scratch: ExitStack) -> Player:
    """Fork two siblings, step them in turns, the other one elsewhere; return the first."""
    at = script.middle
    where = f"seed {script.seed}, forked at step {at}"
    _arrives(script, at, maker.restore(script.snapshots[at]), where)
    first, second = forking.fork(maker.env, 2)
    twin = Player(scratch.enter_context(closing(first)))
    with closing(second):
        _go_in_turns(twin, Player(second), script, at, f"{where}, its sibling going elsewhere")
    for step in range(at, len(script.moves)):
        _goes_on(maker, script, step, f"{where}, the parent itself")
    return twin


def _go_in_turns(twin: Player, other: Player, script: Script, at: int, where: str) -> None:
    seen = script.trace[at]
    rng = np.random.default_rng([script.seed, at])
    for step in range(at, len(script.moves)):
        explored = other.explore(seen, 1, rng)
        seen = explored.trace[-1] if explored.trace else other.reset(script.seed + 1)
        _goes_on(twin, script, step, where)


def _continues(player: Player, script: Script, at: int, how: str, *, onward: bool) -> None:
    """Restore, and expect what was seen there and what came later, `onward` in the next episode."""
    where = f"seed {script.seed}, {how} to step {at}"
    _arrives(script, at, player.restore(script.snapshots[at]), where)
    last = len(script.moves) if onward else script.end
    for step in range(at, last):
        _goes_on(player, script, step, where)


def _arrives(script: Script, at: int, found: Seen, where: str) -> None:
    expect({name: script.trace[at][name] for name in ("obs", "info")}, found, where)


def _goes_on(player: Player, script: Script, step: int, where: str) -> None:
    expect(script.trace[step + 1], player.make(script.moves[step]), f"{where}, move {step + 1}")
