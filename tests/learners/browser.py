"""A headless browser, where the machine has one, to look at pages as people get them."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_browser() -> str:
    """The path of a browser; skips the test where there is none."""
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    pytest.skip(f"no browser on PATH: install one of {', '.join(NAMES)}")


def in_browser(page: Path, script: str, *, width: int = 1200) -> Any:
    """What `script`, the body of an async function, returns once the page has been drawn.

    In it, `await ready()` waits until the tree that was chosen is on the page. The page's own
    policy forbids foreign scripts, so a copy is opened that allows this one too.
    """
    browser = find_browser()
    # Time is virtual: a second passes as soon as nothing is left to do, so all has been drawn.
    code = f"""
      const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
      const ready = async () => {{
        while (document.querySelector("[aria-busy]")) await wait(50);
      }};
      const answer = (value) => document.body.setAttribute(
        "data-result", encodeURIComponent(JSON.stringify(value)));
      wait(1000).then(ready).then(async () => {{ {script} }})
        .then(answer, (error) => answer({{ error: String(error.stack) }}));
    """
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    html = page.read_text("utf-8")
    html = html.replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    html = html.replace("</body>", f"<script>{code}</script></body>")
    copy = page.with_name("instrumented.html")
    copy.write_text(html, "utf-8")
    done = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"),
            *(f"--window-size={width},900", "--dump-dom", copy.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    _, found, rest = done.stdout.partition('data-result="')
    assert found, f"the page's script did not finish:\n{done.stderr[-2000:]}"
    result = json.loads(unquote(rest.partition('"')[0]))
    assert not (isinstance(result, dict) and "error" in result), result["error"]
    return result
