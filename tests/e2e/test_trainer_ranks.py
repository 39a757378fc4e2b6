"""Several ranks are one trainer: the same sums, every image once, noise and order of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.events import Iteration
from tests.fakes.nursery import Nursery, Rank, nursery

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
torch = pytest.importorskip("torch")
image_module = pytest.importorskip("PIL.Image")

IMAGES = 96
GAN = (
    *("--dataset", "fake", "--count", str(IMAGES), "--nz", "8", "--ngf", "4", "--ndf", "4"),
    *("--precision", "fp32", "--wire", "fp32", "--num_epochs", "2", "--pictures_every", "0"),
)
MLP = (
    *("--program", "mlp", "--dataset", "fake", "--count", str(IMAGES), "--image_size", "8"),
    *("--num_epochs", "2", "--learning_rate", "0.05"),
)


@pytest.fixture
def ranks() -> Iterator[Nursery]:
    """Lend the place where ranks are started."""
    with nursery() as lent:
        yield lent


def steps(rank: Rank) -> list[Iteration]:
    """Return the steps that a rank has reported."""
    return [event for event in rank.events if isinstance(event, Iteration)]


def losses(job: list[Rank]) -> list[dict[str, float]]:
    """Return each step's losses, averaged over the ranks by the images behind them."""
    found = []
    for parts in zip(*map(steps, job), strict=True):
        images = sum(part.items or 0 for part in parts)
        names = [name for name in parts[0].metrics if name.startswith("loss")]
        found.append(
            {
                name: sum(part.metrics[name] * (part.items or 0) for part in parts) / images
                for name in names
            }
        )
    return found


def learners(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the networks of the newest checkpoint."""
    path = max((folder / "checkpoints").glob("*.pt"))
    found: dict[str, dict[str, dict[str, Any]]] = torch.load(path, weights_only=True)["learners"]
    return found


def distance(left: dict[str, Any], right: dict[str, Any]) -> float:
    """Return how far two sets of tensors are from each other, all numbers added up."""
    assert left.keys() == right.keys()
    return float(sum((left[name] - right[name]).abs().sum().item() for name in left))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, float]]]:
    """Return what one rank with a batch of 12 ends with, and its losses."""
    folder = tmp_path_factory.mktemp("alone")
    with nursery() as lent:
        job = lent.run(folder, (*GAN, "--batch_size", "12"))
    return folder, losses(job)


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_with_shared_statistics_equal_one_with_the_whole_batch(
    alone: tuple[Path, list[dict[str, float]]], ranks: Nursery, tmp_path: Path, count: int
) -> None:
    """A DCGAN on N ranks with batch B and --sync_batchnorm is one on one rank with batch N*B."""
    folder, expected = alone
    words = (*GAN, "--batch_size", str(12 // count), "--sync_batchnorm")
    found = losses(ranks.run(tmp_path, words, ranks=count))
    assert len(found) == len(expected) == 2 * IMAGES // 12
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3)
    one, many = learners(folder), learners(tmp_path)
    for name in ("generator", "discriminator"):
        # Adam moves a weight by about 2e-4 a step, whichever way.
        moved = 2e-4 * len(expected) * sum(w.numel() for w in one[name]["weights"].values())
        assert distance(one[name]["weights"], many[name]["weights"]) < 0.01 * moved
        for buffer, value in one[name]["buffers"].items():
            torch.testing.assert_close(many[name]["buffers"][buffer], value, rtol=1e-3, atol=1e-4)


def test_without_shared_statistics_the_ranks_normalise_apart(
    alone: tuple[Path, list[dict[str, float]]], ranks: Nursery, tmp_path: Path
) -> None:
    """The default is as DDP's: the comparison above would see the difference."""
    _, expected = alone
    found = losses(ranks.run(tmp_path, (*GAN, "--batch_size", "6", "--iterations", "8"), ranks=2))
    assert found != [pytest.approx(one, rel=1e-3) for one in expected[:8]]


@pytest.mark.parametrize("count", [2, 3])
def test_a_classifier_on_many_ranks_equals_one(ranks: Nursery, tmp_path: Path, count: int) -> None:
    """Without normalisation N ranks with batch B compute what one computes with batch N*B."""
    one = ranks.run(tmp_path / "one", (*MLP, "--batch_size", "12"))
    words = (*MLP, "--batch_size", str(12 // count))
    many = ranks.run(tmp_path / "many", words, ranks=count)
    for ours, theirs in zip(losses(many), losses(one), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)
    weights = [learners(tmp_path / name)["classifier"]["weights"] for name in ("one", "many")]
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-5, atol=1e-6)


def tiles(path: Path, side: int) -> list[bytes]:
    """Return the single images of a sheet, without its borders."""
    sheet = image_module.open(path)
    border = 2
    columns, rows = (length // (side + border) for length in sheet.size)
    return [
        sheet.crop((x, y, x + side, y + side)).tobytes()
        for y in range(border, rows * (side + border), side + border)
        for x in range(border, columns * (side + border), side + border)
    ]


def test_epochs_are_shuffled_anew_and_ranks_share_them_out(ranks: Nursery, tmp_path: Path) -> None:
    """What the ranks draw as `real` images is each image of the set once, in another order later.

    Seen from outside: every step's real images are on the sheets that each rank writes.
    """
    words: tuple[str, ...] = (
        "--dataset",
        "fake",
        "--count",
        "32",
        "--image_size",
        "16",
        "--nz",
        "8",
    )
    words += ("--ngf", "4", "--ndf", "4", "--batch_size", "8", "--pictures_every", "1")
    ranks.run(tmp_path, (*words, "--num_epochs", "2", "--precision", "fp32"), ranks=2)
    orders = []
    for epoch in range(2):
        drawn = {
            (rank, index): tiles(
                tmp_path / f"real_samples_rank_{rank}_epoch_{epoch}_iter_{index}.png", 16
            )
            for rank in range(2)
            for index in range(2)
        }
        everything = [image for key in sorted(drawn) for image in drawn[key]]
        assert len(everything) == len(set(everything)) == 32
        orders.append(everything)
    assert Counter(orders[0]) == Counter(orders[1])
    assert orders[0] != orders[1]


def test_ranks_draw_noise_of_their_own(ranks: Nursery, tmp_path: Path) -> None:
    """On one and the same image ranks still differ: in what the generator was given."""
    words: tuple[str, ...] = (
        "--dataset",
        "fake",
        "--count",
        "1",
        "--image_size",
        "16",
        "--nz",
        "8",
    )
    words += ("--ngf", "4", "--ndf", "4", "--batch_size", "1", "--pictures_every", "0")
    job = ranks.run(tmp_path, (*words, "--num_epochs", "3", "--precision", "fp32"), ranks=2)
    first, second = ([step.metrics for step in steps(rank)] for rank in job)
    assert len(first) == len(second) == 3
    assert first[0]["d_x"] == second[0]["d_x"]
    assert all(a["d_gz"] != b["d_gz"] for a, b in zip(first, second, strict=True))


def test_an_eight_bit_wire_learns_as_well(ranks: Nursery, tmp_path: Path) -> None:
    """What rounding takes away is made up for: after five epochs the loss is that of fp32."""
    words = (*MLP, "--num_epochs", "5", "--batch_size", "12", "--learning_rate", "0.3")
    found = {}
    for wire in ("fp32", "int8"):
        job = ranks.run(tmp_path / wire, (*words, "--wire", wire), ranks=2)
        found[wire] = [step["loss"] for step in losses(job)]
    first, last_epoch = found["fp32"][0], found["fp32"][-IMAGES // 24 :]
    assert sum(last_epoch) / len(last_epoch) < 0.9 * first
    assert found["int8"] != found["fp32"]
    assert found["int8"] == pytest.approx(found["fp32"], rel=0.01)
