"""The story of four machines with docker, its chapter on rented machines: all of it, no bill."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests import lab
from tests.fakes.cifar import write_cifar
from tests.fakes.terminal import Terminal
from tests.fakes.tutorial import REHEARSED, STORIES, Tutorial, chapters_of
from tests.rehearsing import placement_groups, rehearsal_of

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
PAGE = "1-docker"
MASTER = "172.31.71.56"
HOSTS, RANKS = 4, 8


@pytest.fixture
def tutorial(rehearsed: Terminal) -> Tutorial:
    """Return the page, read by somebody in a clone of the project, with a small data set."""
    lab.skip_without_dockerd()
    # One batch for each rank, where `download: true` looks before it downloads.
    write_cifar(rehearsed.folder / "cifar10", 16 * RANKS)
    made = Tutorial(PAGE, rehearsed, REHEARSED, rented=True)
    made.clone("Dockerfile", ".dockerignore", "dist_dcgan.py", "src/paceline")
    made.example("four-rented.yaml", {})
    return made


def test_four_rented_machines_with_docker(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Baked, rented, trained by one command and by four lines typed by hand; nothing is left."""
    planned = tutorial.see("paceline plan")
    assert "4 x m5.large" in planned
    assert "RunInstances" in planned
    tutorial.see("paceline bake", timeout_s=600)
    tutorial.see("paceline up")
    (group,) = placement_groups(rehearsal_of(rehearsed.home)).values()
    assert group == ("cluster", ["m5.large"] * HOSTS)
    expect_what_was_baked(rehearsed)
    trained = tutorial.type("paceline train", timeout_s=900)
    assert trained.returncode == 0, trained.stderr
    expect_all_ranks(trained.stdout)
    # What was baked is neither built nor carried again.
    assert "bringing dist_dcgan" not in trained.stderr
    pictures = set(tutorial.see("ls paceline-results").split())
    assert pictures >= {f"fake_samples_rank_{rank}_epoch_0_iter_0.png" for rank in range(RANKS)}
    go_the_long_way(tutorial, rehearsed)
    tutorial.see("paceline down")
    assert "removed image" in tutorial.see("paceline bake rm")
    tutorial.expect_an_empty_account()


def expect_what_was_baked(rehearsed: Terminal) -> None:
    """Check that all hosts have the data set and the image before anything is brought to them."""
    look = "ls .cache/paceline/data; sudo docker image inspect --format {{.Os}} dist_dcgan:latest"
    done = rehearsed.paceline("--rehearse", "exec", "--json", "--", "sh", "-c", look)
    found = [one["stdout"].split() for one in json.loads(done.stdout)]
    assert found == [["cifar10", "linux"]] * HOSTS


def go_the_long_way(tutorial: Tutorial, rehearsed: Terminal) -> None:
    """Type the known line on each host, in four terminals; only the address is another one."""
    tutorial.see("paceline exec")
    tutorial.see("paceline cp")
    hosts = [line.split() for line in tutorial.see("paceline status").splitlines()]
    (master,) = [words[5] for words in hosts if words[:1] == ["node0"]]
    lines = chapters_of(STORIES / f"{PAGE}.md")["The long way"][-HOSTS:]
    doors = [tutorial.next_line(f"paceline ssh {number}") for number in range(HOSTS)]

    def type_it(door: str, line: str) -> str:
        typed = f"cd dcgan\n{line.replace(MASTER, master)}\n"
        done = tutorial.run(door, timeout_s=900, typed=typed)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with ThreadPoolExecutor(HOSTS) as terminals:
        expect_all_ranks("".join(terminals.map(type_it, doors, lines)))
    look = ("sh", "-c", "ls dcgan/fake_samples_*.png; sudo docker ps --all --quiet")
    left = rehearsed.paceline("--rehearse", "exec", "--json", "--", *look)
    found = [one["stdout"].split() for one in json.loads(left.stdout)]
    assert found == [
        [f"dcgan/fake_samples_rank_{rank}_epoch_0_iter_0.png" for rank in (2 * host, 2 * host + 1)]
        for host in range(HOSTS)
    ]


def expect_all_ranks(said: str) -> None:
    """Check that each rank has said how long its epoch took."""
    took = sorted(line.partition(" took")[0] for line in said.splitlines() if " took: " in line)
    assert took == [f"[rank: {rank}] Epoch 0" for rank in range(RANKS)], said
