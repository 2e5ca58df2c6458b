from __future__ import annotations

import shutil

import pytest

from sandboxgym.core.errors import InvalidActionError, InvalidOptionsError, NotResetError
from sandboxgym.sandboxes.text import testbed_games
from tests.peers.text_forks import assert_all_ways_lead_on, differing_round_trips

pytestmark = pytest.mark.peers
textworld_express = pytest.importorskip("textworld_express", reason="needs TextWorld-Express")
if shutil.which("java") is None:
    pytest.skip("needs Java", allow_module_level=True)

from sandboxgym.sandboxes.text.textworld_express import GAMES, TextWorldExpressEnv  # noqa: E402

make = testbed_games.textworld_express_env


@pytest.fixture(scope="module")
def env():
    env = make()
    yield env
    env.close()


def test_round_trips_show_no_difference():
    assert differing_round_trips(make, 300, depth=20, after=4, fresh_every=75) == []


def test_every_way_of_restoring_leads_on_as_if_nothing_had_happened(tmp_path):
    assert_all_ways_lead_on(make, "textworld_express_env", tmp_path)


def test_the_library_s_clone_of_a_drawn_game_is_another_game():
    library = textworld_express.TextWorldExpressEnv(envStepLimit=100)
    library.load("cookingworld", "")
    tasks = set()
    for _ in range(3):
        said, _ = library.reset(gameFold="train", gameName="cookingworld", gameParams="")
        clone = library.clone()
        tasks.add(said == clone.runHistory[0]["observation"])
        clone.close()
    library.close()
    assert False in tasks


def test_an_unseeded_reset_here_can_be_repeated(env):
    env.reset(seed=3)
    env.reset()
    moment = env.snapshot()
    assert moment.recipe.seed is None
    twin = make()
    twin.restore(moment)
    assert twin.step("look around") == env.step("look around")
    twin.close()


@pytest.mark.parametrize("game", GAMES)
def test_every_game_repeats_itself_in_another_machine(game):
    one, two = TextWorldExpressEnv(game), TextWorldExpressEnv(game)
    two.reset(seed=8)  # used
    said = one.reset(seed=2)
    assert said == two.reset(seed=2)
    assert said[0] in one.observation_space
    info = said[1]
    for i in range(6):
        command = info["admissible_commands"][i % len(info["admissible_commands"])]
        said = one.step(command)
        assert said == two.step(command)
        info = said[-1]
        if said[2]:
            break
    one.close()
    two.close()


def test_an_info_has_what_an_agent_needs(env):
    _, info = env.reset(seed=0)
    assert info["admissible_commands"] == sorted(set(info["admissible_commands"]))
    assert {"task_description", "look", "inventory", "score", "moves", "won", "lost"} <= set(info)
    assert info["game_seed"] == env.reset(options={"game_seed": info["game_seed"]})[1]["game_seed"]


@pytest.mark.parametrize(
    "options", [{"game_seed": -1}, {"game_seed": "1"}, {"game_seed": True}, {"seed": 1}]
)
def test_wrong_options_are_refused_and_the_episode_goes_on(env, options):
    env.reset(seed=0)
    with pytest.raises(InvalidOptionsError):
        env.reset(options=options)
    assert env.step("look around")[0]


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="chess"):
        TextWorldExpressEnv("chess")
    with pytest.raises(ValueError, match="holdout"):
        TextWorldExpressEnv("coin", "holdout")


def test_only_texts_are_commands(env):
    env.reset(seed=0)
    with pytest.raises(InvalidActionError):
        env.step(3)


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
