import numpy as np
import pytest
import torch

from sandboxgym_learners.chat import action_in, chat_tokens
from sandboxgym_learners.policy import PolicyError, Query
from sandboxgym_learners.tree import Step
from sandboxgym_learners.writing import WritingConfig

QUERIES = [Query("Task: put the red ball on shelf 3."), Query("Task: go.\nYou see: nothing.")]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Thought: the desk first.\nAction: go to desk 1", "go to desk 1"),
        ("Action: look\nAction: inventory\nand so on", "inventory"),
        ("action:  open fridge 1  ", "open fridge 1"),
        ("Action:\n```bash\ncd src\ngrep -n x *.py\n```\nThat is it.", "cd src\ngrep -n x *.py"),
        ("Action: ```\nls\n```", "ls"),
        ("Action:\n```\nls -l", "ls -l"),
        ("Action:", ""),
        ("I would go to the desk.\nOr so.", "I would go to the desk.\nOr so."),
        ("Action: a\x00b\x1b[0m", "ab[0m"),
    ],
)
def test_the_action_of_an_answer(text, action):
    assert action_in(text) == action


def steps_of(policy, queries, seeds):
    outlooks = policy.consider(queries)
    acts = policy.draw(outlooks, [np.random.default_rng(seed) for seed in seeds])
    return [
        Step(
            prompt=outlook.query.prompt,
            candidates=(),
            choice=act.choice,
            action=act.action,
            logprob=act.logprob,
            entropy=outlook.entropy,
            reward=0.0,
            observation="",
            depth=0,
            written=act.written,
            written_logprobs=act.written_logprobs,
        )
        for outlook, act in zip(outlooks, acts, strict=True)
    ]


def test_the_learner_sees_the_probabilities_that_were_drawn_with(writer):
    steps = steps_of(writer, QUERIES * 3, range(6))
    assert len({step.written for step in steps}) == 6
    with torch.no_grad():
        judged = writer.judge(writer.recall(steps))
    for step, row, parts in zip(steps, judged.log_probs, judged.parts, strict=True):
        count = len(step.written)
        assert parts.sum() == count
        np.testing.assert_allclose(row[:count], step.written_logprobs, atol=1e-4)
        assert (row[count:] == 0).all()
        assert step.logprob == pytest.approx(sum(step.written_logprobs))


def test_the_entropy_bonus_and_features_are_those_of_the_separate_rows(writer):
    steps = steps_of(writer, QUERIES, range(2))
    taken = writer.recall(steps)
    with torch.no_grad():
        together = writer.judge(taken)
        alone = [writer.judge([one]) for one in taken]
        features = writer.features([one.prompt for one in taken])
        lonely = [writer.features([one.prompt])[0] for one in taken]
    for row, one in enumerate(alone):
        torch.testing.assert_close(together.entropy[row], one.entropy[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(together.rows[row], one.rows[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(features[row], lonely[row], atol=1e-4, rtol=1e-4)


def test_the_gradient_of_the_divergence_is_that_of_kl(chat_model, writer):
    """Over the two most likely texts of one token, by enumeration."""
    logits = torch.tensor([0.3, -0.2, 0.9], requires_grad=True)
    reference = torch.log_softmax(torch.tensor([0.0, 0.5, -0.5]), dim=0)
    log_probs = torch.log_softmax(logits, dim=0)
    exact = (log_probs.exp() * (log_probs - reference)).sum()
    [expected] = torch.autograd.grad(exact, logits, retain_graph=True)
    sampled = (log_probs.exp().detach() * writer.divergence(log_probs, reference)).sum()
    [found] = torch.autograd.grad(sampled, logits)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", ["first token", "likely text"])
def test_entropies_are_known_before_anything_is_drawn(writer, kind):
    writer.config = WritingConfig(tokens=6, entropy=kind, likely_tokens=3)
    first = writer.consider(QUERIES)
    again = writer.consider(QUERIES)
    assert [one.entropy for one in first] == [one.entropy for one in again]
    assert all(one.entropy_of == kind and one.entropy > 0 for one in first)


def test_the_middle_of_a_long_prompt_is_left_out(writer):
    history = "\n".join(f"> go to shelf {n}" for n in range(200))
    prompt = f"Task: put the red ball on shelf 3.\n{history}\nYou see: shelf 4."
    tokens = chat_tokens(writer.tokenizer, "Be brief.", prompt, limit=400)
    assert 340 < len(tokens) <= 400
    text = writer.tokenizer.decode(tokens)
    assert "Task: put the red ball" in text
    assert "You see: shelf 4.<|im_end|>\n<|im_start|>assistant" in text
    assert "[...]" in text
    with pytest.raises(PolicyError, match="prompt-tokens"):
        chat_tokens(writer.tokenizer, "Be brief. " * 50, prompt, limit=400)
