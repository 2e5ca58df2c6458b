"""How much memory processes hold together, where no control group counts it.

Memory that has no name in any file system can be the process's own, shared with others, or a file
that exists by descriptors alone (memfd_create); all of it is from the machine. What is in named
files is counted only while it is mapped: those lie in a file system that has a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

_QUICK = ("status", "RssAnon:", "RssShmem:")
_EXACT = ("smaps_rollup", "Pss_Anon:", "Pss_Shmem:")  # pages divided among those who have them
_BLOCK = 512


def held(pids: Sequence[int], enough: int) -> int:
    """Bytes that processes hold; more than they do only where that is below `enough`.

    What is shared is first counted for everyone who has it, which is quick, and only if that is
    enough for once.
    """
    own, shared = _sums(pids, [_QUICK])
    if own + shared > enough:
        own, shared = _sums(pids, [_EXACT, _QUICK])
    return own + max(shared, _in_nameless_files(pids))  # which may be mapped, and then are shared


def _sums(pids: Iterable[int], sources: Sequence[tuple[str, str, str]]) -> tuple[int, int]:
    """Both numbers of all processes, each from the first source that can be read."""
    own = shared = 0
    for pid in pids:
        for file, field_of_own, field_of_shared in sources:
            try:
                text = Path(f"/proc/{pid}/{file}").read_text()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it has ended, or is about to
            own += _bytes_in(text, field_of_own)
            shared += _bytes_in(text, field_of_shared)
            break
    return own, shared


def _bytes_in(text: str, field: str) -> int:
    words = text.partition(field)[2].split(maxsplit=1)
    return 1024 * int(words[0]) if words else 0  # a process that has ended has no such field


def _in_nameless_files(pids: Iterable[int]) -> int:
    sizes: dict[int, int] = {}
    for pid in pids:
        try:
            for link in Path(f"/proc/{pid}/fd").iterdir():
                if str(link.readlink()).startswith("/memfd:"):
                    status = link.stat()
                    sizes[status.st_ino] = status.st_blocks * _BLOCK
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, is about to, or hides what it has from a user without root
    return sum(sizes.values())
