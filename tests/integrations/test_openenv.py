"""With OpenEnv itself: server and client over WebSockets and HTTP on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs OpenEnv: pip install 'sandboxgym[openenv]'")
pytestmark = pytest.mark.peers

import httpx  # noqa: E402
from openenv.core.generic_client import GenericEnvClient  # noqa: E402

from sandboxgym.core.snapshot import Snapshot  # noqa: E402
from sandboxgym.integrations.openenv.client import SandboxClient  # noqa: E402
from tests.integrations.pages import run_page  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import openenv_branches as example  # noqa: E402


@pytest.fixture(scope="module")
def address():
    with example.serving() as running:
        yield running


@pytest.fixture
def client(address):
    with SandboxClient(address).sync() as connected:
        yield connected


def test_an_episode_is_that_of_the_environment(client):
    env = example.make_env()
    seen, info = env.reset(seed=3)
    told = client.reset(seed=3, episode_id="first")
    assert (told.observation.seen, told.observation.info) == (seen, info)
    assert not told.done
    for number, command in enumerate(info["expert_plan"], start=1):
        seen, reward, terminated, truncated, info = env.step(command)
        told = client.act(command)
        assert told.observation.seen == seen
        assert (told.reward, told.done) == (reward, terminated or truncated)
        assert told.observation.info == info
        state = client.state()
        assert (state.step_count, state.episode_id) == (number, "first")
        assert state.sandbox == "sandboxgym/ALFWorld-v0"
    assert (told.reward, told.done) == (1.0, True)
    env.close()


def test_a_moment_is_restored_in_any_session_and_from_a_file(client, address, tmp_path):
    client.reset(seed=3)
    before = client.act("inventory")
    moment = client.snapshot()
    client.act("look")
    client.act("look")
    moment.save(tmp_path / "moment.snap")
    with SandboxClient(address).sync() as other:
        for session in (client, other):
            told = session.restore(Snapshot.load(tmp_path / "moment.snap"))
            assert told.observation.seen == before.observation.seen
            assert told.observation.info == before.observation.info
            assert session.state().step_count == 1
        assert client.act("look").observation == other.act("look").observation


def test_a_snapshot_is_one_of_the_same_moment_in_process(client):
    env = example.make_env()
    env.reset(seed=3)
    env.step("inventory")
    client.reset(seed=3)
    client.act("inventory")
    assert client.snapshot().digest == env.state_digest()
    env.restore(client.snapshot())
    client.restore(env.snapshot())
    env.close()


def test_sessions_are_isolated(client, address):
    client.reset(seed=3)
    with SandboxClient(address).sync() as other:
        other.reset(seed=4)
        other.act("look")
        assert client.state().step_count == 0
        assert other.state().step_count == 1


def test_what_is_refused_says_why_and_leaves_the_session_as_it_was(client):
    client.reset(seed=3)
    moment = client.snapshot()
    raw = moment.to_bytes()
    with pytest.raises(RuntimeError, match="base64"):
        client.step(_asking(kind="restore", snapshot="no such thing"))
    with pytest.raises(RuntimeError, match="magic number"):
        client.step(_asking(kind="restore", snapshot="AAAA"))
    with pytest.raises(RuntimeError, match="command as str"):
        client.act(7)
    assert client.snapshot().to_bytes() == raw


def _asking(**fields):
    from sandboxgym.integrations.openenv.messages import SandboxAction

    return SandboxAction(**fields)


def test_before_the_first_reset_nothing_is_there_to_take(client):
    with pytest.raises(RuntimeError, match="never reset"):
        client.snapshot()


def test_openenvs_own_client_and_its_http_routes_work_too(address):
    with GenericEnvClient(address).sync() as plain:
        plain.reset(seed=3)
        told = plain.step({"command": "look"})
        assert "seen" in told.observation
        moment = plain.step({"kind": "snapshot"}).observation["snapshot"]
        plain.step({"command": "inventory"})
        assert plain.step({"kind": "restore", "snapshot": moment}).observation["seen"]
    schema = httpx.get(f"{address}/schema").json()
    assert set(schema["action"]["properties"]) >= {"kind", "command", "snapshot"}
    seen = httpx.post(f"{address}/reset", json={"seed": 3}).json()["observation"]["seen"]
    assert "Your task is to" in seen


def test_the_example_finds_that_the_plan_wins_and_detours_do_not():
    returns = list(example.main(branches=3).values())
    assert returns == [1.0, 0.0, 0.0]


def test_the_examples_of_the_page_run(tmp_path, address):
    run_page("openenv", tmp_path, elsewhere=("http://localhost:8000", address))
