"""`sandboxgym/WebShop-v0` as a Gymnasium environment that forks."""

from __future__ import annotations

import gymnasium as gym
import msgspec
import pytest
from gymnasium.utils.env_checker import check_env

import sandboxgym as sg
from sandboxgym.core.errors import (
    DataNotFoundError,
    EpisodeEndedError,
    InvalidActionError,
    InvalidOptionsError,
    SpecMismatchError,
)
from sandboxgym.sandboxes.webshop.env import WebShopEnv
from tests.sandboxes.webshop.small_shop import EveryWord
from tests.sandboxes.webshop.test_original import entry, write

NAME = "sandboxgym/WebShop-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A catalogue in files: five pairs of shoes in two sizes, each with goals of both kinds."""
    products, attributes, human = [], {}, {}
    for number in range(5):
        asin = f"B{number}"
        sizes = [{"value": "8"}, {"value": "9"}]
        products.append(
            entry(asin, name=f"Soft shoes {number}", customization_options={"size": sizes})
        )
        attributes[asin] = {
            "attributes": ["soft"],
            "instruction": f"Find me soft shoes {number}",
            "instruction_attributes": ["soft"],
        }
        wish = {"instruction": f"shoes {number}", "instruction_attributes": ["soft"],
                "instruction_options": ["8"]}  # fmt: skip
        human[asin] = [wish, wish]
    return write(tmp_path_factory.mktemp("catalogue"), products, attributes, human)


def make(folder, **kwargs):
    return gym.make(NAME, **({"catalogue": folder, "split": "all"} | kwargs))


def test_it_is_a_gymnasium_environment(folder):
    check_env(WebShopEnv("all", catalogue=folder), skip_render_check=True)


def test_a_purchase_earns_and_ends(folder):
    env = make(folder)
    _, info = env.reset(options={"goal": 0})
    assert info["instruction"].startswith("Find me soft shoes")
    assert (info["valid"], info["won"], info["has_search_bar"]) == (True, False, True)
    number = info["instruction"][len("Find me soft shoes ")]
    size = info["instruction"].partition("size: ")[2][0]
    for action in (f"search[shoes {number}]", f"click[b{number}]", f"click[{size}]"):
        _, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated, info["valid"]) == (0.0, False, False, True)
    observation, reward, terminated, _, info = env.step("click[buy now]")
    assert (reward, terminated, info["won"]) == (1.0, True, True)
    assert info["reward_parts"]["r_att"] == 1.0
    assert info["clickables"] == info["admissible_commands"] == []
    assert observation.startswith("Thank you")
    with pytest.raises(EpisodeEndedError):
        env.step("search[more]")


def test_what_does_nothing_is_told(folder):
    env = make(folder)
    first, _ = env.reset(seed=0)
    observation, reward, terminated, _, info = env.step("buy something nice")
    assert (observation, reward, terminated, info["valid"]) == (first, 0.0, False, False)


@pytest.mark.parametrize("action", [None, 3, b"click[x]", "search[\ud800]"])
def test_what_is_no_text_is_refused(folder, action):
    env = WebShopEnv("all", catalogue=folder)
    env.reset(seed=0)
    before = env.state_digest()
    with pytest.raises(InvalidActionError):
        env.step(action)
    assert env.state_digest() == before


def test_seeds_draw_goals_of_the_split_and_options_choose_them(folder):
    env = make(folder, split="train")
    count = env.unwrapped.num_goals
    drawn = {env.reset(seed=seed)[1]["goal"] for seed in range(60)}
    assert drawn == set(range(count))
    assert env.reset(options={"goal": count - 1})[1]["goal"] == count - 1


@pytest.mark.parametrize("options", [{"goal": 10}, {"goal": -1}, {"goal": "0"}, {"session": 0}])
def test_impossible_options_are_refused(folder, options):
    env = make(folder)
    env.reset(seed=0)
    with pytest.raises(InvalidOptionsError):
        env.reset(options=options)
    env.step("search[shoes]")


def test_splits_share_no_goal(folder):
    told = []
    for split in ("test", "eval", "train"):
        env = make(folder, split=split)
        for goal in range(env.unwrapped.num_goals):
            told.append(env.reset(options={"goal": goal})[1]["instruction"])
    everything = make(folder)
    assert told == [
        everything.reset(options={"goal": goal})[1]["instruction"] for goal in range(len(told))
    ]
    assert len(set(told)) == len(told) == everything.unwrapped.num_goals


def test_goals_of_people(folder):
    _, info = make(folder, goals="human").reset(seed=0)
    assert info["instruction"].startswith("shoes ")


@pytest.mark.parametrize(
    ("mode", "start"),
    [
        ("text", "Instruction: [SEP] Find me"),
        ("text_rich", "Instruction:\nFind me"),
        ("html", "<!DOCTYPE html>"),
        ("url", "http://webshop.test/results?q=shoes&page=1"),
    ],
)
def test_observation_modes(folder, mode, start):
    env = make(folder, observation_mode=mode)
    env.reset(seed=0)
    observation = env.step("search[shoes]")[0]
    assert observation.startswith(start)
    assert observation in env.observation_space


def test_earlier_observations_and_actions_come_first(folder):
    env = make(folder, observation_mode="url", num_prev_obs=2, num_prev_actions=1)
    site = "http://webshop.test"
    assert env.reset(seed=0)[0] == f"{site}/"
    results = f"{site}/results?q=shoes&page=1"
    assert env.step("search[shoes]")[0] == f"{site}/ [SEP] search[shoes] [SEP] {results}"
    item = f"{site}/item/B1?q=shoes&page=1"
    assert env.step("click[b1]")[0] == (f"{site}/ [SEP] {results} [SEP] click[b1] [SEP] {item}")
    assert env.step("click[8]")[0].startswith(f"{results} [SEP] {item} [SEP] click[8] [SEP] ")
    assert env.reset(seed=0)[0] == f"{site}/"


def test_render_shows_the_page(folder):
    env = make(folder, observation_mode="url", render_mode="ansi")
    env.reset(seed=0)
    assert env.render().startswith("WebShop [SEP] Instruction:")


@pytest.mark.parametrize(
    "kwargs",
    [{"split": "dev"}, {"observation_mode": "image"}, {"goals": "dog"}, {"num_prev_obs": -1},
     {"num_products": 0}, {"tagger": "nobody"}],
)  # fmt: skip
def test_wrong_arguments_are_refused(folder, kwargs):
    with pytest.raises(ValueError, match=str(next(iter(kwargs.values())))):
        make(folder, **kwargs)


def test_a_catalogue_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataNotFoundError):
        make(tmp_path / "nothing.json")


def test_the_generated_catalogue_is_the_default():
    env = gym.make(NAME, split="test")
    assert env.unwrapped.num_goals == 500
    _, info = env.reset(seed=3)
    _, _, _, _, info = env.step(info["admissible_commands"][0])
    assert len(info["clickables"]) == 12


@pytest.mark.parametrize("kwargs", [{}, {"observation_mode": "text_rich", "num_prev_obs": 2,
                                         "num_prev_actions": 2}])  # fmt: skip
def test_forks_and_snapshots_go_on_exactly(folder, kwargs):
    env = make(folder, **kwargs)
    env.reset(seed=5)
    actions = ["search[shoes]", "click[b1]", "click[9]", "click[features]", "click[< prev]",
               "nonsense", "click[< prev]", "click[b0]", "click[buy now]"]  # fmt: skip
    for done in range(len(actions) + 1):
        snapshot = sg.Snapshot.from_bytes(env.snapshot().to_bytes())
        [fork] = sg.fork(env, 1)
        fresh = make(folder, **kwargs)
        assert fresh.restore(snapshot)[0] == snapshot.last.obs
        for action in actions[done:]:
            one, other = fork.step(action), fresh.step(action)
            assert one == other
        assert fork.state_digest() == fresh.state_digest()
        if done < len(actions):
            env.step(actions[done])


def test_a_state_is_small(folder):
    env = make(folder)
    env.reset(seed=0)
    env.step("search[" + "soft shoes " * 20 + "]")
    for number in range(5):
        env.step(f"click[b{number}]")
        env.step("click[8]")
        env.step("click[< prev]")
    assert len(msgspec.msgpack.encode(env.unwrapped.get_state())) < 1000


@pytest.mark.parametrize(
    "kwargs", [{"goal_seed": 1}, {"split": "train"}, {"tagger": EveryWord()}, {"num_products": 4}]
)
def test_snapshots_of_other_shops_are_refused(folder, kwargs):
    env, other = make(folder), make(folder, **kwargs)
    env.reset(seed=0)
    with pytest.raises(SpecMismatchError):
        other.restore(env.snapshot())


def test_environments_of_one_process_share_the_shop(folder):
    assert make(folder).unwrapped._shop is make(folder).unwrapped._shop
