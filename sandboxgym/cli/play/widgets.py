"""The parts of the screen: observation, actions, tree, and the two dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from sandboxgym.cli.play.actions import Choice
from sandboxgym.cli.play.outline import Line
from sandboxgym.cli.play.show import observation, printable
from sandboxgym.cli.play.timeline import Moment


class Observation(VerticalScroll):
    """What the environment says, and its rendering where it has one."""

    BORDER_TITLE = "Observation"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._shown: list[Any] = []

    def compose(self) -> ComposeResult:
        """One text that may be longer than the screen."""
        yield Static(markup=False)

    def show(self, obs: Any, rendering: Any) -> None:
        """Show an observation and, below it, a rendering (text or a picture, or None).

        A story in text is shown from its end.
        """
        self._shown = [obs] if rendering is None else [obs, rendering]
        self._draw()
        if isinstance(obs, Text):
            self.scroll_end(animate=False)
        else:
            self.scroll_home(animate=False)

    def on_resize(self, event: events.Resize) -> None:
        """Draw pictures anew, to the new width."""
        self._draw()

    def _draw(self) -> None:
        room = self.scrollable_content_region
        height = room.height if len(self._shown) == 1 else room.height - 2
        parts = [observation(part, room.width, height) for part in self._shown]
        self.query_one(Static).update(Text("\n\n").join(parts))


class Actions(Vertical):
    """A list of actions, and a line that filters it or takes an action in free text."""

    BORDER_TITLE = "Actions"
    BINDINGS = [
        Binding("up", "highlight(-1)", show=False),
        Binding("down", "highlight(1)", show=False),
        Binding("pageup", "highlight(-5)", show=False),
        Binding("pagedown", "highlight(5)", show=False),
    ]

    class Taken(Message):
        """An action of the list was chosen."""

        def __init__(self, action: Any) -> None:
            super().__init__()
            self.action = action

    class Typed(Message):
        """Text was given as an action."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._choices: list[Choice] = []
        self._matches: list[Choice] = []

    def compose(self) -> ComposeResult:
        """The line, and the list below it."""
        yield Input()
        listed = OptionList(markup=False)
        listed.can_focus = False  # the keys go to the line, which moves the highlight
        yield listed

    def offer(self, choices: Sequence[Choice], hint: str) -> None:
        """Offer these actions, with the one that was highlighted before highlighted again.

        Args:
            choices: The actions.
            hint: What the empty line says.
        """
        listed = self.query_one(OptionList)
        before = self._label(listed.highlighted)
        self._choices = list(choices)
        line = self.query_one(Input)
        if line.value:
            line.value = ""
        line.placeholder = hint
        self._filter("")
        labels = [choice.label for choice in self._matches]
        if before in labels:
            listed.highlighted = labels.index(before)

    def action_highlight(self, by: int) -> None:
        """Move the highlight."""
        listed = self.query_one(OptionList)
        if listed.option_count:
            now = listed.highlighted or 0
            listed.highlighted = min(max(now + by, 0), listed.option_count - 1)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._filter(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        highlighted = self.query_one(OptionList).highlighted
        self._take(0 if highlighted is None else highlighted)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take(event.option_index)

    def _take(self, index: int) -> None:
        if index < len(self._matches):
            self.post_message(self.Taken(self._matches[index].action))
        else:
            self.post_message(self.Typed(self.query_one(Input).value))

    def _filter(self, text: str) -> None:
        """List the actions that hold every word typed, and last the text itself."""
        words = text.casefold().split()
        found = [c for c in self._choices if all(w in c.label.casefold() for w in words)]
        self._matches = sorted(found, key=lambda choice: choice.label != text.strip())
        rows = [Text(printable(choice.label)) for choice in self._matches]
        if words and not any(choice.label == text.strip() for choice in found):
            rows.append(Text.assemble(("as typed: ", "italic dim"), printable(text)))
        listed = self.query_one(OptionList)
        listed.clear_options()
        listed.add_options([Option(_one_row(row)) for row in rows])
        listed.highlighted = 0 if rows else None

    def _label(self, index: int | None) -> str | None:
        if index is None or index >= len(self._matches):
            return None
        return self._matches[index].label


class Tree(OptionList):
    """The tree of moments."""

    BORDER_TITLE = "Moments"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(markup=False, **kwargs)
        self._outline: list[Line] = []
        self._here: Moment | None = None

    @property
    def pointed(self) -> Moment | None:
        """The moment under the highlight."""
        return None if self.highlighted is None else self.moment_at(self.highlighted)

    def moment_at(self, index: int) -> Moment:
        """The moment of a row."""
        return self._outline[index].moment

    def show(self, lines: Sequence[Line], here: Moment) -> None:
        """Show the tree, with the highlight on the present moment."""
        self._outline = list(lines)
        self._here = here
        self._draw()
        self.point_here()

    def point_here(self) -> None:
        """Put the highlight on the present moment."""
        for index, line in enumerate(self._outline):
            if line.moment is self._here:
                self.highlighted = index

    def on_resize(self, event: events.Resize) -> None:
        """Cut the rows anew, to the new width."""
        pointed = self.highlighted
        self._draw()
        self.highlighted = pointed

    def _draw(self) -> None:
        width = self.scrollable_content_region.width - 1
        rows = [_drawn(line, line.moment is self._here, width) for line in self._outline]
        self.clear_options()
        self.add_options([Option(row) for row in rows])


class Ask(ModalScreen["str | None"]):
    """Asks for a line of text; gives None where the player thinks better of it."""

    BINDINGS = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, question: str, text: str = "") -> None:
        super().__init__()
        self._question = question
        self._text = text

    def compose(self) -> ComposeResult:
        """The question and a line for the answer."""
        with Vertical() as box:
            box.border_title = self._question
            box.border_subtitle = "Enter: yes   Escape: no"
            yield Input(self._text)

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)


class Page(ModalScreen[None]):
    """Shows a text until a key closes it."""

    BINDINGS = [Binding("escape,enter,q", "dismiss", "Close")]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """The text, in a box that scrolls."""
        with VerticalScroll() as box:
            box.border_title = self._title
            box.border_subtitle = "Escape: close"
            yield Static(self._text, markup=False)


def _drawn(line: Line, here: bool, width: int) -> Text:
    """A row of the tree; where it is too long, the action is cut before the notes are."""
    notes = f"  {printable(line.notes)}" if line.notes else ""
    text = Text(printable(line.text), "bold reverse" if here else "")
    text.truncate(max(8, width - cell_len(line.rail) - cell_len(notes)), overflow="ellipsis")
    return _one_row(Text.assemble((line.rail, "dim"), text, (notes, "italic")))


def _one_row(text: Text) -> Text:
    """Without line breaks, which the style sheet cannot keep from making a second row."""
    text.plain = text.plain.replace("\n", " ").replace("\t", " ")
    return text
