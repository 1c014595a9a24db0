"""The tools that an agent has in its sandbox: `bash` and `read_file` (protocol section 1)."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from pytest_cellprose.providers.base import Tool
from pytest_cellprose.record.plain import visible
from pytest_cellprose.sandbox.base import LIMITS, Answer, Ran, Sandbox

_READ_BYTES = LIMITS.output_bytes - 500
"""Of a file that are shown at once: a note that there is more has to fit as well."""

_BASH = Tool(
    "bash",
    "Run a command in a bash shell, in the directory that holds the workbook file. Each call is a fresh shell: the "
    "working directory and the files in it are kept, variables and background processes are not. python3 with openpyxl "
    "is there; there is no network. Standard output and standard error come back together, of more than "
    f"{LIMITS.output_bytes:,} bytes the beginning and the end. A command is stopped after {LIMITS.seconds:g} seconds, "
    f"or after `timeout` seconds ({LIMITS.most_seconds:g} at most).",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command, as bash takes it; it may have several lines."},
            "timeout": {
                "type": "number",
                "description": f"Seconds after which it is stopped; {LIMITS.seconds:g} if it is left out.",
                "exclusiveMinimum": 0,
                "maximum": LIMITS.most_seconds,
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)
_READ_FILE = Tool(
    "read_file",
    f"Read a text file, or a range of its lines. Up to {_READ_BYTES:,} bytes of whole lines come back, with a note of "
    "what is left; ask for the rest by its line numbers. Binary files, such as .xlsx, are refused: read them by bash "
    "and python3.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Of the file, relative to the working directory or absolute."},
            "first_line": {"type": "integer", "minimum": 1, "description": "The first line, from 1; default 1."},
            "last_line": {"type": "integer", "minimum": 1, "description": "The last line; default: the last there is."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)
TOOLS = (_BASH, _READ_FILE)

# Runs inside the sandbox, so that whatever a path leads to, by links or by a swap at the last moment, is inside too.
_READ = f"""
import json, os, stat, sys
told = json.loads(sys.argv[1])
path, first, last = told["path"], told.get("first_line", 1), told.get("last_line")
try:
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
except OSError as error:
    sys.exit(f"{{path}}: {{error.strerror}}")
except ValueError as error:
    sys.exit(f"the path cannot be used: {{error}}")
kind = os.fstat(opened)
if stat.S_ISDIR(kind.st_mode):
    sys.exit(f"{{path}}: a directory: list it by bash, with ls")
if not stat.S_ISREG(kind.st_mode):
    sys.exit(f"{{path}}: no regular file")
with open(opened, "rb") as file:
    number = size = 0
    shown = []
    more = False
    for line in file:
        number += 1
        if b"\\0" in line:
            sys.exit(f"{{path}}: a binary file of {{kind.st_size:,}} bytes: use bash and python3 (an .xlsx: openpyxl)")
        if number < first or more or (last is not None and number > last):
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            sys.exit(f"{{path}}: not UTF-8 (line {{number:,}}): use bash and python3")
        if size + len(line) > {_READ_BYTES}:
            if not shown:
                text = line[:{_READ_BYTES}].decode("utf-8", "ignore")
                shown.append(text + f"\\n[line {{number:,}} has {{len(line):,}} bytes: the rest is left out]\\n")
            more = number if not shown[-1].endswith("left out]\\n") else number + 1
            continue
        size += len(line)
        shown.append(text)
sys.stdout.write("".join(shown))
if more and more <= (last or number):
    sys.stdout.write(f"[the file has {{number:,}} lines; go on with first_line {{more:,}}]\\n")
elif not shown:
    sys.stdout.write(f"[the file has {{number:,}} lines: none of these]\\n" if number else "[the file is empty]\\n")
"""


def answer(sandbox: Sandbox, name: str, arguments: Mapping[str, Any]) -> Answer:
    """What a tool of `TOOLS` answers; its arguments fit its schema. Raises `SandboxError` if nothing could be run."""
    if name == _BASH.name:
        ran = sandbox.run(arguments["command"], arguments.get("timeout"))
    else:
        ran = sandbox.run(f"exec python3 -I -S -c {shlex.quote(_READ)} {shlex.quote(json.dumps(dict(arguments)))}")
    return Answer(_told(ran), ran.exit_code, ran.output_bytes)


def _told(ran: Ran) -> str:
    """The output as a model may read it, with what became of the command."""
    output = _readable(ran.head)
    if ran.left_out:
        output = f"{_closed(output)}[… {ran.left_out:,} bytes left out …]\n{_readable(ran.tail)}"
    notes = {
        "exit": f"[exit code {ran.exit_code}]" if ran.exit_code else "",
        "time_out": f"[stopped after {ran.seconds:.0f} seconds]",
        "memory": f"[stopped: its processes had more than {LIMITS.memory_bytes >> 20:,} MB of memory]",
        "disk": f"[stopped: the working directory may hold {LIMITS.disk_bytes >> 20:,} MB in {LIMITS.files:,} files; "
        "it was emptied, and the workbook put back]",
    }
    note = notes[ran.ended]
    if note:
        return f"{_closed(output)}{note}\n"
    return output or "[no output]\n"


_LINE_ENDS = re.compile(r"\r+\n")


def _readable(output: bytes) -> str:
    """With every other character that acts instead of being shown as a backslash escape."""
    text = _LINE_ENDS.sub("\n", output.decode("utf-8", "backslashreplace"))
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
