"""What `benchmarks.learning` found, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandboxgym_learners.report.curves import Interval


def table(found: Mapping[str, Any]) -> str:
    """The result as Markdown."""
    lines = []
    for world, result in found["worlds"].items():
        lines += [f"### {world}", "", f"{result['describes']}; {result['compute']:,.0f} units.", ""]
        unseen = result["unseen"]
        lines.append(
            "| method | rate | seeds | start | final | over RLOO, points | mean over compute | "
            f"variance times cost, millions | updates to match | {unseen['name']} |"
        )
        lines.append("|---" * 10 + "|")
        for method, one in result["methods"].items():
            reached = one.get("updates_to_best_critic_free_final")
            cells = [
                method,
                f"{result['rates'][method]:g}",
                str(len(one["seeds"])),
                percent(one["start"]),
                percent(one["final"]),
                number(one.get("final_over_rloo"), unit=0.01, form="+.1f"),
                percent(one["area"]),
                number(one["gradient_variance_times_cost"], unit=1e6, form=".2f"),
                ("never" if reached is None else f"{reached:.0f}") + f" of {one['updates']:.0f}",
                success(one["unseen"]),
            ]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
        if unseen["start"] is not None:
            lines += [f"The start on {unseen['name']}: {success(unseen['start'])}.", ""]
        if "plot" in result:
            lines += [f"![Learning curves: {world}]({result['plot']})", ""]
    lines += [LEGEND, ""]
    made = found["made"]
    lines.append(f"`{made['command']}`, commit {made['commit']}, {made['machine']}.")
    return "\n".join(lines) + "\n"


LEGEND = """\
All runs in a world start from one policy. Start and final are success on the tasks of evaluation,
the final one a mean of the last three evaluations; intervals are 90 % of Student's t over seeds.
"Over RLOO" compares runs of the same seed, which draw the same tasks. "Updates to match" says how
many of its updates a method needs to the final success of the best of RLOO and GRPO. Variance times
cost is of the gradient of a single tree, and not known where steps are taken on minibatches."""


def success(value: Mapping[str, Any] | None) -> str:
    """The success of one policy, where it was measured."""
    return "–" if value is None else f"{100 * value['success']:.1f} %"  # noqa: RUF001


def percent(value: Mapping[str, Any]) -> str:
    """A share and its 90 % interval."""
    whole = Interval(**value)
    text = f"{100 * whole.mean:.1f} %"
    if whole.margin is None:
        return text
    return f"{text} ({100 * max(0.0, whole.low):.1f}–{100 * min(1.0, whole.high):.1f})"  # noqa: RUF001


def number(value: Mapping[str, Any] | None, *, unit: float, form: str) -> str:
    """A number in some unit, and how far its 90 % interval reaches."""
    if value is None:
        return "–"  # noqa: RUF001
    margin = value["margin"]
    text = f"{value['mean'] / unit:{form}}"
    return text + ("" if margin is None else f" ± {margin / unit:{form.lstrip('+')}}")
