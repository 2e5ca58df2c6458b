"""Put the report together: one HTML file with everything in it, which loads nothing.

Texts of environments and models are not to be trusted. They travel as JSON in which `<`, `>` and
`&` are escaped, or packed in base64, so that no text can end the data block; the scripts put them
on the page as text, never as markup; and the page's own security policy lets no other script run
and nothing load.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from sandboxgym_learners.report import charts, output, provenance, results
from sandboxgym_learners.report.load import Run, by_algorithm
from sandboxgym_learners.report.plain import plain
from sandboxgym_learners.report.trees import PackedTrees, packed_trees

SCRIPTS = (
    *("dom.js", "charts.js", "costs.js"),
    *("unpack.js", "layout.js", "painter.js", "diff.js", "panel.js", "tree.js", "trees.js"),
    "main.js",
)


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
    trees = packed_trees(by_algorithm(runs))
    output.write_page(path, render(report_data(runs, command=command), trees))
    return path


def report_data(runs: Sequence[Run], *, command: str) -> dict[str, Any]:
    """Everything that the page shows but the trees themselves, as plain data."""
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


def render(data: dict[str, Any], trees: PackedTrees) -> str:
    """The page as text."""
    files = resources.files("sandboxgym_learners.report") / "static"
    style = (files / "page.css").read_text("utf-8")
    script = "\n".join((files / name).read_text("utf-8") for name in SCRIPTS)
    shown = {"trees": trees.summaries, "opening": trees.opening, "kept": trees.kept}
    parts = {
        "STYLE": style,
        "STYLE_HASH": _hash(style),
        "SCRIPT": script,
        "SCRIPT_HASH": _hash(script),
        "DATA": embed({**data, **shown}),
        "TREES": "\n".join(map(_block, range(len(trees.blocks)), trees.blocks)),
    }
    # One pass over the template: what is put in is not searched for further placeholders.
    pieces = (files / "page.html").read_text("utf-8").split("@@")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def embed(data: Any) -> str:
    """JSON in ASCII that can stand inside a `<script>` block, whatever the texts in it are."""
    text = json.dumps(plain(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _block(number: int, packed: str) -> str:
    return f'<script type="text/plain" id="tree-{number}">{packed}</script>'


def _known(wanted: Sequence[charts.Chart], groups: charts.Groups) -> list[dict[str, Any]]:
    found = (charts.chart_data(chart, groups) for chart in wanted)
    return [chart for chart in found if chart is not None]


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
