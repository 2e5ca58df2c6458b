"""Make data such that JSON and browsers can hold it."""

from __future__ import annotations

import math
from typing import Any


def plain(data: Any) -> Any:
    """The same without half characters; numbers that are not finite become null."""
    if isinstance(data, dict):
        return {whole(str(key)): plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return whole(data) if isinstance(data, str) else data


def whole(text: str) -> str:
    """Replace lone surrogates, which are no characters and make some browsers crash."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
