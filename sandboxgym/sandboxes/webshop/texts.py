"""Pages as text: what an agent without a browser reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sandboxgym.sandboxes.webshop.pages import Page

SEPARATOR = " [SEP] "
_HTML_SPACE = " \n\t\f\r"


def as_text(page: Page) -> str:
    """All texts of a page in one line."""
    return joined(e.source for e in page.elements)


def joined(texts: Iterable[str]) -> str:
    """Texts of a page in one line, as far as a reader of its HTML would find them."""
    return SEPARATOR.join(shown.strip() for text in texts for shown in _shown(text))


def as_rich_text(page: Page, visited: Collection[str]) -> str:
    """A text a line, with marks around what can be clicked, and what was already clicked.

    Args:
        page: The page.
        visited: Products that were looked at since the last return to the search page.
    """
    chosen = dict(page.view.options)
    lines: list[str] = []
    said: list[str] = []
    option = ""
    for element in page.elements:
        option = element.text if element.kind == "option_name" else option
        for text in _shown(element.source):
            if element.kind == "button":
                lines.append(f"[button] {text} [button_]")
            elif element.kind == "option":
                clicked = chosen.get(option) == element.text
                lines.append(f"  {_marked(text, clicked)}")
                if clicked:
                    said.insert(0, f"You have clicked {text}.")
            elif element.kind == "asin":
                lines.append(f"\n{_marked(text, element.text in visited)}")
            else:
                lines.append(text)
    return "".join(f"{line}\n" for line in said + lines)


def _marked(text: str, clicked: bool) -> str:
    mark = "clicked button" if clicked else "button"
    return f"[{mark}] {text} [{mark}_]"


def _shown(text: str) -> list[str]:
    """What a reader of the HTML would find of a text.

    There is no node for an empty text, and one of nothing but space is as good as one space; where
    there is a line break in it, it is layout and no text.
    """
    if not text:
        return []
    if text.strip(_HTML_SPACE):
        return [text]
    return [] if "\n" in text else [" "]
