"""Each of Gymnasium's wrappers, alone and in the stack that it is made for."""

from __future__ import annotations

import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.wrappers import TimeLimit

import sandboxgym as sg
from sandboxgym.core import errors
from tests.core.wrapper_rules.exactness import assert_exact, begin, play
from tests.core.wrapper_rules.worlds import Drift, Framework


def doubled(value):
    return value * 2


def named(env, name, *args, **kwargs):
    return getattr(wrappers, name)(env, *args, **kwargs)


def case(name, *args, world=None, **kwargs):
    def build():
        return named(Drift(**world or {}), name, *args, **kwargs)

    return build


IMAGE = {"sees": "image"}
MOVES = {"acts": "box"}
DICT = {"sees": "dict"}
DRAWN = {"render_mode": "rgb_array"}

CASES = {
    "TimeLimit": case("TimeLimit", 5),
    "Autoreset": lambda: wrappers.Autoreset(TimeLimit(Drift(), 3)),
    "PassiveEnvChecker": case("PassiveEnvChecker"),
    "OrderEnforcing": case("OrderEnforcing"),
    "RecordEpisodeStatistics": lambda: wrappers.RecordEpisodeStatistics(
        TimeLimit(Drift(), 4), buffer_length=2, stats_key="all"
    ),
    "DelayObservation": case("DelayObservation", 2),
    "DtypeObservation": case("DtypeObservation", np.float64),
    "FilterObservation": case("FilterObservation", ["where"], world=DICT),
    "FlattenObservation": case("FlattenObservation", world=DICT),
    "FrameStackObservation": case("FrameStackObservation", 3),
    "GrayscaleObservation": case("GrayscaleObservation", world=IMAGE),
    "TransformObservation": case("TransformObservation", doubled, None),
    "DiscretizeObservation": case("DiscretizeObservation", 5, multidiscrete=True),
    "MaxAndSkipObservation": case("MaxAndSkipObservation", 3),
    "NormalizeObservation": case("NormalizeObservation"),
    "AddRenderObservation": case("AddRenderObservation", render_only=False, world=DRAWN),
    "ResizeObservation": case("ResizeObservation", (5, 4), world=IMAGE),
    "ReshapeObservation": case("ReshapeObservation", (1, 3)),
    "RescaleObservation": case("RescaleObservation", np.float32(0), np.float32(1)),
    "TimeAwareObservation": lambda: wrappers.TimeAwareObservation(TimeLimit(Drift(), 6)),
    "AtariPreprocessing": case(
        "AtariPreprocessing", screen_size=8, terminal_on_life_loss=True, noop_max=4, world=IMAGE
    ),
    "ClipAction": case("ClipAction", world=MOVES),
    "DiscretizeAction": case("DiscretizeAction", 4, multidiscrete=True, world=MOVES),
    "TransformAction": case("TransformAction", doubled, None, world=MOVES),
    "RescaleAction": case("RescaleAction", np.float32(0), np.float32(2), world=MOVES),
    "StickyAction": case("StickyAction", 0.5, (1, 3)),
    "RepeatAction": case("RepeatAction", 2),
    "ClipReward": case("ClipReward", -0.5, 0.5),
    "TransformReward": case("TransformReward", doubled),
    "NormalizeReward": case("NormalizeReward"),
    "AddWhiteNoise": lambda: wrappers.AddRenderObservation(
        wrappers.AddWhiteNoise(Drift(**DRAWN), 0.3)
    ),
    "ObstructView": lambda: wrappers.AddRenderObservation(
        wrappers.ObstructView(Drift(**DRAWN), 0.3, 2)
    ),
    "RenderCollection": case("RenderCollection", world=DRAWN),
    "HumanRendering": case("HumanRendering", world=DRAWN),
}
CONVERSIONS = {"ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"}
NEEDS = {
    "AtariPreprocessing": "cv2",
    "ResizeObservation": "cv2",
    "HumanRendering": "pygame",
}
REMEMBERED_BY_A_FRONT_ALONE = {
    "AddRenderObservation",
    "AddWhiteNoise",
    "AtariPreprocessing",
    "DelayObservation",
    "MaxAndSkipObservation",
    "ObstructView",
    "RepeatAction",
}


@pytest.fixture(autouse=True)
def _no_window(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def built(name):
    if name not in wrappers.__all__:
        pytest.skip(f"Gymnasium {gym.__version__} has no {name}")
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return CASES[name]


@pytest.mark.parametrize("name", CASES)
def test_under_a_forkable_it_goes_on_exactly_from_every_depth(name):
    build = built(name)
    for before in range(9):
        assert_exact(lambda: sg.Forkable(build()), seed=before, before=before, after=5)


@pytest.mark.parametrize("name", sorted(set(CASES) - REMEMBERED_BY_A_FRONT_ALONE))
def test_as_outermost_wrapper_it_goes_on_exactly(name):
    assert_exact(built(name))


@pytest.mark.parametrize("name", sorted(REMEMBERED_BY_A_FRONT_ALONE))
def test_what_it_does_not_keep_is_refused_with_the_way_out(name):
    env = built(name)()
    begin(env, 1)
    play(env, 2)
    with pytest.raises(errors.UncapturedStateError, match=r"put a sandboxgym\.Forkable around"):
        sg.snapshot(env)


def test_every_wrapper_of_gymnasium_is_tested():
    classes = {n for n in wrappers.__all__ if n != "vector"}
    assert classes - set(CASES) - CONVERSIONS == {"RecordVideo"}


def test_film_is_refused_with_the_way_out(tmp_path):
    pytest.importorskip("moviepy")
    env = wrappers.RecordVideo(Drift(**DRAWN), str(tmp_path), disable_logger=True)
    env.reset(seed=1)
    with pytest.raises(errors.UncapturedStateError, match=r"actions of snapshot\.recipe"):
        sg.snapshot(env)
    with pytest.raises(errors.UncapturedStateError, match=r"leave it out"):
        sg.Forkable(env).reset(seed=1)
    env.close()


def tensor(env):
    torch = importlib.import_module("torch")
    return torch.as_tensor(env.action_space.sample())


def conversion(name):
    pytest.importorskip("array_api_compat")
    torch = pytest.importorskip("torch")
    if name != "NumpyToTorch" and name != "ArrayConversion":
        pytest.importorskip("jax")
    return {
        "ArrayConversion": lambda: named(Drift(), "ArrayConversion", env_xp=np, target_xp=torch),
        "NumpyToTorch": lambda: named(Drift(), "NumpyToTorch"),
        "JaxToTorch": lambda: named(Framework(), "JaxToTorch"),
        "JaxToNumpy": lambda: named(Framework(), "JaxToNumpy"),
    }[name], (lambda env: np.asarray(env.action_space.sample())) if name == "JaxToNumpy" else tensor


@pytest.mark.parametrize("name", sorted(CONVERSIONS))
def test_a_conversion_gives_back_what_the_user_saw(name):
    build, act = conversion(name)
    assert_exact(build, act=act)
    assert_exact(lambda: sg.Forkable(TimeLimit(build(), 5)), act=act)


def test_restored_tensors_are_tensors():
    torch = pytest.importorskip("torch")
    build, act = conversion("NumpyToTorch")
    env = sg.Forkable(build())
    begin(env, 1)
    obs = play(env, 3, act=act)[-1][0]
    snap = env.snapshot()
    assert type(snap.last.obs).__name__ == "TensorData"
    back, info = env.restore(sg.Snapshot.from_bytes(snap.to_bytes()))
    assert type(back) is torch.Tensor
    assert torch.equal(back, obs)
    assert type(info["taken"]) is torch.Tensor
    back += 1
    assert torch.equal(env.restore(snap)[0], obs)


def test_wrappers_around_a_conversion_decide_what_is_seen():
    pytest.importorskip("torch")
    build, act = conversion("NumpyToTorch")
    cases = [
        lambda: wrappers.TransformObservation(build(), lambda t: t.numpy() * 2, None),
        lambda: wrappers.TransformObservation(build(), lambda t: {"a": t, "b": t.tolist()}, None),
        lambda: wrappers.DelayObservation(build(), 2),
        lambda: wrappers.StickyAction(build(), 0.5),
        lambda: wrappers.FrameStackObservation(build(), 2),
        lambda: wrappers.TransformReward(
            build(), lambda r: importlib.import_module("torch").tensor(r)
        ),
    ]
    for wrapped in cases:
        assert_exact(lambda wrapped=wrapped: sg.Forkable(wrapped()), act=act)


def test_a_tensor_that_is_no_data_is_refused_when_it_is_captured_not_when_it_is_played():
    torch = pytest.importorskip("torch")
    bad = torch.ones(1, requires_grad=True)
    env = sg.Forkable(wrappers.TransformObservation(Drift(), lambda obs: bad, None))
    begin(env, 1)
    play(env, 2)
    with pytest.raises(errors.StateEncodingError, match=r"observation is a torch\.Tensor"):
        env.snapshot()
