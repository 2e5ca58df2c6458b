"""What any backend of the repository sandbox has to do: derive a test class from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.sandboxes.repo.backend import SandboxError

ONCE_IT_SLEEPS = "until pgrep -x sleep > /dev/null; do :; done"
SHELL = "x=5; export y='a b'; f() { echo f$x; }; a=(1 2); alias hi='echo hi'; umask 027; cd docs"
ASK_SHELL = "pwd; echo $x; printenv y; f; echo ${a[1]}; hi; umask"
SHELL_ANSWER = "/repo/docs\n5\na b\nf5\n2\nhi\n0027\n"


class BackendContract:
    """The fixture `backend` makes one with short limits, `base` a tree with README and docs/."""

    @pytest.fixture
    def sandbox(self, backend, base):
        sandbox = backend.create(base)
        yield sandbox
        sandbox.close()

    def test_a_command_runs_in_the_tree(self, sandbox):
        done = sandbox.run("pwd; cat README; exit 3")
        assert (done.output, done.returncode) == ("/repo\nread me\n", 3)
        assert not any((done.timed_out, done.truncated, done.ended_sandbox))

    def test_standard_output_and_errors_come_in_order(self, sandbox):
        assert sandbox.run("echo 1; echo 2 >&2; echo 3").output == "1\n2\n3\n"

    def test_the_state_of_the_shell_is_carried(self, sandbox):
        sandbox.run(SHELL)
        assert sandbox.run(ASK_SHELL).output == SHELL_ANSWER

    def test_input_is_what_was_given_or_nothing(self, sandbox):
        assert sandbox.run("cat", stdin=b"to you").output == "to you"
        assert sandbox.run("cat").output == ""

    def test_files_and_shell_return_with_a_moment(self, sandbox):
        sandbox.run(f"{SHELL}; echo 1 > new; rm ../README")
        moment = sandbox.snapshot()
        sandbox.run("x=6; cd /; rm -rf repo/docs; echo again > repo/README; unset -f f")
        sandbox.restore(moment)
        assert sandbox.run(ASK_SHELL).output == SHELL_ANSWER
        assert sandbox.run("cat new; ls ..").output == "1\ndocs\n"

    def test_a_moment_can_be_restored_many_times_and_in_any_order(self, sandbox):
        moments = []
        for number in range(4):
            sandbox.run(f"echo {number} >> log")
            moments.append(sandbox.snapshot())
        for number in (2, 0, 3, 3, 1):
            sandbox.restore(moments[number])
            assert sandbox.run("tail -n 1 log; wc -l < log").output == f"{number}\n{number + 1}\n"
            sandbox.run("rm log")

    def test_a_moment_changes_nothing(self, sandbox):
        sandbox.run("echo a > a; ln a b; cd docs")
        before = sandbox.run("ls -i ..; stat -c '%h %Y %a' ../a; pwd").output
        sandbox.snapshot()
        after = sandbox.run("ls -i ..; stat -c '%h %Y %a' ../a; pwd").output
        assert [line.split()[-1] for line in after.splitlines()] == [
            line.split()[-1] for line in before.splitlines()
        ]
        sandbox.run("echo more >> ../a")
        assert sandbox.run("cat ../b").output == "a\nmore\n"

    def test_forks_see_nothing_of_each_other(self, sandbox, backend):
        sandbox.run(f"{SHELL}; echo all > shared")
        left, right = (backend.fork(sandbox.snapshot()) for _ in range(2))
        try:
            left.run("echo left > shared; x=left")
            sandbox.run("echo parent > shared")
            assert right.run("cat shared; echo $x").output == "all\n5\n"
            assert left.run("cat shared; echo $x").output == "left\nleft\n"
            left.close()
            assert right.run(ASK_SHELL).output == SHELL_ANSWER
        finally:
            left.close()
            right.close()

    def test_a_moment_outlives_its_sandbox(self, backend, base):
        maker = backend.create(base)
        maker.run("echo kept > file")
        moment = maker.snapshot()
        maker.close()
        other = backend.fork(moment)
        assert other.run("cat file").output == "kept\n"
        other.close()

    def test_a_view_shows_another_tree_and_changes_nothing_there(self, sandbox, backend):
        pristine = sandbox.snapshot()
        sandbox.run("echo agent > README; rm -r docs")
        agent = sandbox.snapshot()
        grader = backend.fork(pristine, views={"other": agent})
        assert grader.run("cat README /other/repo/README; ls /other/repo").output == (
            "read me\nagent\nREADME\n"
        )
        assert grader.run("rm /other/repo/README").returncode == 0
        grader.close()
        sandbox.restore(agent)
        assert sandbox.run("cat README").output == "agent\n"

    def test_a_moment_travels_to_another_backend(self, sandbox, backend, other_backend, base):
        sandbox.run(f"{SHELL}; echo 1 > new; rm ../README; ln -s new link; mkdir -p e/f")
        moment = other_backend.import_(base, backend.export(sandbox.snapshot()))
        twin = other_backend.fork(moment)
        assert twin.run(ASK_SHELL).output == SHELL_ANSWER
        assert twin.run("cat link; ls ..; ls").output == "1\ndocs\ne\nlink\nnew\n"
        twin.close()

    def test_what_runs_in_the_background_is_named_or_lost(self, sandbox):
        sandbox.run(f"sleep 1234 & {ONCE_IT_SLEEPS}")
        with pytest.raises(UncapturedStateError, match="sleep 1234"):
            sandbox.snapshot()
        assert sandbox.run("pgrep -f 'sleep 123[4]' | wc -l").output.strip() == "1"
        sandbox.snapshot(allow_process_loss=True)
        assert sandbox.run("pgrep -f 'sleep 123[4]' | wc -l").output.strip() == "0"

    def test_a_command_over_its_time_is_ended_with_all_it_started(self, sandbox):
        done = sandbox.run("echo begun; timeout 1 true && setsid sleep 4321; echo no", timeout=1)
        assert (done.output, done.timed_out) == ("begun\n", True)
        assert sandbox.run("pgrep -f 'sleep 432[1]' | wc -l; pwd").output.split() == ["0", "/repo"]

    def test_output_over_the_limit_loses_its_middle(self, sandbox):
        done = sandbox.run("seq 100000")
        assert done.truncated
        assert done.output.startswith("1\n2\n")
        assert done.output.endswith("99999\n100000\n")
        assert len(done.output) + done.elided_chars == len(
            "".join(f"{i}\n" for i in range(1, 100001))
        )

    @pytest.mark.parametrize(
        "command", ["head -c 5000000 /dev/zero | tr '\\0' x", "yes | head -c 5000000"]
    )
    def test_megabytes_of_output_are_survived(self, sandbox, command):
        assert sandbox.run(command).truncated
        assert sandbox.run("echo fine").output == "fine\n"

    def test_output_that_is_no_text_is_replaced(self, sandbox):
        assert sandbox.run("printf 'a\\xff\\xfeb'").output == "a\ufffd\ufffdb"

    @pytest.mark.parametrize("command", ["kill -9 $$", "exec 1>&- 2>&-; echo x", "exec false"])
    def test_a_shell_that_goes_wrong_is_survived(self, sandbox, command):
        sandbox.run("x=1")
        sandbox.run(command)
        assert sandbox.run("echo $x").output == "1\n"

    def test_killing_everything_is_survived_and_told(self, sandbox):
        sandbox.run("echo kept > file")
        sandbox.run("kill -9 -1")
        assert sandbox.run("cat file").output == "kept\n"

    def test_our_own_words_are_only_output(self, sandbox):
        sandbox.run("x=1; echo '#complete'; printf '#complete\\n' >&199; echo")
        assert sandbox.run("echo $x").output == "1\n"

    def test_nobody_is_root_and_nobody_becomes_it(self, sandbox):
        assert sandbox.run("id -u").output == "1000\n"
        status = sandbox.run("grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status").output
        assert {line.split()[1].strip("0") for line in status.splitlines()} == {"", "1"}
        assert sandbox.run("chown 0 README; chroot / true; mount -t tmpfs t /tmp").returncode != 0

    def test_there_is_no_network(self, sandbox):
        done = sandbox.run("exec 3<>/dev/tcp/1.1.1.1/53 && echo connected")
        assert "connected" not in done.output
        names = sandbox.run("tail -n +3 /proc/net/dev | cut -d: -f1").output.split()
        assert names in (["lo"], [])

    def test_nothing_that_varies_is_in_the_environment(self, sandbox, backend, base):
        other = backend.create(base)
        assert (
            sandbox.run("env | sort; hostname").output == other.run("env | sort; hostname").output
        )
        other.close()

    def test_a_closed_sandbox_says_so(self, backend, base):
        sandbox = backend.create(base)
        sandbox.close()
        sandbox.close()
        with pytest.raises(SandboxError, match="closed"):
            sandbox.run("true")

    def test_a_moment_of_another_backend_is_refused(self, sandbox, other_backend):
        with pytest.raises(SandboxError, match="another backend"):
            other_backend.fork(sandbox.snapshot())

    def test_a_moment_above_another_base_is_forked_and_not_restored(self, sandbox, backend, base):
        other = backend.create(replace(base, workdir="/"))
        moment = other.snapshot()
        other.close()
        with pytest.raises(SandboxError, match="another base"):
            sandbox.restore(moment)
        assert sandbox.run("pwd").output == "/repo\n"
