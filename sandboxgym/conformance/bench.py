"""Running checks on an environment: one, in this process, or as the process that does so."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import IO, NoReturn

from sandboxgym.conformance import processes
from sandboxgym.conformance.check import Check
from sandboxgym.conformance.checks import BY_NUMBER, RECORDING
from sandboxgym.conformance.lab import Lab
from sandboxgym.conformance.outcome import CheckFailedError, CheckNotRunError, CheckWarnedError
from sandboxgym.conformance.report import CheckResult
from sandboxgym.conformance.wire import pack_result
from sandboxgym.core.errors import SandboxGymError


def run_check(lab: Lab, check: Check) -> CheckResult:
    """Run a check, then close what it made; the first thing to go wrong is the outcome."""
    start = time.perf_counter()
    lab.doing = None
    lab.journal.clear()
    outcome = _attempt(lab, check, lambda: check.run(lab))
    closing = _attempt(lab, check, lab.tidy)
    if outcome.status != "failed" and closing.status == "failed":
        outcome = closing
    return replace(outcome, seconds=time.perf_counter() - start)


def be_bench(lab: Lab, connection: Connection, output: int, stack: IO[bytes]) -> NoReturn:
    """Run the checks whose numbers come in, until the process that forked this one is gone.

    Args:
        lab: Not yet recorded, though check 00 may have been run by an earlier process.
        connection: Takes numbers and gives results.
        output: Descriptor to which all that is printed goes.
        stack: File to which the stack is written on a crash, and on SIGUSR1.
    """
    try:
        processes.end_with_parent()
        _redirect(output)
        faulthandler.enable(stack)
        faulthandler.register(signal.SIGUSR1, stack)
        while True:
            check = BY_NUMBER[connection.recv_bytes().decode()]
            result = None
            if not lab.scripts and check.number != RECORDING:
                recording = run_check(lab, BY_NUMBER[RECORDING])
                if recording.status == "failed":
                    result = replace(recording, name=check.name, why=check.why)
            result = result or run_check(lab, check)
            connection.send_bytes(pack_result(result, lab.facts))
    except EOFError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        raise
    finally:
        os._exit(1)


def _redirect(output: int) -> None:
    """Have nothing to read, and write everything to `output`."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open as long as the process lives
    sys.stdout = open(1, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115


def _attempt(lab: Lab, check: Check, run: Callable[[], str | None]) -> CheckResult:
    result = CheckResult(check.name, check.why, "passed")
    try:
        return replace(result, message=run() or "")
    except CheckNotRunError as reason:
        return replace(result, status="not run", message=str(reason))
    except CheckWarnedError as doubt:
        return replace(result, status="warned", message=str(doubt))
    except CheckFailedError as fault:
        return _failed(lab, result, str(fault), fault)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is a finding
        failed = _failed(lab, result, f"{type(error).__name__}: {error}", None)
        return replace(failed, traceback=_last_frames(error))


def _failed(
    lab: Lab, result: CheckResult, message: str, fault: CheckFailedError | None
) -> CheckResult:
    """A failure with what reproduces it."""
    result = replace(result, status="failed", message=message)
    if fault is not None and fault.difference is not None:
        difference = fault.difference
        result = replace(
            result,
            path=difference.path or "(all)",
            expected=difference.left,
            found=difference.right,
        )
    if lab.doing is not None:
        step = fault.step if fault is not None else None
        result = replace(result, seed=lab.doing.seed, actions=lab.doing.actions[:step])
    return result


def _last_frames(error: BaseException) -> str | None:
    """Where an error came from; those of this package say in words what caused them."""
    if isinstance(error, SandboxGymError) and error.__cause__ is None:
        return None
    return "".join(traceback.format_exception(error, limit=-3))
