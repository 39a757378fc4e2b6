"""`dist_dcgan.py`: the command lines, output and files that people know, from a mere clone."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.cifar import write_cifar
from tests.fakes.nursery import environment, free_port, launched, nursery

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
pytest.importorskip("torch")
pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parents[2]
# To the letter what the users type.
FLAGS = (
    *("--dataset", "cifar10", "--dataroot", "./cifar10"),
    *("--num_epochs", "1", "--batch_size", "16", "--max_workers", "2"),
)
IMAGES, BATCH = 32, 16
STEP = re.compile(
    r"\[epoch: (\d+)/(\d+)\]\[iteration: (\d+)/(\d+)\]\[rank: (\d+)\] "
    r"Loss_D: \d+\.\d{4}.*, iteration time: \d+\.\d{4}s"
)
TOOK = re.compile(r"\[rank: (\d+)\] Epoch (\d+) took: \d+\.\d{4} seconds")


@dataclass(frozen=True)
class Clone:
    """A copy of what `git clone` brings, and a Python that knows no other Paceline."""

    path: Path
    python: str
    site: Path

    def env(self, **more: str) -> dict[str, str]:
        """Return the environment to start processes in."""
        home = str(self.path.parent)
        return environment(HOME=home, TMPDIR=home, PYTHONPATH=str(self.site), **more)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Copy the sources, link all installed packages but Paceline, and make a tiny CIFAR-10."""
    base = tmp_path_factory.mktemp("shim")
    path, site = base / "Distributed-DCGAN", base / "site-packages"
    shutil.copytree(
        ROOT / "src/paceline",
        path / "src/paceline",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ROOT / "dist_dcgan.py", path)
    site.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "paceline" not in entry.name and entry.suffix != ".pth":
            (site / entry.name).symlink_to(entry)
    made = Clone(path, str(Path(sys.executable).resolve()), site)
    known = subprocess.run(
        [made.python, "-c", "import paceline"],
        env=made.env(), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    if known.returncode == 0:
        pytest.skip("Paceline is installed for every Python here")
    write_cifar(path / "cifar10", IMAGES)
    return made


@pytest.fixture(autouse=True)
def _swept(clone: Clone) -> Iterator[None]:
    """Remove what a test has made in the clone."""
    yield
    for made in [*clone.path.glob("rank-*"), *clone.path.glob("*.png")]:
        made.unlink()
    shutil.rmtree(clone.path / "checkpoints", ignore_errors=True)


def lines_of(clone: Clone, argv: Sequence[str], **env: str) -> list[str]:
    """Run a command in the clone; return the lines that it prints."""
    with launched(argv, cwd=clone.path, env=clone.env(**env)) as process:
        out, said = process.communicate(timeout=100)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    return out.splitlines()


def expect_an_epoch(clone: Clone, lines: list[str], ranks: int) -> None:
    """Check the lines and the files of one epoch by so many ranks."""
    steps = Counter(
        tuple(map(int, found.groups())) for found in map(STEP.fullmatch, lines) if found
    )
    of = IMAGES // BATCH // ranks
    assert steps == Counter((0, 1, i, of, rank) for i in range(of) for rank in range(ranks))
    took = [tuple(map(int, found.groups())) for found in map(TOOK.fullmatch, lines) if found]
    assert sorted(took) == [(rank, 0) for rank in range(ranks)]
    assert {picture.name for picture in clone.path.glob("*.png")} == {
        f"{what}_samples_rank_{rank}_epoch_0_iter_0.png"
        for what in ("real", "fake")
        for rank in range(ranks)
    }


def test_python_alone(clone: Clone) -> None:
    """`python dist_dcgan.py` with the known flags trains one epoch in one process."""
    expect_an_epoch(clone, lines_of(clone, (clone.python, "dist_dcgan.py", *FLAGS)), 1)


@pytest.mark.parametrize("module", ["torch.distributed.run", "torch.distributed.launch"])
def test_torchs_launchers(clone: Clone, module: str) -> None:
    """The line from the notes: two processes on one node, under torchrun and what preceded it."""
    place = ("--nproc_per_node=2", "--nnodes=1", "--node_rank=0", "--master_addr=127.0.0.1")
    argv = (clone.python, "-m", module, *place, f"--master_port={free_port()}")
    expect_an_epoch(clone, lines_of(clone, (*argv, "dist_dcgan.py", *FLAGS)), 2)


def test_mpirun(clone: Clone) -> None:
    """A real `mpirun -np 2` does the same."""
    program = shutil.which("mpirun")
    if program is None:
        pytest.skip("mpirun is not installed")
    argv = (program, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2")
    command = (*argv, clone.python, "dist_dcgan.py", *FLAGS)
    expect_an_epoch(clone, lines_of(clone, command, MASTER_PORT=str(free_port())), 2)


OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_COMM_WORLD_RANK": "{rank}",
    "OMPI_COMM_WORLD_LOCAL_RANK": "{rank}",
}
PLAIN = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "RANK": "{rank}"}


@pytest.mark.parametrize("names", [PLAIN, OPEN_MPI], ids=["plain", "Open MPI"])
def test_variables_alone(clone: Clone, names: dict[str, str]) -> None:
    """Two processes find each other by RANK and its like; on one host MPI's need no address."""
    port = str(free_port())
    places = [
        {name: value.format(rank=rank) for name, value in names.items()} | {"MASTER_PORT": port}
        for rank in range(2)
    ]
    with nursery() as lent:
        shim = clone.path / "dist_dcgan.py"
        ranks = lent.run(clone.path, FLAGS, places=places, file=shim, PACELINE_EVENTS="")
        expect_an_epoch(clone, [line for rank in ranks for line in rank.out.splitlines()], 2)


def test_every_flag_of_the_public_program(clone: Clone, tmp_path: Path) -> None:
    """All of them are understood at once, dashes included; without a GPU `--cuda` says so."""
    words = (
        *("--dataset", "cifar10", "--dataroot", "./cifar10", "--num_epochs", "2", "--download"),
        *("--batch_size", "8", "--learning_rate", "0.0001", "--image_size", "32", "--test_data"),
        *("--seed", "7", "--cuda", "--beta1", "0.4", "--nz", "10", "--ngf", "4", "--ndf", "4"),
        *("--out_folder", str(tmp_path / "out"), "--max_workers", "2", "--local-rank=0"),
    )
    argv = (clone.python, "dist_dcgan.py", *words)
    with launched(argv, cwd=clone.path, env=clone.env(CUDA_VISIBLE_DEVICES="")) as process:
        out, said = process.communicate(timeout=100)
    assert process.returncode == 0, said
    assert "training on the CPU" in said
    steps = [found for found in map(STEP.fullmatch, out.splitlines()) if found]
    assert [tuple(map(int, found.groups())) for found in steps] == [
        (epoch, 2, index, 2, 0) for epoch in range(2) for index in range(2)
    ]
    assert len(list((tmp_path / "out").glob("*.png"))) == 4
    assert not list(clone.path.glob("*.png"))


def test_a_mistake_is_one_message(clone: Clone) -> None:
    """A wrong flag is said before anything is loaded or made, with the code for wrong usage."""
    argv = (clone.python, "dist_dcgan.py", *FLAGS, "--batch-sise", "16")
    with launched(argv, cwd=clone.path, env=clone.env()) as process:
        out, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert out == ""
    assert said.startswith("error: ")
    assert "--batch_sise" in said or "--batch-sise" in said
    assert len(said.splitlines()) <= 2


def test_without_torch_one_is_told_so(clone: Clone, tmp_path: Path) -> None:
    """A Python that has no torch gets a sentence and the code for what is missing."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
    )
    env = {**clone.env(), "PYTHONPATH": f"{tmp_path}:{clone.site}"}
    with launched((clone.python, "dist_dcgan.py", *FLAGS), cwd=clone.path, env=env) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "torch" in said
    assert "Traceback" not in said
