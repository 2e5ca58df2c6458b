"""Every kind of sandbox works in a pool: native, process, replay, and repositories with shells."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.core.errors import InvalidActionError
from sandboxgym.pool import Reset, Restore
from sandboxgym.sandboxes.repo.backend import Limits
from tests.pool.test_recovery import kill
from tests.pool.toys import NotForkable, plain
from tests.sandboxes.repo.conftest import make_overlay_backend


def by(mechanism: str) -> gym.Env:
    return sg.forkable(NotForkable(), mechanism, factory=NotForkable)


@pytest.mark.parametrize("mechanism", ["native", "process", "copy", "replay"])
def test_every_mechanism(mechanism):
    with sg.ForkPool(partial(by, mechanism), 4, workers=2) as pool:
        pool.reset(0, seed=1)
        pool.step({0: 1})
        moment = pool.snapshot(0)
        forks = pool.branch(0, 3)
        lanes = [0, *forks]
        results = [pool.step(dict.fromkeys(lanes, 1)) for _ in range(3)]
        assert all(len(set(map(str, result.values()))) == 1 for result in results)
        kill(pool)
        pool.do({lane: Restore(moment) for lane in lanes})
        again = [pool.step(dict.fromkeys(lanes, 1)) for _ in range(3)]
        assert plain(again) == plain(results)


def test_alfworld():
    kwargs = {"source": "synthetic", "num_games": 1}
    with sg.ForkPool("sandboxgym/ALFWorld-v0", 4, env_kwargs=kwargs, workers=2) as pool:
        _, info = pool.reset(0, seed=1)
        forks = pool.branch(0, 3)
        commands = dict(zip([0, *forks], info["admissible_commands"], strict=False))
        results = pool.step(commands)
        assert len({result[0] for result in results.values()}) > 1
        with pytest.raises(InvalidActionError, match=f"lane {forks[0]}"):
            pool.step({forks[0]: 3})


def test_a_repository(tmp_path):
    make_overlay_backend(Limits()).close()  # or the test is skipped, with the reason
    (tmp_path / "README").write_text("read me\n")
    kwargs = {"repository": str(tmp_path), "commit": None}
    with sg.ForkPool("sandboxgym/Repo-v0", 4, env_kwargs=kwargs, workers=2) as pool:
        pool.do({0: Reset(1)})
        pool.step({0: "cd /tmp; export WHO=me; echo first > note"})
        lanes = [0, *pool.branch(0, 3)]
        results = pool.step({lane: f"echo $WHO {lane} >> note; cat note" for lane in lanes})
        assert {lane: result[0]["output"] for lane, result in results.items()} == {
            lane: f"first\nme {lane}\n" for lane in lanes
        }
        kill(pool)
        results = pool.step(dict.fromkeys(lanes, "pwd; cat note"))
        assert {lane: result[0]["output"] for lane, result in results.items()} == {
            lane: f"/tmp\nfirst\nme {lane}\n" for lane in lanes
        }
        assert len(pool.take_restarts()) == 4
