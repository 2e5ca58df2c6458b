"""Runs any other command, of which only the log and the exit status are known."""

import subprocess
from typing import Any


def main(channel: Any) -> None:
    """Run the command."""
    channel.add_to_path()
    channel.finish(subprocess.call(channel.arguments))
