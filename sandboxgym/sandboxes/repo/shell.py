"""Carrying the state of a shell from one command to the next.

Each command runs in a bash of its own, which first reads what the one before left and in the end
writes down what it leaves: working directory, variables (exported or not, arrays), functions,
aliases, options, traps and the umask. Background jobs, open descriptors and history are not
carried. A shell that is killed, or replaced by `exec`, leaves nothing: the next command then starts
from what was left before. The state is a text of bash commands. It comes from inside the sandbox,
and only a shell in the same sandbox ever reads it.
"""

from __future__ import annotations

import string

COMMAND_IN, STATE_IN, STATE_OUT = 197, 198, 199
"""Descriptors on which a shell reads its command and the state, and writes the state in the end.

High, so that no script uses them. The command is not an argument: those end at 128 KiB.
"""

MAX_STATE_BYTES = 4 * 2**20
COMPLETE = b"#complete\n"
"""The last line of a state; without it the shell was ended while it wrote."""

LAUNCH = (
    f"builtin source /dev/fd/{STATE_IN} 2>/dev/null; exec {COMMAND_IN}<&- {STATE_IN}<&-; "
    'builtin eval "$__sandbox_command"; { __sandbox_leave; } 2>/dev/null'
)
"""What `bash -c` runs: one line, so that the errors of a command count lines from its start."""

# What bash sets by itself, or what would be wrong in another process.
_NOT_CARRIED = (
    "BASH|BASHOPTS|BASHPID|BASH_ALIASES|BASH_ARGC|BASH_ARGV|BASH_ARGV0|BASH_CMDS|BASH_COMMAND"
    "|BASH_COMPAT|BASH_EXECUTION_STRING|BASH_LINENO|BASH_LOADABLES_PATH|BASH_REMATCH|BASH_SOURCE"
    "|BASH_SUBSHELL|BASH_VERSINFO|BASH_VERSION|BASH_MONOSECONDS|BASH_TRAPSIG|COMP_WORDBREAKS"
    "|COPROC|DIRSTACK|EPOCHREALTIME|EPOCHSECONDS|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTNAME|HOSTTYPE"
    "|LINENO|MACHTYPE|OPTERR|OPTIND|OSTYPE|PIPESTATUS|PPID|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM"
    "|UID|_"
)

_ALL_NAMES = " ".join(f"${{!{first}*}}" for first in f"{string.ascii_letters}_")

# `declare -p` is asked for one variable at a time, so that those of bash itself are left out. Their
# names are taken from expansions: no command is started, here and below, as each costs a process.
# `set +o` does not run in a subshell, where it would report other options than the shell's.
# Functions come last, as one could have the name of a builtin that `declare -p` writes. They are
# read with extended patterns, which they may have been written with. Aliases are for the command
# alone: read with them, functions would be written down with what the aliases stand for.
_LEAVE = f"""\
__sandbox_leave() {{
  {{
    __sandbox_status=$? __sandbox_aliases= __sandbox_extglob=u
    builtin shopt -q expand_aliases && __sandbox_aliases=on
    builtin shopt -q extglob && __sandbox_extglob=s
    builtin shopt -u expand_aliases
    builtin set +o
    builtin shopt -p
    builtin shopt -u nocasematch
    builtin set +eunvxC +o noglob +o posix
    builtin trap -p
    builtin umask -p
    builtin printf 'builtin cd -- %q || __sandbox_lost=%q\\n' "$PWD" "$PWD"
    builtin alias -p
    for __sandbox_name in {_ALL_NAMES}; do
      case $__sandbox_name in ({_NOT_CARRIED}|__sandbox_*) ;; (*)
        builtin declare -p -- "$__sandbox_name" ;;
      esac
    done
    builtin printf 'builtin shopt -s extglob\\n'
    builtin unset -f __sandbox_leave
    builtin declare -f
    builtin printf 'builtin shopt -%s extglob\\n__sandbox_aliases=%s\\n' \\
      "$__sandbox_extglob" "$__sandbox_aliases"
    builtin printf 'RANDOM=%s\\n{COMPLETE.decode().strip()}\\n' "$RANDOM"
  }} >&{STATE_OUT} 2>/dev/null
  builtin trap - EXIT
  builtin exit "$__sandbox_status"
}}
"""
_BEFORE = """\
RANDOM=1
builtin trap __sandbox_leave EXIT
"""
_AFTER = f"""
IFS= builtin read -r -d '' __sandbox_command <&{COMMAND_IN} || builtin :
[[ ${{__sandbox_lost-}} ]] &&
  builtin printf '%s: this working directory is gone\\n' "$__sandbox_lost"
builtin unset __sandbox_lost
for __sandbox_name in x v; do
  [[ $- == *$__sandbox_name* ]] || continue
  builtin set "+$__sandbox_name"
  __sandbox_command="\\builtin set -$__sandbox_name; $__sandbox_command"
done
{{ [[ ${{__sandbox_aliases-on}} ]] && builtin shopt -s expand_aliases
  builtin unset __sandbox_aliases; }}
"""
_OWN_TRAP = b"trap -- '__sandbox_leave' EXIT\n"


def prologue(state: bytes) -> bytes:
    """What a shell reads before its command to go on from a state; b"" is a new shell's."""
    return b"".join((_BEFORE.encode(), state, _LEAVE.encode(), _AFTER.encode()))


def state_left(written: bytes) -> bytes | None:
    """The state out of what a shell wrote in the end, or None where it did not get that far."""
    if not written.endswith(COMPLETE) or len(written) > MAX_STATE_BYTES:
        return None
    return written.replace(_OWN_TRAP, b"", 1)
