"""The original engine of ALFWorld, shared by all environments that play the same game.

Its planner, a C library, keeps every state that it ever saw under a number, and one global number
says which is the present one. So a position is that number with what TextWorld keeps in Python, and
going back to it is an assignment. The numbers mean nothing once the library loads a game anew: it
then answers with nonsense. Therefore an engine never does: its reset is a return to the first
position, and each position belongs to the engine that made it.

The library is 34 MB, cannot be unloaded, and TextWorld loads another copy for each environment.
Here an engine takes over the copy of one that nobody refers to any more.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import threading
import weakref
from collections import Counter
from dataclasses import dataclass
from typing import Any

from sandboxgym.core.errors import GameFileError, MissingDependencyError

_TABLES = ("_facts", "_vars_by_name", "_vars_by_type", "_var_counts")  # of a TextWorld state

_engines: weakref.WeakValueDictionary[str, StockEngine] = weakref.WeakValueDictionary()
_idle: list[Any] = []  # TextWorld environments without an engine, each with its library
_loading = threading.Lock()


@dataclass(frozen=True, eq=False)
class StockPosition:
    """One moment of a game; never changes, so that any number of environments can be at it.

    Attributes:
        engine: Which alone understands the number.
        number: The planner's name of the state.
        moment: TextWorld's account: feedback, commands, won.
        facts: What holds, as TextWorld keeps it.
        operators: The planner's names of what can be done.
        last_action: What was done last.
        moves: How many commands did something.
    """

    engine: StockEngine
    number: int
    moment: Any
    facts: tuple[Any, ...]
    operators: Any
    last_action: Any
    moves: int

    def __deepcopy__(self, memo: Any) -> StockPosition:
        return self

    @property
    def observation(self) -> str:
        """What the game says."""
        return str(self.moment["feedback"])

    @property
    def admissible_commands(self) -> tuple[str, ...]:
        """All commands that do something, sorted."""
        return tuple(map(str, self.moment["admissible_commands"]))

    @property
    def won(self) -> bool:
        """Whether the task is done."""
        return bool(self.moment["won"])

    @functools.cached_property
    def named_facts(self) -> tuple[str, ...]:
        """What holds, in words and sorted."""
        return tuple(sorted(str(fact) for same in self.facts[0].values() for fact in same))


class StockEngine:
    """One game, loaded once; see `engine_for`."""

    def __init__(self, text: str, content: str) -> None:
        self.content = content
        self._env = _idle.pop() if _idle else _new_environment()
        weakref.finalize(self, _idle.append, self._env).atexit = False
        self._lock = threading.Lock()
        argv = sys.argv  # which the planner's translator overwrites
        try:
            self._env.load(json.loads(text))
            self._pddl = self._env.unwrapped
            self._env.reset()
        except Exception as error:
            raise GameFileError(
                f"ALFWorld's engine cannot load this game ({type(error).__name__}: {error})"
            ) from error
        finally:
            sys.argv = argv
        self.start = self._position()

    def act(self, position: StockPosition, command: str) -> StockPosition:
        """What a command leads to."""
        with self._lock:
            self._go_to(position)
            self._env.step(command)
            return self._position()

    def _position(self) -> StockPosition:
        pddl = self._pddl
        state = pddl._pddl_state
        return StockPosition(
            engine=self,
            number=pddl.downward_lib.get_state_id(),
            moment=pddl.state,
            facts=_copied(
                state._facts, state._vars_by_name, state._vars_by_type, state._var_counts
            ),
            operators=state._operators,
            last_action=pddl._last_action,
            moves=pddl._moves,
        )

    def _go_to(self, position: StockPosition) -> None:
        pddl = self._pddl
        state = pddl._pddl_state
        pddl.downward_lib.set_state_id(position.number)
        for table, content in zip(_TABLES, _copied(*position.facts), strict=True):
            setattr(state, table, content)
        state._operators = position.operators
        pddl.state = position.moment
        pddl._last_action = position.last_action
        pddl._moves = position.moves


def engine_for(text: str) -> StockEngine:
    """The engine that plays a game file; the one at hand where the game is being played already.

    Raises:
        MissingDependencyError: ALFWorld's own engine is not installed.
        GameFileError: It cannot load the file.
    """
    with _loading:
        key = hashlib.sha256(text.encode()).hexdigest()
        engine = _engines.get(key)
        if engine is None:
            engine = _engines[key] = StockEngine(text, key)
        return engine


def _new_environment() -> Any:
    try:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs import PddlEnv
    except ImportError as error:
        raise MissingDependencyError(
            "ALFWorld's own engine is not installed (and is slow to build): pip install "
            '"sandboxgym[stock-alfworld]"; sandboxgym/ALFWorld-v0 plays the same games without it'
        ) from error
    return AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True)))


def _copied(facts: Any, by_name: Any, by_type: Any, counts: Any) -> tuple[Any, ...]:
    """A copy of the tables of a TextWorld state, in which nothing but their members is shared."""
    same, kinds = facts.copy(), by_type.copy()
    for table in (same, kinds):
        for key, members in table.items():
            table[key] = members.copy()
    return same, dict(by_name), kinds, Counter(counts)
