import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from sandboxgym_learners.policy import PolicyError, Query, batches, entropy
from sandboxgym_learners.scoring import ScoringPolicy, Trie
from sandboxgym_learners.tokenizer import build_tokenizer
from sandboxgym_learners.tree import Step

QUERIES = [
    Query("Task: put the red ball on shelf 3.", ("look", "go to shelf 1", "go to shelf 2")),
    Query("Task: go.", ("look", "look at shelf 1", "go to shelf 1", "take red ball from shelf 1")),
    Query("Action:", ("go to shelf 4",)),
    Query("Task: put it.\n> go to shelf 1\nYou see: nothing.\nAction:", ("put it", "look")),
]


def naive_log_probs(model, tokenizer, query: Query) -> torch.Tensor:
    """The definition: one forward pass a command, one token after the other."""
    prompt = tokenizer(query.prompt)["input_ids"]
    scores = []
    for command in query.candidates:
        tokens = list(prompt)
        score = torch.zeros(())
        for token in tokenizer(" " + command)["input_ids"]:
            logits = model(input_ids=torch.tensor([tokens])).logits[0, -1]
            score = score + torch.log_softmax(logits, dim=0)[token]
            tokens.append(token)
        scores.append(score)
    return torch.log_softmax(torch.stack(scores), dim=0)


def make_model(kind: str, vocabulary: int):
    torch.manual_seed(0)
    common = {"vocab_size": vocabulary, "initializer_range": 0.4}
    if kind == "llama":
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
        return LlamaForCausalLM(LlamaConfig(**common, **sizes, num_attention_heads=2))
    return GPT2LMHeadModel(GPT2Config(**common, n_embd=16, n_layer=2, n_head=2))


@pytest.fixture(params=["tiny qwen2", "llama", "gpt2"])
def any_policy(request, policy, errand_texts):
    if request.param == "tiny qwen2":
        return policy
    tokenizer = build_tokenizer(errand_texts)
    return ScoringPolicy(make_model(request.param, len(tokenizer)), tokenizer)


def test_packed_sequences_give_the_probabilities_of_separate_ones(any_policy, recwarn):
    assert not recwarn.list, "the model should take packed sequences"
    answers = any_policy.decide(any_policy.encode(QUERIES))
    for query, answer in zip(QUERIES, answers, strict=True):
        with torch.no_grad():
            naive = naive_log_probs(any_policy.model, any_policy.tokenizer, query)
        np.testing.assert_allclose(answer, naive.numpy(), atol=1e-5)
    spread = max(np.ptp(answer) for answer in answers)
    assert spread > 1, "commands that all score the same would prove nothing"


def test_packed_sequences_give_the_gradient_of_separate_ones(any_policy):
    model = any_policy.model

    def gradient(loss: torch.Tensor) -> torch.Tensor:
        model.zero_grad()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    packed = gradient(any_policy.log_probs(any_policy.encode(QUERIES))[:, 0].sum())
    separate = gradient(
        sum(naive_log_probs(model, any_policy.tokenizer, query)[0] for query in QUERIES)
    )
    torch.testing.assert_close(packed, separate, atol=1e-4, rtol=1e-4)


def test_a_model_that_ignores_masks_is_scored_command_by_command(policy):
    class Deaf(type(policy.model)):
        def forward(self, input_ids, attention_mask=None, position_ids=None, **kwargs):
            return super().forward(input_ids, **kwargs)

    deaf = Deaf(policy.model.config)
    deaf.load_state_dict(policy.model.state_dict())
    with pytest.warns(UserWarning, match="slower"):
        slow = ScoringPolicy(deaf, policy.tokenizer)
    for right, answer in zip(
        policy.decide(policy.encode(QUERIES)), slow.decide(slow.encode(QUERIES)), strict=True
    ):
        np.testing.assert_allclose(answer, right, atol=1e-5)


def test_answers_are_distributions_and_do_not_depend_on_the_batch(policy):
    together = policy.decide(policy.encode(QUERIES))
    for query, answer in zip(QUERIES, together, strict=True):
        assert len(answer) == len(query.candidates)
        assert np.exp(answer).sum() == pytest.approx(1)
        [alone] = policy.decide(policy.encode([query]))
        np.testing.assert_allclose(answer, alone, atol=1e-5)


def test_shared_beginnings_come_once_and_last_tokens_never():
    trie = Trie.of([(5, 6, 7), (5, 6, 8), (5,), (9, 6)])
    assert trie.tokens.tolist() == [5, 6, 9]
    assert trie.depths.tolist() == [1, 2, 1]
    assert trie.ancestors.tolist() == [
        [True, False, False],
        [True, True, False],
        [False, False, True],
    ]
    assert trie.edges.T.tolist() == [
        [0, 0, 5], [0, 1, 6], [0, 2, 7],
        [1, 0, 5], [1, 1, 6], [1, 2, 8],
        [2, 0, 5],
        [3, 0, 9], [3, 3, 6],
    ]  # fmt: skip


def test_batches_hold_every_query_once_and_keep_to_the_limit(policy, monkeypatch):
    monkeypatch.setattr("sandboxgym_learners.policy.BATCH_TOKENS", 60)
    encoded = policy.encode(QUERIES * 5)
    found = list(batches([item.length for item in encoded]))
    assert sorted(i for batch in found for i in batch) == list(range(len(encoded)))
    assert len(found) > 1
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(encoded[i].length for i in batch) <= 60


def test_entropy_is_exact():
    assert entropy(np.log([0.5, 0.25, 0.25])) == pytest.approx(1.5 * np.log(2))
    assert entropy(np.array([0.0, -np.inf])) == 0.0


def test_the_seed_decides_the_tiny_model(errand_texts):
    def answer(seed: int) -> list[float]:
        made = ScoringPolicy.tiny(errand_texts, seed=seed, width=16)
        return made.decide(made.encode(QUERIES[:1]))[0].tolist()

    state = torch.random.get_rng_state()
    assert answer(1) == answer(1) != answer(2)
    assert torch.equal(state, torch.random.get_rng_state()), "global randomness was used up"


def test_a_saved_policy_answers_the_same(policy, tmp_path):
    policy.save(tmp_path)
    loaded = ScoringPolicy.load(tmp_path)
    for before, after in zip(
        policy.decide(policy.encode(QUERIES)), loaded.decide(loaded.encode(QUERIES)), strict=True
    ):
        assert before.tolist() == after.tolist()


def test_what_cannot_be_scored_is_refused(policy, tmp_path):
    with pytest.raises(PolicyError, match="no command to choose among"):
        policy.encode([Query("Task: go.", ())])
    with pytest.raises(PolicyError, match="has no token"):
        policy.encode([Query("Task: go.", ("look", " "))])
    with pytest.raises(PolicyError, match="no causal language model"):
        ScoringPolicy.load(tmp_path / "nothing")


def test_the_vocabulary_depends_on_the_words_alone():
    forward, backward = (
        build_tokenizer(texts).get_vocab()
        for texts in (["go to desk 1.", "Take mug"], ["take mug", "take", "GO to desk 1 ."])
    )
    assert forward == backward
    assert {"go", "desk", "take", "mug", ".", "0", "99"} <= set(forward)


def test_unknown_words_become_the_unknown_token():
    tokenizer = build_tokenizer(["go to desk"])
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("Go to the desk 7!")["input_ids"])
    assert tokens == ["go", "to", "<unk>", "desk", "7", "<unk>"]


def test_features_are_the_hidden_state_at_the_end_of_each_prompt(any_policy):
    prompts = [item.prompt for item in any_policy.encode(QUERIES)]
    found = any_policy.features(prompts)
    for prompt, row in zip(prompts, found, strict=True):
        output = any_policy.model(input_ids=torch.tensor([prompt]), output_hidden_states=True)
        torch.testing.assert_close(row, output.hidden_states[-1][0, -1], atol=1e-5, rtol=1e-4)
    assert found.requires_grad


def test_equal_queries_are_computed_once(policy):
    before = policy.forward_tokens
    alone = policy.consider(QUERIES)
    once = policy.forward_tokens - before
    together = policy.consider([*QUERIES, *QUERIES, QUERIES[0]])
    assert policy.forward_tokens - before == 2 * once
    for place, outlook in enumerate(together):
        same = alone[place % len(QUERIES)]
        assert outlook.query == same.query
        np.testing.assert_allclose(outlook.state, same.state, atol=1e-6)


def test_equal_decisions_have_the_gradient_of_separate_ones(policy):
    steps = [
        Step(query.prompt, query.candidates, choice, query.candidates[choice], 0, 0, 0, "", 0)
        for query in QUERIES
        for choice in (0, len(query.candidates) - 1, 0)
    ]

    def gradient(*parts: list[tuple[int, Step]]) -> torch.Tensor:
        policy.model.zero_grad()
        for part in parts:
            found = policy.judge(policy.recall([step for _, step in part]))
            assert found.log_probs.shape == (len(part), 1)
            (found.log_probs[:, 0] * torch.tensor([weight for weight, _ in part])).sum().backward()
        return torch.cat([p.grad.flatten() for p in policy.model.parameters()])

    weighted = list(enumerate(steps, 1))
    apart = gradient(*([one] for one in weighted))
    torch.testing.assert_close(gradient(weighted), apart, atol=1e-5, rtol=1e-4)
