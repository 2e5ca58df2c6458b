"""Playing a game file: a `Game`, which never changes, and any number of `Position`s in it.

How a game runs: a state is an integer whose bits are facts (`grounding`). It decides which
operators are applicable (`successors`), and the grammar tells how each of them is commanded
(`story`). To act is to look a command up in that menu, to apply the operator's masks to the state,
and to tell what the grammar says of the new state. Menus and texts depend on few of the bits, and a
`Game` remembers them by those bits: all that ever changes in it, and nothing that can be seen.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import DataNotFoundError, GameFileError, SnapshotCorruptError
from sandboxgym.sandboxes.text.composer import Composer, denied_predicates
from sandboxgym.sandboxes.text.facts import Facts, Scope
from sandboxgym.sandboxes.text.grounding import Operator, ground
from sandboxgym.sandboxes.text.memory import Memory
from sandboxgym.sandboxes.text.pddl import Action, parse_domain, parse_problem
from sandboxgym.sandboxes.text.planner import Planner
from sandboxgym.sandboxes.text.story import Text
from sandboxgym.sandboxes.text.successors import Successors
from sandboxgym.sandboxes.text.twl2 import Grammar, Placeholder, Symbol, parse_grammar

MAX_FILE_BYTES = 2 << 20

_NOTHING = "Nothing happens."
_TASK = "Your task is to: "


def load_game(path: str | Path) -> Game:
    """Return the game of a file; as long as the file does not change, it is compiled once."""
    file = Path(path).resolve()
    try:
        status = file.stat()
    except OSError:
        return Game.load(file)  # it says what is wrong
    return _compiled(file, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=32)
def _compiled(file: Path, mtime: int, size: int) -> Game:
    return Game.load(file)


class Position:
    """A state of a game, and what the game said last.

    Positions of one game share nothing that changes, so there may be any number of them.
    """

    __slots__ = ("_menu", "_state", "game", "observation")

    def __init__(self, game: Game, state: int, observation: str) -> None:
        """Use `Game.start`."""
        self.game = game
        self.observation = observation
        self._state = state
        self._menu: Menu | None = None

    @property
    def admissible_commands(self) -> tuple[str, ...]:
        """The commands that do something here, sorted."""
        return self._look_up().commands

    @property
    def won(self) -> bool:
        """Whether the goal holds."""
        return self.game.is_won(self._state)

    def act(self, command: str) -> str:
        """Carry out a command, if it is admissible to the letter, and return the observation."""
        move = self._look_up().moves.get(command.strip())
        if move is None:
            self.observation = _NOTHING
        else:
            state = move.operator.apply(self._state)
            self.observation = self.game.feedback(move, state)
            self._state = state
            self._menu = None
        return self.observation

    def get_state(self) -> dict[str, Any]:
        """Return the position as plain data."""
        return {
            "facts": self._state.to_bytes(self.game.state_bytes, "little"),
            "observation": self.observation,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go to a position that `get_state` returned, of this or another copy of the game.

        Raises:
            SnapshotCorruptError: This is no position of the game; nothing was changed.
        """
        facts = state.get("facts") if isinstance(state, dict) else None
        observation = state.get("observation") if isinstance(state, dict) else None
        if not isinstance(facts, bytes) or not isinstance(observation, str):
            raise SnapshotCorruptError(
                f"a position of {self.game.name} is a dict with 'facts' and 'observation' as "
                "get_state returns it; this is something else"
            )
        number = int.from_bytes(facts, "little")
        if len(facts) != self.game.state_bytes or number.bit_length() > self.game.state_bits:
            raise SnapshotCorruptError(
                f"a position of {self.game.name} has {self.game.state_bits} facts; this one is of "
                "another game"
            )
        self._state = number
        self.observation = observation
        self._menu = None

    def plan(self) -> list[str] | None:
        """Return commands that win from here, or None if none were found within the limits."""
        return self.game.plan(self._state)

    def _look_up(self) -> Menu:
        if self._menu is None:
            self._menu = self.game.menu(self._state)
        return self._menu


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """An operator with the entities that its texts are about, and these texts."""

    operator: Operator
    scope: Scope
    command: Text
    feedback: Text


@dataclass(frozen=True, slots=True)
class Menu:
    """What can be commanded in a state, and the move that each command stands for."""

    commands: tuple[str, ...]
    moves: dict[str, Move]


class Game:
    """A game, compiled from one file and shared by all positions in it.

    Attributes:
        name: What messages call the game.
        digest: A hash of the file's content.
        task: What the player is told to do.
        walkthrough: Commands that win from the start, as far as the file has them.
        state_bits: The number of facts that make up a position.
        state_bytes: As many bytes as these need.
    """

    def __init__(self, text: str, name: str) -> None:
        """Use `Game.load` or `Game.from_json`."""
        content = _Content.read(text)
        domain = parse_domain(content.domain)
        problem = parse_problem(content.problem, domain)
        grammar = parse_grammar(content.grammar)
        world = ground(domain, problem, denied_predicates(grammar, domain))
        facts = Facts(domain, problem, world)
        composer = Composer(grammar, facts, domain)
        texts = {action.name: _texts(action, grammar, composer) for action in domain.actions}

        self.name = name
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        self.walkthrough = content.walkthrough
        self.state_bits = world.table.width
        self.state_bytes = (self.state_bits + 7) // 8
        self._world = world
        self._successors = Successors(world)
        self._moves = tuple(
            Move(each, facts.scope(each), *texts[each.action.name]) for each in world.operators
        )
        self._command_reads = 0
        for command, _ in texts.values():
            self._command_reads |= command.reads()
        self._goal_reads = world.goal_reads()
        self._opening = Text(composer.compose((Symbol("intro"),), ()), 0).tell(world.init, ())
        self.task = self._opening.partition(_TASK)[2].partition("\n")[0]

        # What follows from the above, kept as long as there is room.
        self._planner: Planner | None = None
        self._menus: Memory[int, Menu] = Memory()
        self._wins: Memory[int, bool] = Memory()

    @classmethod
    def load(cls, path: str | Path) -> Game:
        """Read a game file; `load_game` does so once for any number of calls."""
        file = Path(path)
        if not file.is_file():
            raise DataNotFoundError(f"there is no game file {str(file)!r}")
        try:
            with file.open("rb") as stream:
                content = stream.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise DataNotFoundError(f"cannot read the game file {str(file)!r}: {error}") from error
        if len(content) > MAX_FILE_BYTES:
            raise GameFileError(
                f"{file}: the file has more than {MAX_FILE_BYTES} bytes, which no real game comes "
                "near; is it a game file?"
            )
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise GameFileError(f"{file}: the file is not UTF-8 text: {error}") from error
        return cls.from_json(text, name=str(file))

    @classmethod
    def from_json(cls, text: str, *, name: str = "game") -> Game:
        """Compile the text of a game file."""
        try:
            return cls(text, name)
        except GameFileError as error:
            raise GameFileError(f"{name}: {error}") from error

    def start(self) -> Position:
        """Return a new position at the start of the game."""
        return Position(self, self._world.init, self._opening)

    def menu(self, state: int) -> Menu:
        """Return what can be commanded in a state."""
        view = self._successors.view(state)
        key = state & (view.reads | self._command_reads)
        menu = self._menus.get(key)
        if menu is None:
            moves: dict[str, Move] = {}
            for index in view.applicable(state):
                move = self._moves[index]
                moves.setdefault(self._tell(move.command, move, state), move)
            menu = self._menus.keep(key, Menu(tuple(sorted(moves)), moves))
        return menu

    def feedback(self, move: Move, state: int) -> str:
        """Return what is told after a move that led to a state."""
        return self._tell(move.feedback, move, state)

    def is_won(self, state: int) -> bool:
        """Whether the goal holds in a state."""
        key = state & self._goal_reads
        won = self._wins.get(key)
        return self._wins.keep(key, self._world.won(state)) if won is None else won

    def plan(self, state: int) -> list[str] | None:
        """Return commands that win from a state, or None if none were found."""
        if self._planner is None:
            self._planner = Planner(self._world, self._successors)
        found = self._planner.plan(state)
        if found is None:
            return None
        commands: list[str] = []
        there = state
        for step in found:
            move = self._moves[step.index]
            commands.append(self._tell(move.command, move, there))
            there = step.apply(there)
        # A grammar can give one command to several moves, or one that cannot be typed.
        commands, end = self._follow(state, commands)
        return self._without_detours(state, commands) if self.is_won(end) else None

    def _without_detours(self, state: int, commands: list[str]) -> list[str]:
        """Leave out commands, around and around, until each that is left is needed to win."""
        place = kept = 0
        while kept < len(commands):
            shorter, end = self._follow(state, commands[:place] + commands[place + 1 :])
            if self.is_won(end):
                commands, kept = shorter, 0
            else:
                place, kept = place + 1, kept + 1
            place %= max(1, len(commands))
        return commands

    def _follow(self, state: int, commands: list[str]) -> tuple[list[str], int]:
        """Carry out the commands that are admissible when their turn comes."""
        done: list[str] = []
        for command in commands:
            move = self.menu(state).moves.get(command.strip())
            if move is not None:
                done.append(command)
                state = move.operator.apply(state)
        return done, state

    def _tell(self, text: Text, move: Move, state: int) -> str:
        try:
            return text.tell(state, move.scope)
        except GameFileError as error:
            raise GameFileError(f"{self.name}: {error}") from error


def _texts(action: Action, grammar: Grammar, composer: Composer) -> tuple[Text, Text]:
    """Return how an action is commanded, and what is told after it."""
    text = grammar.actions.get(action.name)
    if text is None:
        raise GameFileError(
            f"the grammar does not know action {action.name!r} of the domain; add a block "
            f"'action {action.name} {{ template :: ...; feedback :: ...; }}'"
        )
    variables = tuple(
        Placeholder(parameter.name.strip("?"), parameter.type) for parameter in action.parameters
    )
    command, feedback = (
        Text(composer.compose(template, variables), len(variables))
        for template in (text.command, text.feedback)
    )
    return command, feedback


@dataclass(frozen=True, slots=True)
class _Content:
    """The parts of a game file."""

    domain: str
    problem: str
    grammar: str
    walkthrough: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> _Content:
        try:
            text.encode()
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise GameFileError(f"the file is not valid JSON: {error}") from error
        if not isinstance(data, dict):
            raise GameFileError("the file must be a JSON object, as ALFWorld's game.tw-pddl files")
        for key in ("pddl_domain", "pddl_problem", "grammar"):
            if not isinstance(data.get(key), str):
                raise GameFileError(f"the file has no text {key!r}, as game.tw-pddl files do")
        walkthrough = data.get("walkthrough") or []
        if not isinstance(walkthrough, list) or not all(isinstance(c, str) for c in walkthrough):
            raise GameFileError("the 'walkthrough' of the file is not a list of commands")
        try:
            "".join(walkthrough).encode()
        except UnicodeEncodeError as error:
            raise GameFileError(f"the 'walkthrough' has half a character: {error}") from error
        return cls(data["pddl_domain"], data["pddl_problem"], data["grammar"], tuple(walkthrough))
