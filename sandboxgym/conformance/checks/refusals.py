"""What is refused must leave the environment as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, Lab
from sandboxgym.conformance.outcome import CheckFailedError
from sandboxgym.conformance.subject import Subject
from sandboxgym.core.errors import NotResetError, SnapshotError
from sandboxgym.core.snapshot import SandboxSpec, Snapshot, WrapperState

NO_ACTIONS: tuple[Any, ...] = ({"no such": "action"}, None, -(10**9), "\0")
"""Things that hardly any environment takes for an action."""


@check("23-errors-change-nothing", needs=("05", "10"))
def errors_change_nothing(lab: Lab) -> None:
    """One bad file or one bad action must not spoil an episode that is under way."""
    fresh = lab.make()
    _must_raise(NotResetError, fresh.snapshot, "a snapshot before the first reset")
    for script in lab.in_turn():
        case = lab.case(lab.make(), script, script.moments[-1])
        for what, attempt in _refusals(case):
            case.maker.restore(case.snapshot)
            _must_raise(SnapshotError, attempt, what)
            _goes_on(lab, case, f"after refusing {what}")
        damaged = replace(
            case.snapshot, state=_damaged(case.snapshot.state), _digest=case.snapshot.digest
        )
        # What an environment makes of half a state is its own choice, as long as it is verified.
        case.maker.restore(case.snapshot)
        _raises(partial(case.maker.restore, damaged, verify=True))
        _goes_on(lab, case, "after a restore of a damaged state")
        for action in NO_ACTIONS:
            case.maker.restore(case.snapshot)
            if _raises(partial(case.maker.raw_step, action)) and not _wants_a_reset(case.maker):
                _goes_on(lab, case, f"after refusing the action {action!r}")


def _refusals(case: Case) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What has to be refused with a `SnapshotError`, and how to try it."""
    maker, snapshot = case.maker, case.snapshot
    data = snapshot.to_bytes()
    flipped = data[:-1] + bytes([data[-1] ^ 1])
    for what, broken in (
        ("the bytes of a snapshot with a flipped bit", flipped),
        ("the first half of a snapshot's bytes", data[: len(data) // 2]),
        ("bytes of another kind", b"PK\3\4" + data),
        ("no bytes", b""),
    ):
        yield what, partial(_restore_bytes, maker, broken)
    foreign = replace(snapshot, spec=SandboxSpec("elsewhere/Other-v0", {}))
    stranger = WrapperState("elsewhere:Wrapper", {}, {}, {})
    for what, wrong in (
        ("a snapshot of another environment", foreign),
        ("a snapshot of another version", replace(snapshot, versions={"elsewhere": "1"})),
        (
            "a snapshot through another stack",
            replace(snapshot, wrappers=(*snapshot.wrappers, stranger)),
        ),
    ):
        yield what, partial(maker.restore, wrong)
    lying = replace(snapshot, _digest="0" * len(snapshot.digest))
    yield "a snapshot whose digest is another's", partial(maker.restore, lying, verify=True)


def _restore_bytes(maker: Subject, data: bytes) -> None:
    maker.restore(Snapshot.from_bytes(data))


def _damaged(state: Any) -> Any:
    """A state that lacks its last part."""
    if isinstance(state, dict) and state:
        return dict(list(state.items())[:-1])
    return None


def _must_raise(kind: type[Exception], attempt: Callable[[], Any], what: str) -> None:
    try:
        attempt()
    except kind:
        return
    raise CheckFailedError(f"{what} was not refused with a {kind.__name__}")


def _raises(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except Exception:  # noqa: BLE001 - how an environment refuses is its own choice
        return True
    return False


def _wants_a_reset(maker: Subject) -> bool:
    """Whether the environment says that its episode is over, as after an error half-way."""
    try:
        maker.snapshot()
    except NotResetError:
        return True
    return False


def _goes_on(lab: Lab, case: Case, how: str) -> None:
    lab.same_moment(case.snapshot, case.maker.snapshot(), f"{how}, step {case.at}")
    lab.continues(case.maker, case, f"{how}, the episode from step")
