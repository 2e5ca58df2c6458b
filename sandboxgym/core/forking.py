"""`snapshot`, `restore` and `fork` on any stack of wrappers around a `ForkableEnv`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxgym.core import rng
from sandboxgym.core.digest import Difference, first_difference
from sandboxgym.core.errors import (
    NotResetError,
    RestoreFailedError,
    RestoreMismatchError,
    SnapshotError,
    StateEncodingError,
    UncapturedStateError,
)
from sandboxgym.core.plain import owned
from sandboxgym.core.record import BEFORE_RESET, Record
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.core.stack import AnyEnv, Stack
from sandboxgym.core.tensors import revived

if TYPE_CHECKING:
    from sandboxgym.core.env import ForkableEnv

__all__ = [
    "AnyEnv",
    "Stack",
    "fork",
    "recipe_of",
    "reseed",
    "restore",
    "snapshot",
    "state_digest",
]

EnvType = TypeVar("EnvType", bound=AnyEnv)


def snapshot(env: AnyEnv) -> Snapshot:
    """Capture this moment of an environment, all its wrappers included.

    Changes nothing that a later observation could show.

    Args:
        env: A `ForkableEnv` under any stack of wrappers with declared rules. Give the outermost
            wrapper: what lies outside of `env` is not captured.

    Raises:
        NotResetError: The environment was never reset.
        NotForkableError: The innermost environment is no `ForkableEnv`.
        UnknownWrapperError: A wrapper has no declared rule.
        StateEncodingError: `get_state` returned something that is not plain data.
        UncapturedStateError: The environment is in a state that its mechanism cannot capture.
    """
    return _take(Stack.of(env), hold=True)


def restore(
    env: AnyEnv,
    snapshot: Snapshot,
    *,
    seed: int | None = None,
    verify: bool | None = None,
    rewind_statistics: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Return to the moment of a snapshot, all wrappers included.

    Works on the environment that made the snapshot, on any other of the same spec and wrapper
    stack, and on one that was never reset. On an error the environment is as it was before.

    Args:
        env: Where to restore; its wrapper stack must equal the snapshot's.
        snapshot: The moment to return to; it is not changed and may be restored again.
        seed: Start new randomness after restoring. None continues exactly as the original would.
        verify: Compare the digest of the restored state with the snapshot's. None verifies replays
            and snapshots that were loaded from bytes; a replay is verified in any case.
        rewind_statistics: Put the running statistics of `NormalizeObservation` and
            `NormalizeReward` back too. By default they stay as this environment has gathered them;
            one that has gathered none takes the snapshot's.

    Returns:
        The observation and info that the environment returned at that moment.

    Raises:
        SpecMismatchError: The snapshot belongs to another environment.
        WrapperMismatchError: It was taken through another stack of wrappers.
        SnapshotVersionError: Its state was captured by another version.
        RestoreMismatchError: The restored state is not the snapshot's.
        RestoreFailedError: `set_state` or the replay raised.
        MissingDependencyError: It holds arrays of a framework that is not to be had here.
    """
    stack = Stack.of(env)
    stack.check_accepts(snapshot)
    obs, info = revived(snapshot.last.obs), revived(snapshot.last.info)
    before = _present(stack, snapshot)
    try:
        way = _apply(stack, snapshot, rewind_statistics=rewind_statistics)
        if verify or snapshot.loaded or way is not Way.SET:
            _verify(stack, snapshot, way, statistics=rewind_statistics)
        if seed is not None:
            _reseed(stack.base, seed)
    except BaseException as error:
        _undo(stack, before, error)
        if isinstance(error, SnapshotError) or not isinstance(error, Exception):
            raise
        raise RestoreFailedError(
            f"{type(stack.base).__name__} could not be restored to step {snapshot.step} "
            f"({type(error).__name__}: {error}); it is as it was before"
        ) from error
    metrics = stack.base.metrics
    metrics["restores"] = metrics.get("restores", 0) + 1
    return obs, info


def fork(env: EnvType, n: int, *, seeds: Sequence[int] | None = None) -> list[EnvType]:
    """Make `n` live environments in the same state as `env`, each independent of all others.

    Args:
        env: The environment to fork; it is not changed and is not among the result.
        n: How many.
        seeds: One seed for each fork, to give each its own randomness. None makes exact twins.

    Raises:
        ReproductionError: A wrapper of the stack does not record how it was constructed.
        ValueError: `n` is negative, or the number of seeds is not `n`.
    """
    if n < 0 or (seeds is not None and len(seeds) != n):
        raise ValueError(f"fork needs n >= 0 and one seed a fork; got n={n} and seeds={seeds}")
    stack = Stack.of(env)
    moment = _take(stack, hold=True)
    forks: list[EnvType] = []
    try:
        for i in range(n):
            twin = stack.reproduce()
            forks.append(twin)
            seed = None if seeds is None else int(seeds[i])
            restore(twin, moment, seed=seed, rewind_statistics=True)
    except BaseException:
        for twin in forks:
            twin.close()
        raise
    return forks


def state_digest(env: AnyEnv) -> str:
    """Canonical hash of everything that decides an environment's future.

    Raises:
        NotResetError: The environment was never reset.
    """
    return _take(Stack.of(env)).digest


def recipe_of(env: AnyEnv) -> Snapshot:
    """This moment by its recipe alone: a small snapshot, whose restore replays and verifies.

    Raises:
        NotResetError: The environment was never reset.
    """
    return _take(Stack.of(env)).drop_state()


def reseed(env: AnyEnv, seed: int) -> None:
    """Start new randomness in the midst of an episode, as a `restore` with a seed does.

    Raises:
        NotResetError: The environment was never reset.
    """
    base = Stack.of(env).base
    if base._record is None:
        raise NotResetError(f"{type(base).__name__} was never reset: call reset() before reseed()")
    _reseed(base, seed)


class Way(Enum):
    """How the state of a snapshot was put back."""

    RESUMED = "resuming what was held"
    SET = "setting its state"
    REPLAYED = "replaying its recipe"


def _take(stack: Stack, *, hold: bool = False) -> Snapshot:
    base = stack.base
    record = base._record
    if record is None:
        raise NotResetError(
            f"{type(base).__name__} was never reset: call reset() before snapshot()"
        )
    state = owned(base.get_state(), "state")
    if state is None:
        raise StateEncodingError(
            f"{type(base).__name__}.get_state() returned None, which stands for a state that was "
            "dropped: return {} where there is nothing to say"
        )
    return Snapshot(
        spec=base.sandbox_spec,
        versions=base.sandbox_versions,
        recipe=record.recipe(base),
        state=state,
        last=stack.last(),
        inner=record.last,
        wrappers=stack.capture(),
        rng=rng.capture(base),
        parent=record.parent,
        created_by=base.fidelity.mechanism,
        held=base.hold() if hold else None,
    )


def _present(stack: Stack, snapshot: Snapshot) -> Snapshot | None:
    """Where to return to if restoring fails; None for an environment that was never reset.

    A replay steps the environment on its way, so the present is held where it can be. Resuming
    what is held changes nothing when it fails.
    """
    if stack.base._record is None:
        return None
    if snapshot.held is None:
        try:
            return _take(stack, hold=True)
        except UncapturedStateError:
            pass  # the recipe of the present has to do
    return _take(stack)


def _apply(stack: Stack, snapshot: Snapshot, *, rewind_statistics: bool) -> Way:
    """Put a snapshot back in the fastest way at hand."""
    base = stack.base
    held = snapshot.held
    if held is None and snapshot.packed is not None:
        held = base.unpack(snapshot.packed)
    if held is not None and base.resume(held):
        way = Way.RESUMED
    elif snapshot.state is not None and not base.state_is_witness:
        base.set_state(owned(snapshot.state))
        way = Way.SET
    else:
        _replay(base, snapshot)
        way = Way.REPLAYED
    if way is Way.REPLAYED:
        rng.apply_spaces(base, snapshot.rng)
    else:
        rng.apply(base, snapshot.rng)
        base._record = Record.of(snapshot, base)
    stack.apply(snapshot, rewind_statistics=rewind_statistics)
    return way


def _replay(base: ForkableEnv[Any, Any], snapshot: Snapshot) -> None:
    """Bring the base environment to the snapshot by doing again what was done."""
    recipe = snapshot.recipe
    if recipe.rng is not None:
        base._np_random = rng.generator_from(recipe.rng, base._np_random)
        base._np_random_seed = snapshot.rng["np_random_seed"]
    moves: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for taken, index, state in recipe.moved:
        moves.setdefault(taken, []).append((index, state))
    reseeds: dict[int, list[int]] = {}
    for taken, seed in recipe.reseeds:
        reseeds.setdefault(taken, []).append(seed)

    def touch_generators(taken: int) -> None:
        for seed in reseeds.get(taken, ()):
            _reseed(base, seed)
        for index, state in moves.get(taken, ()):
            rng.move(base, index, state)

    touch_generators(BEFORE_RESET)
    base.reset(seed=recipe.seed, options=revived(recipe.options))
    for taken, action in enumerate(recipe.actions):
        touch_generators(taken)
        base.step(revived(action))
    touch_generators(len(recipe.actions))
    assert base._record is not None
    base._record.parent = snapshot.digest
    metrics = base.metrics
    metrics["replayed_steps"] = metrics.get("replayed_steps", 0) + len(recipe.actions)


def _reseed(base: ForkableEnv[Any, Any], seed: int) -> None:
    record = base._record
    assert record is not None
    base.reseed(seed)
    taken = len(record.actions)
    record.reseeds = (*record.reseeds, (taken, seed))
    # A replay reseeds before it moves; what moved the generator earlier no longer matters.
    record.moved = tuple(move for move in record.moved if move[:2] != (taken, 0))
    record.replayed[0] = rng.generator_state(base._np_random)


def _verify(stack: Stack, snapshot: Snapshot, way: Way, *, statistics: bool) -> None:
    """Refuse a restored state that is not the snapshot's, naming the first difference."""
    found = _take(stack)
    difference = _difference(snapshot, found, statistics=statistics)
    if found.digest == snapshot.digest and difference is None:
        return
    if difference is None and snapshot.state is not None:
        difference = next(iter(snapshot.diff(found, limit=1)), None)
    digests = (
        "" if found.digest == snapshot.digest else f"digest {found.digest}, not {snapshot.digest}; "
    )
    raise RestoreMismatchError(
        f"{way.value} gave another state than the snapshot's ({digests}first difference: "
        f"{difference or 'inside the dropped state'}). The environment is not deterministic, or "
        "its get_state misses something: run `sandboxgym check` on it"
    )


def _difference(snapshot: Snapshot, found: Snapshot, *, statistics: bool) -> Difference | None:
    """The first difference in what the digest does not cover."""
    for left, right in ((snapshot.inner, found.inner), (snapshot.last, found.last)):
        difference = first_difference(left.as_dict(), right.as_dict())
        if difference is not None:
            return difference
    if not statistics:
        return None
    return first_difference(
        [wrapper.statistics for wrapper in snapshot.wrappers],
        [wrapper.statistics for wrapper in found.wrappers],
    )


def _undo(stack: Stack, before: Snapshot | None, cause: BaseException) -> None:
    """Put the environment back to `before`; where that fails too, close it and say so.

    Returns quietly after an interrupt, which is what the caller goes on to raise: nobody who
    goes on after a failed restore should go on after Ctrl+C.
    """
    if before is None:
        stack.base._record = None
        return
    try:
        way = _apply(stack, before, rewind_statistics=True)
        if way is Way.REPLAYED:
            _verify(stack, before, way, statistics=True)
        stack.base._record.parent = before.parent  # type: ignore[union-attr]  # _apply sets it
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        stack.base._record = None
        stack.base.close()
        if not isinstance(cause, Exception):
            return
        raise RestoreFailedError(
            f"{type(stack.base).__name__} could not be restored ({cause}), and could not be put "
            f"back to where it was either ({type(error).__name__}: {error}): it was closed"
        ) from cause
