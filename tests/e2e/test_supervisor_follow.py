"""Following a job: whole lines, every byte once, however often the reader has to come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import defaultdict
from typing import Any

import pytest

from tests.fakes.supervised import SupervisedJob, python, shell, until

pytestmark = pytest.mark.e2e

# Lines of any length, written in pieces of any length, with characters of any length.
TALKER = """
import os, random, sys, time
random.seed({seed})
text = "".join(
    "".join(random.choice("ab€𝄞é ") for _ in range(random.choice((0, 5, 80, 2000)))) + "\\n"
    for _ in range(150)
).encode()
event = os.open(os.path.join(os.environ["PACELINE_EVENTS"], "rank-{seed}.jsonl"),
                os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while text:
    size = random.choice((1, 3, 200, 5000))
    os.write(1, text[:size])
    text = text[size:]
    os.write(event, b'{{"kind":"metric","n":%d}}\\n' % len(text))
    time.sleep(random.choice((0, 0, 0.02)))
os.write(1, "the end without a line end €".encode())
"""


class Reader:
    """Follows a job, and knows what it has been told."""

    def __init__(self, job: SupervisedJob) -> None:
        self.job = job
        self.offsets: dict[str, int] = {}
        self.texts: dict[str, list[str]] = defaultdict(list)
        self.states: list[dict[str, Any]] = []

    def read(self, most_lines: int | None = None) -> None:
        """Follow from where we are; go away after some lines, or stay to the end."""
        argv = self.job.argv("follow", "--since", json.dumps(self.offsets))
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            for count, line in enumerate(process.stdout, start=1):
                self.take(json.loads(line))
                if count == most_lines:
                    break
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0

    def take(self, record: dict[str, Any]) -> None:
        """Take note of one record."""
        if "state" in record:
            self.states.append(record["state"])
            return
        assert record["start"] == self.offsets.get(record["file"], 0), "no gap, nothing twice"
        self.offsets[record["file"]] = record["end"]
        self.texts[record["file"]].append(record["text"])


def test_readers_that_come_and_go_miss_nothing(job: SupervisedJob) -> None:
    """Readers that drop off again and again, while ranks write, get each byte once."""
    job.write(*(python(TALKER.format(seed=seed)) for seed in range(3)))
    job.start()
    reader = Reader(job)
    for most_lines in (1, 2, 3, 5, 8, 13, 21):
        reader.read(most_lines)
    reader.read()
    for name, pieces in reader.texts.items():
        data = (job.path / name).read_bytes()
        assert "".join(pieces) == data.decode(), "no character was cut, no byte lost"
        assert all(piece.endswith("\n") for piece in pieces[:-1]), "whole lines until the end"
    assert sorted(reader.texts) == sorted(
        [f"logs/rank-{seed}.log" for seed in range(3)]
        + [f"events/rank-{seed}.jsonl" for seed in range(3)]
    )
    assert reader.states[-1]["outcome"] == "succeeded"


def test_the_last_state_comes_last(job: SupervisedJob) -> None:
    """States are told as they change, and the last says that all was told."""
    job.write(shell("echo one; sleep 0.5; printf two"))
    job.start()
    reader = Reader(job)
    reader.read()
    assert [state["phase"] for state in reader.states][-1] == "ended"
    assert "".join(reader.texts["logs/rank-0.log"]) == "one\ntwo"
    again = Reader(job)
    again.offsets = dict(reader.offsets)
    again.read()
    assert [state["outcome"] for state in again.states] == ["succeeded"]
    assert again.texts == {}


def test_a_reader_learns_that_the_supervisor_is_gone(job: SupervisedJob) -> None:
    """Even when nobody is left to write it down, following comes to an end."""
    job.write(shell("echo ready; exec sleep 1000"))
    job.start()
    job.said("rank-0", "ready")
    with subprocess.Popen(job.argv("follow"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(job.keeper_pid(), signal.SIGKILL)
        job.kill_supervisor()
        last = json.loads(process.stdout.read().splitlines()[-1])
    assert last["state"]["outcome"] == "lost"


def test_following_ends_with_its_listener(job: SupervisedJob) -> None:
    """A connection that breaks leaves no reader behind, though the job says nothing more."""
    job.write(shell("exec sleep 1000"))
    job.start()
    with subprocess.Popen(job.argv("follow"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        until(lambda: process.poll() is not None, "the reader's end")
    assert process.returncode == 0
    assert job.status().phase == "running"
