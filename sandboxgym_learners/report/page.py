"""Put the report together: one HTML file with everything in it, which loads nothing.

Texts of environments and models are not to be trusted. They travel as JSON in which `<`, `>` and
`&` are escaped, so that no text can end the data block; the scripts put them on the page as text,
never as markup; and the page's own security policy lets no other script run and nothing load.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from sandboxgym_learners.report import charts, output, provenance, results
from sandboxgym_learners.report.load import Run, SavedTree, by_algorithm, load_tree
from sandboxgym_learners.report.tree_view import drawing
from sandboxgym_learners.tree import Group

SCRIPTS = ("dom.js", "charts.js", "tree.js", "main.js")


def write_report(runs: Sequence[Run], out: Path, *, command: str) -> Path:
    """Write the page about some runs, and give its path.

    Args:
        runs: The runs, as `load_runs` gives them.
        out: A file that ends in .html, or the folder of index.html; made if it is not there.
        command: The command that led to the report, for the reader to repeat.

    Raises:
        ReportError: It cannot be written there.
        RunDirectoryError: A tree of a run cannot be read.
    """
    path = output.page_path(out)
    output.require_place(path)
    output.write_page(path, render(report_data(runs, command=command)))
    return path


def report_data(runs: Sequence[Run], *, command: str) -> dict[str, Any]:
    """Everything that the page shows, as plain data."""
    groups = by_algorithm(runs)
    rows = results.table(groups)
    return {
        "algorithms": list(groups),
        "setting": provenance.setting(runs),
        "verdict": results.verdict(rows),
        "table": [asdict(row) for row in rows],
        "matched_compute": results.matched_compute(groups),
        "success": charts.chart_data(charts.SUCCESS, groups),
        "variance": _known(charts.VARIANCE, groups),
        "branching": _known(charts.BRANCHING, groups),
        "window": max(charts.smoothing_window(run) for run in runs),
        "costs": [asdict(cost) for cost in results.costs(groups)],
        "trees": [drawing(saved) for saved in _trees(groups)],
        "made": {
            "command": command,
            "commit": provenance.commit(),
            "machine": provenance.machine(),
            "versions": provenance.versions(runs),
            "runs": [
                {"name": f"{run.algo}, seed {run.seed}", "config": run.config} for run in runs
            ],
        },
    }


def render(data: dict[str, Any]) -> str:
    """The page as text. Numbers that are not finite become null."""
    files = resources.files("sandboxgym_learners.report") / "static"
    style = (files / "page.css").read_text("utf-8")
    script = "\n".join((files / name).read_text("utf-8") for name in SCRIPTS)
    parts = {
        "STYLE": style,
        "STYLE_HASH": _hash(style),
        "SCRIPT": script,
        "SCRIPT_HASH": _hash(script),
        "DATA": embed(data),
    }
    # One pass over the template: what is put in is not searched for further placeholders.
    pieces = (files / "page.html").read_text("utf-8").split("@@")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def embed(data: Any) -> str:
    """JSON in ASCII that can stand inside a `<script>` block, whatever the texts in it are."""
    text = json.dumps(_plain(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _known(wanted: Sequence[charts.Chart], groups: charts.Groups) -> list[dict[str, Any]]:
    found = (charts.chart_data(chart, groups) for chart in wanted)
    return [chart for chart in found if chart is not None]


def _trees(groups: charts.Groups) -> list[SavedTree]:
    """Of each algorithm the first and the last tree of the first seed, and the most telling of all.

    The most telling comes first, as the one that the page opens with.
    """
    chosen = []
    for runs in groups.values():
        kept = [[load_tree(run, path) for path in run.tree_files()] for run in runs]
        telling = max((saved for trees in kept for saved in trees), key=_shows, default=None)
        ends = [kept[0][0], kept[0][-1]] if kept[0] else []
        chosen += _different([*ends, *([telling] if telling else [])])
    return sorted(chosen, key=_shows, reverse=True)


def _different(trees: Sequence[SavedTree]) -> list[SavedTree]:
    return list({(saved.seed, saved.update): saved for saved in trees}.values())


def _shows(saved: SavedTree) -> tuple[int, bool]:
    """How many branch points after a shared prefix teach something; then, whether the roots do."""
    points = sum(
        _teaches(visit.segment.branch)
        for visit in saved.tree.visits()
        if visit.segment.steps and visit.segment.branch is not None
    )
    return points, _teaches(saved.tree)


def _teaches(group: Group) -> bool:
    return len({member.mean_return() for member in group.members}) > 1


def _plain(data: Any) -> Any:
    """The same as JSON can hold it: no number that is not finite, no half of a character."""
    if isinstance(data, dict):
        return {_whole(str(key)): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return _whole(data) if isinstance(data, str) else data


def _whole(text: str) -> str:
    """Replace lone surrogates, which are no characters and make some browsers crash."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
