"""Templates: processes that hold a moment of an environment and do nothing but fork."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, NoReturn

from sandboxgym.core.errors import WorkerLostError
from sandboxgym.mechanisms.process.handles import Process


class Template:
    """A moment, held by a frozen process. Snapshots refer to it; the process ends with the last.

    Attributes:
        memory: Bytes that the process took when it was last looked at.
    """

    def __init__(self, process: Process) -> None:
        self.memory = 0
        self._process: Process | None = process
        self._busy = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Template:
        """A copy of a snapshot refers to the same process, which nothing changes."""
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError(
            "a template is a process of this machine and cannot be pickled: send the snapshot with "
            "to_bytes() and restore it there with Snapshot.from_bytes(...)"
        )

    def thaw(self) -> Process | None:
        """A live process that continues from here; None where the template is gone."""
        with self._busy:
            if self._process is None or self.gone or self._process.nursery.owner != os.getpid():
                return None
            try:
                return self._process.fork()
            except WorkerLostError:
                self._process = None
                return None

    @property
    def gone(self) -> bool:
        """Whether the process ended."""
        return self._process is None or self._process.gone

    def measure(self) -> None:
        """Look at how much memory the process takes."""
        process = self._process
        self.memory = 0 if process is None else process.memory()

    def evict(self) -> bool:
        """End the process, unless it is in use at this moment; whether it was ended."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            process, self._process = self._process, None
            if process is not None:
                process.dismiss()
            return True
        finally:
            self._busy.release()


@dataclass(frozen=True)
class Limits:
    """How many templates there may be, and how many bytes of memory they may take together."""

    templates: int
    memory: int


class Templates:
    """All templates of an environment and its forks, within limits.

    Where they exceed a limit, the one that was not used for longest goes. Its snapshots are then
    restored by replay. A template that no snapshot refers to is gone at once.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.evicted = 0
        self._lock = threading.Lock()
        self._by_use: list[weakref.ref[Template]] = []  # the one not used for longest comes first
        self._turn = 0

    def keep(self, process: Process) -> Template:
        """Make a template of a process, and room for it."""
        template = Template(process)
        template.measure()
        with self._lock:
            kept = self._alive()
            self._measure_two(kept)
            self._make_room(kept, template.memory)
            self._by_use = [weakref.ref(other) for other in (*kept, template) if not other.gone]
        return template

    def used(self, template: Template) -> None:
        """Note that a template was used just now."""
        with self._lock:
            kept = self._alive()
            if template in kept:  # else it is of another environment
                kept.remove(template)
                self._by_use = [weakref.ref(other) for other in (*kept, template)]

    def _alive(self) -> list[Template]:
        kept = [template for ref in self._by_use if (template := ref()) is not None]
        return [template for template in kept if not template.gone]

    def _measure_two(self, kept: list[Template]) -> None:
        """What a template takes grows as others go their own ways: look at two, in turn."""
        for _ in kept[:2]:
            self._turn += 1
            kept[self._turn % len(kept)].measure()

    def _make_room(self, kept: list[Template], needed: int) -> None:
        count, memory = 1 + len(kept), needed + sum(template.memory for template in kept)
        for template in kept:
            if count <= self.limits.templates and memory <= self.limits.memory:
                return
            if template.evict():
                count, memory = count - 1, memory - template.memory
                self.evicted += 1
