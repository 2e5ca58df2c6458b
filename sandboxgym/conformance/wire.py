"""Results on their way from one process to another: as plain data, never pickled."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sandboxgym.conformance.report import CheckResult, Facts
from sandboxgym.core import codec


def pack_result(result: CheckResult, facts: Facts) -> bytes:
    """A result, and what is known of the environment."""
    return codec.encode(_writable([asdict(result), asdict(facts)]))


def unpack_result(data: bytes) -> tuple[CheckResult, Facts]:
    """What `pack_result` was given."""
    result, facts = codec.decode(data)
    return CheckResult(**result), Facts(**facts)


def pack_request(number: str, seconds: float | None) -> bytes:
    """Ask for a check, and within how many seconds."""
    return codec.encode([number, seconds])


def unpack_request(data: bytes) -> tuple[str, float | None]:
    """What `pack_request` was given."""
    number, seconds = codec.decode(data)
    return number, seconds


def _writable(tree: Any) -> Any:
    """`tree` with text that is no Unicode spelled out; whatever an environment says may be it."""
    if isinstance(tree, str):
        return tree.encode("utf-8", "backslashreplace").decode()
    if isinstance(tree, dict):
        return {_writable(key): _writable(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_writable(item) for item in tree)
    return tree
