"""What a submission to a task of SWE-bench is worth: its hidden tests, run where no agent was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sandboxgym.sandboxes.repo.backend import SandboxError
from sandboxgym.sandboxes.repo.patch import Patch, PatchError, check_room
from sandboxgym.sandboxes.repo.submission import Grade, Submission
from sandboxgym.sandboxes.repo.swebench import grading, plan, verdicts
from sandboxgym.sandboxes.repo.swebench.parsers import PARSERS
from sandboxgym.sandboxes.repo.swebench.rows import Row
from sandboxgym.sandboxes.repo.swebench.verdicts import VerdictError, Verdicts

_NOTHING = Patch(b"", (), ())


class TestsTooSlowError(RuntimeError):
    """The tests of a task did not end in time."""

    __test__ = False  # Not a test case, whatever pytest may think of its name.


@dataclass(frozen=True)
class HiddenTests:
    """The reward function of a row. The tests run with the `python3` of the base.

    Attributes:
        row: The task.
        seconds: How long its tests may take.
        dense: Whether a part of what was to be fixed is worth a part of the reward.
    """

    row: Row
    seconds: float
    dense: bool = False

    def __call__(self, submission: Submission) -> Grade:
        """Run the tests on the pristine tree with the agent's patch.

        Where they say nothing, the tree without the patch tells whose fault that is.
        """
        try:
            found = self._verdicts(submission)
        except TestsTooSlowError:
            return Grade(0.0, reason=f"the tests did not end within {self.seconds:g} s")
        except VerdictError as error:
            details: dict[str, Any] = {"error": str(error)}
            if not self._works_at_all(submission):
                return Grade(0.0, False, "the tests cannot be run even without a patch", details)
            return Grade(0.0, reason="the tests were ended by what they test", details=details)
        report = grading.grade(self.row, found.results)
        reason = ""
        if found.faults:
            reason = "the run of the tests was interfered with"
        elif not report.resolved:
            reason = "the hidden tests do not pass"
        details = {"report": report, "verdicts": found}
        return Grade(grading.reward(report, dense=self.dense), reason=reason, details=details)

    def _verdicts(self, submission: Submission) -> Verdicts:
        todo = plan.plan_of(self.row)
        job = verdicts.job_of(todo, submission.workdir)
        tests = self.row.test_patch.encode("utf-8", "surrogateescape")
        with submission.patched(tests) as sandbox:
            done = sandbox.run(
                job.command, self.seconds, stdin=job.stdin, output=verdicts.MAX_OUTPUT
            )
        check_room(done)
        if done.timed_out:
            raise TestsTooSlowError
        return verdicts.read(job, todo, done.output, PARSERS[self.row.log_parser])

    def _works_at_all(self, submission: Submission) -> bool:
        try:
            self._verdicts(replace(submission, patch=_NOTHING))
        except (VerdictError, TestsTooSlowError, SandboxError, PatchError):
            return False
        return True
