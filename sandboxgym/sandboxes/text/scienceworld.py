"""`sandboxgym/ScienceWorld-v0`: elementary science experiments in a simulated house."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sandboxgym.core.errors import InvalidOptionsError, MissingDependencyError
from sandboxgym.sandboxes.text import dialogue
from sandboxgym.sandboxes.text.java_game import NO_LIMIT, JavaGameEnv


class ScienceWorldEnv(JavaGameEnv):
    """ScienceWorld's tasks: boil, grow, measure, mix, find, and so on; 30, with variations.

    The observation is what the simulator answers; the action is a command. The reward is the gain
    in score, in points out of 100. The episode terminates when the task is completed or failed;
    `gymnasium.make` adds the usual limit of 100 steps.

    Each info holds `task_description`, `look` and `inventory` (texts), `score`, `moves`, `won`,
    `task`, `variation` and, unless they are turned off, `admissible_commands` (sorted).

    `reset(seed=...)` draws a variation of the split, and a task where none is set.
    `reset(options={"task": name, "variation": n})` chooses; each may be left out.

    A fork plays the commands again in a Java machine of its own. Listing the admissible commands
    takes most of the time of a step.

    Args:
        task: A task's name, such as "boil"; None draws one at each reset.
        split: "train", "dev" or "test": which variations are drawn.
        simplifications: ScienceWorld's names, with commas between: "easy" for all of them.
        admissible_commands: Whether to list them in each info.
        render_mode: "ansi", or None.

    Raises:
        MissingDependencyError: ScienceWorld or Java is not installed.
        ValueError: There is no such task, split or simplification.
    """

    def __init__(
        self,
        task: str | None = None,
        split: Literal["train", "dev", "test"] = "train",
        *,
        simplifications: str = "",
        admissible_commands: bool = True,
        render_mode: Literal["ansi"] | None = None,
    ) -> None:
        super().__init__(split, render_mode)
        self.tasks = _tasks()
        if task is not None and task not in self.tasks:
            raise ValueError(f"task={task!r}: choose among {', '.join(self.tasks)}")
        self.task = task
        self.simplifications = simplifications
        self.lists_commands = admissible_commands
        self._fixed: dict[str, Any] = {}
        self._score = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a task."""
        super().reset(seed=seed)
        task, variation = self._chosen(options or {})
        library = self.library
        library.load(task, variation, self.simplifications)
        library.server.reset()
        self._text = str(library.server.step("look around"))
        self._score = self._points()
        self._fixed = {
            "task": task,
            "variation": variation,
            "task_description": str(library.taskdescription()),
        }
        self._seen = ""
        info = self._info()
        self._saw(self._text, info)
        return self._text, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give a command."""
        command = dialogue.command_of(action)
        server, before = self.library.server, self._score
        self._text = str(server.step(command))
        self._score = self._points()
        reward = float(self._score - before)
        ended = bool(server.getCompleted()) or self._score < 0
        info = self._info()
        self._saw(command, self._text, reward, ended, info)
        return self._text, reward, ended, False, info

    def _launch(self) -> Any:
        import scienceworld

        return scienceworld.ScienceWorldEnv("", envStepLimit=NO_LIMIT)

    def _tidy(self, library: Any) -> None:
        library._obj_tree_tempdir.cleanup()

    def _points(self) -> int:
        return round(100 * float(self.library.server.getScore()))

    def _info(self) -> dict[str, Any]:
        library = self.library
        info = {
            **self._fixed,
            "look": str(library.look()),
            "inventory": str(library.inventory()),
            "score": self._score,
            "moves": int(library.get_num_moves()),
            "won": self._score == 100,
        }
        if self.lists_commands:
            valid = library.get_valid_action_object_combinations()
            info["admissible_commands"] = sorted(map(str, valid))
        return info

    def _chosen(self, options: dict[str, Any]) -> tuple[str, int]:
        unknown = set(options) - {"task", "variation"}
        task = options.get("task", self.task)
        if unknown or task not in (None, *self.tasks):
            raise InvalidOptionsError(
                f"options={options}: give {{'task': name, 'variation': n}}, either or both, with "
                f"a task out of {', '.join(self.tasks)}"
            )
        if task is None:
            task = self.tasks[int(self.np_random.integers(len(self.tasks)))]
        if "variation" not in options:
            return task, self._drawn(task)
        variation, count = options["variation"], self.library.get_max_variations(task)
        if isinstance(variation, bool) or not isinstance(variation, int | np.integer):
            raise InvalidOptionsError(f"options variation={variation!r}: give an int")
        if not 0 <= variation < count:
            raise InvalidOptionsError(
                f"options variation={variation!r}: {task} has those from 0 to {count - 1}"
            )
        return task, int(variation)

    def _drawn(self, task: str) -> int:
        library = self.library
        library.load(task, 0, self.simplifications)  # it knows the splits of the loaded task only
        variations = {
            "train": library.get_variations_train,
            "dev": library.get_variations_dev,
            "test": library.get_variations_test,
        }[self.split]()
        return int(variations[int(self.np_random.integers(len(variations)))])


def _tasks() -> list[str]:
    try:
        from scienceworld.constants import ID2TASK
    except ImportError as error:
        raise MissingDependencyError(
            'ScienceWorld is not installed: pip install "sandboxgym[scienceworld]"'
        ) from error
    return list(ID2TASK.values())
