from __future__ import annotations

import json
import sys

import pytest

from sandboxgym.cli import main
from sandboxgym.cli.units import in_bytes, in_seconds

ALFWORLD = ["sandboxgym/ALFWorld-v0", "--kwargs", "source=synthetic"]
SHORT = ["--seconds", "0.01"]


def benched(tmp_path, *arguments):
    file = tmp_path / "bench.json"
    assert main(["bench", *arguments, *SHORT, "--json", str(file)]) == 0
    return json.loads(file.read_text())


def test_it_measures_everything_at_every_depth(tmp_path, capsys):
    found = benched(tmp_path, *ALFWORLD, "--depths", "1,5")
    assert found["mechanism"] == "native"
    assert [costs["depth"] for costs in found["depths"]] == [1, 5]
    for costs in found["depths"]:
        assert set(costs["times"]) == {"step", "snapshot", "restore", "fork(8)", "replay"}
        assert costs["failures"] == {}
        for spread in costs["times"].values():
            assert 0 < spread["low"] <= spread["median"] <= spread["high"]
            assert spread["rounds"] >= 2
        assert 500 < costs["file_bytes"] < 5_000
        if sys.platform == "linux":
            assert 500 < costs["held_bytes"] < 50_000
    out = capsys.readouterr().out
    assert "forks by native" in out
    assert "restore does not depend on the depth by design" in out


def test_it_says_where_a_restore_is_linear_in_the_depth(tmp_path, capsys):
    found = benched(tmp_path, "tests.cli.play.worlds:dice", "--depths", "1,40")
    assert found["fidelity"]["cost"] == "linear in depth"
    assert "restore is LINEAR IN THE DEPTH" in capsys.readouterr().out


def test_it_says_why_a_mechanism_was_chosen(tmp_path, capsys):
    found = benched(tmp_path, "CartPole-v1", "--depths", "1")
    assert found["why"]
    assert f"CartPole-v1 forks by {found['mechanism']}: {found['why']}" in capsys.readouterr().out


def test_an_episode_that_ends_early_is_measured_where_it_was(tmp_path, capsys):
    found = benched(tmp_path, "tests.cli.worlds:Blink", "--depths", "1,10")
    assert [costs["depth"] for costs in found["depths"]] == [0]
    assert "every episode that was tried ended by step 1" in capsys.readouterr().out


def test_what_is_not_possible_is_said_and_the_rest_is_measured(tmp_path, capsys):
    found = benched(tmp_path, "tests.cli.worlds:Unrepeatable", "--depths", "3")
    (costs,) = found["depths"]
    assert "replay" not in costs["times"]
    assert "RestoreMismatchError" in costs["failures"]["replay"]
    assert "restore" in costs["times"]
    assert "replay is not possible: RestoreMismatchError" in capsys.readouterr().out


def test_json_goes_alone_to_standard_output(capsys):
    assert main(["bench", "CartPole-v1", "--depths", "1", *SHORT, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["env"] == "CartPole-v1"
    assert "at depth 1" in captured.err


@pytest.mark.parametrize(
    "arguments", [["--depths", "x"], ["--depths", "1,-2"], ["--depths", ""], ["--seconds", "0"]]
)
def test_wrong_numbers_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "CartPole-v1", *arguments])
    assert stopped.value.code == 2


def test_units():
    assert [in_seconds(s) for s in (0, 1.5e-6, 0.0009997, 0.25, 12, 2000)] == [
        "0 µs",
        "1.5 µs",
        "1 ms",
        "250 ms",
        "12 s",
        "2000 s",
    ]
    assert [in_bytes(b) for b in (0, 999, 1000, 1.5e6, 3e12)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1.5 MB",
        "3000 GB",
    ]
