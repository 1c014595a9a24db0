"""The shell that runs a model's command, the same in every kind of sandbox."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_cellprose.sandbox.base import Limits

NAME = "bash"
"""As its messages name it."""


def launcher(limits: Limits, work: str, state: str) -> list[str]:
    """``bash -c …``: takes the command from stdin, goes to where the last one ended, and remembers where this one does.

    What is remembered is a path that only the next command, in the same sandbox, goes to.
    """
    script = "; ".join(  # one line, so that bash counts the command's own
        [
            "echo 1000 2>/dev/null >/proc/self/oom_score_adj",  # of all that could be killed for memory, this first
            *_ulimits(limits),
            "command=$(cat; printf .)",
            "command=${command%.}",
            "exec </dev/null",
            f"cwd=$(cat {state}/cwd 2>/dev/null)",
            f'cd "${{cwd:-{work}}}" 2>/dev/null || cd {work} || exit 1',
            f"trap 'pwd -P >{state}/cwd' EXIT",
            'eval "$command"',
        ]
    )
    return [NAME, "--norc", "--noprofile", "-c", script, NAME]


def _ulimits(limits: Limits) -> list[str]:
    """Those that a system does not know are left out there."""
    kibibyte = 1024
    values: Mapping[str, int] = {
        "c": 0,
        "v": limits.memory_bytes // kibibyte,
        "t": limits.cpu_seconds,
        "f": limits.file_bytes // kibibyte,
        "n": 256,
        "u": limits.processes,
    }
    return [f"ulimit -{flag} {value} 2>/dev/null" for flag, value in values.items()]
