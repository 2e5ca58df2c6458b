"""`python -m sandboxgym_learners.report RUN_DIR...`: the same as `sandboxgym view`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.report.command import DESCRIPTION, add_arguments, view


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit status."""
    program = ["python", "-m", "sandboxgym_learners.report"]
    parser = argparse.ArgumentParser(prog=" ".join(program), description=DESCRIPTION)
    add_arguments(parser)
    try:
        view(parser.parse_args(arguments), program=program)
    except SandboxGymError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
