"""The learner in sandboxes that are no text worlds, and in the workers of a pool."""

import numpy as np
import pytest

from sandboxgym_learners.collect import Collector
from sandboxgym_learners.faces import MINIWOB, SHELL, TEXT, WEBSHOP, WorldError, face_of
from sandboxgym_learners.policy import Act, Outlook, Policy
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.worlds import WorldConfig
from tests.learners.test_collect import At, actions


class Script(Policy):
    """Says what it is told to, by turns at random."""

    chooses = False

    def __init__(self, *lines):
        self.lines = lines
        self.forward_tokens = 0

    def consider(self, queries):
        return [Outlook(query, 1.0, "first token", None) for query in queries]

    def draw(self, outlooks, generators):
        drawn = [self.lines[int(g.integers(len(self.lines)))] for g in generators]
        return [Act(line, -np.log(len(self.lines)), 1, text=line) for line in drawn]

    recall = judge = divergence = None


def collect(world, *lines, depth=1, siblings=2, **options):
    collector = Collector(Script(*lines), world.make_train, PromptFormat(), world.face, **options)
    try:
        return collector.collect([0], roots=2, siblings=siblings, rule=At(depth), seed=(0, 1))[0]
    finally:
        collector.close()


def test_sandboxes_are_known_by_their_ids():
    assert face_of("sandboxgym/SWEBench-v0") is SHELL
    assert face_of("some.module:sandboxgym/WebShop-v0") is WEBSHOP
    assert face_of("sandboxgym/MiniWoB-v0") is MINIWOB
    assert face_of("tests.learners.errands:tests/Errands-v0") is TEXT
    with pytest.raises(WorldError, match="dict"):
        TEXT.begin({}, {})


def test_in_a_shop_the_instruction_is_the_task():
    world = WorldConfig(
        env="sandboxgym/WebShop-v0",
        arguments=("num_products=60",),
        train=("split=train",),
        horizon=3,
    )
    tree = collect(world, "search[shoe]", "click[back to search]")
    steps = list(tree.steps())
    assert steps[0].prompt.startswith("Task: ")
    assert "\n" not in steps[0].observation
    assert all(len(root.branch.members) == 2 for root in tree.members)


SHELLS = WorldConfig(env="sandboxgym/SWEBench-v0", arguments=("rows=shipped",), train=(), horizon=3)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_in_a_repository_text_is_a_command_and_submit_ends(workers):
    lines = ["touch made && ls", "touch made && ls", "submit", "false"]
    tree = collect(SHELLS, *lines, depth=0, siblings=4, workers=workers, lanes=8)
    steps = list(tree.steps())
    assert "Actual:\n" in steps[0].prompt, "a statement keeps its lines"
    seen = {step.action: step.observation for step in steps}
    assert "made" in seen["touch made && ls"]
    assert seen["false"] == "[exit status 1]"
    leaves = [visit.segment for visit in tree.leaves()]
    assert all(leaf.success is False for leaf in leaves)
    assert any(leaf.steps[-1].action == "submit" for leaf in leaves if leaf.steps)


@pytest.mark.usefixtures("browser")
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_in_a_browser_a_click_on_what_the_page_lists_wins(workers):
    buttons = WorldConfig(
        env="sandboxgym/MiniWoB-v0", arguments=("task=click-button",), train=(), horizon=2
    )
    lines = ["click('3')", "click('6')", "gibberish"]
    tree = collect(buttons, *lines, depth=0, siblings=5, workers=workers, lanes=10)
    first = next(tree.steps())
    assert first.prompt.startswith('Task: Click on the "okay" button.\n')
    assert "[3] button 'okay'" in first.prompt
    paid = {step.action: step.reward for step in tree.steps()}
    assert paid["click('3')"] > 0
    assert paid["gibberish"] == 0
    assert {visit.segment.success for visit in tree.leaves()} == {True, False}
    assert [len(group.members) for group in tree.groups()] == [2, 5, 5]


def test_a_pool_collects_what_one_process_does(errands):
    lines = ["look", "go to shelf 1", "go to shelf 2", "nonsense"]
    here, there = (collect(errands, *lines, workers=n, lanes=4) for n in (0, 2))
    assert actions(here) == actions(there)
    assert [s.observation for s in here.steps()] == [s.observation for s in there.steps()]


def test_a_pool_that_is_too_small_for_a_tree_is_refused(errands):
    with pytest.raises(WorldError, match=r"world\.lanes 4"):
        collect(errands, "look", workers=1, lanes=3)
