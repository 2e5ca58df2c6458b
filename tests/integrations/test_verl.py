"""With verl itself: its worker runs our loops, its trainer's function our estimator."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="needs verl: pip install 'sandboxgym[verl]'")
pytestmark = pytest.mark.peers

import numpy as np  # noqa: E402
import torch  # noqa: E402
from hydra import compose, initialize_config_module  # noqa: E402
from hydra.utils import get_class  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker  # noqa: E402
from verl.trainer.ppo.core_algos import get_adv_estimator_fn  # noqa: E402
from verl.trainer.ppo.ray_trainer import compute_advantage  # noqa: E402
from verl.workers.rollout.replica import TokenOutput  # noqa: E402

from sandboxgym.integrations.growth import Plan  # noqa: E402
from sandboxgym.integrations.pieces import most_pieces  # noqa: E402
from sandboxgym.integrations.verl import estimator  # noqa: E402
from sandboxgym.integrations.verl.loops import EpisodeAgentLoop, TreeRowsError  # noqa: E402
from tests.integrations.pages import page  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import tiny  # noqa: E402
import verl_trees as example  # noqa: E402


class Scripted:
    """Of the branches of the first game that have come equally far, one follows its plan."""

    def __init__(self) -> None:
        self.tokenizer = None
        self.asked: Counter[tuple[int, ...]] = Counter()
        (self.plan, *_) = ([turn.command for turn in turns] for turns in tiny.plans())
        self.first = tiny.plans()[0][0].seen

    async def generate(self, request_id, *, prompt_ids, sampling_params, **_) -> TokenOutput:
        assert sampling_params["max_tokens"] == 16
        read = self.tokenizer.decode(prompt_ids)
        said = [part.partition(tiny.END)[0] for part in read.split("assistant\n")[1:-1]]
        follows = self.first in read and said == self.plan[: len(said)]
        follows = follows and self.asked[tuple(prompt_ids)] == 0
        self.asked[tuple(prompt_ids)] += 1
        command = self.plan[len(said)] if follows else "look"
        return TokenOutput(token_ids=self.tokenizer(command + tiny.END)["input_ids"])


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verl")
    tokenizer = tiny.build_tokenizer([*tiny.texts(), example.TEMPLATE])
    tokenizer.chat_template = example.TEMPLATE
    tiny.build_model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = Scripted()
    made = AgentLoopWorker(example.configuration(folder), model)
    model.tokenizer = made.tokenizer
    return made


@pytest.fixture(scope="module")
def batch(worker) -> DataProto:
    return asyncio.run(worker.generate_sequences(example.prompts()))


def test_the_rows_of_a_prompt_are_the_segments_of_one_tree(worker, batch):
    assert len(batch) == example.ROWS * tiny.GAMES
    texts = []
    for row in range(example.ROWS):
        mask = batch.batch["attention_mask"][row].bool()
        texts.append(worker.tokenizer.decode(batch.batch["input_ids"][row][mask]))
    roots, leaves = texts[:2], texts[2:]
    for number, leaf in enumerate(leaves):
        assert leaf.startswith(roots[number // 2])
    masks = batch.batch["response_mask"].sum(-1)
    assert (masks > 0).all()


def test_the_estimator_puts_the_credit_on_the_tokens_of_the_model(batch):
    batch.batch["token_level_rewards"] = batch.batch["rm_scores"]
    data = compute_advantage(batch, estimator.NAME, config=None)
    credit = batch.batch["rm_scores"].sum(-1)
    assert credit.abs().max() > 0
    expected = credit[:, None] * batch.batch["response_mask"]
    torch.testing.assert_close(data.batch["advantages"], expected)
    # Credits of siblings add up to nothing, in every group of both trees.
    for tree in credit.view(tiny.GAMES, example.ROWS):
        assert tree[:2].sum() == tree[2:4].sum() == tree[4:].sum() == 0


def test_what_episodes_returned_is_in_the_log(batch):
    returned = batch.non_tensor_batch["episode_return"].reshape(tiny.GAMES, example.ROWS)
    assert (returned == returned[:, :1]).all()
    assert returned[0, 0] > 0
    assert returned[1, 0] == 0


def test_the_estimator_is_registered():
    assert get_adv_estimator_fn(estimator.NAME) is estimator.credit_of_segments


def test_rows_that_are_no_tree_are_refused(worker):
    whole = example.prompts()
    with pytest.raises(TreeRowsError, match=f"rollout.n={example.ROWS}"):
        asyncio.run(worker.generate_sequences(whole[:4]))
    again = asyncio.run(worker.generate_sequences(example.prompts()))  # nothing is left over
    assert len(again) == len(whole)


def test_an_episode_is_one_row_with_its_return(worker):
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry

    tree = dict(_agent_loop_registry["sandbox_tree"])
    single = {"_target_": "sandboxgym.integrations.verl.loops.EpisodeAgentLoop"}
    plan = {"max_decisions": 4}
    _agent_loop_registry["episode"] = {**tree, **single, "name": "episode", "plan": plan}
    prompts = example.prompts()[:1]
    prompts.non_tensor_batch["agent_name"] = np.array(["episode"], dtype=object)
    worker.llm_client.asked.clear()
    data = asyncio.run(worker.generate_sequences(prompts))
    assert data.batch["rm_scores"].sum() == data.non_tensor_batch["episode_return"][0] == 1


def test_the_example_takes_a_training_step():
    told = example.main()
    assert np.isfinite(told["gradient"])
    assert 0 <= told["episode_return"] <= 1


def test_what_the_page_sets_is_known_to_verl_and_goes_together():
    loops, settings = map(
        OmegaConf.create, re.findall(r"```yaml\n(.*?)```", page("verl"), re.DOTALL)
    )
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=[f"{k}={v}" for k, v in settings.items()])
    assert config.algorithm.adv_estimator == estimator.NAME
    for loop in loops:
        assert issubclass(get_class(loop["_target_"]), EpisodeAgentLoop)
    tree = {**loops[0].plan, "branch_at": tuple(loops[0].plan.branch_at)}
    assert most_pieces(Plan(**tree)) == config.actor_rollout_ref.rollout.n


def test_verl_imports_the_estimator_that_a_variable_names():
    (line,) = re.findall(r"^export (VERL_\w+=\S+)$", page("verl"), re.MULTILINE)
    ask = "from verl.trainer.ppo.core_algos import get_adv_estimator_fn as get; get(NAME)"
    subprocess.run(
        [sys.executable, "-c", ask.replace("NAME", repr(estimator.NAME))],
        env={**os.environ, **dict([line.split("=")])},
        check=True,
    )
