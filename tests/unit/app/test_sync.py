"""A folder kept on hosts as it is here: what travels, what goes, what stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.app.pairs import End
from paceline.app.sync import Sent, folder_name, sync
from paceline.app.tree import tree_of
from paceline.errors import EnvironmentFault
from paceline.model.host import Host, HostFacts
from paceline.transports.local import LocalTransport


def end_of(name: str) -> End:
    """Return a host that is this machine."""
    host = Host(name, "127.0.0.1", "127.0.0.1")
    return End(host, LocalTransport(host), HostFacts(name, cores=1), sys.executable, None)


def bring(root: Path, *targets: Path) -> Sent:
    """Bring a folder to as many hosts as there are targets."""
    ends = [end_of(f"h{number}") for number in range(len(targets))]
    places = {end.host.name: str(path) for end, path in zip(ends, targets, strict=True)}
    return asyncio.run(sync(ends, tree_of(root), places, root.parent / "drafts"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with a script, a module and a link."""
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "train.py").write_text("one")
    (root / "train.py").chmod(0o755)
    (root / "pkg" / "part.py").write_text("part")
    (root / "latest").symlink_to("train.py")
    return root


def test_only_what_changed_travels(root: Path, tmp_path: Path) -> None:
    """At first all files, then nothing, then the one that was changed."""
    target = tmp_path / "host" / "work"
    assert bring(root, target).files == 2
    assert (target / "latest").read_text() == "one"
    assert (target / "train.py").stat().st_mode & 0o777 == 0o755
    assert bring(root, target) == Sent(0, 0)
    (root / "pkg" / "part.py").write_text("other")
    assert bring(root, target) == Sent(1, 5)
    assert (target / "pkg" / "part.py").read_text() == "other"
    assert sorted(item.name for item in target.parent.iterdir()) == [
        "work", "work.lock", "work.manifest",
    ]  # fmt: skip


def test_what_is_gone_here_goes_there(root: Path, tmp_path: Path) -> None:
    """A removed file goes with its empty folder; a file that a job has made there stays."""
    target = tmp_path / "work"
    bring(root, target)
    (target / "checkpoint.pt").write_text("made there")
    (root / "pkg" / "part.py").unlink()
    (root / "latest").unlink()
    bring(root, target)
    assert sorted(item.name for item in target.iterdir()) == ["checkpoint.pt", "train.py"]


def test_a_file_that_was_touched_there_is_sent_again(root: Path, tmp_path: Path) -> None:
    """Neither an edit nor a loss on the host survives the next run."""
    target = tmp_path / "work"
    bring(root, target)
    (target / "train.py").write_text("edited there")
    (target / "pkg" / "part.py").unlink()
    assert bring(root, target).files == 2
    assert (target / "train.py").read_text() == "one"


def test_a_mode_alone_is_brought_along(root: Path, tmp_path: Path) -> None:
    """A script that becomes executable here does so there, and nothing travels for it."""
    target = tmp_path / "work"
    bring(root, target)
    (root / "pkg" / "part.py").chmod(0o755)
    assert bring(root, target) == Sent(0, 0)
    assert (target / "pkg" / "part.py").stat().st_mode & 0o777 == 0o755


def test_a_file_in_the_place_of_a_folder(root: Path, tmp_path: Path) -> None:
    """What was a folder and is a file now, or the other way round, changes there too."""
    target = tmp_path / "work"
    bring(root, target)
    (root / "pkg" / "part.py").unlink()
    (root / "pkg").rmdir()
    (root / "pkg").write_text("a file now")
    (root / "train.py").unlink()
    (root / "train.py").mkdir()
    (root / "train.py" / "in.txt").write_text("a folder now")
    (root / "latest").unlink()
    bring(root, target)
    assert (target / "pkg").read_text() == "a file now"
    assert (target / "train.py" / "in.txt").read_text() == "a folder now"


def test_two_at_once_leave_one_whole_folder(root: Path, tmp_path: Path) -> None:
    """Two runs that send the same project at the same time do not disturb each other."""
    target = tmp_path / "work"

    async def both() -> None:
        one, tree = end_of("h"), tree_of(root)
        places = {"h": str(target)}
        await asyncio.gather(*(sync([one], tree, places, tmp_path / "drafts") for _ in range(4)))

    asyncio.run(both())
    assert (target / "train.py").read_text() == "one"
    assert bring(root, target) == Sent(0, 0)
    assert list(target.parent.glob("*.part")) == []


def test_a_host_that_cannot_keep_it_says_why(root: Path, tmp_path: Path) -> None:
    """An error on the host bears its name and the path."""
    target = tmp_path / "work"
    bring(root, target)
    (tmp_path / "work.lock").unlink()
    (tmp_path / "work.lock").mkdir()
    (root / "train.py").write_text("two")
    with pytest.raises(EnvironmentFault, match=r"^h0: .*work.lock: Is a directory"):
        bring(root, target)


def test_bytecode_of_an_older_version_is_not_run(root: Path, tmp_path: Path) -> None:
    """An edit counts though size and time are those of what Python has compiled there."""
    target = tmp_path / "work"
    part = root / "pkg" / "part.py"
    words = [sys.executable, "-c", "import part; print(part.WORD)"]
    for word in ("one", "two"):
        part.write_text(f"WORD = {word!r}")
        os.utime(part, (1, 1))
        bring(root, target)
        os.utime(target / "pkg" / "part.py", (1, 1))
        done = subprocess.run(
            words, cwd=target / "pkg", env={}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == word


def test_a_file_that_is_edited_on_its_way_is_named(root: Path, tmp_path: Path) -> None:
    """What arrives is what was meant, or nothing there changes."""
    target = tmp_path / "work"
    bring(root, target)
    (root / "train.py").write_text("two")
    tree = tree_of(root)
    (root / "train.py").write_text("six")
    with pytest.raises(EnvironmentFault, match=r"^h: train.py: it changed while it was being sent"):
        asyncio.run(sync([end_of("h")], tree, {"h": str(target)}, tmp_path / "drafts"))
    assert (target / "train.py").read_text() == "one"
    bring(root, target)
    assert (target / "train.py").read_text() == "six"


def test_what_was_cut_off_long_ago_is_swept_away(root: Path, tmp_path: Path) -> None:
    """A draft of yesterday goes; one of a moment ago may be somebody's at work."""
    target = tmp_path / "host" / "work"
    old, fresh = (target.with_name(f"work.{name}.part") for name in ("old", "fresh"))
    for draft in (old, fresh):
        draft.mkdir(parents=True)
    os.utime(old, (0, 0))
    bring(root, target)
    assert (old.exists(), fresh.exists()) == (False, True)


def test_names_tell_projects_apart(tmp_path: Path) -> None:
    """Two folders of one name have two names there, and odd letters none."""
    one, other = tmp_path / "a" / "my project!", tmp_path / "b" / "my project!"
    assert folder_name(one) != folder_name(other)
    assert folder_name(one).startswith("my-project-")
