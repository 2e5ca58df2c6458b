"""The terminal program of `sandboxgym play`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, Input, OptionList, Static

from sandboxgym.cli.play.actions import Palette, expected
from sandboxgym.cli.play.outline import number, outline
from sandboxgym.cli.play.show import coloured, printable
from sandboxgym.cli.play.timeline import Moment, PlayError, Timeline
from sandboxgym.cli.play.widgets import Actions, Ask, Observation, Page, Tree
from sandboxgym.core.errors import SandboxGymError

MOST_TOLD = 50  # moments of a story in text


class PlayApp(App[None], inherit_bindings=False):
    """Play an environment with time travel.

    Args:
        timeline: The environment, at its first moment.
        name: What it is called.
    """

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[Any]] = [
        Binding("ctrl+z", "undo", "Undo", priority=True),
        Binding("ctrl+n", "name", "Snap", priority=True),
        Binding("ctrl+b", "fork", "Fork", priority=True),
        Binding("ctrl+t", "tree", "Tree", priority=True),
        Binding("ctrl+d", "diff", "Diff", priority=True),
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("ctrl+o", "load", "Load", priority=True),
        Binding("ctrl+r", "restart", "Reset", priority=True),
        Binding("ctrl+q", "quit", "Quit", priority=True),
        Binding("ctrl+c", "help_quit", show=False, priority=True),
    ]

    def __init__(self, timeline: Timeline, name: str) -> None:
        super().__init__()
        self.timeline = timeline
        self.title = name
        env = timeline.env
        meanings = getattr(env.unwrapped, "get_action_meanings", None)
        self.palette = Palette(env.action_space, meanings() if meanings else None)

    def compose(self) -> ComposeResult:
        """Observation and actions to the left, the tree to the right, what was said below."""
        yield Static(id="title", markup=False)
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield Observation(id="observation")
                yield Actions(id="actions")
            yield Tree(id="tree")
        yield Static(id="message", markup=False)
        yield Static(id="status", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a dialogue is open, its keys alone work."""
        return len(self.screen_stack) == 1 or action in ("quit", "help_quit")

    def on_mount(self) -> None:
        """Show the first moment."""
        self.query_one("#actions Input", Input).focus()
        self._say("")
        self._refresh()

    @on(Actions.Taken)
    def _taken(self, event: Actions.Taken) -> None:
        self._try(lambda: self.timeline.step(event.action))

    @on(Actions.Typed)
    def _typed(self, event: Actions.Typed) -> None:
        self._try(lambda: self.timeline.step(self.palette.parse(event.text)))

    @on(OptionList.OptionSelected, "#tree")
    def _pointed(self, event: OptionList.OptionSelected) -> None:
        moment = self.query_one(Tree).moment_at(event.option_index)
        self._try(lambda: self.timeline.go(moment))

    def action_undo(self) -> None:
        """Go back one step."""
        self._try(self.timeline.undo)

    def action_tree(self) -> None:
        """Move between the tree and the actions."""
        tree = self.query_one(Tree)
        if tree.has_focus:
            tree.point_here()
            self.query_one("#actions Input", Input).focus()
        else:
            tree.focus()

    @work
    async def action_name(self) -> None:
        """Give the snapshot of a moment a name."""
        moment = self._pointed_moment()
        answer = await self.push_screen_wait(Ask(f"Name of {_spelled(moment)}", moment.name))
        if answer is not None:
            moment.name = answer.strip()
            self._try(lambda: None, f"snapshot {moment.snapshot.digest[:8]} of {_spelled(moment)}")

    @work
    async def action_fork(self) -> None:
        """Start a branch at a moment."""
        moment = self._pointed_moment()
        free = self.timeline.free_name()
        answer = await self.push_screen_wait(Ask(f"Fork at {_spelled(moment)}: its name", free))
        if answer is not None:
            self._try(lambda: self.timeline.fork(moment, answer), "a new branch starts here")

    @work
    async def action_save(self) -> None:
        """Write a moment to a file."""
        moment = self._pointed_moment()
        stem = (self.title or "").rpartition("/")[2].replace(":", "-")
        question = Ask(f"Save {_spelled(moment)} to", f"{stem}-step{moment.step}.snap")
        answer = await self.push_screen_wait(question)
        if answer:
            file = Path(answer).expanduser()
            self._try(lambda: self.timeline.save(file, moment), f"saved to {file}")

    @work
    async def action_load(self) -> None:
        """Go on from a file."""
        answer = await self.push_screen_wait(Ask("Load a snapshot from"))
        if answer:
            file = Path(answer).expanduser()
            self._try(lambda: self.timeline.load(file), f"restored from {file}")

    @work
    async def action_restart(self) -> None:
        """Start another episode."""
        answer = await self.push_screen_wait(Ask("Start an episode with the seed", "0"))
        if answer is not None:
            self._try(lambda: self.timeline.reset(_seed(answer)), "a new episode")

    def action_diff(self) -> None:
        """Compare the moment under the highlight with the present one, or this with the last."""
        here, there = self.timeline.here, self._pointed_moment()
        if here is there:
            if here.parent is None:
                self._say("point at another moment in the tree to compare it with this one", "bad")
                return
            there = here.parent
        title = f"{_spelled(there)} (-)  and  {_spelled(here)} (+)"
        self.push_screen(Page(title, self._comparison(there, here)))

    def _comparison(self, left: Moment, right: Moment) -> Text:
        found = self.timeline.compare(left, right)
        text = Text()
        text.append("Observation\n", "bold")
        for line in found.observation or ["equal"]:
            text.append(f"{printable(line)}\n", {"-": "red", "+": "green"}.get(line[0], ""))
        text.append("\nSnapshot, by path\n", "bold")
        for difference in found.state:
            text.append(f"{printable(difference.path)}\n")
            text.append(f"  - {printable(difference.left)}\n", "red")
            text.append(f"  + {printable(difference.right)}\n", "green")
        text.append("" if found.state else "equal\n")
        return text

    def _pointed_moment(self) -> Moment:
        return self.query_one(Tree).pointed or self.timeline.here

    def _try(self, do: Callable[[], Any], done: str = "") -> None:
        """Do something that may be refused; the player reads why, and goes on."""
        try:
            do()
        except (SandboxGymError, OSError) as error:
            self._say(f"{type(error).__name__}: {error}", "bad")
        else:
            self._say(done)
        self._refresh()

    def _say(self, text: str, style: str = "good") -> None:
        message = self.query_one("#message", Static)
        message.update(Text(printable(text)))
        message.set_classes(style)
        message.display = bool(text)

    def _refresh(self) -> None:
        timeline = self.timeline
        here = timeline.here
        self.query_one(Observation).show(self._seen(), self._rendering())
        self._offer(here)
        self.query_one(Tree).show(outline(timeline, self.palette.spell), here)
        self.query_one("#title", Static).update(Text(f"{printable(self.title)}  {self._where()}"))
        self.query_one("#status", Static).update(Text(self._status()))

    def _offer(self, here: Moment) -> None:
        actions = self.query_one(Actions)
        if here.last.ended:
            actions.offer([], "the episode has ended: undo, or choose a moment in the tree")
            return
        choices = self.palette.choices(here.last.info)
        typed = f"type {expected(self.palette.space)}"
        actions.offer(choices, f"filter, or {typed}" if choices else typed)

    def _seen(self) -> Any:
        """The present observation; where it is text, with what led to it."""
        here = self.timeline.here
        if not isinstance(here.last.obs, str):
            return here.last.obs
        told = Text()
        for moment in here.path()[-MOST_TOLD:]:
            if moment.parent is not None:
                told.append(f"> {printable(self.palette.spell(moment.action))}\n", "bold cyan")
            told.append_text(coloured(str(moment.last.obs).strip())).append("\n\n")
        told.rstrip()
        return told

    def _where(self) -> str:
        branch = self.timeline.branch
        return "the next step starts a branch" if branch is None else f"on {branch}"

    def _status(self) -> str:
        timeline, last = self.timeline, self.timeline.here.last
        parts = [
            f"step {timeline.here.step}",
            f"reward {number(last.reward)}",
            f"return {number(timeline.here.total)}",
            timeline.here.start.origin,
            timeline.mechanism,
            f"snap {_time(timeline.snapshot_seconds)}",
        ]
        if timeline.restore_seconds is not None:
            parts.append(f"restore {_time(timeline.restore_seconds)}")
        if last.ended:
            parts.insert(0, "TERMINATED" if last.terminated else "TRUNCATED")
        return " · ".join(parts)

    def _rendering(self) -> Any:
        env = self.timeline.env
        if env.render_mode not in ("ansi", "rgb_array"):
            return None
        try:
            return env.render()
        except Exception as error:  # noqa: BLE001 - whatever it is, the player is told
            return f"(render failed: {type(error).__name__}: {error})"


def _spelled(moment: Moment) -> str:
    return f"step {moment.step}" + (f" ({moment.name})" if moment.name else "")


def _seed(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise PlayError(f"{text!r} is no seed: type a whole number, or nothing") from None


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.0f} µs"
