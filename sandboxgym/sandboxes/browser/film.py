"""An episode as a filmstrip, a page to look through, or as a short moving picture.

film = Film()
film.shoot(env, "reset")
for action in actions:
    obs, reward, *_ = env.step(action)
    film.shoot(env, action, note=obs["last_action_error"])
film.save("episode.html")      # or .webp, .gif, .png (animated), which need Pillow
"""

from __future__ import annotations

import base64
import html
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.browser.env import BrowserEnv

MOVING = (".webp", ".gif", ".png")
_FRAME_MS = 800


@dataclass(frozen=True)
class Shot:
    """One picture of a film.

    Attributes:
        png: What was seen.
        caption: What was done before.
        note: What there is to say about it, or "".
        url: Where it was.
    """

    png: bytes
    caption: str
    note: str
    url: str


class Film:
    """Pictures of an episode. Taking them changes nothing in it."""

    def __init__(self) -> None:
        self.shots: list[Shot] = []

    def shoot(self, env: Any, caption: str, note: str = "") -> None:
        """Take a picture of what the active tab shows.

        Args:
            env: A `BrowserEnv`, wrapped or not.
            caption: What was done last.
            note: What there is to say about it.
        """
        browser: BrowserEnv = env.unwrapped
        self.shots.append(Shot(browser.screenshot(), caption, note, browser.url))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the film: a page for .html, a moving picture for .webp, .gif and .png.

        Raises:
            ValueError: Nothing was shot, or the name ends otherwise.
            MissingDependencyError: A moving picture needs Pillow, which is not installed.
        """
        target = Path(path)
        if not self.shots:
            raise ValueError("nothing was shot yet: call shoot(env, caption) after each step")
        if target.suffix == ".html":
            target.write_text(self.page(), "utf-8")
        elif target.suffix in MOVING:
            target.write_bytes(self._moving(target.suffix))
        else:
            raise ValueError(f"{target.name} ends neither in .html nor in {', '.join(MOVING)}")

    def page(self) -> str:
        """The filmstrip as one HTML page that needs nothing else."""
        strips = "\n".join(_strip(number, shot) for number, shot in enumerate(self.shots))
        return f"{_HEAD}<main>\n{strips}\n</main></html>\n"

    def _moving(self, suffix: str) -> bytes:
        try:
            from PIL import Image
        except ImportError as error:
            raise MissingDependencyError(
                'moving pictures need Pillow: pip install "sandboxgym[browser]"'
            ) from error
        pictures = [Image.open(io.BytesIO(shot.png)).convert("RGB") for shot in self.shots]
        written = io.BytesIO()
        pictures[0].save(
            written,
            format=suffix[1:].upper(),
            save_all=True,
            append_images=pictures[1:],
            duration=_FRAME_MS,
            loop=0,
        )
        return written.getvalue()


def _strip(number: int, shot: Shot) -> str:
    picture = base64.b64encode(shot.png).decode()
    note = f'<p class="note">{html.escape(shot.note)}</p>' if shot.note else ""
    caption = html.escape(shot.caption)
    return (
        f"<figure><figcaption><b>{number}</b> <code>{caption}</code> "
        f"<small>{html.escape(shot.url)}</small>{note}</figcaption>"
        f'<img alt="after {caption}" src="data:image/png;base64,{picture}"></figure>'
    )


_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>An episode</title>
<meta name="viewport" content="width=device-width">
<style>
  body { margin: 0; background: #20242b; color: #e8eaed; font: 15px system-ui, sans-serif }
  main { display: flex; gap: 16px; overflow-x: auto; padding: 16px; scroll-snap-type: x mandatory }
  figure { flex: none; width: min(80vw, 760px); margin: 0; scroll-snap-align: center }
  figcaption { min-height: 4.5em; overflow-wrap: anywhere }
  code { background: #343a46; padding: 2px 6px; border-radius: 4px }
  small { display: block; margin-top: 4px; color: #9aa4b2 }
  .note { margin: 4px 0; color: #ffb4a2 }
  img { width: 100%; border-radius: 6px; background: white }
</style>
"""
