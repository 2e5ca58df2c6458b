"""Hard links, which an overlay would break.

When a file of a lower layer is written to, the kernel copies it up under the one name that was
used; its other names go on showing what the file was. So files with several names are copied into
each new writable layer beforehand, under all their names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from sandboxgym.sandboxes.repo.overlay import trees
from sandboxgym.sandboxes.repo.overlay.layers import copy_attributes, copy_node, copy_owner


def linked_groups(folder: Path) -> list[list[str]]:
    """Names of what has several in a folder, those of one file, link, FIFO or socket together."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name, entry in trees.walk(folder):
        if entry.is_dir(follow_symlinks=False):
            continue
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISCHR(status.st_mode):
            continue  # the overlay's own mark of what is deleted
        if status.st_nlink > 1:
            groups.setdefault((status.st_dev, status.st_ino), []).append(name)
    return [sorted(names) for names in groups.values() if len(names) > 1]


def carry_links(lower: Path, upper: Path, groups: Sequence[Sequence[str]]) -> None:
    """Copy files with several names from what lies below into a new writable layer."""
    for first, *others in groups:
        for name in (first, *others):
            _make_folders(lower, upper, name)
        source, target = lower / first, upper / first
        copy_node(source, target, source.lstat())
        for name in others:
            os.link(target, upper / name, follow_symlinks=False)
    for parent, _, _ in os.walk(upper, topdown=False):  # making entries has changed their times
        status = (lower / Path(parent).relative_to(upper)).lstat()
        os.utime(parent, ns=(status.st_atime_ns, status.st_mtime_ns))


def _make_folders(lower: Path, upper: Path, name: str) -> None:
    """Make the folders above a name in the writable layer, as they are below."""
    above = name.rpartition("/")[0]
    if not above or (upper / above).exists():
        return
    _make_folders(lower, upper, above)
    folder = upper / above
    folder.mkdir()
    status = (lower / above).lstat()
    copy_owner(status, folder)
    copy_attributes(lower / above, folder)
    folder.chmod(stat.S_IMODE(status.st_mode))
