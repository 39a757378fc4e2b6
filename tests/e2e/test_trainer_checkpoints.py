"""Trainings that are interrupted: what is kept, and that going on equals never having stopped."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.events import Checkpoint, End, Epoch, Iteration, Note
from tests.fakes.nursery import Nursery, Rank, environment, free_port, launched, nursery, until

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
torch = pytest.importorskip("torch")

EPOCHS, PER_EPOCH, BATCH = 2, 30, 4
IMAGES = PER_EPOCH * BATCH
SMALL = (
    *("--dataset", "fake", "--count", str(IMAGES), "--num_epochs", str(EPOCHS)),
    *("--nz", "8", "--ngf", "4", "--ndf", "4", "--image_size", "16"),
    *("--pictures_every", "0", "--precision", "fp32"),
)
ALONE = (*SMALL, "--batch_size", str(BATCH))
OF_TWO = (*SMALL, "--batch_size", str(BATCH // 2))


@pytest.fixture
def ranks() -> Iterator[Nursery]:
    """Lend the place where ranks are started."""
    with nursery() as lent:
        yield lent


@pytest.fixture(scope="module", params=[1, 2], ids=["1 rank", "2 ranks"])
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, Path, list[Iteration]]:
    """Return how many ranks trained, where, and what rank 0 reported, with nobody disturbing."""
    count: int = request.param
    folder = tmp_path_factory.mktemp("undisturbed")
    with nursery() as lent:
        first, *_ = lent.run(folder, words_for(count), ranks=count)
    return count, folder, steps(first)


def words_for(ranks: int) -> tuple[str, ...]:
    """Return the arguments with which so many ranks do the same steps together."""
    return ALONE if ranks == 1 else OF_TWO


def steps(rank: Rank) -> list[Iteration]:
    """Return the steps that a rank has reported."""
    return [event for event in rank.events if isinstance(event, Iteration)]


def told(events: list[Iteration]) -> dict[tuple[int, int], dict[str, float]]:
    """Return the figures by where they belong."""
    return {(event.epoch, event.index): dict(event.metrics) for event in events}


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoint files, the newest last."""
    return sorted((folder / "checkpoints").glob("*.pt"))


def newest(folder: Path) -> dict[str, Any]:
    """Return what the newest checkpoint holds."""
    state: dict[str, Any] = torch.load(checkpoints(folder)[-1], weights_only=True)
    return state


def assert_same(left: Any, right: Any) -> None:
    """Compare two states bit for bit."""
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name, value in left.items():
            assert_same(value, right[name])
    elif isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        assert torch.equal(left, right)
    else:
        assert left == right


def go_on(ranks: Nursery, folder: Path, count: int, *words: str) -> list[Rank]:
    """Go on from what is in a folder, and return the new ranks' own reports."""
    for old in (folder / "events").glob("*.jsonl"):
        old.rename(old.with_suffix(".before"))
    return ranks.run(folder, (*words_for(count), "--resume", "auto", *words), ranks=count)


def test_a_stopped_training_goes_on_bit_for_bit(
    undisturbed: tuple[int, Path, list[Iteration]], ranks: Nursery, tmp_path: Path
) -> None:
    """After SIGTERM to one rank and `--resume auto`, losses and final state are the same."""
    count, folder, expected = undisturbed
    started = ranks.start(tmp_path, words_for(count), ranks=count)
    started[-1].reported(5, Iteration)
    started[-1].signal(signal.SIGTERM)
    assert [rank.ended() for rank in started] == [128 + signal.SIGTERM] * count
    assert all(rank.events[-1].status == "stopped" for rank in started)  # type: ignore[attr-defined]
    kept = [event for event in started[0].events if isinstance(event, Checkpoint)]
    done = steps(started[0])
    assert (kept[-1].epoch, kept[-1].index) == (done[-1].epoch, done[-1].index + 1)
    assert len(done) < EPOCHS * PER_EPOCH

    first, *_ = go_on(ranks, tmp_path, count)
    assert told(done) | told(steps(first)) == told(expected)
    assert not set(told(done)) & set(told(steps(first)))
    assert_same(newest(tmp_path), newest(folder))


def test_a_killed_training_goes_on_bit_for_bit(
    undisturbed: tuple[int, Path, list[Iteration]], ranks: Nursery, tmp_path: Path
) -> None:
    """After SIGKILL in mid-epoch the training repeats what came after its last checkpoint."""
    count, folder, expected = undisturbed
    words = (*words_for(count), "--checkpoint_every", "7")
    started = ranks.start(tmp_path, words, ranks=count)
    started[0].reported(1, Checkpoint)
    started[-1].signal(signal.SIGKILL)
    assert started[-1].ended() == -signal.SIGKILL
    if count > 1:
        assert started[0].ended() == 6
        assert "lost another rank" in started[0].said
        assert "Traceback" not in started[0].said
        assert isinstance(started[0].events[-1], End)
        assert started[0].events[-1].status == "failed"

    first, *_ = go_on(ranks, tmp_path, count)
    repeated = told(steps(first))
    assert repeated.items() <= told(expected).items()
    assert_same(newest(tmp_path), newest(folder))


MLP = ("--program", "mlp", "--dataset", "fake", "--count", str(IMAGES), "--batch_size", "4")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (2, (*OF_TWO, "--precision", "bf16", "--sync_batchnorm")),
        (2, (*OF_TWO, "--wire", "int8")),
        (2, (*MLP, "--image_size", "8")),
    ],
    ids=["bf16", "int8", "mlp"],
)
def test_every_kind_of_training_goes_on_bit_for_bit(
    ranks: Nursery, tmp_path: Path, count: int, words: tuple[str, ...]
) -> None:
    """Five steps and, in a new process, seven more end where twelve at once end."""
    words = (*words, "--checkpoint_every", "1000", "--iterations")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    ranks.run(whole, (*words, "12"), ranks=count)
    ranks.run(parts, (*words, "5"), ranks=count)
    ranks.run(parts, (*words, "7", "--resume", "auto"), ranks=count)
    assert newest(whole)["position"]["steps"] == 12
    assert_same(newest(parts), newest(whole))


def test_ranks_may_become_more_or_fewer(ranks: Nursery, tmp_path: Path) -> None:
    """What is left of an epoch is dealt out anew: each image still comes once, no step is lost."""
    limited = (*OF_TWO, "--checkpoint_every", "1000")
    ranks.run(tmp_path, (*limited, "--iterations", "11"), ranks=2)
    assert newest(tmp_path)["position"] == {"epoch": 0, "index": 11, "consumed": 44, "steps": 11}

    (alone,) = go_on(ranks, tmp_path, 1, "--checkpoint_every", "1000", "--iterations", "8")
    assert "going on from" in alone.said
    assert [(event.epoch, event.index) for event in steps(alone)] == [(0, 11 + i) for i in range(8)]
    assert newest(tmp_path)["position"]["consumed"] == 44 + 8 * BATCH

    three = go_on(ranks, tmp_path, 3, "--batch_size", "3")
    left = IMAGES - 44 - 8 * BATCH
    in_first_epoch = [[event for event in steps(rank) if event.epoch == 0] for rank in three]
    assert sum(event.items or 0 for part in in_first_epoch for event in part) == -(-left // 3) * 3
    assert all(part[0].index == 19 for part in in_first_epoch)
    assert newest(tmp_path)["position"]["epoch"] == EPOCHS


@pytest.mark.parametrize("words", [(), ("--checkpoint_every", "0")], ids=["epoch ends", "none"])
def test_a_checkpoint_is_taken_when_it_is_asked_for(
    ranks: Nursery, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """SIGUSR1 to any rank has rank 0 write one, at once, and the training goes on to its end."""
    started = ranks.start(tmp_path, (*OF_TWO, *words), ranks=2)
    started[1].reported(3, Iteration)
    started[1].signal(signal.SIGUSR1)
    assert [rank.ended() for rank in started] == [0, 0]
    taken = [event for event in started[0].events if isinstance(event, Checkpoint)]
    assert taken[0].epoch == 0
    assert 3 <= taken[0].index < PER_EPOCH
    assert len(taken) == 1 + (0 if words else EPOCHS)
    assert not [event for event in started[1].events if isinstance(event, Checkpoint)]
    assert sum(isinstance(event, Epoch) for event in started[1].events) == EPOCHS


def test_a_request_that_comes_too_early_kills_nobody(ranks: Nursery, tmp_path: Path) -> None:
    """SIGUSR1 to a rank that still waits for the others is no reason to die."""
    port = str(free_port())
    common: dict[str, Any] = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    words = (*OF_TWO, "--iterations", "3")
    (first,) = ranks.start(tmp_path / "0", words, **common, RANK="0")
    until(lambda: listens(int(port)) or first.code() is not None, "the meeting point to be open")
    first.signal(signal.SIGUSR1)
    (second,) = ranks.start(tmp_path / "1", words, **common, RANK="1", PACELINE_EVENTS="")
    until(lambda: first.code() is not None, "the first rank")
    assert first.ended() == 0
    assert second.ended() == 0


def listens(port: int) -> bool:
    """Whether somebody listens at a port, without knocking."""
    lines = [
        line.split()
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
    ]
    return any(line[3] == "0A" and line[1].endswith(f":{port:04X}") for line in lines)


def damaged(how: str, path: Path) -> None:
    """Damage a checkpoint in one of the ways in which disks and people do."""
    data = path.read_bytes()
    if how == "cut short":
        path.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.with_name(f"{path.name}.sha256").unlink()


@pytest.mark.parametrize("how", ["cut short", "flipped", "empty", "without its sum"])
def test_a_damaged_checkpoint_is_passed_over(ranks: Nursery, tmp_path: Path, how: str) -> None:
    """The one before it is used, and which one was wrong is said, to people and as an event."""
    words = (*ALONE, "--checkpoint_every", "4", "--iterations", "12")
    ranks.run(tmp_path, words)
    *_, before, last = checkpoints(tmp_path)
    damaged(how, last)
    (rank,) = go_on(ranks, tmp_path, 1, "--iterations", "1")
    position = torch.load(before, weights_only=True)["position"]
    assert position["index"] in {4, 8}
    assert (steps(rank)[0].epoch, steps(rank)[0].index) == (0, position["index"])
    assert str(last.name) in rank.said
    warnings = [event for event in rank.events if isinstance(event, Note)]
    assert any(last.name in event.text and event.level == "warning" for event in warnings)


def test_nothing_but_damaged_checkpoints_is_an_error(ranks: Nursery, tmp_path: Path) -> None:
    """A training whose every checkpoint is broken does not silently begin anew."""
    ranks.run(tmp_path, (*ALONE, "--checkpoint_every", "4", "--iterations", "8"))
    for path in checkpoints(tmp_path):
        damaged("cut short", path)
    started = ranks.start(tmp_path, (*OF_TWO, "--resume", "auto"), ranks=2)
    assert started[0].ended() == 3
    assert started[0].said.splitlines()[-2].startswith("error: ")
    assert "Traceback" not in started[0].said + started[1].said
    assert started[1].ended() != 0


def test_a_checkpoint_that_would_run_code_is_refused(ranks: Nursery, tmp_path: Path) -> None:
    """Even with a right sum, what a file would execute is not executed, and no traceback shown."""
    mark = tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (mark,))

    path = tmp_path / "evil.pt"
    torch.save({"format": 1, "learners": Evil()}, path)
    assert pickle.loads(pickle.dumps(Evil())) is None  # noqa: S301 - it does work
    mark.unlink()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name("evil.pt.sha256").write_text(f"{digest}  evil.pt\n")
    (rank,) = ranks.start(tmp_path, (*ALONE, "--resume", str(path)))
    assert rank.ended() == 3
    assert not mark.exists()
    assert "Traceback" not in rank.said


def test_another_trainings_checkpoint_is_refused(ranks: Nursery, tmp_path: Path) -> None:
    """Networks of another shape are named in one message; a path that is not there, too."""
    ranks.run(tmp_path, (*ALONE, "--checkpoint_every", "4", "--iterations", "4"))
    (rank,) = ranks.start(tmp_path, (*ALONE, "--resume", "auto", "--ngf", "8"))
    assert rank.ended() == 2
    assert "another training" in rank.said
    (lost,) = ranks.start(tmp_path, (*ALONE, "--resume", "nowhere.pt"))
    assert lost.ended() == 3
    assert "nowhere.pt" in lost.said
    assert "Traceback" not in rank.said + lost.said


def test_a_new_training_does_not_go_on_from_an_old_one(ranks: Nursery, tmp_path: Path) -> None:
    """A restart in the folder of an older training sees its own checkpoints only."""
    ranks.run(tmp_path, (*ALONE, "--checkpoint_every", "4", "--iterations", "4"))
    ranks.run(tmp_path, (*ALONE, "--checkpoint_every", "100", "--iterations", "2", "--seed", "1"))
    path = checkpoints(tmp_path)[-1]
    assert newest(tmp_path)["seed"] == 1
    path.unlink()
    (rank,) = go_on(ranks, tmp_path, 1, "--iterations", "1", "--seed", "1")
    assert (steps(rank)[0].epoch, steps(rank)[0].index) == (0, 0)
    assert "from the beginning" in rank.said


def test_only_the_last_few_are_kept_and_each_can_be_checked(ranks: Nursery, tmp_path: Path) -> None:
    """`--keep_checkpoints 2` leaves two, with sums that `sha256sum` confirms, and nothing half."""
    words = ("--checkpoint_every", "3", "--iterations", "15", "--keep_checkpoints", "2")
    ranks.run(tmp_path, (*ALONE, *words))
    folder = tmp_path / "checkpoints"
    files = checkpoints(tmp_path)
    assert len(files) == 2
    sums = sorted(path.name for path in folder.glob("*.sha256"))
    assert sums == [f"{path.name}.sha256" for path in files]
    subprocess.run(["sha256sum", "--check", "--strict", *sums], cwd=folder, check=True, timeout=60)
    assert not list(folder.glob("*partial*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a real file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=60)


def test_a_full_disk_costs_checkpoints_and_not_the_training(
    ranks: Nursery, tmp_path: Path, small_disk: Path
) -> None:
    """It is said plainly, the earlier checkpoints stay whole, and training goes on to its end."""
    words = ("--checkpoint_every", "10", "--keep_checkpoints", "50", "--ngf", "16", "--ndf", "16")
    (rank,) = ranks.run(tmp_path, (*ALONE, *words, "--out_folder", str(small_disk)))
    assert len(steps(rank)) == EPOCHS * PER_EPOCH
    last = rank.events[-1]
    assert isinstance(last, End)
    assert (last.status, last.error) == ("ok", None)
    assert "could not be written" in rank.said
    assert "No space left" in rank.said
    assert "Traceback" not in rank.said
    written = [event.path for event in rank.events if isinstance(event, Checkpoint)]
    assert [str(path) for path in checkpoints(small_disk)] == written
    assert written
    assert not list(small_disk.rglob("*partial*"))
    sums = sorted(path.name for path in small_disk.rglob("*.sha256"))
    assert sums == [f"{path.name}.sha256" for path in checkpoints(small_disk)]
    (again,) = ranks.run(
        tmp_path, (*ALONE, *words, "--out_folder", str(small_disk), "--resume", "auto")
    )
    assert "going on from" in again.said


def test_a_rank_that_torchrun_starts_again_goes_on(tmp_path: Path) -> None:
    """With --max-restarts, a killed rank costs the steps since the last checkpoint and no more."""
    events = tmp_path / "events"
    events.mkdir()
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1"]
    argv += ["--standalone", "-m", "paceline.trainer", *OF_TWO, "--checkpoint_every", "5"]
    argv += ["--num_epochs", "4"]
    env = environment(PACELINE_EVENTS=str(events), PACELINE_OUT=str(tmp_path), HOME=str(tmp_path))

    def reported(kind: str) -> list[dict[str, Any]]:
        path = events / "rank-0.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [record for record in map(json.loads, lines) if record["kind"] == kind]

    with launched(argv, cwd=tmp_path, env=env) as job:
        until(lambda: reported("checkpoint"), "a checkpoint")
        os.kill(json.loads((events / "rank-1.jsonl").read_text().splitlines()[0])["pid"], 9)
        _, said = job.communicate(timeout=60)
    assert job.returncode == 0, said
    assert "going on from" in said
    assert [record["attempt"] for record in reported("start")] == [0, 1]
    assert {(r["epoch"], r["index"]) for r in reported("iteration")} == {
        (epoch, index) for epoch in range(4) for index in range(PER_EPOCH)
    }
    assert reported("end")[-1]["status"] == "ok"
