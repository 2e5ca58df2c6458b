"""Small games for the text worlds that ship without any, made offline by TextWorld's generator.

For tests, benchmarks and first steps: each environment here needs no argument and no file. A game
is made once (a few seconds) and kept in `$SANDBOXGYM_CACHE`, or `~/.cache/sandboxgym`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.text.jericho import JerichoEnv
from sandboxgym.sandboxes.text.textworld import TextWorldEnv

CACHE_VARIABLE = "SANDBOXGYM_CACHE"


def textworld_env(seed: int = 1) -> TextWorldEnv:
    """A small game of TextWorld."""
    return TextWorldEnv(textworld_game(seed))


def jericho_env(seed: int = 1) -> JerichoEnv:
    """The same game, played by Jericho alone."""
    return JerichoEnv(textworld_game(seed))


def textworld_game(seed: int = 1, *, rooms: int = 4, objects: int = 8, quest: int = 4) -> Path:
    """The story file of a game, with its description beside it; made where it is not there yet.

    The same arguments give the same game on every machine.

    Raises:
        MissingDependencyError: TextWorld is not installed.
    """
    folder = cache_folder() / "textworld" / f"{seed}-{rooms}-{objects}-{quest}"
    story = folder / "tw-game.z8"
    if not story.is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            _make(scratch / story.name, seed, rooms, objects, quest)
            scratch.rename(folder)
        except OSError:
            if not story.is_file():  # else another process was first
                raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return story


def cache_folder() -> Path:
    """Where made games are kept."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "sandboxgym")


def _make(story: Path, seed: int, rooms: int, objects: int, quest: int) -> None:
    try:
        import textworld
    except ImportError as error:
        raise MissingDependencyError(
            'making games needs TextWorld: pip install "sandboxgym[textworld]"'
        ) from error
    options: Any = textworld.GameOptions()
    options.seeds = seed
    options.nb_rooms, options.nb_objects, options.quest_length = rooms, objects, quest
    options.path = str(story)
    textworld.make(options)
