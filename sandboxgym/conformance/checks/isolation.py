"""Live forks must not see each other."""

from __future__ import annotations

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Lab


@check("12-siblings-are-isolated", needs=("08",))
def siblings_are_isolated(lab: Lab) -> None:
    """Branches that share a list, a buffer or a file mix their episodes without a sign."""
    parent = lab.make()
    for script in lab.in_turn():
        at = script.moments[0]
        before = [parent.reset(script.seed), *parent.play(script.actions[:at])]
        alone_left, alone_right = lab.fork(parent, 2)
        rest = script.actions[at:]
        left_future = alone_left.play(rest)
        way = lab.detour(alone_right, before[-1], len(rest), salt=5)
        left, right = lab.fork(parent, 2)
        how = f"forked at step {at} beside a sibling that goes another way"
        for step in range(len(rest)):
            if step < len(way.actions):
                lab.repeats(right, [way.actions[step]], [way.trace[step + 1]], how, after=at + step)
            lab.repeats(left, [rest[step]], [left_future[step]], how, after=at + step)
        left, right = lab.fork(parent, 2)
        left.play(rest[:1])
        left.close()
        how = f"forked at step {at}, after a sibling was closed"
        lab.repeats(right, way.actions, way.trace[1:], how, after=at)


@check("13-parent-and-child-are-isolated", needs=("08",))
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
