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
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.mechanisms.player import Move, NotExactError, Player, Seen, expect
from sandboxgym.mechanisms.survey import Episode, Survey
from sandboxgym.mechanisms.twins import AnyEnv

NEXT_EPISODE_STEPS = 4


@dataclass(frozen=True)
class Script:
    """What the maker of the snapshots did and saw: `trace[i]` follows `moves[i - 1]`."""

    seed: int
    moves: list[Move]
    trace: list[Seen]
    snapshots: dict[int, Snapshot]

    @property
    def middle(self) -> int:
        """Where the siblings are forked."""
        return sorted(self.snapshots)[len(self.snapshots) // 2]


@dataclass
class Trial:
    """One mechanism on trial.

    Attributes:
        make: Makes a scratch instance under the mechanism.
        survey: What the plain environment showed.
    """

    make: Callable[[], AnyEnv]
    survey: Survey
    _scratch: ExitStack = field(default_factory=ExitStack)

    def run(self) -> str | None:
        """The first way in which the mechanism is not exact, or None where it is."""
        try:
            with self._scratch:
                self._try_everything()
        except NotExactError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - the environment may raise anything
            return f"{type(error).__name__}: {error}"
        return None

    def _try_everything(self) -> None:
        maker = self._adopt(self.make())
        twin: Player | None = None
        for episode in self.survey.episodes:
            script = self._play(maker, episode)
            for at in sorted(script.snapshots, reverse=True):
                self._continues(maker, script, at, "restored in the same instance")
            if twin is None:
                twin = self._fork(maker, script)
            for at in script.snapshots:
                self._continues(twin, script, at, "restored in another instance")

    def _play(self, maker: Player, episode: Episode) -> Script:
        """Play an episode and the beginning of the next one, with snapshots on the way."""
        where = f"seed {episode.seed}, an instance that takes snapshots"
        moves: list[Move] = []
        trace = [maker.reset(episode.seed)]
        last = len(episode.actions)
        snapshots = {}
        for step in range(last + 1):
            if step:
                moves.append(Move(episode.actions[step - 1]))
                trace.append(maker.make(moves[-1]))
            if self.survey.drift is None:
                expect(episode.trace[step], trace[step], f"{where}, step {step}")
            if step in (0, last // 3, 2 * last // 3, last):
                snapshots[step] = forking.snapshot(maker.env)
        moves.append(Move(is_reset=True))
        trace.append(maker.make(moves[-1]))
        rng = np.random.default_rng(episode.seed)
        actions, _ = maker.explore(trace[-1], NEXT_EPISODE_STEPS, rng)
        moves.extend(Move(action) for action in actions)
        trace.extend(maker.trace)
        return Script(episode.seed, moves, trace, snapshots)

    def _continues(self, player: Player, script: Script, at: int, how: str) -> None:
        """Restore, and expect what was seen there and what came later."""
        where = f"seed {script.seed}, {how} to step {at}"
        self._arrives(script, at, player.restore(script.snapshots[at]), where)
        for step in range(at, len(script.moves)):
            self._goes_on(player, script, step, where)

    def _arrives(self, script: Script, at: int, found: Seen, where: str) -> None:
        expected = {name: script.trace[at][name] for name in ("obs", "info")}
        expect(expected, found, where)

    def _goes_on(self, player: Player, script: Script, step: int, where: str) -> None:
        found = player.make(script.moves[step])
        expect(script.trace[step + 1], found, f"{where}, move {step + 1}")

    def _fork(self, maker: Player, script: Script) -> Player:
        """Fork two siblings, step them in turns, the other one elsewhere; return the first."""
        at = script.middle
        where = f"seed {script.seed}, forked at step {at}, its sibling going elsewhere"
        self._arrives(script, at, maker.restore(script.snapshots[at]), where)
        first, second = forking.fork(maker.env, 2)
        twin = self._adopt(first)
        with closing(second):
            self._go_in_turns(twin, Player(second), script, at, where)
        for step in range(at, len(script.moves)):
            self._goes_on(maker, script, step, f"seed {script.seed}, the parent of forks")
        return twin

    def _go_in_turns(
        self, twin: Player, other: Player, script: Script, at: int, where: str
    ) -> None:
        """Let the twin go on as its parent did, and its sibling in its own ways beside it."""
        seen = script.trace[at]
        rng = np.random.default_rng([script.seed, at])
        for step in range(at, len(script.moves)):
            other.explore(seen, 1, rng)
            seen = other.trace[-1] if other.trace else other.reset(script.seed + 1)
            self._goes_on(twin, script, step, where)

    def _adopt(self, env: AnyEnv) -> Player:
        self._scratch.enter_context(closing(env))
        return Player(env)


def probe(make: Callable[[], AnyEnv], survey: Survey) -> str | None:
    """Why a mechanism is not exact for an environment, or None where nothing speaks against it.

    Args:
        make: Makes a scratch instance under the mechanism.
        survey: What the plain environment showed.
    """
    return Trial(make, survey).run()
