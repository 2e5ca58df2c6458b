from __future__ import annotations

import sys

import gymnasium as gym
import pytest

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.text import java_game, testbed_games
from sandboxgym.sandboxes.text.stock_alfworld import StockALFWorldEnv


@pytest.mark.parametrize(
    ("name", "kwargs", "module", "extra"),
    [
        ("TextWorld", {"game": "game.z8"}, "textworld", "textworld"),
        ("Jericho", {"game": "zork1.z5"}, "jericho", "jericho"),
        ("ScienceWorld", {}, "scienceworld", "scienceworld"),
        ("TextWorldExpress", {}, "textworld_express", "textworld-express"),
    ],
)
def test_a_missing_library_is_named_with_what_installs_it(name, kwargs, module, extra, monkeypatch):
    for loaded in [m for m in sys.modules if m == module or m.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingDependencyError, match=rf"sandboxgym\[{extra}\]"):
        gym.make(f"sandboxgym/{name}-v0", **kwargs)


def test_without_alfworlds_engine_the_games_can_still_be_played_with_ours(monkeypatch):
    monkeypatch.setitem(sys.modules, "textworld", None)
    env = StockALFWorldEnv(source="synthetic", num_games=1)
    with pytest.raises(MissingDependencyError, match=r"sandboxgym\[stock-alfworld\].*ALFWorld-v0"):
        env.reset(seed=0)


def test_without_textworld_no_game_is_made_and_no_folder_left(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "textworld", None)
    monkeypatch.setenv(testbed_games.CACHE_VARIABLE, str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"sandboxgym\[textworld\]"):
        testbed_games.textworld_game()
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    assert [path.name for path in (tmp_path / "textworld").iterdir()] == []


def test_without_java_the_way_out_is_named(monkeypatch):
    class Game(java_game.JavaGameEnv):
        def _launch(self):
            raise AssertionError("started without Java")

        def _tidy(self, library):
            raise AssertionError

    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingDependencyError, match="needs Java"):
        _ = Game("train", None).library
