"""Live forks must not see each other."""

from __future__ import annotations

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Lab, Script
from sandboxgym.conformance.subject import Seen, Subject


@check("12-siblings-are-isolated", needs=("08", "14"))
def siblings_are_isolated(lab: Lab) -> None:
    """Branches that share a list, a buffer or a file mix their episodes without a sign."""
    parent = lab.make()
    for script in lab.in_turn():
        at = script.moments[0]
        seen = [parent.reset(script.seed), *parent.play(script.actions[:at])][-1]
        ways = [_way_alone(lab, parent, script, at, seen, salt) for salt in (5, 6)]
        twins = lab.fork(parent, 2)
        for step in range(at, at + lab.depth):
            for twin, way in zip(twins, ways, strict=True):
                _goes_its_way(lab, twin, way, slice(step, step + 1), "beside a sibling")
        left, right = lab.fork(parent, 2)
        left.play(ways[0].actions[at : at + 1])
        left.close()
        _goes_its_way(lab, right, ways[1], slice(at, None), "after a sibling was closed")


def _way_alone(lab: Lab, parent: Subject, script: Script, at: int, seen: Seen, salt: int) -> Script:
    """What a fork does that has no live sibling: the episode up to the fork, then another way."""
    (fork,) = lab.fork(parent, 1)
    way = lab.detour(fork, seen, lab.depth, salt)
    fork.close()
    past = script.trace[:at]
    return Script(script.seed, script.actions[:at] + way.actions, past + way.trace)


def _goes_its_way(lab: Lab, fork: Subject, way: Script, steps: slice, how: str) -> None:
    lab.doing = way
    expected = way.trace[1:][steps]
    lab.repeats(fork, way.actions[steps], expected, f"a fork {how}", after=steps.start)


@check("13-parent-and-child-are-isolated", needs=("08", "14"))
def parent_and_child_are_isolated(lab: Lab) -> None:
    """A search expands a node while its parent goes on; neither may notice."""
    for script in lab.in_turn():
        parent = lab.make()
        case = lab.case(parent, script, script.moments[0])
        parent.reset(script.seed)
        parent.play(case.past_actions)
        child, waiting = lab.fork(parent, 2)
        lab.detour(child, case.past[-1], 2, salt=6)
        child.close()
        lab.continues(parent, case, "after a child was played and closed, the parent from step")
        (late,) = lab.fork(waiting, 1)
        lab.continues(waiting, case, "after the parent had played on, a child forked at step")
        parent.close()
        lab.continues(late, case, "after the parent was closed, a grandchild forked at step")
