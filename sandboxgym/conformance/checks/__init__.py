"""All checks, in the order in which they are run."""

from sandboxgym.conformance.check import Check
from sandboxgym.conformance.checks import (
    concurrency,
    costs,
    determinism,
    digests,
    endings,
    isolation,
    ownership,
    randomness,
    refusals,
    restoring,
    travelling,
    vectors,
)

CHECKS: tuple[Check, ...] = (
    determinism.plays_and_captures,
    determinism.same_seed_same_episode,
    determinism.same_in_another_process,
    determinism.seeds_differ,
    restoring.snapshot_is_pure,
    restoring.restore_returns_the_moment,
    restoring.restored_continues_exactly,
    restoring.restore_into_a_used_instance,
    restoring.restore_into_a_fresh_instance,
    travelling.restore_in_another_process,
    travelling.through_a_file,
    travelling.by_recipe_alone,
    isolation.siblings_are_isolated,
    isolation.parent_and_child_are_isolated,
    restoring.many_restores_in_any_order,
    travelling.after_the_maker_is_closed,
    randomness.randomness,
    endings.wrapper_counters,
    endings.ended_episodes,
    restoring.at_step_zero,
    ownership.observations_are_owned,
    ownership.snapshots_are_owned,
    digests.digest,
    refusals.errors_change_nothing,
    costs.no_leaks,
    costs.latency,
    concurrency.forks_in_threads,
    concurrency.restores_in_many_processes,
    vectors.in_a_sync_vector,
    vectors.in_an_async_vector,
)

BY_NUMBER = {check.number: check for check in CHECKS}
RECORDING = "00"
"""The number of the check that records the episodes."""
