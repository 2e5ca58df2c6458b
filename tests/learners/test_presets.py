import pytest
import tyro

from sandboxgym_learners import train
from sandboxgym_learners.algorithms import ALGORITHMS
from sandboxgym_learners.config import ConfigError, TrainConfig
from sandboxgym_learners.dryrun import GIB, estimate
from sandboxgym_learners.policy import PolicyError
from sandboxgym_learners.presets import MODELS, WORLDS, preset

HORIZONS = {"alfworld": 40, "webshop": 50, "swebench": 25}


def configured(tmp_path, name: str, *options: str) -> TrainConfig:
    return tyro.cli(TrainConfig, args=[*preset(name), "--out", str(tmp_path), *options])


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("model", MODELS)
def test_every_preset_is_a_configuration_with_the_horizon_of_its_world(tmp_path, model, world):
    config = configured(tmp_path, f"{model}/{world}")
    assert config.world.horizon == HORIZONS[world]
    assert config.policy.answers == ("choice" if (model, world[:3]) in CHOOSING else "text")


CHOOSING = {("tiny", "alf"), ("tiny", "web")}


def test_options_come_after_the_preset(tmp_path):
    config = configured(tmp_path, "qwen2.5-7b/webshop", "--world.horizon", "9", "--algo", "rloo")
    assert (config.world.horizon, config.algo, config.shape.branches) == (9, "rloo", False)


def test_an_unknown_preset_is_refused(capsys):
    with pytest.raises(ConfigError, match="no preset"):
        preset("qwen2.5-7b")
    assert train.main(["--preset", "gpt/alfworld", "--out", "x"]) == 2
    assert "name a model (qwen2.5-7b, llama-3.1-8b" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "parameters", "adapters"),
    [("qwen2.5-7b", 7_615_616_512, 80_740_352), ("llama-3.1-8b", 8_030_261_248, 83_886_080)],
)
def test_a_dry_run_builds_a_large_model_from_its_shape_alone(
    tmp_path, capsys, model, parameters, adapters
):
    out = tmp_path / "run"
    assert train.main(["--preset", f"{model}/alfworld", "--dry-run", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert f"{parameters:,} parameters, {adapters:,} of them or beside them are trained" in text
    numbers = dict(line.split(maxsplit=1) for line in text.splitlines()[2:])
    assert numbers["weights"].startswith(f"{(2 * parameters + 4 * adapters) / GIB:.2f} GiB")
    assert numbers["gradient"].startswith(f"{12 * adapters / GIB:.2f} GiB")
    siblings = ALGORITHMS["bpo"].shape.siblings
    assert f"siblings collated to ({siblings}, " in text
    assert 40 < float(text.split("in all")[1].split()[0]) < 90
    assert not out.exists()


def test_a_dry_run_of_a_small_model_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="large models"):
        estimate(TrainConfig(out=tmp_path))
