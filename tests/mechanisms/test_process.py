"""`ProcessEnv`: forks of a process are exact, isolated, and behave as the environment itself."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import signal
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import StickyAction

import sandboxgym as sg
from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import (
    EnvironmentRaisedError,
    NotForkableError,
    NotResetError,
    ReproductionError,
    StateEncodingError,
    UncapturedStateError,
    WorkerLostError,
    WorkerTimeoutError,
)
from sandboxgym.core.plain import owned
from sandboxgym.mechanisms.process import ProcessEnv
from sandboxgym.mechanisms.process.failure import EnvironmentTraceback
from tests.mechanisms.process_lab import Lab, answer, lab


@pytest.fixture
def env():
    env = lab()
    yield env
    env.close()


def test_gives_what_the_environment_gives():
    plain, forked = gym.make("CartPole-v1"), ProcessEnv(gym.make("CartPole-v1"))
    for seed in (0, 1):
        assert (
            first_difference(owned(plain.reset(seed=seed)), owned(forked.reset(seed=seed))) is None
        )
        for action in (0, 1, 1, 0, 1):
            left, right = plain.step(action), forked.step(action)
            assert first_difference(owned(left), owned(right)) is None
    forked.close()


def test_restores_exactly_and_many_times_out_of_order():
    env = ProcessEnv(gym.make("CartPole-v1"))
    env.reset(seed=5)
    moments = []
    for action in (0, 1, 1, 0, 0, 1):
        step = env.step(action)
        moments.append((env.snapshot(), step))
    continuation = [env.step(1) for _ in range(2)]
    for number in (2, 5, 0, 5, 3):
        snapshot, (obs, _, _, _, info) = moments[number]
        assert first_difference(list(env.restore(snapshot)), [obs, info]) is None
    env.restore(moments[5][0])
    again = [env.step(1) for _ in range(2)]
    assert first_difference(owned(continuation), owned(again)) is None
    assert "replayed_steps" not in env.metrics
    env.close()


def test_a_snapshot_changes_nothing_and_forks_are_isolated(env):
    answer(env, "draw")
    twin = lab()
    answer(twin, "draw")
    left, right = sg.fork(env, 2)
    assert len({answer(e, "pid") for e in (env, left, right)}) == 3
    answer(twin, "nothing")
    draws = [answer(e, "draw") for e in (left, env, twin, right)]
    assert draws[1:] == draws[:-1]
    answer(left, "nothing")
    following = answer(right, "draw")
    assert answer(env, "draw") == answer(twin, "draw") == answer(left, "draw") == following
    for other in (left, right, twin):
        other.close()


def test_global_generators_go_on_as_they_would_have(env):
    snapshot = env.snapshot()
    first = [answer(env, "draw") for _ in range(3)]
    env.restore(snapshot)
    assert [answer(env, "draw") for _ in range(3)] == first
    env.restore(snapshot)
    snapshot = env.snapshot()  # of a fork of a template
    env.restore(snapshot)
    assert [answer(env, "draw") for _ in range(3)] == first


def test_a_seed_after_restoring_gives_other_randomness_and_the_same_each_time(env):
    snapshot = env.snapshot()

    def drawn(seed: int | None) -> float:
        env.restore(snapshot, seed=seed)
        return float(answer(env, "draw")[2])

    assert drawn(3) == drawn(3) != drawn(4)
    assert drawn(None) == drawn(None)
    assert drawn(None) not in (drawn(3), drawn(4))


def test_snapshots_outlive_the_environment_that_made_them(env):
    answer(env, "heap 1")
    snapshot = env.snapshot()
    expected = answer(env, "draw")
    env.close()
    other = lab()
    other.restore(snapshot)
    assert answer(other, "draw") == expected
    assert "replayed_steps" not in other.metrics
    env.restore(snapshot)  # a closed environment can be brought back
    assert answer(env, "draw") == expected
    other.close()


def test_closed_environments_and_those_never_reset_say_so(env):
    env.close()
    with pytest.raises(NotResetError):
        env.step("nothing")
    with pytest.raises(NotResetError):
        env.snapshot()
    env.reset(seed=1)
    assert answer(env, "nothing") == ""


def test_a_snapshot_without_its_template_is_replayed(env):
    drawn = [answer(env, "draw") for _ in range(3)]
    data = env.snapshot().to_bytes()
    other = lab()
    other.restore(sg.Snapshot.from_bytes(data))
    assert other.metrics["replayed_steps"] == 3
    assert answer(other, "draw") == answer(env, "draw") != drawn[-1]
    other.close()


def test_a_handler_for_the_end_of_children_does_not_see_forks(env):
    env.step("children")
    snapshot = env.snapshot()
    assert answer(env, "children") == [0]
    env.restore(snapshot)
    assert answer(env, "children") == [0]


def test_a_reset_after_an_interrupted_restore_builds_what_it_needs(env):
    snapshot = env.snapshot()
    snapshot.held._process.dismiss()
    env.restore(snapshot)
    assert "replayed_steps" in env.metrics
    env._family._pristine.dismiss()
    env.close()
    env.reset(seed=1)
    assert answer(env, "nothing") == ""


def test_too_many_open_files_are_a_clear_error():
    env = lab(max_templates=1000)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = [env.snapshot() for _ in range(3)]
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, limits[1]))
    try:
        with pytest.raises(UncapturedStateError, match="max_templates"):
            env.snapshot()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    env.restore(kept[0])
    kept.append(env.snapshot())
    assert "replayed_steps" not in env.metrics
    env.close()


def test_renders_in_the_worker(env):
    answer(env, "nothing")
    assert env.render() == "1 done"


def test_options_and_info_travel(env):
    _, info = env.reset(seed=1, options={"level": (1, np.float32(2.5))})
    assert first_difference(info, {"options": {"level": (1, np.float32(2.5))}}) is None


def test_wrappers_inside_are_part_of_the_box():
    env = ProcessEnv(gym.make("CartPole-v1", max_episode_steps=5))
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    snapshot = env.snapshot()
    for _ in range(2):
        env.restore(snapshot)
        assert not env.step(1)[3]
        assert env.step(1)[3]  # truncated by TimeLimit, whose counter is inside
    env.close()


@pytest.mark.parametrize(
    ("action", "kind", "text"),
    [
        ("fail value", ValueError, "not this"),
        ("fail key", KeyError, "fridge"),
        ("fail gym", gym.error.ResetNeeded, "reset first"),
        ("fail decode", UnicodeDecodeError, "can't decode"),
        ("fail own", EnvironmentRaisedError, "TeapotError: short and stout"),
        ("fail exit", EnvironmentRaisedError, "SystemExit: 3"),
        ("object", StateEncodingError, "is a builtins.object"),
    ],
)
def test_exceptions_come_back_with_their_traceback_and_end_the_episode(env, action, kind, text):
    snapshot = env.snapshot()
    with pytest.raises(kind, match=text) as caught:
        env.step(action)
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, EnvironmentTraceback)
    if action != "object":
        assert "in do_fail" in str(caught.value.__cause__)
    with pytest.raises(NotResetError):
        env.step("nothing")
    env.restore(snapshot)
    assert env.step("nothing")[4] == {"log": ["nothing"]}


@pytest.mark.parametrize(
    ("how", "words"),
    [("exit", "exited with code 5"), ("SIGSEGV", "SIGSEGV"), ("SIGKILL", "out of memory")],
)
def test_a_worker_that_dies_is_named_and_replaced(env, how, words):
    answer(env, "nothing")
    snapshot = env.snapshot()
    with pytest.raises(WorkerLostError, match=words):
        env.step(f"die {how}")
    with pytest.raises(NotResetError):
        env.step("nothing")
    env.restore(snapshot)
    assert env.step("nothing")[4] == {"log": ["nothing", "nothing"]}
    with pytest.raises(WorkerLostError, match=words):
        env.step(f"die {how}")
    env.reset(seed=1)
    assert env.step("nothing")[4] == {"log": ["nothing"]}


def test_a_worker_that_hangs_is_ended():
    quick = lab(timeout=3.0)
    snapshot = quick.snapshot()
    with pytest.raises(WorkerTimeoutError, match=r"within 3\.0 s"):
        quick.step("hang")
    quick.restore(snapshot)
    assert answer(quick, "nothing") == ""
    quick.close()


@pytest.fixture
def interruptible():
    """What is started in the background of a shell ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_leaves_no_answer_for_the_next_question(env, interruptible):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        env.step("sleep 5")
    timer.join()
    env.reset(seed=1)
    assert answer(env, "nothing") == ""


def test_close_reports_what_the_environment_raises_and_closes_all_the_same(env):
    with pytest.raises(RuntimeError, match="it did not close"):
        env.step("fail to close")
    env.reset(seed=1)
    env.close()
    env.close()


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (lambda: Lab("fail value"), "ValueError"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: __import__("no_such_module_here"), "no_such_module_here"),
    ],
)
def test_a_factory_that_raises_is_reported_with_its_traceback(factory, words):
    with pytest.raises(ReproductionError, match=words) as caught:
        ProcessEnv(Lab(), factory)
    assert "Traceback" in str(caught.value)


def test_a_factory_that_dies_is_reported():
    with pytest.raises(WorkerLostError, match="SIGSEGV"):
        lab(built="die SIGSEGV")


def test_a_factory_that_makes_something_else_is_refused():
    with pytest.raises(ReproductionError, match="CartPole"):
        ProcessEnv(Lab(), lambda: gym.make("CartPole-v1"))


def test_a_factory_that_cannot_be_sent_is_refused():
    lock = threading.Lock()
    with pytest.raises(ReproductionError, match="cannot be sent"):
        ProcessEnv(Lab(), lambda: (lock, Lab())[1])


def test_what_nothing_records_is_refused():
    with pytest.raises(ReproductionError, match="factory"):
        ProcessEnv(Lab())


@pytest.mark.parametrize("layer", ["wrapper", "environment"])
def test_an_environment_that_was_changed_after_it_was_built_is_refused(layer):
    env = StickyAction(gym.make("CartPole-v1"), 0.5)
    if layer == "wrapper":
        env.repeat_action_probability = 4.0
    else:
        env.unwrapped.length = 4.0
    with pytest.raises(ReproductionError, match=r"is 4\.0 here, and 0\.5 in a new one"):
        ProcessEnv(env)
    sg.forkable(env, "native").close()


def test_a_factory_that_makes_the_same_change_is_taken():
    def make():
        env = gym.make("CartPole-v1")
        env.unwrapped.length = 4.0
        return env

    ProcessEnv(make(), make).close()


def test_an_environment_in_the_middle_of_an_episode_is_taken():
    env = gym.make("CartPole-v1")
    env.reset(seed=1)
    env.step(0)
    ProcessEnv(env).close()


def test_what_is_different_in_each_instance_is_no_change():
    def make():
        env = Lab()
        env.built_at = time.monotonic_ns()
        return env

    ProcessEnv(make(), make).close()


def test_the_worker_has_the_path_and_the_working_folder_of_its_owner(monkeypatch, tmp_path):
    source = "from tests.mechanisms.process_lab import Lab\n\ndef make(): return Lab()\n"
    (tmp_path / "only_here.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    env = ProcessEnv(Lab(), importlib.import_module("only_here").make)
    env.reset(seed=1)
    assert answer(env, "cwd") == str(tmp_path)
    env.close()


def test_forks_have_generators_of_their_own_in_their_spaces():
    env = ProcessEnv(gym.make("CartPole-v1"))
    env.reset(seed=1)
    env.action_space.seed(5)
    left, right = sg.fork(env, 2)
    draws = [[int(e.action_space.sample()) for _ in range(20)] for e in (left, right, env)]
    assert draws[0] == draws[1] == draws[2]
    for each in (env, left, right):
        each.close()


def test_two_threads_can_fork_one_family():
    env = lab()
    snapshot = env.snapshot()
    faults: list[BaseException] = []

    def work() -> None:
        try:
            own = env.spawn()
            for _ in range(8):
                own.restore(snapshot)
                first = answer(own, "draw")
                held = own.snapshot()
                own.reset(seed=2)
                own.restore(held)
                answer(own, "draw")
                own.restore(snapshot)
                assert answer(own, "draw") == first
            own.close()
        except BaseException as error:  # noqa: BLE001 - the main thread looks at them
            faults.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    env.close()


def _in_a_fork(env: ProcessEnv, snapshot: sg.Snapshot, queue: Any) -> None:
    try:
        env.step("nothing")
    except NotForkableError as error:
        queue.put(str(error))
    own = lab()
    own.restore(snapshot)
    queue.put([answer(own, "draw"), own.metrics["replayed_steps"]])
    own.close()
    del (
        env,
        snapshot,
    )  # which must not end the template of the process that this one was forked from


def test_a_fork_of_the_owner_is_refused_and_does_no_harm(env):
    answer(env, "draw")
    snapshot = env.snapshot()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    fork = context.Process(target=_in_a_fork, args=(env, snapshot, queue))
    fork.start()
    assert "fork of the one that owns" in queue.get(timeout=60)
    drawn, replayed = queue.get(timeout=60)
    fork.join(60)
    assert fork.exitcode == 0
    assert replayed == 1
    assert answer(env, "draw") == drawn
    env.restore(snapshot)
    assert answer(env, "draw") == drawn
    assert "replayed_steps" not in env.metrics


def test_output_is_printed_once_however_often_it_is_forked(capfd, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    env = lab()
    answer(env, "print once")
    snapshots = [env.snapshot() for _ in range(3)]
    env.restore(snapshots[0])
    pids = [snapshot.held._process.pid for snapshot in snapshots] + [answer(env, "pid")]
    del snapshots
    env.close()
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.01)
    assert capfd.readouterr().out.count("once") == 1


def test_fidelity_says_what_is_captured(env):
    assert env.fidelity.mechanism == "process"
    assert env.fidelity.portable
    env.recipe_replays = False
    assert not env.fidelity.portable
    (twin,) = sg.fork(env, 1)
    assert not twin.fidelity.portable
    twin.close()
