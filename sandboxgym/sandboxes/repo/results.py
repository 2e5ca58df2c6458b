"""What all backends say of a command and of a moment, in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.sandboxes.repo.backend import CommandResult

BYTES_OF_A_CHARACTER = 4  # at most, in UTF-8


def result_of(
    printed: bytes,
    elided: int,
    limit: int,
    *,
    returncode: int,
    ended_sandbox: bool,
    reached: Iterable[str],
) -> CommandResult:
    """The result of a command.

    Args:
        printed: What it printed; `elided` bytes are missing in its middle already.
        elided: How many those are.
        limit: Characters of output that are kept.
        returncode: Its exit status.
        ended_sandbox: Whether it ended all processes of the sandbox.
        reached: The limits that it reached, beside that of its output.
    """
    shown, left_out = shortened(printed, elided, limit)
    limits = {*reached, *(["output"] if left_out else [])}
    return CommandResult(
        output=shown,
        returncode=returncode,
        timed_out="seconds" in limits,
        truncated=left_out > 0,
        elided_chars=left_out,
        ended_sandbox=ended_sandbox,
        limits_reached=tuple(sorted(limits)),
    )


def shortened(printed: bytes, elided: int, limit: int) -> tuple[str, int]:
    """Text of what was printed, within the limit, and how many characters are left out.

    `elided` bytes are missing in the middle of `printed` already.
    """
    half = limit // 2
    if elided:
        middle = len(printed) // 2
        head = printed[:middle].decode("utf-8", "replace")[:half]
        tail = printed[middle:].decode("utf-8", "replace")[-half:]
        left_out = elided + len(printed) - len(head.encode()) - len(tail.encode())
        return head + tail, left_out
    text = printed.decode("utf-8", "replace")
    if len(text) <= 2 * half:
        return text, 0
    return text[:half] + text[-half:], len(text) - 2 * half


def refuse_background(running: Sequence[str]) -> None:
    """Refuse to capture a sandbox in which something runs.

    Raises:
        UncapturedStateError: There are such command lines.
    """
    if running:
        raise UncapturedStateError(
            f"processes run in the background ({'; '.join(running)}), and a snapshot "
            "cannot hold them: end them first, or pass allow_process_loss=True"
        )
