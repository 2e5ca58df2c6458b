"""What went wrong in a worker, as an exception that says in which lane."""

from __future__ import annotations

from typing import Any

from sandboxgym.mechanisms.process.failure import rebuild


def rebuilt(described: dict[str, Any], lane: int | None) -> Exception:
    """An exception that a worker has described, of the same class where that is known here.

    Its message begins with the lane, where it has a message; its attribute `lane` has the number.
    """
    if lane is None:
        return rebuild(described)
    args = described["args"]
    if len(args) == 1 and isinstance(args[0], str):
        args = [f"lane {lane}: {args[0]}"]
    text = f"lane {lane}: {described['text']}"
    error = rebuild({**described, "args": args, "text": text})
    error.lane = lane  # type: ignore[attr-defined]  # exceptions take attributes
    if hasattr(error, "add_note") and not str(error).startswith("lane"):
        error.add_note(f"in lane {lane}")
    return error
