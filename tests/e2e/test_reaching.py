"""`exec`, `cp` and `ssh`, as they are typed, on two hosts that answer to SSH."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.rehearsal.hosts import SshHost
from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e

ODD = ("$HOME", "a  b", "it's", '"', "*", "new\nline", "")


@pytest.fixture
def hosts(lab: tuple[SshHost, ...], terminal: Terminal) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts that a spec in the terminal's folder names; the user's home is empty."""
    entries = "".join(
        f"    - {{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}\n"
        for host in lab
    )
    terminal.file("spec.yaml", f"cluster:\n  provider: hosts\n  hosts:\n{entries}")
    home = terminal.folder / "user"
    home.mkdir()
    terminal.env["HOME"] = str(home)
    yield lab
    assert not (home / ".ssh").exists(), "something was written to ~/.ssh"


def test_exec_prefixes_lines_and_returns_every_result(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """Lines bear their host, words arrive as typed, and --json has all of each host."""
    say = "import sys; print(repr(sys.argv[1:])); print('oh', file=sys.stderr)"
    words = ("exec", "--spec", "spec.yaml")
    done = terminal.paceline(*words, "--", sys.executable, "-c", say, *ODD)
    assert done.returncode == 0, done.stderr
    expected = [f"{host.address} | {list(ODD)!r}" for host in hosts]
    assert sorted(done.stdout.splitlines()) == sorted(expected)
    assert sorted(done.stderr.splitlines()) == sorted(f"{h.address} | oh" for h in hosts)
    alone = terminal.paceline(*words, "--on", "1", "--", "echo", "hi")
    assert alone.stdout == "hi\n"
    facts = json.loads(terminal.paceline(*words, "--json", "--", "echo", "hi").stdout)
    assert [(item["host"], item["exit_code"], item["stdout"]) for item in facts] == [
        (host.address, 0, "hi\n") for host in hosts
    ]


def test_exec_names_the_host_that_failed(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """Host, command, exit code and the end of its stderr; the other host's output is there."""
    script = (
        'case $SSH_CONNECTION in *" $1 "*) echo fine; exit 0; esac; '
        'echo "no such thing" >&2; exit 4'
    )
    done = terminal.paceline(
        "exec", "--spec", "spec.yaml", "--", "sh", "-c", script, "sh", hosts[1].address
    )
    assert done.returncode == 5
    assert f"{hosts[1].address} | fine" in done.stdout
    assert f"paceline: {hosts[0].address}: `sh -c" in done.stderr
    assert "failed with exit code 4" in done.stderr
    assert done.stderr.rstrip().endswith("no such thing")


def test_ctrl_c_ends_the_command_on_all_hosts(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """Nothing of it goes on there."""

    def sleeping() -> int:
        lines = [Path(f"/proc/{pid}/cmdline") for host in hosts for pid in host.processes()]
        return sum(b"987.25" in line.read_bytes() for line in lines if line.exists())

    with terminal.start("exec", "--spec", "spec.yaml", "--", "sleep", "987.25") as process:
        wait_until(lambda: sleeping() == len(hosts))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    wait_until(lambda: sleeping() == 0)


def test_cp_goes_to_all_hosts_and_comes_back_in_folders(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """Files and folders land as with `cp -r`; from several hosts each has its own folder here."""
    source = terminal.folder / "tree"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "file").write_bytes(os.urandom(200_000))
    spec = ("--spec", "spec.yaml")
    for times in ("first", "second"):
        done = terminal.paceline("cp", *spec, "tree", "all:there")
        assert done.returncode == 0, f"{times}: {done.stderr}"
    content = (source / "deep" / "file").read_bytes()
    for host in hosts:
        assert (host.home / "there" / "deep" / "file").read_bytes() == content
        assert (host.home / "there" / "tree" / "deep" / "file").read_bytes() == content
    done = terminal.paceline("cp", *spec, "all:there/deep/file", "back")
    assert done.returncode == 0, done.stderr
    for host in hosts:
        assert (terminal.folder / "back" / host.address / "file").read_bytes() == content
    done = terminal.paceline("cp", *spec, "1:there/deep/file", "./")
    assert (terminal.folder / "file").read_bytes() == content
    done = terminal.paceline("cp", *spec, "0:missing", "x")
    assert done.returncode == 9
    assert f"{hosts[0].address}: " in done.stderr
    assert "there is no" in done.stderr


def at_a_terminal(terminal: Terminal, *words: str, env: dict[str, str]) -> tuple[str, int]:
    """Run a verb at a terminal of 40x132, type a line that ends the shell, return what it says."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 132, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", *words],
        cwd=terminal.folder, env=env, stdin=side, stdout=side, stderr=side, start_new_session=True,
    )  # fmt: skip
    os.close(side)
    os.write(main, b"echo size $(stty size); echo at $SSH_CONNECTION; exit 7\n")
    said = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:
            break
        if not piece:
            break
        said += piece
    os.close(main)
    return said.decode("utf-8", "replace"), process.wait(timeout=60)


@pytest.mark.parametrize("client", ["ssh", "none"])
def test_ssh_opens_a_shell_at_our_terminal(
    hosts: tuple[SshHost, ...], terminal: Terminal, client: str, tmp_path: Path
) -> None:
    """With the system's client or without one: the right host, our window's size, its exit code."""
    env = dict(terminal.env)
    if client == "none":
        env["PATH"] = str(tmp_path)
    said, code = at_a_terminal(terminal, "ssh", "--spec", "spec.yaml", "1", env=env)
    assert "size 40 132" in said, said
    assert f"{hosts[1].address} 22" in said
    assert code == 7


def test_ssh_refuses_a_host_with_another_key(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """A key that is not the pinned one stops us before any client is started."""
    other = hosts[1].host_key
    terminal.file(
        "wrong.yaml",
        "cluster:\n  provider: hosts\n  hosts:\n"
        f"    - {{address: {hosts[0].address}, key: {hosts[0].user_key}, host_key: {other}}}\n",
    )
    done = terminal.paceline("ssh", "--spec", "wrong.yaml")
    assert done.returncode == 6
    assert "not the one that is pinned" in done.stderr


def test_ssh_pins_a_host_by_its_fingerprint(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """The client gets the whole key, which the fingerprint has vouched for."""
    public = terminal.file("key.pub", hosts[0].host_key + "\n")
    shown = subprocess.run(
        ("ssh-keygen", "-lf", str(public)), capture_output=True, text=True, check=True
    )
    pin = shown.stdout.split()[1]
    terminal.file(
        "pin.yaml",
        "cluster:\n  provider: hosts\n  hosts:\n"
        f"    - {{address: {hosts[0].address}, key: {hosts[0].user_key}, host_key: '{pin}'}}\n",
    )
    done = terminal.paceline("ssh", "--spec", "pin.yaml", "0", "--", "printf", "%s|", "a b", "$X")
    assert done.stdout.startswith("a b|$X|"), done.stderr


def test_ssh_goes_through_a_jump_host(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """The system's own client takes the way that a spec names, and verifies the hosts on it."""
    gate, inner = hosts
    way = f"key: {inner.user_key}, jump: 'root@{gate.address}:22'"
    hosts_text = (
        f"cluster:\n  provider: hosts\n  hosts:\n    - {{address: {inner.address}, {way}}}\n"
    )
    terminal.file("jump.yaml", hosts_text)
    refused = terminal.paceline("ssh", "--spec", "jump.yaml", "0", "--", "true")
    assert refused.returncode == 6
    assert f"jump host {gate.address}" in refused.stderr
    met = terminal.paceline("exec", "--spec", "jump.yaml", "--accept-new-host-keys", "--", "true")
    assert met.returncode == 0, met.stderr
    words = ("--", "sh", "-c", 'echo "$SSH_CONNECTION"')
    done = terminal.paceline("ssh", "--spec", "jump.yaml", "0", *words)
    assert done.stdout.split()[::2] == [gate.address, inner.address], done.stderr
