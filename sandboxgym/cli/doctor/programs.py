"""Programs of the system: a browser, containers, Java, the GPU's driver."""

from __future__ import annotations

import http.client
import importlib.metadata
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path

from sandboxgym.cli.doctor.finding import Finding, System, Trial, tried

BROWSERS = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
PAGE = "data:text/html,<p id=p></p><script>p.textContent='drew '+6*7</script>"
DRAWN = "drew 42"
WITH_SANDBOX, WITHOUT_SANDBOX = ((),), (("--no-sandbox",),)


def browser(system: System) -> Finding:
    """Chromium, which has to run a script in a page."""
    install = system.install(
        "chromium-headless-shell",
        "pip install playwright && playwright install --with-deps --only-shell chromium",
    )
    if system.ubuntu:
        install = system.as_root("snap install chromium")
    paths = _browsers()
    if not paths:
        return Finding("browser", False, f"none of {', '.join(BROWSERS)} is on PATH", install)
    failures = []
    for path in paths:
        version = tried([path, "--version"], 20).out.strip() or path
        for flags in WITHOUT_SANDBOX if system.root else (*WITH_SANDBOX, *WITHOUT_SANDBOX):
            drew = _draw(path, *flags)
            if DRAWN in drew.out:
                return Finding("browser", True, f"{version} draws a page {' '.join(flags)}".strip())
        failures.append(f"{path} drew no page: {drew.why}")
    return Finding("browser", False, "; ".join(failures), install)


def docker(system: System) -> Finding:
    """A Docker daemon that answers."""
    install = system.install("docker.io", "see https://docs.docker.com/engine/install/")
    if shutil.which("docker") is None:
        return Finding("docker", False, "the program docker is not on PATH", install)
    answer = tried(["docker", "info", "--format", "{{.ServerVersion}}"], 15)
    version = answer.out.strip()
    if answer.ok and version:
        return Finding("docker", True, f"Docker daemon {version}")
    if "permission denied" in answer.why.lower():
        fix = f"{system.as_root('usermod -aG docker $USER')} && newgrp docker"
    elif shutil.which("dockerd") is None:
        fix = install
    elif system.systemd:
        fix = system.as_root("systemctl start docker")
    else:
        fix = system.as_root("dockerd")
    return Finding("docker", False, f"the daemon does not answer: {answer.why}", fix)


def podman(system: System) -> Finding:
    """A Podman socket that answers as Docker's does."""
    for path in _podman_sockets():
        try:
            return Finding("podman", True, f"socket {path} answers {_ping(path)}")
        except (OSError, http.client.HTTPException) as error:
            why = f"the socket {path} does not answer: {error}"
            break
    else:
        why = "there is no Podman socket"
    scope = "" if system.root else "--user "
    fix = f"systemctl {scope}enable --now podman.socket"
    if not system.systemd:
        fix = "podman system service --time=0 &"
    if shutil.which("podman") is None:
        install = system.install("podman", "see https://podman.io/docs/installation")
        fix = f"{install} && {fix}" if system.apt else install
    return Finding("podman", False, why, fix)


def java(system: System) -> Finding:
    """A Java runtime."""
    install = system.install("default-jre-headless", "see https://adoptium.net/installation/")
    if shutil.which("java") is None:
        return Finding("java", False, "the program java is not on PATH", install)
    answer = tried(["java", "-version"], 30)
    if not answer.ok:
        return Finding("java", False, answer.why, install)
    lines = [line for line in answer.error.splitlines() if "version" in line]
    return Finding("java", True, lines[0] if lines else "java runs")


def gpu(system: System) -> Finding:
    """An NVIDIA GPU; where PyTorch is installed, that has to compute on it."""
    if not _has_nvidia():
        return Finding("gpu", False, "no NVIDIA GPU in this machine; nothing here needs one")
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    answer = tried(asked, 20)
    if not answer.ok:
        driver = "ubuntu-drivers install" if system.ubuntu else "apt-get install -y nvidia-driver"
        fix = system.as_root(driver) if system.apt else "see https://www.nvidia.com/drivers"
        return Finding("gpu", False, f"the driver does not answer: {answer.why}", fix)
    found = "; ".join(answer.out.strip().splitlines())
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Finding("gpu", True, f"{found} (PyTorch is not installed)")
    computed = tried(
        [sys.executable, "-c", "import torch; print(torch.ones(3, device='cuda').sum().item())"], 90
    )
    if computed.out.strip() == "3.0":
        return Finding("gpu", True, f"{found}; PyTorch {version} computes on it")
    fix = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126"
    return Finding("gpu", False, f"{found}; PyTorch {version} does not: {computed.why}", fix)


def _browsers() -> list[str]:
    on_path = [path for name in BROWSERS if (path := shutil.which(name)) is not None]
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright")
    patterns = ("*/*/headless_shell", "*/*/chrome-headless-shell", "*/*/chrome")
    downloaded = [p for pattern in patterns for p in sorted(cache.expanduser().glob(pattern))]
    return on_path + [str(path) for path in downloaded]


def _draw(path: str, *flags: str) -> Trial:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        common = ("--headless", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom", PAGE)
        return tried([path, *flags, *common], 40)


def _podman_sockets() -> list[str]:
    named = os.environ.get("CONTAINER_HOST", "")
    own = Path(os.environ.get("XDG_RUNTIME_DIR", "/run/user/none"), "podman/podman.sock")
    paths = [named.removeprefix("unix://")] if named.startswith("unix://") else []
    return [p for p in [*paths, str(own), "/run/podman/podman.sock"] if Path(p).exists()]


class _UnixConnection(http.client.HTTPConnection):
    """HTTP through a socket in the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _ping(path: str) -> str:
    connection = _UnixConnection(path)
    try:
        connection.request("GET", "/_ping")
        return connection.getresponse().read(100).decode(errors="replace").strip()
    finally:
        connection.close()


def _has_nvidia() -> bool:
    if shutil.which("nvidia-smi") is not None or Path("/dev/nvidiactl").exists():
        return True
    vendors = Path("/sys/bus/pci/devices").glob("*/vendor")
    classes = [(v.read_text().strip(), v.with_name("class").read_text()) for v in vendors]
    return any(vendor == "0x10de" and kind.startswith("0x03") for vendor, kind in classes)
