"""A rollout tree that is collected in a pool is the one that is collected in this process."""

from __future__ import annotations

import sandboxgym as sg
from sandboxgym.pool import Reset, Restore, Step, Take
from tests.pool.test_recovery import kill
from tests.pool.toys import plain, walk

DEPTH, MEMBERS, BRANCHES = 6, 3, (1, 3)


def action_of(key: tuple[int, ...], depth: int) -> int:
    return (sum(key) + depth) % 2


def in_this_process() -> dict[tuple[int, ...], list]:
    """What each leaf has seen; roots get new randomness after the reset, as members do."""
    seen: dict[tuple[int, ...], list] = {}
    live = {}
    for root in range(2):
        env = live[root,] = walk()
        env.reset(seed=4)
        sg.restore(env, sg.snapshot(env), seed=root)
        seen[root,] = []
    for depth in range(DEPTH):
        if depth in BRANCHES:
            for root in range(2):
                moment = sg.snapshot(live[root,])
                for member in range(1, MEMBERS):
                    key = (root, depth, member)
                    env = live[key] = walk()
                    sg.restore(env, moment, seed=sum(key))
                    seen[key] = list(seen[root,])
        for key, env in live.items():
            seen[key].append(plain(env.step(action_of(key, depth))))
    return seen


def in_a_pool(pool: sg.ForkPool, disturb: bool) -> dict[tuple[int, ...], list]:
    seen: dict[tuple[int, ...], list] = {(root,): [] for root in range(2)}
    live = {(root,): pool.take() for root in range(2)}
    pool.do(dict.fromkeys(live.values(), Reset(4)))
    moments = pool.do(dict.fromkeys(live.values(), Take()))
    pool.do({lane: Restore(moments[lane], seed=key[0]) for key, lane in live.items()})
    for depth in range(DEPTH):
        if depth in BRANCHES:
            for root in range(2):
                keys = [(root, depth, member) for member in range(1, MEMBERS)]
                lanes = pool.branch(live[root,], len(keys), seeds=[sum(key) for key in keys])
                live |= dict(zip(keys, lanes, strict=True))
                seen |= {key: list(seen[root,]) for key in keys}
        if disturb and depth in (2, 4):
            kill(pool, depth // 4)
        results = pool.do({lane: Step(action_of(key, depth)) for key, lane in live.items()})
        for key, lane in live.items():
            seen[key].append(plain(results[lane]))
    pool.release(*live.values())
    return seen


def test_trees_are_the_same_wherever_they_are_collected():
    expected = in_this_process()
    assert len(expected) == 10
    assert len({str(leaf) for leaf in expected.values()}) > 7
    with sg.ForkPool(walk, 10, workers=2) as pool:
        assert in_a_pool(pool, disturb=False) == expected
        assert in_a_pool(pool, disturb=True) == expected
        assert pool.take_restarts()
