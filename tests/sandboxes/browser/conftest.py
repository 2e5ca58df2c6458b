from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.sandboxes.browser.helpers import Driver


@pytest.fixture
def drive(browser: None) -> Iterator[Callable[..., Driver]]:
    """Makes drivers of sessions, and closes them."""
    drivers: list[Driver] = []

    def make(pages: dict[str, Any], **options: Any) -> Driver:
        drivers.append(Driver(pages, **options))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.close()
