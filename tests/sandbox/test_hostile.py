"""A model that means harm: whatever it runs, the harness goes on, learns the truth of it, and the machine stays clean.

The fixture `shell` compares processes, mounts and files before and after each test.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_cellprose
from pytest_cellprose.sandbox.base import LIMITS, Sandboxes
from tests.sandbox.conftest import SECRET, WORKBOOK, Shell

REPOSITORY = Path(pytest_cellprose.__file__).parent.parent


def test_it_sees_a_file_with_a_neutral_name_and_nothing_else(shell: Shell) -> None:
    found = shell.bash("find / -xdev -newermt 2020-09-13 ! -newermt 2020-09-14 2>/dev/null; ls -A; cat workbook.xlsx")
    assert found.text.endswith(f"workbook.xlsx\n{WORKBOOK.decode()}")
    outside = " ".join(f"/{name}" for name in ("home", "root", "srv", "mnt", "var", "sys", "boot"))
    assert shell.bash(f"ls -d {outside} 2>/dev/null").text.splitlines()[:-1] == []
    assert shell.bash("ls -A ..; ls -A ~").text.split().count("workbook.xlsx") == 1


def test_neither_repository_nor_runs_are_there(shell: Shell, tmp_path: Path) -> None:
    secret = tmp_path / "answers.json"
    secret.write_text("q1: 42")
    for path in (REPOSITORY, REPOSITORY / "cells", tmp_path, secret, Path.home()):
        assert shell.bash(f"cat '{path}' || ls '{path}'").exit_code != 0
        assert shell.read(str(path)).exit_code == 1
    told = shell.bash("cat /proc/self/mountinfo /proc/*/cmdline /proc/*/environ 2>/dev/null; env; python3 -c "
                      "'import sys; print(sys.path, sys.executable)'").text  # fmt: skip
    assert str(REPOSITORY) not in told
    assert str(tmp_path) not in told


def test_it_knows_no_key_and_no_user(shell: Shell) -> None:
    assert os.environ["ANTHROPIC_API_KEY"] == SECRET
    told = shell.bash("env; cat /proc/*/environ; cat /proc/1/environ; set; id; whoami; hostname").text
    assert "SECRET" not in told
    assert "uid=0" not in told
    assert socket.gethostname() not in told.split()
    assert "sandbox" in told.split()


def test_it_sees_no_process_of_the_machine(shell: Shell) -> None:
    told = shell.bash("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /proc | grep -c '^[0-9]'; kill -9 -1").text
    assert "pytest" not in told
    assert f" {os.getpid()} " not in told


@pytest.fixture
def listening() -> Iterator[tuple[int, str]]:
    """A port of this machine, and an abstract socket: whoever is outside could use them."""
    name = f"cellprose-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0{name}")
        unix.listen()
        yield tcp.getsockname()[1], name


def test_it_reaches_no_network(shell: Shell, listening: tuple[int, str]) -> None:
    port, name = listening
    for made in (
        f"socket.create_connection(('127.0.0.1', {port}), 3)",
        "socket.create_connection(('1.1.1.1', 443), 3)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('1.1.1.1', 53))",
        f"socket.socket(socket.AF_UNIX).connect('\\0{name}')",
        "socket.getaddrinfo('example.org', 80)",
    ):
        ran = shell.bash(f'python3 -c "import socket; {made}"')
        assert ran.exit_code == 1, made
        assert "error" in ran.text.lower() or "refused" in ran.text


def test_it_writes_nowhere_but_in_its_places(shell: Shell) -> None:
    for place in ("/", "/usr", "/usr/bin", "/etc", "/etc/passwd", "/opt/python/x", "/dev", "/proc/sys/kernel/hostname"):
        assert shell.bash(f"echo x > {place}/x 2>/dev/null || echo x > {place}").exit_code != 0, place
    assert shell.bash("echo x > /tmp/x && echo x > /dev/shm/x && echo x > x").exit_code == 0
    assert shell.bash("ls /tmp /dev/shm").text.split() == ["/dev/shm:", "/tmp:"]  # kept for one command


def test_it_gets_no_rights(shell: Shell) -> None:
    for command in ("sudo -n id", "su -c id", "mount -t tmpfs t /tmp", "unshare -r true", "chroot /", "mknod d c 1 3"):
        ran = shell.bash(f"PATH=$PATH:/sbin:/usr/sbin {command}")
        assert ran.exit_code != 0, command
    assert shell.bash("grep CapEff /proc/self/status").text.split() == ["CapEff:", "0" * 16]
    assert shell.bash("grep NoNewPrivs /proc/self/status").text.split()[-1] == "1"


def test_a_fork_bomb_ends_with_its_time(shell: Shell) -> None:
    began = time.monotonic()
    ran = shell.bash("bomb() { bomb | bomb & }; bomb; sleep 60", timeout=2)
    assert time.monotonic() - began < 15
    assert ran.exit_code is None or "fork" in ran.text or "Resource" in ran.text
    assert shell.bash("echo well").text == "well\n"


def test_what_goes_on_in_the_background_ends_with_its_command(shell: Shell) -> None:
    began = time.monotonic()
    ran = shell.bash("sleep 1e9 & setsid sleep 1e9 & (trap '' TERM HUP; sleep 1e9) & echo there")
    assert (ran.text, ran.exit_code) == ("there\n", 0)
    assert time.monotonic() - began < 10
    assert "sleep" not in shell.bash("cat /proc/[0-9]*/comm").text


def test_a_daemon_that_holds_the_pipe_is_not_waited_for(shell: Shell) -> None:
    began = time.monotonic()
    ran = shell.bash("nohup setsid bash -c 'while true; do echo still; sleep 0.1; done' & disown; sleep 60", timeout=1)
    assert ran.exit_code is None
    assert ran.text.endswith("[stopped after 1 seconds]\n")
    assert time.monotonic() - began < 10


def test_time_ends_a_command_and_says_so(shell: Shell) -> None:
    ran = shell.bash("echo before; sleep 60; echo after", timeout=1)
    assert (ran.text, ran.exit_code) == ("before\n[stopped after 1 seconds]\n", None)


def test_the_disk_is_not_filled(shell: Shell) -> None:
    one = shell.bash("head -c 100000000 /dev/zero > big")
    assert one.exit_code != 0  # one file has a limit of its own
    many = shell.bash("for n in $(seq 99); do head -c 60000000 /dev/zero > big$n; done; sleep 30")
    assert many.exit_code is None
    assert "[stopped: the working directory may hold 256 MB in 10,000 files; it was emptied" in many.text
    assert shell.bash("ls; cat workbook.xlsx").text == f"workbook.xlsx\n{WORKBOOK.decode()}"


def test_neither_with_files_that_are_many(shell: Shell) -> None:
    ran = shell.bash("python3 -c 'for n in range(20000): open(str(n), \"w\").close()'")
    assert ran.exit_code is None
    assert "10,000 files" in ran.text
    assert shell.bash("ls").text == "workbook.xlsx\n"


def test_memory_is_bounded(shell: Shell) -> None:
    alone = shell.bash("python3 -c 'x = bytearray(3 << 30)'")
    assert "MemoryError" in alone.text
    several = "python3 -c 'import time; x = bytearray(1 << 30); x[::4096] = b\"x\" * (1 << 18); time.sleep(9)' &"
    together = shell.bash(f"{several} {several} {several} wait; sleep 20")
    assert together.exit_code is None
    assert "2,048 MB of memory" in together.text


def test_a_gigabyte_of_output_is_told_by_its_ends(shell: Shell) -> None:
    before = _peak()
    ran = shell.bash("echo first; head -c 1000000000 /dev/zero | tr '\\0' 'x'; echo; echo last", timeout=60)
    assert ran.exit_code == 0
    assert ran.output_bytes == 1_000_000_000 + len("first\n\nlast\n")
    assert ran.text.startswith("first\nxxx")
    assert ran.text.endswith("xxx\nlast\n")
    assert f"[… {ran.output_bytes - LIMITS.output_bytes:,} bytes left out …]" in ran.text
    assert len(ran.text) < LIMITS.output_bytes + 100
    assert _peak() - before < 50_000  # kB


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def test_output_of_any_bytes_is_text_that_does_nothing(shell: Shell) -> None:
    ran = shell.bash(r"printf 'a\033[2J\033]0;title\007b\0c\r\nd\xff\xfe\te\u202ef'")
    assert ran.text == "a\\x1b[2J\\x1b]0;title\\x07b\\x00c\nd\\xff\\xfe\te\\u202ef"


@pytest.mark.parametrize("command", ["kill -9 $PPID", "kill -9 1", "kill -9 -1", "kill -STOP $$", "exec sleep 60"])
def test_it_ends_itself_only(shell: Shell, command: str) -> None:
    shell.bash(command, timeout=1)
    assert shell.bash("echo well").text == "well\n"


def test_files_that_resist_are_removed(shell: Shell) -> None:
    """The fixture finds nothing left: neither what nobody may read, nor what lies too deep, nor odd names."""
    shell.bash("mkdir -p a/b && echo x > a/b/c && chmod 000 a/b/c a/b a; mkfifo fifo; ln -s / link; chmod 4777 .")
    shell.bash("chattr +i workbook.xlsx; chown root:root workbook.xlsx; touch $'new\\nline' $'\\xff'")
    deep = "import os\nfor n in range(3000):\n    os.mkdir('d'); os.chdir('d')"
    shell.bash(f'python3 -c "{deep}"')
    assert shell.bash("echo well").text.endswith("well\n")


def test_read_file_follows_no_way_out(shell: Shell, tmp_path: Path) -> None:
    outside = tmp_path / "answers.json"
    outside.write_text("TRUTH")
    shell.bash(f"ln -s {outside} answers; ln -s /etc/shadow shadow; ln -s {REPOSITORY} repository; ln -s . here")
    for path in ("answers", "shadow", "repository/README.md", "here/answers", str(outside), "../../../etc/shadow"):
        assert shell.read(path).exit_code == 1, path
        assert "TRUTH" not in shell.read(path).text
    assert shell.read("here/workbook.xlsx").text == WORKBOOK.decode()


def test_nor_after_a_swap(shell: Shell, tmp_path: Path) -> None:
    """A link that comes and goes while files are read: whatever it leads to is inside."""
    outside = tmp_path / "answers.json"
    outside.write_text("TRUTH")
    shell.bash("echo plain > file")
    swap = f"for n in $(seq 300); do ln -sf {outside} file; rm file; echo plain > file; done"
    thread = threading.Thread(target=shell.bash, args=(swap,))
    thread.start()
    told = {shell.read("file").text for _ in range(5)}
    thread.join()
    assert not [text for text in told if "TRUTH" in text]


@pytest.mark.parametrize("path", ["fifo", "/dev/zero", "/dev/tty", "/dev/stdin", "/proc/self/fd/0", "socket"])
def test_read_file_waits_for_no_device(shell: Shell, path: str) -> None:
    shell.bash("mkfifo fifo; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"")
    began = time.monotonic()
    assert shell.read(path).exit_code == 1
    assert time.monotonic() - began < 10


def test_commands_of_any_size_and_bytes_are_run(shell: Shell) -> None:
    long = "echo " + "x" * 1_000_000 + " | wc -c"
    assert shell.bash(long).text == "1000001\n"
    assert "well" in shell.bash("echo we\0ll").text
    assert shell.bash("echo 'é\ud83d' | wc -l").text == "1\n"
    assert shell.bash('read line; echo "[$line]"').text == "[]\n"  # nothing comes from a terminal
    assert shell.bash("exit 7").exit_code == 7
    assert shell.bash("if then").exit_code not in (0, None)
    assert shell.bash("echo 'a\n  b'\n\n").text == "a\n  b\n"


def test_the_next_command_is_where_the_last_one_ended(shell: Shell) -> None:
    shell.bash("mkdir -p a/b; cd a/b; x=1; alias ll='ls -l'; export y=2")
    assert shell.bash('pwd; echo "[$x$y]"').text == "/work/a/b\n[]\n"
    shell.bash("cd /usr/bin")
    assert shell.bash("pwd").text == "/usr/bin\n"
    shell.bash("cd /work/a/b; rm -r /work/a")
    assert shell.bash("pwd").text == "/work\n"
    shell.bash("echo '/work; touch broken' > /run/state/cwd; trap - EXIT")
    assert shell.bash("pwd; ls").text == "/work\nworkbook.xlsx\n"


def test_two_sandboxes_know_nothing_of_each_other(shell: Shell, bubblewrap: Sandboxes) -> None:
    with bubblewrap.open({"workbook.xlsx": b"another"}) as other:
        two = Shell(other)
        shell.bash("echo one > mine; echo one > /tmp/mine")
        assert two.bash("ls /tmp /work; cat workbook.xlsx").text == "/tmp:\n\n/work:\nworkbook.xlsx\nanother"
