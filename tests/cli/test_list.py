from __future__ import annotations

import json

from sandboxgym.cli import main


def listed(capsys, *arguments):
    assert main(["list", "--json", *arguments]) == 0
    return {entry["id"]: entry for entry in json.loads(capsys.readouterr().out)}


def test_it_says_how_each_forks_and_whether_it_works_here(capsys):
    found = listed(capsys)
    assert found["sandboxgym/ALFWorld-v0"] == {
        "id": "sandboxgym/ALFWorld-v0",
        "own": True,
        "mechanism": "native",
        "usable": True,
        "missing": "",
    }
    assert found["CartPole-v1"]["usable"]
    assert found["CartPole-v1"]["mechanism"] in ("native", "probed")


def test_own_environments_are_shown_with_what_they_need(capsys):
    found = listed(capsys)
    assert found["sandboxgym/Jericho-v0"]["missing"] == "needs --kwargs game=..."
    assert {"sandboxgym/Crafter-v0", "sandboxgym/NetHack-v0"} < set(found)
    for entry in found.values():
        assert entry["usable"] == (not entry["missing"])
        assert entry["own"] or entry["usable"]


def test_all_shows_what_cannot_be_made_as_well(capsys):
    every = listed(capsys, "--all")
    assert "gymnasium-robotics" in every["Ant-v2"]["missing"]
    assert "Ant-v2" not in listed(capsys)


def test_a_line_for_each_own_ones_first(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    own = [line.startswith("sandboxgym/") for line in lines]
    assert own == sorted(own, reverse=True)
    assert any(line.split() == ["sandboxgym/ALFWorld-v0", "native", "usable"] for line in lines)
    assert "--all shows why" in lines[-1]


def test_modules_that_register_are_imported(capsys):
    assert "Registered-v3" in listed(capsys, "--import", "tests.cli.worlds")
    assert main(["list", "--import", "tests.nowhere"]) == 2
