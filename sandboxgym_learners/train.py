"""`python -m sandboxgym_learners.train`: train a policy on rollout trees, from a warm start.

`--preset MODEL/WORLD` puts the options of `presets` before all others. `--dry-run` trains nothing:
it builds the model without memory for it, and prints what it would take.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

import tyro
from transformers.utils.logging import disable_progress_bar

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.dryrun import estimate
from sandboxgym_learners.presets import preset
from sandboxgym_learners.trainer import SandboxFailedError, Trainer

GO_ON = "what was written stays, and the same command with --resume goes on from the last update"


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what the command line asks for; gives the exit status."""
    # That of transformers, which has one for every file it writes.
    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        ours, options = _ours().parse_known_args(arguments)
        if ours.preset:
            options = preset(ours.preset) + options
        config = tyro.cli(TrainConfig, args=options, description=__doc__)
        if ours.dry_run:
            print(estimate(config))
            return 0
        Trainer(config).run()
    except SandboxFailedError as error:
        if not isinstance(error.__cause__, SandboxGymError):
            traceback.print_exception(error.__cause__)
        print(f"error: {error}: {GO_ON}", file=sys.stderr)
        return 2
    except SandboxGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}: {GO_ON}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted: {GO_ON}", file=sys.stderr)
        return 130
    return 0


def _ours() -> argparse.ArgumentParser:
    """The options that are not part of a configuration."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset")
    parser.add_argument("--dry-run", action="store_true")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
