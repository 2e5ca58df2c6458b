"""Forks of a repository sandbox against a twin that is never forked, file by file.

    python -m benchmarks.repo_roundtrips --rounds 125 --seeds 0 1 2 3 --out repo_roundtrips.json

Each round does the same random operations with files in both, then takes one of them through a
snapshot: restored in place, forked, restored in a used sandbox, or exported and imported. Two
things are compared: what the forked one says before and after, times included; and what both say,
without times, as they did not act at the same moment. Left out is what docs/repo.md declares:
numbers of inodes and devices, link counts and sizes of folders; and sockets after an export.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.backend import Base, Limits
from sandboxgym.sandboxes.repo.bases import base_of_folder
from sandboxgym.sandboxes.repo.overlay.backend import Moment, OverlayBackend, OverlaySandbox

MIB = 2**20
NAMES = ("a", "b", "c", "ü ß", "new\nline", "-rf", "$HOME", "\udcff\udcfe", "x" * 200)
KINDS = {
    "write": 8, "append": 6, "patch": 4, "folder": 6, "rename": 10, "link": 6, "symlink": 4,
    "chmod": 4, "delete": 6, "replace": 5, "sparse": 2, "attribute": 3, "fifo": 2, "socket": 2,
    "touch": 3, "shell": 4, "leave": 1, "big": 1,
}  # fmt: skip

ACT = r"""
import hashlib, json, os, random, shutil, socket, stat, sys

def change(path, mode):  # a pipe that nobody reads is refused, not waited for
    return open(path, mode, opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK))

def act(kind, one, two, number, big):
    dice = random.Random(number)
    parent = os.path.dirname(one)
    if kind in ("write", "big", "sparse", "fifo", "socket", "symlink", "link", "folder"):
        os.makedirs(parent, exist_ok=True)
    if kind == "write":
        with change(one, "wb") as file: file.write(dice.randbytes(dice.randrange(20000)))
    elif kind == "big":
        with change(one, "wb") as file:
            for _ in range(big): file.write(dice.randbytes(1024) * 1024)
    elif kind == "append":
        with change(one, "ab") as file: file.write(dice.randbytes(100))
    elif kind == "patch":
        with change(one, "r+b") as file: file.seek(dice.randrange(5000)); file.write(b"patched")
    elif kind == "folder": os.mkdir(one)
    elif kind == "rename":
        os.makedirs(os.path.dirname(two), exist_ok=True)
        if two.startswith(one + "/"): raise OSError(22, "into itself")
        try: os.rename(one, two)
        except OSError as error:
            if error.errno != 18: raise
            if os.path.isdir(two) and not os.path.islink(two): os.rmdir(two)
            if os.path.lexists(two): raise
            shutil.copytree(one, two, symlinks=True, copy_function=lambda a, b: os.link(
                a, b, follow_symlinks=False)); shutil.rmtree(one)
    elif kind == "link": os.link(two, one, follow_symlinks=False)
    elif kind == "symlink": os.symlink(two, one)
    elif kind == "chmod": os.chmod(one, 0o700 | dice.randrange(0o100))
    elif kind in ("delete", "replace"):
        was_folder = os.path.isdir(one) and not os.path.islink(one)
        shutil.rmtree(one) if was_folder else os.unlink(one)
        if kind == "replace" and was_folder: open(one, "w").write("was a folder")
        elif kind == "replace": os.mkdir(one); open(one + "/inside", "w").write("was a file")
    elif kind == "sparse":
        with change(one, "wb") as file:
            file.truncate(dice.randrange(50_000_000))
            file.seek(dice.randrange(40_000_000)); file.write(dice.randbytes(9000))
    elif kind == "attribute": os.setxattr(one, "user.note", dice.randbytes(20))
    elif kind == "fifo": os.mkfifo(one)
    elif kind == "socket":
        here = os.open(parent, os.O_RDONLY); os.fchdir(here)
        socket.socket(socket.AF_UNIX).bind(os.path.basename(one)[:90])
    elif kind == "touch": os.utime(one, ns=(number, number * 1000 + 1))

def listing():
    for parent, folders, files in sorted(os.walk("/repo")):
        for name in sorted([*folders, *files]):
            path = os.path.join(parent, name)
            if "/.git/" in path + "/": continue
            status = os.lstat(path)
            kind = stat.S_IFMT(status.st_mode)
            line = [repr(path), oct(status.st_mode)]
            if not stat.S_ISDIR(status.st_mode): line += [status.st_size, status.st_nlink]
            if stat.S_ISLNK(status.st_mode): line.append(repr(os.readlink(path)))
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file: line.append(hashlib.md5(file.read()).hexdigest())
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                line.append([(n, os.getxattr(path, n).hex()) for n in sorted(os.listxattr(path))])
            yield " ".join(map(str, line)), status.st_mtime_ns

for kind, one, two, number, big in json.loads(os.fsdecode(sys.stdin.buffer.read())):
    try: act(kind, os.path.join("/repo", one), os.path.join("/repo", two), number, big)
    except OSError as error: print("failed:", kind, error.errno, file=sys.stderr)
os.chdir("/")
for line, moment in listing(): print(line, moment)
"""


def main() -> None:
    args = arguments()
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch, OverlayBackend(Limits(seconds=600)) as backend:
        base = make_base(Path(scratch))
        for seed in args.seeds:
            runs.append(compare(backend, base, rounds=args.rounds, seed=seed, big_mib=100))
            text = json.dumps(summary(runs), indent=2)
            if args.out:
                args.out.write_text(text + "\n")
    print(text)
    if summary(runs)["differences"]:
        sys.exit(1)


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What several runs found together, and each."""
    return {
        "round_trips": sum(run["rounds"] for run in runs),
        "differences": sum(len(run["differences"]) for run in runs),
        "runs": runs,
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=125, help="of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3], help="of the runs")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    return parser.parse_args()


def make_base(scratch: Path, cache: Path | None = None) -> Base:
    """A tree with folders, files and hard links, and the Python that runs this."""
    tree = scratch / "tree"
    for folder in ("a", "a/b", "b"):
        (tree / folder).mkdir(parents=True)
        for number in range(3):
            (tree / folder / f"file{number}").write_text(f"{folder} {number}\n" * 50)
    (tree / "a" / "c").hardlink_to(tree / "a" / "file0")
    return base_of_folder(tree, toolchains=[sys.base_prefix], cache=cache or scratch / "cache")


def compare(
    backend: OverlayBackend, base: Base, *, rounds: int, seed: int, big_mib: int
) -> dict[str, Any]:
    """Walk both, and say where they differ."""
    dice = random.Random(seed)
    twin, walker, used = (backend.create(base) for _ in range(3))
    ways: Counter[str] = Counter()
    differences: list[str] = []
    refused = 0
    for number in range(rounds):
        operations = [operation(dice, big_mib) for _ in range(dice.randrange(1, 5))]
        shell = shell_line(dice)
        expected = act(twin, shell, operations)
        got = act(walker, shell, operations)
        refused += expected.count("failed:")
        where = f"seed {seed}, round {number}, {shell!r} {operations}"
        differences += found(f"acting: {where}", without_times(expected), without_times(got))
        way = dice.choices(("restore", "fork", "used", "export"), (3, 3, 2, 1))[0]
        if way == "export" and " 0o14" in got:  # there are sockets, which stay behind
            way = "fork"
        before = act(walker, "true", [])
        walker, used = go_through(way, backend, base, walker, used)
        differences += found(f"{way}: {where}", before, act(walker, "true", []))
        ways[way] += 1
        for _ in range(2):  # as many commands as the other did: each draws a random number
            twin.run("true")
        if differences:
            break
    for sandbox in (twin, walker, used):
        sandbox.close()
    return {
        "rounds": number + 1,
        "seed": seed,
        "ways": dict(sorted(ways.items())),
        "operations_refused_by_the_kernel": refused,
        "differences": differences,
    }


def operation(dice: random.Random, big_mib: int) -> tuple[str, str, str, int, int]:
    """A random thing to do with files."""
    kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
    return kind, path(dice), path(dice), dice.randrange(10**9), big_mib


def path(dice: random.Random) -> str:
    """A random path; often one that was named before."""
    return "/".join(dice.choices(NAMES, (9, 9, 9, 2, 2, 1, 1, 1, 1), k=dice.randrange(1, 4)))


def shell_line(dice: random.Random) -> str:
    """What the shell does before."""
    return dice.choice(
        [
            "true",
            "x=$((x+1)); echo $x",
            "cd /repo && pwd",
            "mkdir -p /repo/a; cd /repo/a; pwd",
            "mkdir -p /repo/gone; cd /repo/gone; rm -r /repo/gone",
            "mkdir -p /repo/b/moved; cd /repo/b/moved; mv /repo/b/moved /repo/moved; ls",
            "umask $((RANDOM % 2))2; umask; echo $RANDOM",
            "f() { echo $1 $x; }; f $RANDOM",
        ]
    )


def act(sandbox: OverlaySandbox, shell: str, operations: list[Any]) -> str:
    """Do all this, and list the tree."""
    given = json.dumps(operations, ensure_ascii=False).encode("utf-8", "surrogateescape")
    python = f"{sys.base_prefix}/bin/python3"
    command = f'{shell}\n{python} -c "$ACT" 2>&1'
    done = sandbox.run(f"ACT={quoted(ACT)}; {command}; unset ACT", stdin=given, output=10**8)
    if done.timed_out or done.truncated or "Traceback" in done.output:
        raise RuntimeError(f"the listing failed: {done.limits_reached} {done.output[-2000:]}")
    return done.output


def quoted(text: str) -> str:
    """Text as a word of the shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def go_through(
    way: str, backend: OverlayBackend, base: Base, walker: OverlaySandbox, used: OverlaySandbox
) -> tuple[OverlaySandbox, OverlaySandbox]:
    """Take a sandbox through a snapshot; the one to go on with, and the other."""
    moment: Moment = walker.snapshot()
    if way == "restore":
        walker.run("rm -rf /repo/*; cd /; x=99; echo spoilt > /repo/a")
        walker.restore(moment)
        return walker, used
    if way == "used":
        used.run("echo used > /repo/used; cd /tmp")
        used.restore(moment)
        return used, walker
    if way == "export":
        moment = backend.import_(base, moment.pack())
    new = backend.fork(moment)
    walker.run("rm -rf /repo/*")
    walker.close()
    return new, used


def without_times(listing: str) -> list[str]:
    """Lines of a listing without their last word."""
    return [line.rpartition(" ")[0] if line.startswith("'/") or line.startswith('"/') else line
            for line in listing.splitlines()]  # fmt: skip


def found(where: str, expected: str | list[str], got: str | list[str]) -> list[str]:
    """The first lines that differ."""
    lines = [text.splitlines() if isinstance(text, str) else text for text in (expected, got)]
    if lines[0] == lines[1]:
        return []
    odd = sorted(set(lines[0]) ^ set(lines[1]))[:4]
    return [f"{where}: {odd}"]


if __name__ == "__main__":
    main()
