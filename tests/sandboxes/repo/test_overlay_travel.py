"""Moments that travel, and archives that only look like one."""

from __future__ import annotations

import io
import os
import tarfile

import pytest
import zstandard

from sandboxgym.core import codec
from sandboxgym.core.errors import SnapshotCorruptError, SpecMismatchError
from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from sandboxgym.sandboxes.repo.bases import base_of_folder
from tests.sandboxes.repo.conftest import make_overlay_backend

MIB = 2**20
LIMITS = Limits(seconds=20.0, disk=64 * MIB)


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(LIMITS) as backend:
        yield backend


@pytest.fixture(scope="module")
def other_backend():
    with make_overlay_backend(LIMITS) as backend:
        yield backend


@pytest.fixture
def sandbox(backend, base):
    sandbox = backend.create(base)
    yield sandbox
    sandbox.close()


LISTING = (
    "cd /repo; find . -path ./.git -prune -o -type d -printf '%p %y %m %T@\\n' | sort; "
    "find . -path ./.git -prune -o ! -type d -printf '%p %y %m %s %n %T@ %l\\n' | sort; "
    "find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 md5sum"
)


@pytest.mark.parametrize(
    "made",
    [
        "echo a > a; chmod 600 a; touch -d '2001-02-03 04:05:06.123456789' a",
        "echo a > a; ln a b; mkdir d; ln a d/c",
        "ln -s /nowhere l; ln -s README r; touch -h -d 2001-01-01 l",
        "mkfifo f; chmod 611 f",
        "rm README; rmdir docs",
        "rm -r docs; mkdir docs; echo new > docs/new",
        "rm README; mkdir README; echo x > README/x",
        "rmdir docs; echo file > docs",
        "mv docs papers; echo x > papers/x",
        "mkdir -p a/b/c; chmod 711 a/b; touch -d 2001-01-01 a/b/c a/b a",
        "printf x > 'new\nline'; printf y > $'\\xff\\xfe'; printf z > 'ü ß'",
        "truncate -s 900M hole; printf end >> hole; printf start | dd of=hole conv=notrunc",
        "truncate -s 1M empty",
        "head -c 3M /dev/urandom > big",
        f"echo deep > $(printf 'd%.0s' $(seq 200)); mkdir -p {'x/' * 300}; echo x > {'x/' * 300}f",
        "mkdir ro; echo x > ro/x; chmod 0 ro/x; chmod 500 ro",
    ],
)
def test_a_tree_is_the_same_after_it_has_travelled(sandbox, backend, other_backend, base, made):
    assert sandbox.run(made).returncode == 0
    sandbox.snapshot()
    moment = sandbox.snapshot()
    exported = moment.pack()
    assert len(exported) < 4 * MIB
    with other_backend.fork(other_backend.import_(base, exported)) as twin:
        assert twin.run(LISTING, output=10**6).output == sandbox.run(LISTING, output=10**6).output


def test_extended_attributes_travel(sandbox, other_backend, base):
    program = "import os; os.setxattr('README', 'user.note', b'a\\n\\0\\xff'); os.mkdir('e')"
    if sandbox.run(f'/usr/bin/python3 -c "{program}"').returncode != 0:
        pytest.skip("there is no Python in /usr, or its file system has no such attributes")
    ask = "/usr/bin/python3 -c \"import os; print(os.getxattr('README', 'user.note'))\""
    with other_backend.fork(other_backend.import_(base, sandbox.snapshot().pack())) as twin:
        assert twin.run(ask).output == "b'a\\n\\x00\\xff'\n"


def test_sockets_stay_behind(sandbox, other_backend, base):
    program = "import socket; socket.socket(socket.AF_UNIX).bind('s')"
    if sandbox.run(f'/usr/bin/python3 -c "{program}"').returncode != 0:
        pytest.skip("there is no Python in /usr")
    assert sandbox.run("ls").output == "README\ndocs\ns\n"
    with other_backend.fork(other_backend.import_(base, sandbox.snapshot().pack())) as twin:
        assert twin.run("ls").output == "README\ndocs\n"


def test_what_was_imported_can_be_changed_and_travel_again(sandbox, backend, other_backend, base):
    sandbox.run("mkdir -p a/b; echo 1 > a/b/c; rm README")
    first = other_backend.import_(base, sandbox.snapshot().pack())
    with other_backend.fork(first) as twin:
        twin.run("mv a x; echo 2 >> x/b/c; echo back > README")
        second = backend.import_(base, twin.snapshot().pack())
    with backend.fork(second) as again:
        assert again.run("cat x/b/c README; ls").output == "1\n2\nback\nREADME\ndocs\nx\n"


def test_another_base_is_named(sandbox, other_backend, tmp_path, base_cache):
    (tmp_path / "other").write_text("other")
    other = base_of_folder(tmp_path, cache=base_cache)
    with pytest.raises(SpecMismatchError, match=other.name):
        other_backend.import_(other, sandbox.snapshot().pack())


def test_a_moment_of_a_closed_backend_cannot_travel(base):
    with make_overlay_backend(LIMITS) as backend:
        moment = backend.create(base).snapshot()
    with pytest.raises(SandboxError, match="closed"):
        moment.pack()


def entry(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **more) -> tuple:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def archive(*entries: tuple) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def exported(base, archived: bytes, **other) -> bytes:
    packed = zstandard.ZstdCompressor().compress(archived)
    tree = {"base": base.name, "shell": b"", "size": len(archived), "layer": packed}
    return codec.encode({**tree, **other})


FOLDER = entry("repo", tarfile.DIRTYPE, mode=0o755)
FILE = entry("repo/a", content=b"a")


def linked(name: str, target: str, kind: bytes) -> tuple:
    return entry(name, kind, linkname=target)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([entry("../a")], "not a path"),
        ([entry("/etc/a")], "not a path"),
        ([FOLDER, entry("repo/../a")], "not a path"),
        ([FOLDER, entry("repo/./a")], "not a path"),
        ([FOLDER, entry("repo//a")], "not a path"),
        ([FOLDER, entry("repo/" + "a" * 256)], "longer than"),
        ([FOLDER, linked("repo/l", "/etc", tarfile.SYMTYPE), entry("repo/l/a")], "no folder"),
        ([FOLDER, linked("repo/l", "..", tarfile.SYMTYPE), entry("repo/l/a")], "no folder"),
        ([FOLDER, FILE, entry("repo/a/b")], "no folder"),
        ([entry("gone/a")], "no folder"),
        ([FOLDER, linked("repo/h", "/etc/passwd", tarfile.LNKTYPE)], "hard link"),
        ([FOLDER, linked("repo/h", "../../a", tarfile.LNKTYPE)], "hard link"),
        ([FOLDER, linked("repo/h", "repo/a", tarfile.LNKTYPE), FILE], "hard link"),
        (
            [
                FOLDER,
                linked("repo/s", "/etc/passwd", tarfile.SYMTYPE),
                linked("repo/h", "repo/s", tarfile.LNKTYPE),
            ],
            "hard link",
        ),
        ([FOLDER, linked("repo/l", "", tarfile.SYMTYPE)], "symbolic link"),
        ([FOLDER, entry("repo/d", tarfile.CHRTYPE, devmajor=1, devminor=3)], "device"),
        ([FOLDER, entry("repo/d", tarfile.BLKTYPE, devmajor=8)], "device"),
        ([FOLDER, entry("repo/d", b"Z")], "unknown kind"),
        ([FOLDER, FILE, FILE], "twice"),
        ([FOLDER, FOLDER], "twice"),
        ([FOLDER, FILE, entry("repo/.wh.a")], "twice"),
        ([entry(".wh.a"), entry("a")], "twice"),
        ([entry(".wh...")], "not a path"),
        ([entry(".wh.")], "not a path"),
        ([entry(".wh.a", content=b"x")], "no empty file"),
        ([FOLDER, entry(".wh..wh.plnk")], "not known"),
        ([FOLDER, entry("repo/.wh..wh..opq", tarfile.DIRTYPE)], "no empty file"),
        ([FOLDER, entry("repo/a", pax_headers={"SCHILY.xattr.trusted.overlay.redirect": "/"})],
         "attribute"),
        ([entry("d", tarfile.DIRTYPE, pax_headers={"SCHILY.xattr.user.overlay.opaque": "y"})],
         "attribute"),
        ([FOLDER, entry("repo/a", pax_headers={"SCHILY.xattr.security.capability": "x"})],
         "attribute"),
        ([FOLDER, entry("repo/a", pax_headers={"mtime": "for ever"})], "time"),
        ([FOLDER, entry("repo/a", pax_headers={
            "GNU.sparse.map": "0,5,3,5", "GNU.sparse.size": "100"}, content=b"x" * 10)], "data"),
        ([FOLDER, entry("repo/a", pax_headers={
            "GNU.sparse.map": "-5,5", "GNU.sparse.size": "100"}, content=b"x" * 5)], "data"),
        ([FOLDER, entry("repo/a", pax_headers={
            "GNU.sparse.map": "0,5000000", "GNU.sparse.size": "5000000"}, content=b"x")], "unpack"),
        ([FOLDER, entry("repo/a", pax_headers={
            "GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**62)}, content=b"x")], "bytes"),
        ([FOLDER, entry("repo/a", pax_headers={
            "GNU.sparse.map": f"0,{80 * MIB}", "GNU.sparse.size": str(80 * MIB)}, content=b"x")],
         "allowed"),
    ],
)  # fmt: skip
def test_what_is_no_layer_is_refused(backend, base, entries, reason):
    before = backend_files(backend, base)
    with pytest.raises(SnapshotCorruptError, match=reason):
        backend.import_(base, exported(base, archive(*entries)))
    assert backend_files(backend, base) == before


def backend_files(backend, base) -> str:
    with backend.create(base) as sandbox:
        return sandbox.run("df --output=used / | tail -n 1").output


def test_permissions_and_owners_of_an_archive_give_nobody_more(backend, base):
    setuid = entry("repo/s", content=b"#!/bin/sh\nid -u\n", mode=0o6777, uid=0, gid=0, uname="root")
    moment = backend.import_(base, exported(base, archive(FOLDER, setuid)))
    with backend.fork(moment) as sandbox:
        assert sandbox.run("./s; stat -c %U s").output == "1000\nagent\n"


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"no archive",
        codec.encode({}),
        codec.encode({"base": "", "shell": "", "size": 1, "layer": b""}),
        codec.encode({"base": "", "shell": b"", "size": True, "layer": b""}),
        codec.encode({"base": "", "shell": b"", "size": 2**40, "layer": b""}),
        codec.encode({"base": "", "shell": b"x" * (5 * MIB), "size": 0, "layer": b""}),
    ],
)
def test_bytes_that_are_no_moment_are_refused(backend, base, broken):
    with pytest.raises(SnapshotCorruptError):
        backend.import_(base, broken)


def test_a_bomb_is_refused_before_it_is_unpacked(backend, base):
    zeros = zstandard.ZstdCompressor().compress(bytes(200 * MIB))
    for size in (200 * MIB, 1000):
        with pytest.raises(SnapshotCorruptError, match="declares"):
            backend.import_(base, exported(base, b"", size=size, layer=zeros))


def test_bits_that_flip_are_noticed_or_harmless(sandbox, backend, base):
    sandbox.run("mkdir d; echo a > d/a; ln d/a b; ln -s a l; rm README")
    whole = sandbox.snapshot().pack()
    for position in range(0, len(whole), max(1, len(whole) // 40)):
        changed = bytearray(whole)
        changed[position] ^= 1 << position % 8
        try:
            moment = backend.import_(base, bytes(changed))
        except (SnapshotCorruptError, SpecMismatchError):
            continue
        with backend.fork(moment) as twin:
            assert twin.run("true").returncode in (0, 1, 127)


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.999])
def test_half_an_archive_is_refused(sandbox, backend, base, cut):
    sandbox.run(f"echo {os.urandom(2000).hex()} > a")
    whole = sandbox.snapshot().pack()
    with pytest.raises(SnapshotCorruptError):
        backend.import_(base, whole[: int(len(whole) * cut)])
