"""The way of results out of the process that runs the tests.

It takes hold of what it needs before any code of the repository is loaded.
"""

import hashlib
import hmac
import json
import os
import sys
from typing import Any, Callable, List


class Channel:
    """What a reporter works with."""

    def __init__(self, told: str) -> None:
        given = json.loads(told)
        self.arguments = given["arguments"]
        self._path = given["path"]
        self._send = _opened(given["descriptor"])
        self._watched = []  # type: List[Any]

    def report(self, status: str, *names: str) -> None:
        """Say what became of a test, under all its names."""
        self._send(b" ".join([b"case", status.encode()] + [_written(name) for name in names]))

    def finish(self, status: int) -> None:
        """Say that the tests ended, and leave with their status."""
        for name in self._changed():
            self._send(b"fault " + _written(name + " was replaced while the tests ran"))
        self._send(b"done " + str(status).encode())
        sys.exit(status)

    def watch(self, *owners: Any) -> None:
        """Remember the functions of modules and classes that decide what becomes of a test."""
        self._watched = [
            (owner, name, value, value.__code__)
            for owner in owners
            for name, value in list(vars(owner).items())
            if hasattr(value, "__code__")
        ]

    def add_to_path(self) -> None:
        """Let the repository's own path take effect, here and in processes that tests start."""
        if self._path:
            os.environ["PYTHONPATH"] = self._path
            parts = [part for part in self._path.split(os.pathsep) if part]
            sys.path[:0] = [os.path.abspath(part) for part in parts]

    def run_script(self, words: List[str]) -> int:
        """Run a script, or a module behind `-m`, and give back its exit status."""
        import runpy

        try:
            if words[0] == "-m":
                sys.argv = words[1:]
                sys.path.insert(0, os.getcwd())
                runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            else:
                sys.argv = list(words)
                sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
                runpy.run_path(words[0], run_name="__main__")
        except SystemExit as leaving:
            if leaving.code is None:
                return 0
            return int(leaving.code) & 255 if isinstance(leaving.code, int) else 1
        return 0

    def _changed(self) -> List[str]:
        """The names of watched functions that are not what they were."""
        return sorted(
            "{}.{}".format(owner.__name__, name)
            for owner, name, value, code in self._watched
            if vars(owner).get(name) is not value or value.__code__ is not code
        )


def _opened(descriptor: int) -> Callable[[bytes], None]:
    """Read the token, and give back a function that sends a line."""
    os.set_inheritable(descriptor, False)
    token = b""
    while len(token) < 64:
        token += os.read(descriptor, 64 - len(token))
    chain = hmac.new(token, digestmod=hashlib.sha256)
    update, code = chain.update, chain.hexdigest
    write, process, own = os.write, os.getpid, os.getpid()

    def send(line: bytes) -> None:
        if process() != own:
            return  # A fork of the tests is not the tests.
        update(line + b"\n")
        rest = line + b" " + code().encode() + b"\n"
        while rest:
            rest = rest[write(descriptor, rest) :]

    return send


def _written(text: str) -> bytes:
    """Any text as one word of letters and digits."""
    return text.encode("utf-8", "surrogatepass").hex().encode()
