"""Sites that answer a page's requests inside of this process.

    wsgi(make_app)              # make_app() -> a WSGI application
    asgi(make_app)              # make_app() -> an ASGI application
    folder("dist")              # files
    external("https://…")       # a site elsewhere; its snapshots replay
    site_factory(anything)      # any of these, by what it is given

Each returns a *factory*: every environment makes an instance of its own, so that nothing one
episode does can be seen in another.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.browser.applications import ASGIApp, ASGISite, WSGIApp, WSGISite
from sandboxgym.sandboxes.browser.elsewhere import ExternalSite
from sandboxgym.sandboxes.browser.folders import FolderSite
from sandboxgym.sandboxes.browser.messages import ORIGIN, Request, Response, Site, SiteFactory

__all__ = [
    "ORIGIN",
    "ASGISite",
    "ExternalSite",
    "FolderSite",
    "Request",
    "Response",
    "Site",
    "SiteFactory",
    "WSGISite",
    "asgi",
    "external",
    "folder",
    "site_factory",
    "wsgi",
]


def wsgi(make_app: Callable[[], WSGIApp], origin: str = ORIGIN) -> SiteFactory:
    """A factory of sites that serve the WSGI application that `make_app()` returns."""
    return lambda: WSGISite(make_app(), origin)


def asgi(make_app: Callable[[], ASGIApp], origin: str = ORIGIN) -> SiteFactory:
    """A factory of sites that serve the ASGI application that `make_app()` returns."""
    return lambda: ASGISite(make_app(), origin)


def folder(root: str | Path, origin: str = ORIGIN) -> SiteFactory:
    """A factory of sites that serve a folder of files.

    Raises:
        DataNotFoundError: There is no such folder.
    """
    site = FolderSite(Path(root), origin)  # which has no state
    return lambda: site


def external(url: str) -> SiteFactory:
    """A factory of sites that are elsewhere."""
    return lambda: ExternalSite(url)


def site_factory(given: Any) -> SiteFactory:
    """A factory of sites, by what is given.

    Args:
        given: A function that makes a `Site`, a WSGI application or an ASGI application;
            "module:function" for one; an http(s) URL; or the path of a folder.

    Raises:
        DataNotFoundError: The text names no function, URL or folder.
        TypeError: It is none of these.
    """
    if callable(given):
        _check_takes_nothing(given)
        return lambda: _site_of(given())
    if isinstance(given, Path):
        return folder(given)
    if not isinstance(given, str):
        raise TypeError(
            f"a site is a function that makes an application, a URL or a folder; got {given!r:.200}"
        )
    if given.startswith(("http://", "https://")):
        return external(given)
    module, colon, name = given.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), name)):
        try:
            return site_factory(getattr(importlib.import_module(module), name))
        except (ImportError, AttributeError) as error:
            raise DataNotFoundError(f"there is no function {given} that makes a site") from error
    return folder(given)


def _check_takes_nothing(given: Any) -> None:
    try:
        inspect.signature(given).bind()
    except ValueError:  # nothing is known of it
        return
    except TypeError as error:
        raise TypeError(
            f"{given!r:.200} is no function that makes a site ({error}): each environment needs an "
            "application of its own, so give a function without arguments that makes one"
        ) from None


def _site_of(made: Any) -> Site:
    if hasattr(made, "respond"):
        site: Site = made
        return site
    if not callable(made):
        raise TypeError(f"the function that makes the site returned {made!r:.200}: no application")
    asynchronous = inspect.iscoroutinefunction(made) or inspect.iscoroutinefunction(
        getattr(made, "__call__", None)  # noqa: B004 - the method itself is looked at
    )
    return ASGISite(made) if asynchronous else WSGISite(made)
