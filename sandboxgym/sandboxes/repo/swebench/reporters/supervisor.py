"""Starts the tests, hears what became of them, and signs it.

The key is in this process only, which never runs code of the repository and into which other
processes cannot look. What the tests print goes into a log; what counts comes over a socket that is
theirs alone, each line with a code that follows from all lines before it.
"""

import base64
import contextlib
import ctypes
import hashlib
import hmac
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import zlib
from typing import Any, Dict, List, Tuple

MARK = "sandboxgym-verdicts"
MAX_LOG = 4 * 2**20
MAX_LINES = 64 * 2**20
PR_SET_DUMPABLE = 4
START = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]  # The current directory is the repository: it must not give us modules.
channel, reporter, told = sys.argv[1:]
spaces = {"__name__": "channel"}, {"__name__": "reporter"}
exec(compile(channel, "channel", "exec"), spaces[0])
exec(compile(reporter, "reporter", "exec"), spaces[1])
spaces[1]["main"](spaces[0]["Channel"](told))
"""


def close_to_others() -> None:
    """Keep processes of the same user from reading this one's memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process cannot be closed to others")


def traces(files: List[str]) -> Dict[str, Any]:
    """What the file system knows of each file; nobody can set the time of a change back."""
    found = {}  # type: Dict[str, Any]
    for name in files:
        try:
            status = os.stat(name)
        except OSError:
            found[name] = None
        else:
            found[name] = (status.st_ino, status.st_size, status.st_ctime_ns)
    return found


def start(job: Any, theirs: socket.socket) -> "subprocess.Popen[bytes]":
    """Start the tests. Their Python path is theirs to set, once they have what they need."""
    environment = dict(os.environ)
    environment.update(job["environment"])
    told = {
        "descriptor": theirs.fileno(),
        "arguments": job["arguments"],
        "path": environment.pop("PYTHONPATH", ""),
    }
    return subprocess.Popen(
        [sys.executable, "-c", START, job["channel"], job["reporter"], json.dumps(told)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )


def listen(child: "subprocess.Popen[bytes]", ours: socket.socket) -> Tuple[bytes, bytes]:
    """What came over the socket, and the end of what was printed."""
    heard, printed = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        sources = [(ours, heard), (child.stdout, printed)]  # type: Any
        for source, into in sources:
            os.set_blocking(source.fileno(), False)
            selector.register(source, selectors.EVENT_READ, into)
        while selector.get_map():
            ended = child.poll() is not None
            ready = selector.select(0 if ended else 0.2)
            for key, _ in ready:
                part = os.read(key.fd, 65536)
                if not part:
                    selector.unregister(key.fileobj)
                key.data.extend(part)
            if ended and not ready:
                break  # What is open still is held by a process that outlived the tests.
            del printed[: max(0, len(printed) - MAX_LOG)]
            if len(heard) > MAX_LINES:
                break
    return bytes(heard), bytes(printed)


def checked(heard: bytes, token: bytes) -> Tuple[List[List[str]], List[str]]:
    """The lines that follow from one another, and what is wrong about the rest."""
    chain = hmac.new(token, digestmod=hashlib.sha256)
    lines = []  # type: List[List[str]]
    for number, whole in enumerate(heard.split(b"\n")[:-1]):
        line, _, code = whole.rpartition(b" ")
        chain.update(line + b"\n")
        if not hmac.compare_digest(code, chain.hexdigest().encode()):
            return lines, ["line {} of the results is not the reporter's".format(number + 1)]
        lines.append(line.decode("ascii").split(" "))
    return lines, []


def text_of(word: str) -> str:
    """The text that the channel wrote as one word."""
    return bytes.fromhex(word).decode("utf-8", "replace")


def summary(lines: List[List[str]], faults: List[str], status: int) -> Any:
    """The results as they are signed."""
    cases, finished = [], False
    for line in lines:
        if finished:
            faults.append("results came after the tests had ended")
            break
        if line[0] == "case":
            cases.append([line[1], [text_of(name) for name in line[2:]]])
        elif line[0] == "fault":
            faults.append(text_of(line[1]))
        elif line[0] == "done":
            finished = True
            if line[1] != str(status):
                faults.append("the tests said {}, their process {}".format(line[1], status))
    return {"cases": cases, "finished": finished, "faults": faults, "status": status}


def main(job: Any) -> None:
    """Run the tests of a job and print the signed results, which is all that is printed."""
    close_to_others()
    ours, theirs = socket.socketpair()
    token = base64.b16encode(os.urandom(32))
    ours.sendall(token)
    before = traces(job["files"])
    child = start(job, theirs)
    theirs.close()
    heard, printed = listen(child, ours)
    status = child.wait()
    with contextlib.suppress(ProcessLookupError):  # Where nothing of the tests outlived them.
        os.killpg(child.pid, signal.SIGKILL)
    lines, faults = checked(heard, token)
    for name, trace in traces(job["files"]).items():
        if trace != before[name]:
            faults.append("{} was changed while the tests ran".format(name))
    result = summary(lines, faults, status)
    result["log"] = printed.decode("utf-8", "replace")
    packed = base64.b64encode(zlib.compress(json.dumps(result).encode()))
    code = hmac.new(bytes.fromhex(job["key"]), packed, hashlib.sha256).hexdigest()
    print("{} {} {}".format(MARK, packed.decode(), code))
