"""The report on invented runs: the data of the page, and the page in a real browser."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from argparse import ArgumentParser
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from sandboxgym.cli.outcome import UnusableInputError
from sandboxgym_learners.advantages import nested_loo
from sandboxgym_learners.report import load_runs, write_report
from sandboxgym_learners.report.__main__ import main
from sandboxgym_learners.report.command import add_command
from sandboxgym_learners.report.curves import Points, area_under, band, interval
from sandboxgym_learners.report.load import by_algorithm, load_run
from sandboxgym_learners.report.output import ReportError
from sandboxgym_learners.report.page import embed, render, report_data
from sandboxgym_learners.report.results import matched_compute, table, verdict
from sandboxgym_learners.report.tree_view import LONGEST_TEXT, NOTHING, ROOT, TreeView, front_coded
from sandboxgym_learners.report.trees import PackedTrees, packed_trees, unpack
from sandboxgym_learners.runlock import RunDirectoryError
from sandboxgym_learners.tree import Group, Segment
from tests.learners.browser import in_browser
from tests.learners.run_fixtures import episode, make_run, rollout_tree, step

ATTACK = (
    "</script><script>document.title='pwned'</script>"
    "<img src=x onerror=\"document.title='pwned'\"><!--<script>@@SCRIPT@@ \u2028 \ud800 ]]>"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    folders = [
        make_run(folder / f"{algo}-{seed}", algo, seed, skill=skill)
        for algo, skill in (("rloo", 0.2), ("bpo", 0.5))
        for seed in range(3)
    ]
    return load_runs(folders)


def view_command(*arguments: str) -> int:
    """Call `sandboxgym view`, as the command line does."""
    parser = ArgumentParser()
    add_command(parser.add_subparsers())
    options = parser.parse_args(["view", *arguments])
    return options.run(options)


def embedded(page: Path) -> dict:
    text = page.read_text("utf-8")
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(block[1])


def trees_of(page: Path) -> list[dict]:
    """The kept trees on a page, unpacked."""
    blocks = re.findall(r'<script type="text/plain" id="tree-\d+">(.*?)</script>', page.read_text())
    return [unpack(block) for block in blocks]


def opening_tree(page: Path) -> dict:
    return trees_of(page)[embedded(page)["opening"]]


# ---- statistics --------------------------------------------------------------------------------


def test_interval_is_students():
    # 0.95 quantile of t with 4 degrees of freedom is 2.1318; stdev of 1..5 is sqrt(2.5)
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3.0
    assert found.margin == pytest.approx(2.1318 * math.sqrt(2.5) / math.sqrt(5), rel=1e-3)


def test_interval_of_many_values_uses_the_right_quantile():
    values = [0.0, 1.0] * 10  # 19 degrees of freedom: 1.7291
    error = statistics.stdev(values) / math.sqrt(20)
    assert interval(values).margin == pytest.approx(1.7291 * error, rel=1e-4)


def test_interval_of_one_seed_has_no_margin():
    assert interval([0.5]).margin is None
    assert interval([0.5]).overlaps(interval([0.1, 0.2])) is None


def test_band_reads_runs_at_the_same_places_and_never_beyond_the_shortest():
    found = band([Points([0, 10], [0.0, 1.0]), Points([0, 4, 20], [0.0, 0.8, 0.8])])
    assert found is not None
    assert (found.x[0], found.x[-1]) == (0, 10)
    at_five = found.x.index(5.0)
    assert found.mean[at_five] == pytest.approx((0.5 + 0.8) / 2)
    assert found.low[at_five] < found.mean[at_five] < found.high[at_five]


def test_band_of_nothing_is_nothing():
    assert band([Points([], [])]) is None
    assert band([Points([0, 1], [1, 1]), Points([5, 6], [1, 1])]) is None


def test_points_leave_out_what_is_unknown_or_infinite():
    points = Points.of([(0, None), (1, 0.5), (2, math.nan), (3, math.inf)])
    assert points == Points([1], [0.5])


def test_smoothing_keeps_a_straight_line():
    line = Points([0, 1, 2, 3, 4], [0.0, 1.0, 2.0, 3.0, 4.0])
    assert line.smoothed(3).y == [0.5, 1.0, 2.0, 3.0, 3.5]
    assert line.smoothed(1) == line


def test_area_is_the_mean_height_up_to_the_end():
    assert area_under(Points([0, 10], [0.0, 1.0]), end=10) == pytest.approx(0.5)
    assert area_under(Points([0, 10], [0.0, 1.0]), end=5) == pytest.approx(0.25)
    assert area_under(Points([0, 10], [0.0, 1.0]), end=20) == pytest.approx(0.75, abs=1e-2)


# ---- results -----------------------------------------------------------------------------------


def test_table_has_the_final_evaluations_of_all_seeds(runs):
    bpo, rloo = table(by_algorithm(runs))
    finals = [run.updates[-1].eval_success for run in runs if run.algo == "bpo"]
    assert bpo.algo == "bpo"
    assert bpo.seeds == rloo.seeds == [0, 1, 2]
    assert bpo.final.mean == pytest.approx(statistics.fmean(finals))
    assert bpo.start.mean == pytest.approx(0.2)
    assert bpo.area.mean < bpo.final.mean
    assert (bpo.restores, rloo.restores) == (56 * 40, 0)
    assert bpo.minutes == pytest.approx(43 / 60)


def test_matched_compute_is_what_every_run_reached(tmp_path):
    folders = [make_run(tmp_path / "a", "bpo", 0, updates=40)]
    folders.append(make_run(tmp_path / "b", "rloo", 0, updates=20))
    groups = by_algorithm(load_runs(folders))
    short = groups["rloo"][0].updates[-1].compute
    assert matched_compute(groups) == short
    assert any("did not cost the same" in line for line in verdict(table(groups)))


def test_verdict_says_who_is_ahead_and_whether_the_seeds_tell(runs):
    lines = verdict(table(by_algorithm(runs)))
    assert lines[0].index("BPO") < lines[0].index("RLOO")
    assert lines[1] == "The 90 % intervals of BPO and RLOO do not overlap."


def test_verdict_of_like_runs_does_not_claim_a_difference(tmp_path):
    folders = [
        make_run(tmp_path / f"{algo}-{seed}", algo, seed)
        for algo in ("bpo", "rloo")
        for seed in range(3)
    ]
    assert "do not tell them apart" in verdict(table(by_algorithm(load_runs(folders))))[1]


def test_verdict_of_many_says_the_same_thing_once(tmp_path):
    skills = {"bpo": 1.0, "ppo": 0.5, "rloo": 0.5, "grpo": 0.5}
    folders = [
        make_run(tmp_path / f"{algo}-{seed}", algo, seed, skill=skill)
        for algo, skill in skills.items()
        for seed in range(3)
    ]
    lines = verdict(table(by_algorithm(load_runs(folders))))
    assert len(lines) == 3
    assert lines[1].count(" and ") == 2
    assert lines[1].count("do not tell them apart") == 1
    assert lines[2].startswith("The 90 % intervals of BPO and ")


def test_verdict_of_one_seed_says_that_it_cannot_tell(tmp_path):
    folders = [make_run(tmp_path / algo, algo, 0) for algo in ("bpo", "rloo")]
    assert "One seed cannot tell" in verdict(table(by_algorithm(load_runs(folders))))[1]


def test_verdict_names_unfinished_runs(tmp_path):
    run = load_run(make_run(tmp_path / "a", "bpo", 0, complete=False))
    assert "1 of the runs had not reached their end." in verdict(table({"bpo": [run]}))


# ---- reading -----------------------------------------------------------------------------------


def test_runs_come_sorted(runs):
    assert [(run.algo, run.seed) for run in runs] == [
        ("bpo", 0), ("bpo", 1), ("bpo", 2), ("rloo", 0), ("rloo", 1), ("rloo", 2)
    ]  # fmt: skip


def test_the_same_seed_twice_is_refused(tmp_path):
    folders = [make_run(tmp_path / name, "bpo", 0) for name in ("a", "b")]
    with pytest.raises(RunDirectoryError, match="both bpo with seed 0"):
        load_runs(folders)


def test_runs_of_other_settings_are_another_variant(tmp_path):
    shapes = [("fixed", 4, 0), ("adaptive", 4, 0), ("adaptive", 4, 1)]
    folders = [
        make_run(
            tmp_path / f"{kind}-{seed}",
            "bpo",
            seed,
            config={"tree": {"branching": kind, "roots": roots}, "budget": 40000 + seed},
        )
        for kind, roots, seed in shapes
    ]
    folders.append(make_run(tmp_path / "rloo", "rloo", 0))
    assert [(run.algo, run.seed) for run in load_runs(folders)] == [
        ("bpo (branching=adaptive)", 0),
        ("bpo (branching=adaptive)", 1),
        ("bpo (branching=fixed)", 0),
        ("rloo", 0),
    ]


def test_variants_whose_names_are_cut_to_the_same_are_numbered(tmp_path):
    folders = [
        make_run(tmp_path / end, "bpo", 0, config={"world": {"env": "x" * 50 + end}})
        for end in "ab"
    ]
    first, second = (run.algo for run in load_runs(folders))
    assert first.startswith("bpo (env=xxx")
    assert second == f"{first} #2"


def test_runs_may_be_given_labels_of_ones_own(tmp_path):
    folders = [make_run(tmp_path / name, "bpo", 0) for name in ("a", "b")]
    runs = [
        replace(load_run(folder), algo=label)
        for folder, label in zip(folders, ("bpo", "bpo-adaptive"), strict=True)
    ]
    data = report_data(runs, command="c")
    assert data["algorithms"] == ["bpo", "bpo-adaptive"]
    trees = packed_trees(by_algorithm(runs)).summaries
    assert {tree["algo"] for tree in trees} == {"bpo", "bpo-adaptive"}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"config": {"algo": "bpo"}, "versions": {}}'])
def test_a_broken_configuration_is_named(tmp_path, content):
    folder = make_run(tmp_path / "a", "bpo", 0)
    (folder / "config.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=r"config\.json"):
        load_run(folder)


def test_a_broken_tree_is_named(tmp_path):
    folder = make_run(tmp_path / "a", "bpo", 0)
    (folder / "trees" / "000040.json").write_text(
        '{"update": 40, "task": 1, "tree": {"planned": 2}}'
    )
    with pytest.raises(RunDirectoryError, match=r"000040\.json"):
        write_report(load_runs([folder]), tmp_path / "out", command="c")
    assert not (tmp_path / "out" / "index.html").exists()


def test_command_line_reports_errors_on_one_line(tmp_path, capsys):
    assert main([str(tmp_path / "nothing"), "--out", str(tmp_path / "out")]) == 1
    assert "config.json is missing" in capsys.readouterr().err


def test_command_line_writes_the_page(tmp_path, capsys):
    folder = make_run(tmp_path / "a", "bpo", 0)
    assert main([str(folder), "--out", str(tmp_path / "out")]) == 0
    page = tmp_path / "out" / "index.html"
    assert capsys.readouterr().out.split() == [str(page), page.as_uri()]
    assert embedded(page)["made"]["command"].startswith("python -m sandboxgym_learners.report ")


def test_view_takes_a_folder_of_runs_and_writes_a_file(tmp_path, capsys):
    for seed in range(2):
        make_run(tmp_path / "runs" / str(seed), "bpo", seed)
    page = tmp_path / "new" / "page.html"
    assert view_command(str(tmp_path / "runs"), "--out", str(page)) == 0
    assert capsys.readouterr().out.split() == [str(page), page.as_uri()]
    assert embedded(page)["table"][0]["seeds"] == [0, 1]
    assert embedded(page)["made"]["command"].startswith("sandboxgym view ")


def test_view_refuses_what_is_no_run(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnusableInputError, match=r"config\.json is missing"):
        view_command(str(tmp_path / "empty"), "--out", str(tmp_path / "out"))


def test_only_the_option_opens_a_browser(tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url))
    folder = str(make_run(tmp_path / "a", "bpo", 0))
    view_command(folder, "--out", str(tmp_path / "out"))
    assert opened == []
    view_command(folder, "--out", str(tmp_path / "out"), "--open")
    assert opened == [(tmp_path / "out" / "index.html").as_uri()]
    assert "No browser was found" in capsys.readouterr().out


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    run = load_run(make_run(tmp_path / "a", "bpo", 0))
    (tmp_path / "notes").write_text("mine")
    for out in (tmp_path / "notes", tmp_path / "notes" / "page.html"):
        with pytest.raises(ReportError, match="Give a folder as --out"):
            write_report([run], out, command="c")
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_page_of_others_is_not_overwritten_and_one_of_ours_is(tmp_path):
    run = load_run(make_run(tmp_path / "a", "bpo", 0))
    theirs = tmp_path / "index.html"
    theirs.write_text("<title>My site</title>")
    with pytest.raises(ReportError, match="is no report"):
        write_report([run], tmp_path, command="c")
    assert theirs.read_text() == "<title>My site</title>"
    for command in ("first", "second"):
        page = write_report([run], tmp_path / "page.html", command=command)
    assert embedded(page)["made"]["command"] == "second"


def test_a_folder_that_ends_in_html_stays_a_folder(tmp_path):
    run = load_run(make_run(tmp_path / "a", "bpo", 0))
    (tmp_path / "site.html").mkdir()
    page = write_report([run], tmp_path / "site.html", command="c")
    assert page == tmp_path / "site.html" / "index.html"


@pytest.mark.parametrize("world", [None, [], {}, {"env": 3, "arguments": 5}])
def test_an_odd_configuration_does_not_matter(tmp_path, world):
    folder = make_run(tmp_path / "a", "bpo", 0, config={"world": world})
    assert "seeds of each" in report_data(load_runs([folder]), command="c")["setting"]


# ---- the tree ----------------------------------------------------------------------------------


@pytest.fixture
def nested():
    """Two roots; the first branches at step 2 into 3, whose backbone branches at step 4 into 2."""
    dice = random.Random(0)
    inner = Group([episode(4, 6, dice, won=True), episode(4, 4, dice, won=True)], planned=2)
    backbone = Segment([step(depth, dice) for depth in (2, 3)], branch=inner)
    outer = Group(
        [backbone, episode(2, 5, dice, won=False), episode(2, 3, dice, won=True)], planned=3
    )
    first = Segment([step(depth, dice) for depth in (0, 1)], branch=outer)
    tree = Group([first, episode(0, 2, dice, won=False)], planned=2)
    nested_loo(tree)
    return tree


def test_backbones_keep_their_lane_and_forks_get_lanes_below(nested):
    view = TreeView(nested)
    assert [fan.lanes for fan in view.fans] == [[0, 4], [0, 2, 3], [0, 1]]
    assert [fan.level for fan in view.fans] == [0, 1, 2]
    assert [fan.stack for fan in view.fans] == [0, 0, 0]
    assert view.lanes == 5
    assert [(end.lane, end.depth) for end in view.ends] == [(0, 7), (1, 5), (2, 6), (3, 4), (4, 3)]


def test_every_decision_is_drawn_once_with_its_own_numbers(nested):
    view = TreeView(nested)
    steps = list(nested.steps())
    texts = list(view.texts)
    assert len(view.nodes) == len(steps)
    assert {(node.lane, node.depth) for node in view.nodes} == {
        (node.lane, node.depth) for node in view.nodes
    }
    for node, taken in zip(view.nodes, steps, strict=True):
        assert (node.depth, node.advantage, node.weight) == (
            taken.depth,
            taken.advantage,
            taken.weight,
        )
        assert texts[node.action] == taken.action
        assert list(view.prompts)[node.prompt] == taken.prompt
        menu = list(view.menus)[node.menu]
        assert tuple(texts[candidate] for candidate in menu) == taken.candidates


def test_parents_come_first_and_one_step_earlier(nested):
    view = TreeView(nested)
    for index, node in enumerate(view.nodes):
        assert node.parent < index
        above = -1 if node.parent == ROOT else view.nodes[node.parent].depth
        assert node.depth == above + 1


def test_groups_know_their_returns_and_whether_they_teach(nested):
    outer, inner = TreeView(nested).fans[1:]
    assert outer.returns == [1.0, 0.0, 1.0]
    assert not outer.constant
    assert inner.returns == [1.0, 1.0]
    assert inner.constant


def test_a_branch_point_in_front_of_the_first_decision():
    dice = random.Random(0)
    forks = Group([episode(0, 2, dice), episode(0, 1, dice)], planned=2)
    view = TreeView(Group([Segment([], branch=forks), episode(0, 1, dice)], planned=2))
    assert [fan.parent for fan in view.fans] == [ROOT, ROOT]
    assert view.fans[0].first == [0, 5]
    assert view.fans[1].first == [0, 3]
    assert [fan.stack for fan in view.fans] == [0, 1]


def test_texts_are_kept_once_and_not_without_end():
    dice = random.Random(0)
    long = step(0, dice, prompt="x" * (LONGEST_TEXT + 7))
    view = TreeView(Group([Segment([long]), Segment([long])], planned=2))
    (prompt,) = view.prompts
    assert prompt.endswith("… (7 more characters are not shown)")
    assert len(view.menus) == 1
    assert len(view.texts) == len({*long.candidates, long.observation})


def test_what_a_policy_wrote_is_kept():
    dice = random.Random(0)
    wrote = replace(step(0, dice), text="I should look.\nlook", entropy_of="first token")
    view = TreeView(Group([Segment([wrote]), Segment([step(0, dice)])], planned=2))
    first, second = view.nodes
    assert list(view.texts)[first.written] == "I should look.\nlook"
    assert second.written == NOTHING
    assert view.to_json()["entropy_of"] == "commands and first token"


def test_of_a_prompt_only_what_is_new_is_kept():
    coded = front_coded(["Task: a", "Task: a\nlook", "Task: b", "", "\U0001f600x", "\U0001f600y"])
    assert coded == [
        (0, "Task: a"), (7, "\nlook"), (6, "b"), (0, ""), (0, "\U0001f600x"), (2, "y")
    ]  # fmt: skip


def test_all_kept_trees_are_there_and_the_most_telling_is_opened(tmp_path):
    few = rollout_tree(random.Random(0), roots=1)
    folders = [make_run(tmp_path / str(seed), "bpo", seed, tree=few) for seed in range(2)]
    path = folders[1] / "trees" / "000020.json"
    many = rollout_tree(random.Random(0), roots=4)
    path.write_text(json.dumps({**json.loads(path.read_text()), "tree": many.to_json()}))
    trees = packed_trees(by_algorithm(load_runs(folders)))
    places = [(tree["seed"], tree["update"]) for tree in trees.summaries]
    assert places == [(seed, update) for seed in range(2) for update in (10, 20, 30, 40)]
    assert places[trees.opening] == (1, 20)
    assert [len(unpack(block)["ends"]) for block in trees.blocks].count(32) == 1
    assert trees.summaries[trees.opening]["episodes"] == 32


def test_too_heavy_trees_are_thinned_but_the_most_telling_stays(tmp_path):
    run = load_run(make_run(tmp_path / "a", "bpo", 0))
    everything = packed_trees({"bpo": [run]})
    weights = [len(block) for block in everything.blocks]
    few = packed_trees({"bpo": [run]}, most=sum(weights) - 1)
    assert 1 <= len(few.blocks) < len(weights) == few.kept
    assert few.blocks[few.opening] == everything.blocks[everything.opening]
    alone = packed_trees({"bpo": [run]}, most=0)
    assert alone.blocks == [everything.blocks[everything.opening]]


def test_bands_of_shares_stay_between_0_and_1(tmp_path):
    folders = [make_run(tmp_path / str(s), "bpo", s, skill=0.75 + s / 20) for s in range(2)]
    (series,) = report_data(load_runs(folders), command="c")["success"]["series"]
    assert max(series["high"]) == 1.0
    assert min(series["low"]) >= 0


def test_the_mean_of_a_logarithmic_chart_is_geometric(tmp_path):
    runs = load_runs([make_run(tmp_path / str(s), "rloo", s, updates=5) for s in range(3)])
    last = [run.updates[-1].grad_variance for run in runs]
    end = min(run.updates[-1].compute for run in runs)
    (series,) = report_data(runs, command="c")["variance"][1]["series"]
    assert series["x"][-1] == end
    assert series["mean"][-1] == pytest.approx(statistics.geometric_mean(last), rel=0.05)
    assert min(series["low"]) > 0


# ---- the page ----------------------------------------------------------------------------------


def test_charts_hold_all_algorithms_and_seeds(runs):
    data = report_data(runs, command="c")
    assert [series["algo"] for series in data["success"]["series"]] == ["bpo", "rloo"]
    assert [len(series["seeds"]) for series in data["success"]["series"]] == [3, 3]
    last = data["success"]["series"][0]["seeds"][0]
    assert last["y"][-1] == runs[0].updates[-1].eval_success


def test_what_no_run_knows_is_left_out(tmp_path):
    runs = load_runs([make_run(tmp_path / "a", "rloo", 0)])
    titles = {chart["title"] for chart in report_data(runs, command="c")["branching"]}
    assert "Entropy" in titles
    assert "Groups with a single action" not in titles


def test_shapes_are_drawn_where_a_run_chose_them(tmp_path):
    fixed = load_run(make_run(tmp_path / "fixed", "bpo", 0, updates=5))
    shapes = [(4, 4, 1), (8, None, 0), (4, 8, 2), (4, 8, 2), (2, 16, 1)]
    rows = [
        replace(row, roots=roots, siblings=siblings, max_branches=branches)
        for row, (roots, siblings, branches) in zip(fixed.updates[1:], shapes, strict=True)
    ]
    adaptive = replace(fixed, algo="bpo-adaptive", updates=rows)

    def drawn(*runs):
        charts = report_data(runs, command="c")["branching"]
        return {
            chart["title"][0]: chart for chart in charts if chart["title"][:2] in ("B:", "K:", "M:")
        }

    constant = replace(fixed, updates=[replace(row, roots=8) for row in fixed.updates])
    assert drawn(constant) == {}
    found = drawn(constant, adaptive)
    assert found["K"]["series"][0]["seeds"][0]["y"] == [4, 8, 8, 16]
    assert found["M"]["series"][0]["seeds"][0]["y"] == [1, 0, 2, 2, 1]
    assert [series["algo"] for series in found["B"]["series"]] == ["bpo", "bpo-adaptive"]


def test_variance_at_equal_cost_is_the_product(tmp_path):
    run = load_run(make_run(tmp_path / "a", "rloo", 0, updates=5))
    (chart, *_) = report_data([run], command="c")["variance"]
    expected = [row.grad_variance * row.grad_cost for row in run.updates[1:]]
    assert chart["series"][0]["seeds"][0]["y"] == pytest.approx(expected)


def test_the_page_loads_nothing(runs, tmp_path):
    text = write_report(runs, tmp_path / "out", command="c").read_text("utf-8")
    outside = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert re.findall(r"https?://[^\s\"']+", outside) == ["http://www.w3.org/2000/svg"]
    assert "src=" not in outside
    assert "default-src 'none'" in outside


def test_the_scripts_never_read_markup():
    static = resources.files("sandboxgym_learners.report") / "static"
    for file in static.iterdir():
        if file.name.endswith(".js"):
            code = file.read_text("utf-8")
            for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
                assert word not in code, f"{word} in {file.name}"


def test_no_text_can_end_the_data_block():
    text = embed({"attack": ATTACK})
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text)["attack"] == ATTACK.replace("\ud800", "\ufffd")


def test_numbers_that_are_not_finite_become_null():
    assert json.loads(embed({"a": [math.nan, math.inf, 1.5]})) == {"a": [None, None, 1.5]}


def test_texts_are_not_searched_for_placeholders():
    page = render({"text": "@@STYLE@@"}, PackedTrees([], [], 0, 0))
    assert page.count("@@STYLE@@") == 1


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    return write_report(runs, tmp_path_factory.mktemp("page"), command="python -m demo")


def test_browser_draws_every_section(page):
    found = in_browser(
        page,
        """
        const count = (selector) => document.querySelectorAll(selector).length;
        return {
          title: document.title,
          sections: [...document.querySelectorAll("h2")].map((h) => h.textContent),
          success: count("section:nth-of-type(1) .mean"),
          seeds: count("section:nth-of-type(1) path.seed"),
          bands: count("section:nth-of-type(1) .band"),
          bars: count(".bar"),
          paths: [...document.querySelectorAll("path")].map((path) => path.getAttribute("d")),
          rows: [...document.querySelectorAll(".results tbody tr")].map(
            (row) => row.children[1].textContent),
        };
        """,
    )
    assert found["title"] == "Training report: BPO and RLOO"
    assert len(found["sections"]) == 6
    assert (found["success"], found["seeds"], found["bands"], found["bars"]) == (2, 6, 2, 2)
    assert not [path for path in found["paths"] if re.search("NaN|undefined", path)]
    assert all(re.fullmatch(r"[\d.]+ % \([\d.]+.[\d.]+\)", row) for row in found["rows"])


PEEK = """
const number = JSON.parse(document.getElementById("data").textContent).opening;
const layout = new TreeLayout(await unpackTree(number));
const canvas = document.querySelector(".tree .decisions");
layout.fit(document.querySelector(".tree-scroll").clientWidth);
const pen = canvas.getContext("2d");
const hex = (x, y) => "#" + [...pen.getImageData(Math.round(x), Math.round(y), 1, 1).data]
  .slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("");
const inked = () => {
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) count += data[at] > 0;
  return count;
};
for (let before = -1, now = inked(); now !== before || now === 0; now = inked()) {
  before = now;  // on a busy machine the page may still be painting
  await wait(200);
}
const inView = ({ lane, depth }) =>
  layout.y(lane) < canvas.height - 10 && layout.x(depth) < canvas.width - 60;
"""
"""Reads the canvas: `hex(x, y)` is the colour at a place, `layout` knows where things stand."""


def test_browser_paints_every_decision_in_the_colour_of_its_advantage(page):
    found = in_browser(
        page,
        PEEK
        + """
        const selected = layout.opening();
        const seen = layout.nodes.filter((node, index) => index !== selected && inView(node));
        const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
        const distance = (one, two) =>
          parts(one).reduce((sum, part, i) => sum + Math.abs(part - parts(two)[i]), 0);
        const nearest = (drawn) => [colours().card, ...colours().shades]
          .reduce((best, each) => (distance(each, drawn) < distance(best, drawn) ? each : best));
        return { drawn: seen.map((node) => nearest(hex(layout.x(node.depth), layout.y(node.lane)))),
                 wanted: seen.map((node) => colours().shades[node.shade]) };
        """,
    )
    tree = opening_tree(page)
    assert len(found["drawn"]) >= len(tree["nodes"]["depth"]) * 0.7 > 50
    assert found["drawn"] == found["wanted"]


def test_browser_marks_groups_that_teach_nothing_and_episodes_that_were_solved(page):
    found = in_browser(
        page,
        PEEK
        + """
        const column = (fan) => {
          const top = layout.y(fan.lanes[0]) + 8, bottom = layout.y(fan.lanes.at(-1)) - 8;
          const shown = [];
          for (let y = top; y < Math.min(bottom, canvas.height); y++) {
            shown.push(hex(layout.fanX(fan), y));
          }
          return shown.filter((colour) => colour === "#000000").length / shown.length;
        };
        const branching = layout.tree.fans.filter((fan) => fan.level > 0);
        return {
          gaps: branching.map(column), constant: branching.map((fan) => fan.constant),
          ends: layout.tree.ends.filter(inView).map((end) =>
            [end.success, hex(layout.endX(end), layout.y(end.lane))]),
          ink: colours().ink, card: colours().card,
        };
        """,
    )
    assert sorted(found["constant"]) == [False, True]
    for gaps, constant in zip(found["gaps"], found["constant"], strict=True):
        assert (gaps > 0.2) == constant  # what is dashed shows the background between its dashes
    assert {success for success, _ in found["ends"]} == {True, False}
    for success, colour in found["ends"]:
        assert colour == found["ink" if success else "card"]


def test_browser_walks_the_tree_by_keys_and_clicks(page):
    tree = opening_tree(page)
    fan = next(fan for fan in tree["fans"] if fan["level"] > 0 and not fan["constant"])
    action = lambda node: tree["texts"][tree["nodes"]["action"][node]]  # noqa: E731
    found = in_browser(
        page,
        PEEK
        + """
        const scroll = document.querySelector(".tree-scroll");
        const state = () => [".crumbs", ".panel h3"].map(
          (selector) => document.querySelector(selector).textContent);
        const press = (key) => {
          scroll.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          return state();
        };
        const result = { first: state() };
        result.down = press("ArrowDown");
        result.right = press("ArrowRight");
        result.left = press("ArrowLeft");
        result.up = press("ArrowUp");
        result.before = press("ArrowLeft");
        result.home = press("Home");
        result.stay = press("ArrowLeft");
        result.parting = press("PageDown");
        const final = layout.nodes.at(-1), box = scroll.firstElementChild.getBoundingClientRect();
        scroll.dispatchEvent(new MouseEvent("click", {
          clientX: box.left + layout.x(final.depth), clientY: box.top + layout.y(final.lane) }));
        result.clicked = state();
        return result;
        """,
    )
    at, siblings = fan["depth"], fan["first"]
    assert found["first"] == [
        f"Step {at} · backbone 1 of 8, parted at step {at}",
        action(siblings[0]),
    ]
    assert found["down"] == [f"Step {at} · fork 2 of 8, parted at step {at}", action(siblings[1])]
    assert found["right"][0].startswith(f"Step {at + 1} · fork 2 of 8")
    assert found["left"] == found["down"]
    assert found["up"] == found["first"]
    assert found["before"][0].startswith(f"Step {at - 1} · root ")
    assert found["home"][0].startswith("Step 0 · root ")
    assert found["stay"] == found["home"]
    assert found["parting"] == found["first"]
    final = len(tree["nodes"]["depth"]) - 1
    assert found["clicked"][1] == action(final)
    assert found["clicked"][0].startswith(f"Step {tree['nodes']['depth'][final]} · fork 8 of 8")


def test_browser_shows_any_tree_of_any_run(page):
    found = in_browser(
        page,
        """
        const told = () => document.querySelector(".tree-name").textContent;
        const drawn = () => document.querySelector(".tree .note").textContent;
        const press = async (label) => {
          document.querySelector(`[aria-label="${label}"]`).click();
          await ready();
          return [told(), drawn()];
        };
        const run = document.querySelector("#run-choice");
        const result = { runs: [...run.options].map((option) => option.textContent) };
        run.value = run.options.length - 1;
        run.dispatchEvent(new Event("change"));
        await ready();
        for (let i = 0; i < 9; i++) await press("tree before");
        result.first = [told(), drawn()];
        result.second = await press("next tree");
        const update = document.querySelector("#update-choice");
        update.value = 3;
        update.dispatchEvent(new Event("input"));
        await ready();
        result.last = [told(), drawn()];
        await press("the tree whose branch points show most");
        result.opening = [told(), run.value];
        return result;
        """,
    )
    summaries, trees = embedded(page)["trees"], trees_of(page)
    assert found["runs"][0] == "BPO, seed 0 (4 trees)"
    assert len(found["runs"]) == 6
    for name, number in (("first", -4), ("second", -3), ("last", -1)):
        told, drawn = found[name]
        assert told.startswith(
            f"Update {summaries[number]['update']}: {summaries[number]['task']} "
        )
        assert f"{len(trees[number]['nodes']['depth'])} decisions" in drawn
    assert found["opening"][1] == str(embedded(page)["opening"] // 4)


def test_browser_says_so_where_a_tree_cannot_be_unpacked(page, tmp_path):
    broken = tmp_path / "broken.html"
    text = re.sub(r'(id="tree-\d+">).*?<', r"\1eJx=<", page.read_text("utf-8"))
    broken.write_text(text, "utf-8")
    alert = 'return document.querySelector("[role=alert]").textContent'
    assert in_browser(broken, alert).startswith("This tree cannot be unpacked here")


def test_browser_shows_what_siblings_saw_differently(tmp_path):
    dice = random.Random(0)
    seen = ["The shelf holds a red mug and a pan.", "The shelf holds a blue mug and a pan."]
    members = [[replace(step(at, dice), observation=text) for at in (0, 1)] for text in seen * 2]
    members[3][1].observation = "You win."
    for index, steps in enumerate(members):
        steps[-1].reward = float(index == 3)
        for taken in steps:
            taken.action = "look"
    tree = Group([Segment(steps, success=None) for steps in members], planned=4)
    nested_loo(tree)
    folder = make_run(tmp_path / "a", "bpo", 0, tree=tree)
    page = write_report(load_runs([folder]), tmp_path / "out", command="c")
    found = in_browser(
        page,
        """
        const scroll = document.querySelector(".tree-scroll");
        const told = () => [...document.querySelectorAll(".differences li")].map((item) => ({
          who: item.querySelector("button").textContent,
          gone: [...item.querySelectorAll("del")].map((part) => part.textContent),
          added: [...item.querySelectorAll("ins")].map((part) => part.textContent),
          note: item.querySelector(".note")?.textContent,
        }));
        document.querySelector(".differences").open = true;
        await wait(50);
        const result = { first: told() };
        scroll.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        result.second = told();
        document.querySelectorAll(".differences button")[1].click();
        result.went = document.querySelector(".crumbs").textContent;
        return result;
        """,
    )
    blue = {"who": "2, 4: look", "gone": ["red"], "added": ["blue"]}
    same = {"who": "3: look", "gone": [], "added": [], "note": "saw the same"}
    assert found["first"] == [blue, same]
    assert [item["who"] for item in found["second"]] == ["2: look", "3: look", "4: look"]
    assert "win" in "".join(found["second"][2]["added"])
    assert found["went"].startswith("Step 1 · root 3 of 4")


def test_browser_finds_the_words_that_differ(page):
    found = in_browser(
        page,
        """
        const told = (one, two) =>
          diffTexts(one, two).map(({ kind, text }) => `${kind[0]}:${text}`);
        const long = (word) => Array.from({ length: 4000 }, (_, i) => `${word}${i} `).join("");
        return {
          equal: told("a b", "a b"), empty: told("", ""), all: told("", "new"),
          words: told("go to the red desk", "go to the old desk"),
          lines: told("a\\nb c\\nd", "a\\nb x\\nd\\ne"),
          apart: told(long("x"), long("y")).length,
          unlike: told("You see nothing.", "You pick up a pan."),
        };
        """,
    )
    assert found == {
        "equal": ["s:a b"],
        "empty": [],
        "all": ["n:new"],
        "words": ["s:go to the ", "g:red", "n:old", "s: desk"],
        "lines": ["s:a\nb ", "g:c", "n:x", "s:\nd", "n:\ne"],
        "apart": 2,
        "unlike": ["g:You see nothing.", "n:You pick up a pan."],
    }


def test_browser_is_not_taken_over_by_texts(tmp_path):
    tree = rollout_tree(random.Random(1), forks=2)
    for taken in tree.steps():
        taken.prompt = taken.action = taken.observation = ATTACK
        taken.candidates = (ATTACK, ATTACK)
    folder = make_run(tmp_path / "a", "bpo", 0, tree=tree, config={"world": {"env": ATTACK}})
    page = write_report(load_runs([folder]), tmp_path / "out", command=ATTACK)
    found = in_browser(
        page,
        """
        const count = (selector) => document.querySelectorAll(selector).length;
        return { title: document.title, images: count("img"), scripts: count("script"),
                 action: document.querySelector(".panel h3").textContent,
                 command: document.querySelector("code").textContent };
        """,
    )
    assert found["title"] == "Training report: BPO"
    assert found["images"] == 0
    assert found["scripts"] == 7  # the data, four trees, the page's own, and the one that asks
    assert found["action"].startswith("</script><script>document.title='pwned'")
    assert found["command"] == found["action"]


def test_browser_refuses_a_foreign_script(page, tmp_path):
    smuggled = tmp_path / "smuggled.html"
    foreign = "<script>document.title = 'pwned'</script></body>"
    smuggled.write_text(page.read_text("utf-8").replace("</body>", foreign), "utf-8")
    assert in_browser(smuggled, "return document.title") == "Training report: BPO and RLOO"


def test_browser_fits_the_page_on_a_phone(page):
    script = "return [innerWidth, document.documentElement.scrollWidth]"
    window, content = in_browser(page, script, width=390)
    assert window == 390
    assert content <= window


def test_browser_zooms_and_shows_all_of_a_large_tree(tmp_path):
    tree = rollout_tree(random.Random(2), roots=8, forks=32, length=60)
    assert tree.env_steps() > 2000
    folder = make_run(tmp_path / "a", "bpo", 0, updates=10, tree=tree)
    page = write_report(load_runs([folder]), tmp_path / "out", command="c")
    found = in_browser(
        page,
        """
        const scroll = document.querySelector(".tree-scroll");
        const press = (key) => {
          scroll.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          return [scroll.scrollHeight, scroll.clientHeight];
        };
        return { usual: press("1"), larger: press("+"), smaller: press("-"), all: press("0"),
                 again: press("1"), note: document.querySelector(".tree .note").textContent };
        """,
    )
    usual, shown = found["usual"]
    assert usual > 2 * shown
    assert found["larger"][0] == pytest.approx(usual * 1.4, rel=0.02)
    assert found["smaller"] == found["again"] == found["usual"]
    assert found["all"][0] <= shown + 1
    assert f"{tree.env_steps()} decisions" in found["note"]


def test_browser_shows_a_tree_without_a_decision(tmp_path):
    folder = make_run(tmp_path / "a", "bpo", 0, tree=Group([Segment([], success=True)], planned=1))
    page = write_report(load_runs([folder]), tmp_path / "out", command="c")
    text = 'return document.querySelector(".tree-chosen").textContent'
    assert in_browser(page, text) == "No decision was taken in this tree."


def test_browser_shows_a_run_that_has_not_begun(tmp_path):
    folder = make_run(tmp_path / "a", "bpo", 0, updates=0, complete=False)
    page = write_report(load_runs([folder]), tmp_path / "out", command="c")
    titles = "return [...document.querySelectorAll('h2')].map((h) => h.textContent)"
    assert "A rollout tree" not in in_browser(page, titles)
