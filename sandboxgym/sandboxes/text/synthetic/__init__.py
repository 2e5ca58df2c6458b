"""Generated households in the format of ALFWorld: unlimited games, no download.

:func:`generate_game` makes one game from a seed, :func:`split_game` numbers the games of the usual
three splits, :func:`write_games` lays them out on disk like the real data. A game is made in this
order: ``scenes`` draws the floor plan, ``furnish`` fills it and gives the assignment,
``walkthrough`` solves it, ``problem`` writes it down. ``rooms`` is the catalogue of what there is.
"""

from sandboxgym.sandboxes.text.synthetic.difficulty import PRESETS, Difficulty
from sandboxgym.sandboxes.text.synthetic.generate import GameFile, generate_game, split_game
from sandboxgym.sandboxes.text.synthetic.scenes import SPLITS
from sandboxgym.sandboxes.text.synthetic.tasks import TASK_TYPES
from sandboxgym.sandboxes.text.synthetic.write import write_game, write_games

__all__ = [
    "PRESETS",
    "SPLITS",
    "TASK_TYPES",
    "Difficulty",
    "GameFile",
    "generate_game",
    "split_game",
    "write_game",
    "write_games",
]
