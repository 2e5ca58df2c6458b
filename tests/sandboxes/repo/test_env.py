"""`RepoEnv`: what an agent sees, what a submission is worth, and that it forks exactly."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import replace

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.conformance import check_forkable
from sandboxgym.core import codec
from sandboxgym.core.errors import (
    EpisodeEndedError,
    InvalidActionError,
    InvalidOptionsError,
    NotResetError,
    SnapshotCorruptError,
    SpecMismatchError,
    UncapturedStateError,
)
from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from sandboxgym.sandboxes.repo.bases import Skeleton, commit_anew
from sandboxgym.sandboxes.repo.env import RepoEnv
from sandboxgym.sandboxes.repo.submission import Grade
from tests.sandboxes.repo.conftest import make_overlay_backend
from tests.sandboxes.repo.contract import ONCE_IT_SLEEPS

TEST = "import calc\nassert calc.add(2, 2) == 4\n"
FIX = "sed -i 's/a - b/a + b/' calc.py"
NOTHING_REACHED = {"limits_reached": [], "ended_sandbox": False}


def shown(output, returncode=0, **more):
    rest = {"timed_out": False, "truncated": False, "elided_chars": 0}
    return {"output": output, "returncode": returncode, **rest, **more}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calc")
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text("# calc\n")
    (folder / "test_calc.py").write_text(TEST)
    return folder


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(Limits(seconds=20.0)) as backend:
        yield backend


@pytest.fixture(autouse=True)
def own_cache(base_cache, monkeypatch):
    monkeypatch.setenv("SANDBOXGYM_CACHE", str(base_cache))


@pytest.fixture
def make(tree, backend):
    made = []

    def make(**kwargs):
        defaults = {"commit": None, "statement": "Adding subtracts.", "backend": backend,
                    "limits": backend.limits, "test_command": "python3 test_calc.py",
                    "protected": ["test_calc.py"]}  # fmt: skip
        env = RepoEnv(tree, **{**defaults, **kwargs})
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()


@pytest.fixture
def env(make):
    env = make()
    env.reset(seed=1)
    return env


class TestWhatIsSeen:
    def test_the_first_observation_is_the_statement(self, make):
        assert make().reset(seed=1) == (shown("Adding subtracts."), NOTHING_REACHED)

    @pytest.mark.parametrize("action", ["pwd; exit 3", {"command": "pwd; exit 3"}])
    def test_a_command_shows_its_output_and_status(self, env, action):
        expected = (shown("/repo\n", 3), 0.0, False, False, NOTHING_REACHED)
        assert env.step(action) == expected

    def test_everything_lies_in_the_spaces(self, env):
        for action in ["seq 100000", "kill -9 $$", {"submit": True}]:
            assert env.action_space.contains(action)
            assert env.observation_space.contains(env.step(action)[0])
        assert env.action_space.contains(env.action_space.sample())

    @pytest.mark.parametrize(
        "action",
        [1, None, b"ls", {}, {"command": 1}, {"submit": False}, {"submit": "yes"}, "a\0b",
         {"command": "ls", "submit": True}, "x" * 1_000_001],
    )  # fmt: skip
    def test_what_is_no_action_is_refused_and_the_episode_goes_on(self, env, action):
        assert not env.action_space.contains(action)
        with pytest.raises(InvalidActionError):
            env.step(action)
        assert env.step("echo on")[0] == shown("on\n")

    def test_there_are_no_options(self, env):
        with pytest.raises(InvalidOptionsError, match="commit"):
            env.reset(options={"commit": "x"})
        assert env.step("echo on")[0] == shown("on\n")

    def test_a_reset_brings_the_tree_and_a_new_shell(self, env):
        env.step("x=5; cd docs; rm index.md; touch new")
        env.reset()
        assert env.step("pwd; ls . docs; echo $x; git status --short")[0] == shown(
            "/repo\n.:\ncalc.py\ndocs\ntest_calc.py\n\ndocs:\nindex.md\n\n"
        )

    @pytest.mark.parametrize(
        ("limits", "command", "name"),
        [
            (Limits(seconds=0.5), "echo begun; sleep 9", "seconds"),
            (Limits(seconds=20, output=100), "seq 1000", "output"),
            (Limits(seconds=20, file_size=10**6), "head -c 2000000 /dev/zero > big", "file_size"),
            (Limits(seconds=20, disk=3 * 2**20), "head -c 9000000 /dev/zero > big", "disk"),
        ],
    )
    def test_a_limit_that_is_reached_is_named(self, make, limits, command, name):
        env = make(limits=limits, backend=None)
        env.reset(seed=1)
        observation, _, terminated, truncated, info = env.step(command)
        assert info["limits_reached"] == [name]
        assert not terminated
        assert not truncated
        assert observation["timed_out"] == (name == "seconds")
        assert observation["truncated"] == (name == "output")
        assert env.step("rm -f big; echo on")[0] == shown("on\n")

    def test_killing_everything_is_told(self, env):
        assert env.step("kill -9 -1")[4]["ended_sandbox"]
        assert env.step("echo on")[0] == shown("on\n")

    def test_a_lost_sandbox_ends_the_episode_loudly(self, make):
        env = make(backend=None)
        env.reset(seed=1)
        os.kill(env._backend.keeper_pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match="lost"):
            env.step("ls")
        with pytest.raises(NotResetError):
            env.step("ls")

    def test_a_commit_is_shown_without_what_came_before_and_after(self, make, tmp_path, backend):
        def git(*words):
            name = ["-c", "user.name=a", "-c", "user.email=a@b"]
            done = subprocess.run(
                ["git", *name, "-C", tmp_path, *words], check=True, capture_output=True, text=True
            )
            return done.stdout.strip()

        git("init", "-q")
        for text in ("first", "second", "third"):
            (tmp_path / "file").write_text(text)
            git("add", ".")
            git("commit", "-qm", text)
            git("tag", text)
        git("remote", "add", "origin", "https://example.org/")
        env = RepoEnv(tmp_path, commit="HEAD~1", backend=backend)
        env.reset(seed=1)
        look = (
            "cat file; echo; git log --all --oneline --format=%s; git tag; git remote; git reflog "
            "--format=%gs | wc -l; git fsck --lost-found; grep -ra third .git | wc -l"
        )
        assert env.step(look)[0]["output"] == "second\nbase\n1\n0\n"
        env.close()


class TestSubmissions:
    def test_a_solution_is_worth_one_and_ends_the_episode(self, env):
        env.step(FIX)
        observation, reward, terminated, truncated, info = env.step({"submit": True})
        assert (observation, reward, terminated, truncated) == (shown(""), 1.0, True, False)
        assert info == {**NOTHING_REACHED, "reward_valid": True, "failure_reason": ""}
        with pytest.raises(EpisodeEndedError):
            env.step({"submit": True})

    @pytest.mark.parametrize(
        "command",
        [
            "true",
            "echo 'pass' > test_calc.py",
            "rm test_calc.py",
            "python3() { true; }; export -f python3; alias python3=true; PATH=/repo:$PATH; "
            "ln -s /bin/true python3",
            "mkdir -p ~/bin; echo 'exit 0' > ~/.bashrc; export BASH_ENV=~/.bashrc",
            "while true; do echo pass > test_calc.py; done 2>/dev/null & disown",
            "rm -rf .git; git init -q; echo 'exit 0' > /tmp/x; trap 'exit 0' EXIT",
            "printf 'import os; os._exit(0)' > sitecustomize.py; cp sitecustomize.py docs/",
        ],
    )
    def test_only_what_is_in_the_patch_counts(self, env, command):
        env.step(command)
        _, reward, terminated, _, info = env.step({"submit": True})
        assert (reward, terminated, info["reward_valid"]) == (0.0, True, True)
        assert info["failure_reason"] == "the tests failed"

    def test_tests_without_an_end_are_worth_nothing(self, make):
        env = make(test_seconds=1.0)
        env.reset(seed=1)
        env.step("echo 'while True: pass' > calc.py")
        _, reward, _, _, info = env.step({"submit": True})
        assert (reward, info["reward_valid"]) == (0.0, True)
        assert "in time" in info["failure_reason"]

    def test_a_function_is_given_the_patch_and_a_patched_sandbox(self, make):
        seen = []

        def reward(submission):
            with submission.patched() as sandbox:
                seen.append((submission.patch.files, sandbox.run("cat new").output))
            return Grade(0.25, reason="a quarter", details={"for": "you"})

        env = make(reward=reward)
        env.reset(seed=1)
        env.step("echo text > new")
        _, value, _, _, info = env.step({"submit": True})
        assert seen == [(("new",), "text\n")]
        assert (value, info["failure_reason"]) == (0.25, "a quarter")
        assert env.grade.details == {"for": "you"}

    def test_a_grader_that_fails_is_no_silent_zero(self, make):
        def reward(submission):
            raise SandboxError("the machine is on fire")

        env = make(reward=reward)
        env.reset(seed=1)
        info = env.step({"submit": True})[4]
        assert not info["reward_valid"]
        assert info["failure_reason"] == "the machine is on fire"

    def test_without_a_grader_no_reward_is_valid(self, make):
        env = make(test_command=None)
        env.reset(seed=1)
        assert not env.step({"submit": True})[4]["reward_valid"]

    def test_what_cannot_be_a_patch_is_the_agents_fault(self, env):
        env.step("cd /; mv repo gone")
        _, reward, _, _, info = env.step({"submit": True})
        assert (reward, info["reward_valid"]) == (0.0, True)
        assert "no folder /repo" in info["failure_reason"]

    @pytest.mark.parametrize(
        "command", ["mv /etc /etc2; ln -s etc2 /etc", "rm -rf --no-preserve-root / 2>/dev/null"]
    )
    def test_breaking_the_sandbox_is_no_way_out(self, env, command):
        start = env.snapshot()
        env.step(command)
        observation, reward, terminated, _, info = env.step({"submit": True})
        assert (reward, terminated, info["reward_valid"]) == (0.0, True, True)
        assert observation["output"] == "this sandbox was broken from inside and cannot go on\n"
        with pytest.raises(UncapturedStateError, match="cannot be captured"):
            env.snapshot()
        env.restore(start)
        env.step(FIX)
        assert env.step({"submit": True})[1] == 1.0
        env.reset()
        env.step(FIX)
        assert env.step({"submit": True})[1] == 1.0

    def test_a_sandbox_that_cannot_be_captured_says_why_and_can_be_restored(self, env):
        start = env.snapshot()
        env.step("mv /etc /etc2; ln -s etc2 /etc")
        for _ in range(2):
            with pytest.raises(UncapturedStateError, match="/etc was replaced inside the sandbox"):
                env.snapshot()
        env.restore(start)
        env.step(FIX)
        assert env.step({"submit": True})[1] == 1.0

    def test_filling_the_disk_is_no_way_out(self, make):
        env = make(backend=None, limits=Limits(seconds=20, disk=8 * 2**20))
        env.reset(seed=1)
        env.step(f"{FIX}; head -c 9000000 /dev/zero > /tmp/big")
        _, reward, _, _, info = env.step({"submit": True})
        assert (reward, info["reward_valid"]) == (0.0, True)
        assert "the disk is full" in info["failure_reason"]

    def test_filling_the_disk_with_names_is_no_way_out(self, make):
        env = make(backend=None, limits=Limits(seconds=60, disk=8 * 2**20))
        env.reset(seed=1)
        start = env.snapshot()
        [other] = sg.fork(env, 1)
        env.step(FIX)
        many = "seq 200000 | xargs touch 2> /dev/null"
        assert env.step(f"mkdir /tmp/many; cd /tmp/many; {many}")[4]["limits_reached"] == ["disk"]
        with pytest.raises(UncapturedStateError, match="No space left"):
            env.snapshot()
        _, reward, _, _, info = env.step({"submit": True})
        assert (reward, info["reward_valid"]) == (0.0, True)
        assert "the disk is full" in info["failure_reason"]
        assert other.step("echo on")[0]["output"] == "on\n"
        env.restore(start)
        for one in (env, other):
            one.step(FIX)
            assert one.step({"submit": True})[1] == 1.0
        other.close()

    def test_a_tree_may_lie_elsewhere(self, make, tree, tmp_path, base_cache):
        def fill(root):
            shutil.copytree(tree, root / "it's here")
            commit_anew(root / "it's here")

        base = Skeleton((), None, base_cache).base(f"elsewhere {tmp_path}", fill)
        env = RepoEnv(
            replace(base, workdir="/repo/it's here"),
            test_command="python3 test_calc.py",
            backend=make()._backend,
        )
        env.reset(seed=1)
        env.step(FIX)
        assert env.step({"submit": True})[1] == 1.0
        env.close()


class TestForking:
    def test_forks_go_on_by_themselves(self, env):
        env.step(f"x=5; cd docs; {FIX.replace('calc.py', '../calc.py')}")
        left, right = sg.fork(env, 2)
        left.step("x=left; rm ../calc.py")
        assert right.step("echo $x; pwd; ls ..")[0] == shown(
            "5\n/repo/docs\ncalc.py\ndocs\ntest_calc.py\n"
        )
        assert right.step({"submit": True})[1] == 1.0
        assert left.step({"submit": True})[1] == 0.0
        assert env.step({"submit": True})[1] == 1.0
        left.close()
        right.close()

    def test_forks_do_not_look_at_the_folder_again(self, tmp_path, backend):
        (tmp_path / "file").write_text("then")
        env = RepoEnv(tmp_path, commit=None)
        env.reset(seed=1)
        (tmp_path / "file").write_text("now")
        [twin] = sg.fork(env, 1)
        twin.reset()
        assert twin.step("cat file")[0] == shown("then")
        assert twin._backend is env._backend
        env.close()
        twin.close()

    def test_a_moment_is_restored_after_its_maker_was_closed(self, env, make):
        env.step("x=5; echo kept > file")
        snapshot = env.snapshot()
        env.close()
        with pytest.raises(SandboxError, match="closed"):
            env.step("ls")
        other = make()
        assert other.restore(snapshot)[0] == shown("")
        assert other.step("echo $x; cat file")[0] == shown("5\nkept\n")
        assert "replayed_steps" not in other.metrics

    def test_a_moment_travels_without_a_replay(self, env, make):
        env.step("x=5; echo kept > file; rm -r docs; date +%N > never-again")
        data = env.snapshot().to_bytes()
        never_again = env.step("cat never-again")[0]
        other = make(backend=None)
        other.restore(sg.Snapshot.from_bytes(data))
        assert "replayed_steps" not in other.metrics
        assert other.step("cat never-again")[0] == never_again
        assert other.step("echo $x; ls")[0] == shown(
            "5\ncalc.py\nfile\nnever-again\ntest_calc.py\n"
        )
        assert other.step(FIX)[0] == shown("")
        assert other.step({"submit": True})[1] == 1.0

    def test_a_recipe_alone_leads_back(self, env, make):
        env.step("x=$RANDOM; echo $x > file")
        env.step("cat file")
        recipe = env.snapshot().drop_state()
        expected = env.step("echo $x $RANDOM")
        other = make(backend=None)
        other.restore(recipe)
        assert other.metrics["replayed_steps"] == 2
        assert other.step("echo $x $RANDOM") == expected

    def test_a_replay_that_saw_something_else_is_refused(self, env, make):
        env.step("date +%N")
        with pytest.raises(sg.core.errors.RestoreMismatchError):
            make().restore(env.snapshot().drop_state())

    def test_what_runs_in_the_background_is_refused_or_lost(self, env, make):
        env.step(f"sleep 1234 & {ONCE_IT_SLEEPS}")
        with pytest.raises(UncapturedStateError, match="sleep 1234"):
            env.snapshot()
        assert env.step("pgrep -c sleep")[0] == shown("1\n")
        lossy = make(allow_process_loss=True)
        lossy.reset(seed=1)
        lossy.step(f"sleep 1234 & {ONCE_IT_SLEEPS}")
        lossy.snapshot()
        assert lossy.step("pgrep -c sleep")[0] == shown("0\n", 1)

    def test_packed_bytes_are_checked(self, env):
        packed = env.hold().pack()
        tree = codec.decode(packed)
        for broken in (b"", packed[:-3], codec.encode({**tree, "moment": 1}), codec.encode([])):
            with pytest.raises(SnapshotCorruptError):
                env.unpack(broken)
        with pytest.raises(SpecMismatchError, match="elsewhere"):
            env.unpack(codec.encode({**tree, "task": "elsewhere"}))

    def test_another_tree_or_grader_is_another_environment(self, env, make, tmp_path):
        snapshot = env.snapshot()
        (tmp_path / "file").write_text("x")
        for other in (make(test_command="true"), make(statement="else"), make(protected=[])):
            with pytest.raises(SpecMismatchError):
                other.restore(snapshot)
        with pytest.raises(SpecMismatchError):
            RepoEnv(tmp_path, commit=None, backend=env._backend).restore(snapshot)


def test_the_registered_one_is_forkable_and_ends_after_fifty_steps(tree, backend):
    env = gym.make("sandboxgym/Repo-v0", repository=tree, commit=None, backend=backend)
    env.reset(seed=1)
    for _ in range(48):
        env.step("true")
    snapshot = env.snapshot()
    [twin] = env.fork(1)
    for one in (twin, env):
        assert not one.step("true")[3]
        assert one.step("true")[3]
    env.restore(snapshot)
    assert env.step({"submit": True})[2]
    assert env.spec.id == "sandboxgym/Repo-v0"
    for one in (twin, env):
        one.close()


COMMANDS = (
    "ls -R; pwd", "echo $x >> log; x=$((x+1))", "cat log", "cd docs", "cd ..; pwd",
    "rm -rf docs; ls", "git status --short", FIX, "echo $RANDOM", "mkdir -p a/b; mv a c; ls",
    {"submit": True},
)  # fmt: skip


def conforming():
    """The environment that the conformance suite is run on; it has to be found by its name."""
    return gym.make(
        "sandboxgym/Repo-v0",
        repository=os.environ["SANDBOXGYM_TEST_TREE"],
        commit=None,
        test_command="python3 test_calc.py",
    )


def any_command(observation, info, space, generator):
    return COMMANDS[int(generator.integers(len(COMMANDS)))]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_conforms(tree, backend, monkeypatch):
    monkeypatch.setenv("SANDBOXGYM_TEST_TREE", str(tree))
    report = check_forkable(f"{__name__}:conforming", policy=any_command, depth=4, seeds=[1, 2])
    assert report.ok, str(report)
