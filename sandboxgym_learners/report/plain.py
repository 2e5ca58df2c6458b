"""Make data such that JSON and browsers can hold it."""

from __future__ import annotations

import math
from typing import Any

from sandboxgym.core.characters import whole


def plain(data: Any) -> Any:
    """The same without half characters, which make some browsers crash.

    Numbers that are not finite become null.
    """
    if isinstance(data, dict):
        return {whole(str(key)): plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return whole(data) if isinstance(data, str) else data
