"""With verifiers itself: its environment runs our harness, and its graph is our tree."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("verifiers", reason="needs verifiers: pip install 'sandboxgym[verifiers]'")
pytestmark = pytest.mark.peers

import verifiers.v1 as vf  # noqa: E402
from aiohttp import web  # noqa: E402

from sandboxgym.integrations.verifiers.tasks import GROWN  # noqa: E402
from tests.integrations.pages import ROOT, page  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import tiny  # noqa: E402
import verifiers_tree as example  # noqa: E402

PLAN = {"roots": 2, "branch_at": [1], "members": 2, "max_decisions": 4}


@contextlib.asynccontextmanager
async def serving(answers):
    """A model that says what is in a list, one answer a call."""
    left = iter(answers)

    async def complete(request):
        text = next(left)
        await request.json()
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        return web.json_response(
            {"id": "0", "object": "chat.completion", "created": 0, "model": "m"}
            | {"choices": [choice]}
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


async def played(answers, **agent) -> vf.Trace:
    """The trace of the first game, with a model that gives these answers."""
    env = vf.SingleAgentEnv(
        vf.SingleAgentEnvConfig(
            taskset={"id": "verifiers_tree", "arguments": example.ARGUMENTS, "episodes": 1},
            agent={
                "harness": {"id": "verifiers_tree", **PLAN},
                "runtime": {"type": "subprocess"},
                **agent,
            },
        )
    )
    async with serving(answers) as address, env.serving():
        client = vf.EvalClientConfig(base_url=address, api_key_var="TINY_KEY")
        (task,) = env.taskset
        (slot,) = env.slots(task)
        episode = await env.run_slot(slot, vf.ModelContext(model="m", client=client))
    (trace,) = episode.traces
    return trace


def first_game() -> list[str]:
    env = tiny.make_env(expert_plan=True)
    _, info = env.reset(seed=0)
    env.close()
    return info["expert_plan"]


def answers(plan: list[str]) -> list[str]:
    """Both roots, then the four leaves turn by turn; the first leaf follows the plan."""
    said = [plan[0], "look"]
    for step in plan[1:]:
        said += [step, "look", "look", "inventory"]
    return said


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TINY_KEY", "none")


def test_the_graph_of_the_trace_is_the_tree_and_has_its_credits():
    plan = first_game()
    assert len(plan) == PLAN["max_decisions"]
    trace = asyncio.run(played(answers(plan)))
    assert trace.ok, trace.errors
    grown = trace.info[GROWN]
    assert sorted(grown["returns"]) == [0.0, 0.0, 0.0, 1.0]
    # The first root has one of two members that win, the second none: 1/2, and 1/4 over both.
    assert grown["mean_return"] == pytest.approx(0.25)
    assert trace.reward == pytest.approx(0.25)
    credits_of = {int(node): value for node, value in grown["credits"].items()}
    sampled = [i for i, node in enumerate(trace.nodes) if node.sampled]
    assert sorted(credits_of) == sampled
    by_text: dict[str, set[float]] = {}
    for node, value in credits_of.items():
        by_text.setdefault(trace.nodes[node].message.content, set()).add(round(value, 6))
    assert by_text[plan[0]] == {0.25}  # weight 1/2 times (1/2 - 0)
    assert by_text[plan[-1]] == {0.25}  # weight 1/4 times (1 - 0)
    assert by_text["inventory"] == {0.0}
    assert trace.num_branches == 4


def test_branches_begin_with_what_they_share():
    trace = asyncio.run(played(answers(first_game())))
    first, second = trace.branches[:2]
    shared = [a for a, b in zip(first.nodes, second.nodes, strict=False) if a is b]
    assert shared[-1].message.role == "user"
    assert any(node.sampled for node in shared)


def test_a_limit_of_verifiers_stops_the_tree_and_scores_no_guess():
    trace = asyncio.run(played(answers(first_game()), max_turns=3))
    assert GROWN not in trace.info
    assert not trace.ok or trace.stop_condition is not None
    assert trace.reward == 0


def test_the_example_evaluates():
    (trace,) = asyncio.run(example.main(episodes=1))
    assert trace.ok
    assert trace.num_branches >= 2


def test_the_plugin_and_the_command_of_the_page_evaluate(tmp_path):
    (plugin,) = re.findall(r"```py\n(.*?)```", page("verifiers"), re.DOTALL)
    (command,) = re.findall(r"```bash\n(.*?)```", page("verifiers"), re.DOTALL)
    (tmp_path / "my_sandbox.py").write_text(plugin)

    async def evaluate() -> None:
        async with serving(itertools.repeat("look")) as address:
            shell = await asyncio.create_subprocess_shell(
                command.replace("http://localhost:8000/v1", address)
                .replace("PYTHONPATH=.", f"PYTHONPATH=.:{ROOT}")
                .replace("episodes 20", "episodes 1")
                .replace("max_decisions 10", "max_decisions 2"),
                cwd=tmp_path,
                env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            )
            assert await shell.wait() == 0

    asyncio.run(evaluate())
    (traces,) = tmp_path.glob("outputs/*/traces.jsonl")
    (episode,) = map(json.loads, traces.read_text().splitlines())
    assert episode["ok"]
    assert episode["traces"][0]["info"][GROWN]["returns"] == [0.0] * 4
