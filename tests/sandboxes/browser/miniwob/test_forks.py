import pytest

from benchmarks.miniwob_forks import survey
from sandboxgym.sandboxes.browser.miniwob import tasks

# Timers, animations, pointer events, a canvas, a frame, sliders, drafts.
SOME = (
    "chase-circle",
    "moving-items",
    "click-pie",
    "email-inbox-forward-nl",
    "drag-cube",
    "flight.Alaska",
)


def test_random_trips_are_exact() -> None:
    report = survey(list(SOME), trips=1, seed=0, budget_s=60)
    assert report["total"]["different"] == report["total"]["refused"] == 0, report["reasons"]
    assert report["trips"] == len(SOME)


@pytest.mark.slow
def test_random_trips_through_every_task_are_exact() -> None:
    report = survey(list(tasks.names()), trips=1, seed=1000, budget_s=3600)
    assert report["total"]["different"] == 0, report["reasons"]
    undeclared = [r for r in report["reasons"] if r["task"] not in tasks.INEXACT]
    assert len(undeclared) <= 0.02 * report["trips"], undeclared
