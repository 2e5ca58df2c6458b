from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandboxgym.core.errors import InvalidActionError, InvalidOptionsError, NotResetError
from sandboxgym.sandboxes.text import testbed_games
from tests.peers.text_forks import assert_all_ways_lead_on, differing_round_trips

pytestmark = pytest.mark.peers
scienceworld = pytest.importorskip("scienceworld", reason="needs ScienceWorld")
if shutil.which("java") is None:
    pytest.skip("needs Java", allow_module_level=True)

from sandboxgym.sandboxes.text.scienceworld import ScienceWorldEnv  # noqa: E402

make = testbed_games.scienceworld_env
COMMANDS = ("look around", "inventory", "open cupboard", "go to hallway", "go to kitchen", "wait1")


def any_command(info, dice):
    return dice.choice(info.get("admissible_commands", COMMANDS))


@pytest.fixture(scope="module")
def env():
    env = ScienceWorldEnv("boil", simplifications="easy")
    yield env
    env.close()


def test_round_trips_show_no_difference():
    found = differing_round_trips(
        make, 20, depth=8, after=3, seeds=4, fresh_every=10, choose=any_command
    )
    assert found == []


def test_every_way_of_restoring_leads_on_as_if_nothing_had_happened(tmp_path):
    assert_all_ways_lead_on(make, "scienceworld_env", tmp_path, depth=3, choose=any_command)


def test_the_library_alone_does_not_repeat_itself():
    """With Java's usual hashes of objects, the same variation begins in another order."""
    library = scienceworld.ScienceWorldEnv("", envStepLimit=1000)
    said = set()
    for _ in range(12):
        library.load("find-living-thing", 1, "easy")
        said.add(library.reset()[0])
    library.close()
    assert len(said) > 1


def test_here_the_same_variation_always_begins_alike(env):
    said = [env.reset(options={"task": "find-living-thing", "variation": 1})[0] for _ in range(6)]
    other = ScienceWorldEnv("find-living-thing", simplifications="easy")
    said += [other.reset(options={"variation": 1})[0]]
    other.close()
    assert len(set(said)) == 1


def test_an_info_has_what_an_agent_needs(env):
    obs, info = env.reset(seed=0)
    assert obs in env.observation_space
    assert info["admissible_commands"] == sorted(set(info["admissible_commands"]))
    assert {"task_description", "look", "inventory", "score", "moves", "won"} <= set(info)
    assert info["task"] == "boil"
    _, reward, terminated, truncated, after = env.step(info["admissible_commands"][0])
    assert reward == after["score"] - info["score"]
    assert [terminated, truncated] == [False, False]


def test_seeds_draw_variations_of_the_split(env):
    drawn = {env.reset(seed=seed)[1]["variation"] for seed in range(4)}
    assert len(drawn) > 1
    assert drawn <= set(env.library.get_variations_train())
    assert env.reset(seed=1)[1]["variation"] == env.reset(seed=1)[1]["variation"]


@pytest.mark.parametrize(
    "options",
    [{"task": "nap"}, {"variation": -1}, {"variation": 10**6}, {"variation": "1"}, {"x": 1}],
)
def test_wrong_options_are_refused_and_the_episode_goes_on(env, options):
    env.reset(seed=0)
    with pytest.raises(InvalidOptionsError):
        env.reset(options=options)
    assert env.step("look around")[0]


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="nap"):
        ScienceWorldEnv("nap")
    with pytest.raises(ValueError, match="holdout"):
        ScienceWorldEnv("boil", "holdout")


def test_only_texts_are_commands(env):
    env.reset(seed=0)
    for action in (1, "\ud800"):
        with pytest.raises(InvalidActionError):
            env.step(action)


def test_closing_ends_the_java_machine_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    env = make()
    env.reset(seed=0)
    machine = env.library._gateway.java_process
    env.close()
    assert machine.poll() is not None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotResetError):
        env.step("look around")
    env.close()


def test_the_java_machine_does_not_survive_its_owner():
    program = (
        "from sandboxgym.sandboxes.text.testbed_games import scienceworld_env\n"
        "env = scienceworld_env()\n"
        "print(env.library._gateway.java_process.pid, flush=True)\n"
        "input()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    machine = int(owner.stdout.readline())
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    for _ in range(100):
        if not alive(machine):
            break
        time.sleep(0.1)
    assert not alive(machine)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
