"""The Hugging Face engine against the definition: one forward pass a token, nothing shared."""

import numpy as np
import pytest
import torch

from sandboxgym_learners.engines.huggingface import HuggingFaceEngine

PROMPTS = [[40, 41, 42, 43, 44], [50, 51], [60, 61, 62, 63, 64, 65, 66, 67]]

ENDS = range(80, 100)  # many, so that texts end at different lengths


@pytest.fixture
def engine(chat_model):
    return HuggingFaceEngine(chat_model[0], ends=ENDS)


def generators(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def slowly(model, prompt, generator, ends, limit):
    """A continuation by the definition."""
    tokens, logprobs, entropies = [], [], []
    while len(tokens) < limit and (not tokens or tokens[-1] not in ends):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0, -1]
        log_probs = torch.log_softmax(logits.double(), dim=0).numpy()
        chances = np.exp(log_probs)
        if generator is None:
            token = int(chances.argmax())
        else:
            token = int(np.searchsorted(np.cumsum(chances), generator.random(), side="right"))
        tokens.append(token)
        logprobs.append(log_probs[token])
        entropies.append(-(chances * log_probs).sum())
    return tokens, logprobs, entropies


def test_texts_are_those_of_the_definition(engine):
    readings = engine.read(PROMPTS)
    places = [0, 0, 1, 2, 2, 2, 1, 0]
    drawing = [*generators(*range(7)), None]
    found = engine.write([readings[i] for i in places], drawing, limit=20)
    again = [*generators(*range(7)), None]
    assert len({len(text.tokens) for text in found}) > 1, "none came to its end before the limit"
    for place, text, generator in zip(places, found, again, strict=True):
        tokens, logprobs, entropies = slowly(
            engine.model, PROMPTS[place], generator, engine.ends, 20
        )
        assert list(text.tokens) == tokens
        np.testing.assert_allclose(text.logprobs, logprobs, atol=1e-4)
        np.testing.assert_allclose(text.entropies, entropies, atol=1e-4)


def test_texts_do_not_depend_on_what_is_written_beside_them(engine):
    readings = engine.read(PROMPTS)
    together = engine.write(readings, generators(5, 6, 7), limit=20)
    for prompt, seed, text in zip(PROMPTS, (5, 6, 7), together, strict=True):
        [alone] = engine.write(engine.read([prompt]), generators(seed), limit=20)
        assert alone.tokens == text.tokens


def test_readings_can_be_written_from_again_and_in_any_order(engine):
    readings = engine.read(PROMPTS)
    first = engine.write(readings, generators(1, 2, 3), limit=10)
    again = engine.write(readings[::-1], generators(3, 2, 1), limit=10)
    assert [text.tokens for text in first] == [text.tokens for text in again[::-1]]


def test_small_batches_write_the_same(engine, chat_model):
    small = HuggingFaceEngine(chat_model[0], ends=ENDS, batch_tokens=8)
    drawn = [
        [text.tokens for text in one.write(one.read(PROMPTS), generators(1, 2, 3), limit=9)]
        for one in (engine, small)
    ]
    assert drawn[0] == drawn[1]


def test_tokens_are_drawn_at_temperature_one(engine):
    count = 4000
    [reading] = engine.read(PROMPTS[:1])
    found = engine.write([reading] * count, generators(*range(count)), limit=1)
    with torch.no_grad():
        logits = engine.model(input_ids=torch.tensor(PROMPTS[:1])).logits[0, -1]
    expected = torch.softmax(logits, dim=0).numpy()
    shares = np.bincount([text.tokens[0] for text in found], minlength=len(expected)) / count
    np.testing.assert_allclose(shares, expected, atol=4 * 0.5 / count**0.5)
    assert reading.entropy == pytest.approx(-(expected * np.log(expected)).sum(), abs=1e-4)


def test_a_shared_prompt_is_read_once(engine):
    [reading] = engine.read(PROMPTS[2:])
    assert engine.forward_tokens == len(PROMPTS[2])
    found = engine.write([reading] * 5, generators(*range(5)), limit=6)
    assert engine.forward_tokens == len(PROMPTS[2]) + sum(len(text.tokens) - 1 for text in found)
