"""A folder of files as a site."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.browser.messages import ORIGIN, Request, Response

_TEXT = (("Content-Type", "text/plain"),)
_KINDS = {  # the standard library's list is another on each machine
    ".avif": "image/avif",
    ".css": "text/css",
    ".csv": "text/csv",
    ".gif": "image/gif",
    ".htm": "text/html",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".ogg": "audio/ogg",
    ".otf": "font/otf",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".wav": "audio/wav",
    ".webm": "video/webm",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xhtml": "application/xhtml+xml",
    ".xml": "application/xml",
}


class FolderSite:
    """Serves the files of a folder, `index.html` for a folder in it, and nothing outside of it.

    Args:
        root: The folder. It is read at each request; nothing is to change it during an episode.
        origin: Where the pages believe to be.

    Raises:
        DataNotFoundError: There is no such folder.
    """

    def __init__(self, root: Path, origin: str = ORIGIN) -> None:
        if not root.is_dir():
            raise DataNotFoundError(f"there is no folder {root} to serve as a site")
        self.root = root.resolve()
        self.origin = origin

    def respond(self, request: Request) -> Response:
        """The file."""
        if request.method not in ("GET", "HEAD"):
            return Response(405, _TEXT, b"405: files can only be read")
        path = unquote(urlsplit(request.url).path)
        file = self._find(path)
        if file is None:
            return Response(404, _TEXT, f"404: there is no {path}".encode())
        if file.is_dir():
            return Response(301, (("Location", urlsplit(request.url).path + "/"),))
        kind = _KINDS.get(file.suffix.lower(), "application/octet-stream")
        return Response(200, (("Content-Type", kind),), file.read_bytes())

    def get_state(self) -> Any:
        """Nothing ever changes."""
        return {}

    def set_state(self, state: Any) -> None:
        """Nothing ever changes."""

    def _find(self, path: str) -> Path | None:
        if "\0" in path:
            return None
        file = (self.root / path.lstrip("/")).resolve()
        if file != self.root and self.root not in file.parents:
            return None
        if file.is_dir() and path.endswith("/"):
            file /= "index.html"
        return file if file.exists() else None
