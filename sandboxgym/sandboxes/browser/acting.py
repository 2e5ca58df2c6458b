"""Doing what an action says, with a session's active tab.

The mouse and the keyboard are Chromium's own, so what a page sees are trusted events. Time does not
pass here: `Session.perform` lets it, once this is done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sandboxgym.sandboxes.browser import keys
from sandboxgym.sandboxes.browser.actions import Action
from sandboxgym.sandboxes.browser.errors import NavigationRefusedError, ProtocolError
from sandboxgym.sandboxes.browser.scripts import script
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.tab import Tab

_BUTTON_BITS = {"left": 1, "right": 2, "middle": 4}
_DONE = "done"

Doing = Callable[["Actor", Action, dict[str, int]], Awaitable[None]]


class ImpossibleActionError(Exception):
    """The action cannot be done as things are; its text becomes `last_action_error`."""


class Actor:
    """What the hands of a session can do."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.hands = session.hands

    @property
    def tab(self) -> Tab:
        """The tab that actions go to."""
        return self.session.active

    @property
    def modifiers(self) -> int:
        """Bits of the modifier keys that are held down."""
        return sum(keys.MODIFIER_BITS.get(name, 0) for name in set(self.hands.held))

    async def do(self, action: Action, nodes: dict[str, int]) -> None:
        """Do an action.

        Args:
            action: What to do.
            nodes: The backend node id of each element that it names, by the argument's name.

        Raises:
            ImpossibleActionError: It cannot be done.
        """
        doing = _DOING[action.name]
        try:
            if doing in _GOING:
                await doing(self, action, nodes)
                return
            with self.tab.traffic.no_document():  # all of it is done to one document
                await doing(self, action, nodes)
        except keys.UnknownKeyError as error:
            raise ImpossibleActionError(str(error)) from None

    # The mouse.

    async def move(self, x: float, y: float) -> None:
        """Move the mouse, with the frame in which the page sees it."""
        self.hands.x, self.hands.y = x, y
        await self.tab.mouse(
            "mouseMoved", x, y, buttons=self.hands.buttons, modifiers=self.modifiers
        )

    async def press_button(self, button: str, clicks: int = 1, modifiers: int = 0) -> None:
        """Press a mouse button where the mouse is."""
        self.hands.buttons |= _BUTTON_BITS[button]
        await self._button("mousePressed", button, clicks, modifiers)

    async def release_button(self, button: str, clicks: int = 1, modifiers: int = 0) -> None:
        """Let a mouse button go."""
        self.hands.buttons &= ~_BUTTON_BITS[button]
        await self._button("mouseReleased", button, clicks, modifiers)

    async def _button(self, kind: str, button: str, clicks: int, modifiers: int) -> None:
        await self.session.load_parts()
        await self.tab.mouse(
            kind,
            self.hands.x,
            self.hands.y,
            button=button,
            buttons=self.hands.buttons,
            clickCount=clicks,
            modifiers=modifiers | self.modifiers,
        )

    async def click(
        self, x: float, y: float, button: str = "left", times: int = 1, modifiers: int = 0
    ) -> None:
        """Click at a place, once or more often."""
        await self.move(x, y)
        for clicks in range(1, times + 1):
            await self.press_button(button, clicks, modifiers)
            await self.release_button(button, clicks, modifiers)

    async def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag from one place to another; what the page declares draggable is dragged as such."""
        cdp = self.tab.cdp
        begun: list[dict[str, Any]] = []
        stop_listening = cdp.on("Input.dragIntercepted", lambda params: begun.append(params))
        await cdp.send("Input.setInterceptDrags", enabled=True)
        try:
            await self.move(*start)
            await self.press_button("left")
            await self.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
            await self.move(*end)
            for kind in ("dragEnter", "dragOver", "drop") if begun else ():
                await cdp.send(
                    "Input.dispatchDragEvent", type=kind, x=end[0], y=end[1], data=begun[0]["data"]
                )
            await self.release_button("left")
        finally:
            stop_listening()
            await cdp.send("Input.setInterceptDrags", enabled=False)

    # The keyboard.

    async def key_down(self, key: keys.Key) -> None:
        """Press a key and hold it."""
        if key.name not in self.hands.held:
            self.hands.held.append(key.name)
        await self.tab.key(**_key(key, "keyDown", self.modifiers))

    async def key_up(self, key: keys.Key) -> None:
        """Let a key go."""
        if key.name in self.hands.held:
            self.hands.held.remove(key.name)
        await self.tab.key(**_key(key, "keyUp", self.modifiers))

    async def press_keys(self, text: str) -> None:
        """Press a combination such as "Control+a", and let it go."""
        pressed = keys.combination(text)
        for key in pressed:
            await self.key_down(key)
        for key in reversed(pressed):
            await self.key_up(key)

    async def type_text(self, text: str) -> None:
        """Type a text, key by key."""
        for character in text:
            try:
                key = keys.key(character)
            except keys.UnknownKeyError:  # no key of this keyboard has it
                await self.insert(character)
                continue
            await self.key_down(key)
            await self.key_up(key)

    async def insert(self, text: str) -> None:
        """Put a text in at once, as an input method does."""
        await self.tab.cdp.send("Input.insertText", text=text)

    # Elements.

    async def place_of(self, node: int) -> tuple[float, float]:
        """The middle of an element, after it was scrolled into view."""
        cdp = self.tab.cdp
        try:
            await cdp.send("DOM.scrollIntoViewIfNeeded", backendNodeId=node)
            found = await cdp.send("DOM.getContentQuads", backendNodeId=node)
        except ProtocolError as error:
            raise ImpossibleActionError(f"the element cannot be seen ({error.reason})") from None
        for quad in found["quads"]:
            xs, ys = quad[0::2], quad[1::2]
            if max(xs) - min(xs) > 0 and max(ys) - min(ys) > 0:
                # Whole pixels: the width of a text may differ in the last bits from time to time.
                return float(round(sum(xs) / 4)), float(round(sum(ys) / 4))
        raise ImpossibleActionError("the element cannot be seen: it has no area")

    async def tell(self, node: int, what: str, argument: Any = None) -> str:
        """Call the helper script on an element.

        Raises:
            ImpossibleActionError: It says what is wrong.
        """
        cdp = self.tab.cdp
        try:
            found = await cdp.send(
                "DOM.resolveNode",
                backendNodeId=node,
                executionContextId=await self._world_of(node),
            )
        except ProtocolError as error:
            raise ImpossibleActionError(f"the element is gone ({error.reason})") from None
        if "objectId" not in found["object"]:  # null: the document is another by now
            raise ImpossibleActionError("the element is gone")
        called = await cdp.send(
            "Runtime.callFunctionOn",
            functionDeclaration=script("acting.js"),
            objectId=found["object"]["objectId"],
            arguments=[{"value": what}, {"value": argument}],
            returnByValue=True,
            userGesture=True,
        )
        said = str(called["result"].get("value", ""))
        if said not in ("", _DONE, "yes", "no"):
            raise ImpossibleActionError(said)
        return said

    async def _world_of(self, node: int) -> int:
        described = await self.tab.cdp.send("DOM.describeNode", backendNodeId=node)
        return await self.tab.isolated_world(described["node"].get("frameId"))

    async def write(self, node: int, text: str) -> None:
        """Replace the text of a field."""
        if await self.tell(node, "select text", text) == _DONE:
            return
        if text:
            await self.insert(text)
        else:
            await self.tell(node, "delete selection")


def _key(key: keys.Key, kind: str, modifiers: int) -> dict[str, Any]:
    event = key.event(kind, modifiers)
    event["kind"] = event.pop("type")
    return event


async def _noop(actor: Actor, action: Action, _: dict[str, int]) -> None:
    session = actor.session
    # `Session.perform` lets `action_ms` pass after this, as after any action.
    await session.wait(max(0.0, action["wait_ms"] - session.options.action_ms))


async def _goto(actor: Actor, action: Action, _: dict[str, int]) -> None:
    try:
        await actor.session.navigate(action["url"])
    except ProtocolError as error:
        raise ImpossibleActionError(f"{action['url']!r} cannot be opened: {error.reason}") from None
    except NavigationRefusedError as error:
        raise ImpossibleActionError(str(error)) from None


def _through_history(step: int) -> Doing:
    async def go(actor: Actor, action: Action, _: dict[str, int]) -> None:
        if not await actor.tab.go(step):
            raise ImpossibleActionError(f"there is no page to {action.name.replace('_', ' ')} to")

    return go


async def _new_tab(actor: Actor, _action: Action, _: dict[str, int]) -> None:
    await actor.session.new_tab()


async def _tab_focus(actor: Actor, action: Action, _: dict[str, int]) -> None:
    tabs = actor.session.tabs
    if action["index"] >= len(tabs):
        raise ImpossibleActionError(f"there is no tab {action['index']}; there are {len(tabs)}")
    await actor.session.focus(tabs[action["index"]])


async def _tab_close(actor: Actor, _action: Action, _: dict[str, int]) -> None:
    await actor.session.close_tab(actor.tab)


def _clicking(times: int) -> Doing:
    async def click(actor: Actor, action: Action, nodes: dict[str, int]) -> None:
        x, y = await actor.place_of(nodes["bid"])
        held = sum(keys.MODIFIER_BITS[name] for name in set(action["modifiers"]))
        await actor.click(x, y, action["button"], times, held)

    return click


def _clicking_at(times: int) -> Doing:
    async def click(actor: Actor, action: Action, _: dict[str, int]) -> None:
        await actor.click(action["x"], action["y"], action["button"], times)

    return click


async def _hover(actor: Actor, _action: Action, nodes: dict[str, int]) -> None:
    await actor.move(*await actor.place_of(nodes["bid"]))


async def _focus(actor: Actor, _action: Action, nodes: dict[str, int]) -> None:
    await actor.tell(nodes["bid"], "focus")


async def _fill(actor: Actor, action: Action, nodes: dict[str, int]) -> None:
    await actor.write(nodes["bid"], action["value"])


async def _clear(actor: Actor, _action: Action, nodes: dict[str, int]) -> None:
    await actor.write(nodes["bid"], "")


def _checking(wanted: str) -> Doing:
    async def check(actor: Actor, _action: Action, nodes: dict[str, int]) -> None:
        if await actor.tell(nodes["bid"], "checked") == wanted:
            return
        await actor.click(*await actor.place_of(nodes["bid"]))
        if await actor.tell(nodes["bid"], "checked") != wanted:
            raise ImpossibleActionError("a click did not change it")

    return check


async def _select(actor: Actor, action: Action, nodes: dict[str, int]) -> None:
    await actor.tell(nodes["bid"], "choose", action["options"])


async def _press(actor: Actor, action: Action, nodes: dict[str, int]) -> None:
    keys.combination(action["key"])  # before the focus moves
    await actor.tell(nodes["bid"], "focus")
    await actor.press_keys(action["key"])


async def _upload(actor: Actor, action: Action, nodes: dict[str, int]) -> None:
    options = actor.session.options
    file = {"name": action["name"], "content": action["content"], "time": options.epoch_ms}
    await actor.tell(nodes["bid"], "give file", file)


async def _drag_and_drop(actor: Actor, _action: Action, nodes: dict[str, int]) -> None:
    start, end = await actor.place_of(nodes["from_bid"]), await actor.place_of(nodes["to_bid"])
    start = await actor.place_of(nodes["from_bid"]) if start != end else start
    await actor.drag(start, end)


async def _drag_between(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.drag((action["from_x"], action["from_y"]), (action["to_x"], action["to_y"]))


async def _scroll(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.tab.mouse(
        "mouseWheel",
        actor.hands.x,
        actor.hands.y,
        deltaX=action["delta_x"],
        deltaY=action["delta_y"],
        modifiers=actor.modifiers,
    )


async def _mouse_move(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.move(action["x"], action["y"])


async def _mouse_down(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.move(action["x"], action["y"])
    await actor.press_button(action["button"])


async def _mouse_up(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.move(action["x"], action["y"])
    await actor.release_button(action["button"])


async def _keyboard_press(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.press_keys(action["key"])


async def _keyboard_down(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.key_down(keys.key(action["key"]))


async def _keyboard_up(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.key_up(keys.key(action["key"]))


async def _keyboard_type(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.type_text(action["text"])


async def _insert_text(actor: Actor, action: Action, _: dict[str, int]) -> None:
    await actor.insert(action["text"])


_DOING: dict[str, Doing] = {
    "noop": _noop,
    "goto": _goto,
    "go_back": _through_history(-1),
    "go_forward": _through_history(1),
    "new_tab": _new_tab,
    "tab_focus": _tab_focus,
    "tab_close": _tab_close,
    "click": _clicking(1),
    "dblclick": _clicking(2),
    "hover": _hover,
    "focus": _focus,
    "fill": _fill,
    "clear": _clear,
    "check": _checking("yes"),
    "uncheck": _checking("no"),
    "select_option": _select,
    "press": _press,
    "upload_file": _upload,
    "drag_and_drop": _drag_and_drop,
    "scroll": _scroll,
    "mouse_move": _mouse_move,
    "mouse_click": _clicking_at(1),
    "mouse_dblclick": _clicking_at(2),
    "mouse_down": _mouse_down,
    "mouse_up": _mouse_up,
    "mouse_drag_and_drop": _drag_between,
    "keyboard_press": _keyboard_press,
    "keyboard_down": _keyboard_down,
    "keyboard_up": _keyboard_up,
    "keyboard_type": _keyboard_type,
    "keyboard_insert_text": _insert_text,
}
_GOING = frozenset({_goto, _noop})  # in which documents come
