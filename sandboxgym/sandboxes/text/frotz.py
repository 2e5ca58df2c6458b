"""Frotz, the Z-machine inside Jericho, with its whole state at hand and no way to the disk.

Jericho's own `get_state` leaves out the seed that an in-game `restart` goes back to, whether the
machine has halted, and the score and moves that it reads off the screen of a TextWorld game. The
game's own undo lies on the heap, out of reach; `save`, `restore` and `script` write and read files
that all branches would share. So a `Machine` adds what is left out, and takes out of the
interpreter what cannot be captured: a game is told that saving, restoring or undoing failed.
"""

from __future__ import annotations

import ctypes
import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from sandboxgym.core.errors import (
    DataNotFoundError,
    GameFileError,
    MissingDependencyError,
    SnapshotCorruptError,
)

MAX_COMMAND = 196  # the interpreter's line has room for 200, with a newline and an end

_HEADER = 64  # bytes
_SERIAL = slice(0x12, 0x18)  # in the header: the day on which the story was compiled,
_CHECKSUM = slice(0x1C, 0x1E)  # which goes into the checksum too
_STACK_WORDS = 1024
_SEEDS = (1000, 2**31 - 1)
_READ_KEY = 246  # the instruction that waits for a single key
_TYPED = frozenset(map(chr, range(32, 127))) - {"\\"}  # a backslash begins the interpreter's keys
_FAILED = 0
_UNDO_UNAVAILABLE = 0xFFFF
_STREAMS_TO_FILES = (2, 4)

_INSTRUCTION = ctypes.CFUNCTYPE(None)


class Machine:
    """One `jericho.FrotzEnv`, whoever made it.

    Every `FrotzEnv` loads a copy of the library for itself, so nothing here touches another.
    """

    def __init__(self, frotz: Any) -> None:
        self.frotz = frotz
        self._lib = frotz.frotz_lib
        self._seed = _SEEDS[0]
        self._dated = self._memory()
        self._story_size = ctypes.c_long.in_dll(self._lib, "story_size").value
        self._halted = ctypes.c_int.in_dll(self._lib, "emulator_halted")
        self._screen_on = ctypes.c_bool.in_dll(self._lib, "ostream_screen")
        self._status = [ctypes.c_int.in_dll(self._lib, name) for name in ("tw_score", "move_count")]
        self._kept_alive = self._seal()

    def start(self, seed: int) -> str:
        """Begin the story anew, and return what it says first."""
        self.seed(seed)
        text, _ = self.frotz.reset()
        return str(text)

    def seed(self, seed: int) -> None:
        """The seed of the next start, and of a restart within the game."""
        self._seed = seed
        self.frotz.seed(seed)

    def reseed(self, seed: int) -> None:
        """Throw the dice of the running game anew."""
        self.seed(seed)
        self._lib.set_random_seed(seed)
        self._lib.setRng(seed, 0, 0)

    @property
    def halted(self) -> bool:
        """Whether the interpreter gave up; this copy of the library is of no use any more."""
        return bool(self._halted.value)

    def typed(self, command: str) -> str:
        """A command as it can be typed: one line, without the interpreter's own keys.

        The rest of a second line, or of several keys where the game waits for one, would stay
        behind in a buffer that no state has.
        """
        line = "".join(char if char in _TYPED else " " for char in command.strip())
        return line[: 1 if self._lib.get_opcode() == _READ_KEY else MAX_COMMAND]

    def get_state(self) -> dict[str, Any]:
        """Everything that decides what the game does from here, but the day of its compilation."""
        lib = self._lib
        stack = ctypes.create_string_buffer(lib.getStackSize())
        lib.getStack(stack)
        top = lib.getSP()
        unused = 2 * top  # it grows downwards; what lies below is left over from earlier calls
        return {
            "memory": _dateless(self._memory()),
            "stack": bytes(unused) + stack.raw[unused:],
            "registers": [lib.getPC(), top, lib.getFP(), lib.getFrameCount(), lib.get_opcode()],
            "dice": [int(lib.getRngA()), lib.getRngInterval(), lib.getRngCounter(), self._seed],
            "text": lib.get_narrative_text(),
            "screen": self._screen_on.value,
            "halted": self._halted.value,
            "status": [number.value for number in self._status],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of the same story.

        Raises:
            SnapshotCorruptError: It cannot be a state of this story.
        """
        lib = self._lib
        memory, stack = bytearray(state["memory"]), state["stack"]
        counter, top, frame, frames, opcode = state["registers"]
        a, interval, count, seed = state["dice"]
        if (
            len(memory) != lib.getRAMSize()
            or len(stack) != lib.getStackSize()
            or not 0 < counter < self._story_size
            or not (0 <= top <= _STACK_WORDS and 0 <= frame <= _STACK_WORDS)
        ):
            raise SnapshotCorruptError("this is not a state of this Z-machine story")
        memory[_SERIAL], memory[_CHECKSUM] = self._dated[_SERIAL], self._dated[_CHECKSUM]
        lib.setRAM(bytes(memory))
        lib.setStack(stack)
        lib.setPC(counter)
        lib.setSP(top)
        lib.setFP(frame)
        lib.setFrameCount(frames)
        lib.set_opcode(opcode)
        lib.set_narrative_text(state["text"])
        self.seed(seed)
        lib.set_random_seed(seed)
        lib.setRng(a, interval, count)
        self._screen_on.value = state["screen"]
        self._halted.value = state["halted"]
        for number, value in zip(self._status, state["status"], strict=True):
            number.value = value

    def close(self) -> None:
        """Let go of the interpreter, which unloads its copy of the library."""
        del self.frotz, self._lib

    def _memory(self) -> bytes:
        memory = ctypes.create_string_buffer(self._lib.getRAMSize())
        self._lib.getRAM(memory)
        return memory.raw

    def _seal(self) -> list[Any]:
        """Take out of the interpreter what writes files, reads them, or undoes.

        Returns what has to stay alive for as long as the interpreter runs.
        """
        lib = self._lib
        version = ctypes.c_uint8.in_dll(lib, "h_version").value
        arguments = (ctypes.c_uint16 * 8).in_dll(lib, "zargs")
        select_stream = ctypes.cast(lib.z_output_stream, _INSTRUCTION)

        def fail() -> None:
            answer = lib.branch if version <= 3 else lib.store  # how an instruction says so
            answer(_FAILED)

        def offer_no_undo() -> None:
            lib.store(_UNDO_UNAVAILABLE)

        def select_no_file() -> None:
            if abs(ctypes.c_int16(arguments[0]).value) not in _STREAMS_TO_FILES:
                select_stream()

        def halt() -> None:  # without this, the interpreter runs on into whatever follows
            self._halted.value = 1

        replaced = [
            ("op0_opcodes", 5, fail),  # save, of old stories
            ("op0_opcodes", 6, fail),  # restore, of old stories
            ("op0_opcodes", 10, halt),  # quit
            ("ext_opcodes", 0, fail),  # save
            ("ext_opcodes", 1, fail),  # restore
            ("ext_opcodes", 9, offer_no_undo),  # save_undo
            ("ext_opcodes", 10, offer_no_undo),  # restore_undo
            ("var_opcodes", 51, select_no_file),  # output_stream
            ("var_opcodes", 52, _do_nothing),  # input_stream
        ]
        instructions = []
        for table, at, function in replaced:
            instruction = _INSTRUCTION(function)
            (_INSTRUCTION * (at + 1)).in_dll(lib, table)[at] = instruction
            instructions.append(instruction)
        return instructions


def open_story(path: Path) -> Machine:
    """A machine that plays a story file.

    Raises:
        MissingDependencyError: Jericho is not installed.
        DataNotFoundError: There is no such file.
        GameFileError: It is no story; over some such files the interpreter ends the process.
    """
    try:
        import jericho
    except ImportError as error:
        raise MissingDependencyError(
            'Z-machine games need Jericho: pip install "sandboxgym[jericho]"'
        ) from error
    check_story(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jericho.jericho.UnsupportedGameWarning)
        return Machine(jericho.FrotzEnv(str(path), seed=_SEEDS[0]))


def check_story(path: Path) -> None:
    """Refuse a file that is not a whole Z-machine story."""
    if not path.is_file():
        raise DataNotFoundError(f"no story file {path}: give the path of a .z3, .z5 or .z8 file")
    story = path.read_bytes()
    version = story[0] if len(story) >= _HEADER else None
    if version not in (1, 2, 3, 4, 5, 8):
        raise GameFileError(f"{path} is not a Z-machine story of a version that Jericho plays")
    unit = 2 if version <= 3 else 4 if version <= 5 else 8
    size = unit * int.from_bytes(story[0x1A:0x1C], "big")
    changing = int.from_bytes(story[0x0E:0x10], "big")
    if len(story) < size or not _HEADER <= changing <= len(story):
        raise GameFileError(f"{path} is damaged: it does not hold the memory that its header names")


def content_hash(story: Path) -> str:
    """A hash of a story file that does not depend on the day of its compilation."""
    return hashlib.blake2b(_dateless(story.read_bytes()), digest_size=16).hexdigest()


def seed_from(generator: np.random.Generator) -> int:
    """A seed for a game's dice.

    Jericho takes 0 for the clock, and the interpreter rolls no dice at all below 1000: there it
    counts upwards.
    """
    return int(generator.integers(*_SEEDS))


def _dateless(story: bytes) -> bytes:
    masked = bytearray(story)
    masked[_SERIAL] = bytes(6)
    masked[_CHECKSUM] = bytes(2)
    return bytes(masked)


def _do_nothing() -> None:
    """An instruction without an effect."""
