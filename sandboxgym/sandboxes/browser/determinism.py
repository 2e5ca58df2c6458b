"""What makes a page a function of its seed and of what is done to it.

Four parts, all in place before anything of a page runs:

- *virtual time* (`settle.Clock`). Chromium's own, not a script's: it holds for timers, `Date`, CSS
  animations and transitions, in every frame, and pages cannot get around it. Chromium draws a frame
  only when it is asked to, and is told the frame's time.
- `determinism.js`: randomness, time stamps of input and of navigations, traits of the machine, and
  what is refused.
- *emulation*: viewport, locale, time zone, media features, user agent.
- flags of the browser (`chromium.FLAGS`): fonts, colours, one process for all frames of a page.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any

from sandboxgym.sandboxes.browser import scripts
from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import ProtocolError
from sandboxgym.sandboxes.browser.options import Options

REPORT = "__sandboxgym_report__"  # exists until determinism.js has taken it away


def script(seed: int, worker_url: str | None = None) -> str:
    """`determinism.js`, ready to run.

    Args:
        seed: Of the session.
        worker_url: For a worker, its script: it cannot tell yet when this runs.
    """
    settings = {"seed": seed, "report": REPORT, "url": worker_url}
    return f"{scripts.script('determinism.js')}({json.dumps(settings)});"


def prepare_page(cdp: CDPSession, options: Options, user_agent: str) -> list[Awaitable[Any]]:
    """Make a page that has not run yet see the world as `options` say.

    All commands are sent at once; what is returned is to be awaited. `script` is added apart.
    """
    language = options.locale
    viewport: dict[str, Any] = {"width": options.width, "height": options.height}
    screen = {"screenWidth": options.width, "screenHeight": options.height}
    return [
        cdp.post(
            "Emulation.setDeviceMetricsOverride",
            **viewport,
            **screen,
            deviceScaleFactor=1,
            mobile=False,
        ),
        cdp.post("Emulation.setTimezoneOverride", timezoneId=options.timezone),
        _set_locale(cdp, language),
        cdp.post("Emulation.setUserAgentOverride", userAgent=user_agent, acceptLanguage=language),
        cdp.post(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-reduced-motion", "value": "reduce"},
                {"name": "prefers-color-scheme", "value": "light"},
            ],
        ),
        # A document is made of what it is served, not of what an earlier one left in a cache.
        cdp.post("Network.enable", maxTotalBufferSize=0, maxResourceBufferSize=0),
        cdp.post("Network.setCacheDisabled", cacheDisabled=True),
        cdp.post("Emulation.setFocusEmulationEnabled", enabled=True),
        cdp.post("Runtime.enable"),  # without it we are not told of bindings
        cdp.post("Runtime.addBinding", name=REPORT),
    ]


def _set_locale(cdp: CDPSession, locale: str) -> Awaitable[None]:
    return _locale_set(cdp.post("Emulation.setLocaleOverride", locale=locale))


async def _locale_set(answer: Awaitable[Any]) -> None:
    try:
        await answer
    except ProtocolError as error:
        if "already in effect" not in error.reason:  # it is, in a popup: by its opener
            raise
