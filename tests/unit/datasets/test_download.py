"""Downloads: resumed, checked, bounded in time, from a web host on this machine."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets.catalogue import WebFile
from paceline.datasets.download import Limits, Unreachable, download
from paceline.errors import DataError

BODY = hashlib.shake_256(b"body").digest(1_000_000)


@pytest.fixture
def slept() -> list[float]:
    """Return the pauses that were made, without making them."""
    return []


@pytest.fixture
def limits(slept: list[float]) -> Limits:
    """Return limits that wait for nothing."""
    return Limits(silence_s=5.0, sleep=slept.append)


def web_file(make: Any, url: str, body: bytes = BODY) -> WebFile:
    """Describe a file as the catalogue does."""
    return WebFile("data.bin", url, len(body), make.sha256(body))


def test_a_file_is_brought_and_verified(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """The file is there under its name, and the part is gone."""
    told: list[tuple[str, int, int]] = []
    file = web_file(make, host.serve("/a", BODY))
    path = download(file, tmp_path, progress=lambda *words: told.append(words), limits=limits)
    assert path.read_bytes() == BODY
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["data.bin"]
    assert told[-1] == ("downloading data.bin", len(BODY), len(BODY))


def test_a_broken_transfer_is_taken_up_where_it_stopped(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """Each try asks only for the rest."""
    url = host.serve("/a", make.reply(BODY, cut=400_000), make.reply(BODY, cut=300_000), BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY
    assert [asked for _, asked in host.requests] == ["", "bytes=400000-", "bytes=700000-"]


def test_the_part_of_an_earlier_run_is_used(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """What came before a crash or Ctrl-C is not fetched again."""
    (tmp_path / "data.bin.part").write_bytes(BODY[:123_456])
    url = host.serve("/a", BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY
    assert host.requests == [("/a", "bytes=123456-")]


def test_a_complete_part_needs_no_host(tmp_path: Path, make: Any, limits: Limits) -> None:
    """A run that was stopped just before the rename has nothing to fetch."""
    (tmp_path / "data.bin.part").write_bytes(BODY)
    file = web_file(make, "http://127.0.0.1:1/a")
    assert download(file, tmp_path, limits=limits).read_bytes() == BODY


def test_a_host_that_cannot_resume_starts_over(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """A whole answer to a request for the rest is taken as whole."""
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1000)
    url = host.serve("/a", make.reply(BODY, ranges=False))
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY


@pytest.mark.parametrize("status", [206, 416])
def test_a_host_that_resumes_wrongly_starts_over(
    tmp_path: Path, host: Any, make: Any, limits: Limits, *, status: int
) -> None:
    """Bytes from another place are not appended."""
    (tmp_path / "data.bin.part").write_bytes(BODY[:1000])
    wrong = make.reply(BODY[7:], status=status, headers={"Content-Range": "bytes 7-999999/1000000"})
    url = host.serve("/a", wrong, BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY
    assert host.requests[-1] == ("/a", "")


def test_a_part_that_is_too_long_is_thrown_away(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """It belongs to another file."""
    (tmp_path / "data.bin.part").write_bytes(BODY + b"more")
    url = host.serve("/a", BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY


def test_a_corrupt_file_is_fetched_once_more(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """A wrong copy in a cache on the way may be gone at the second try."""
    url = host.serve("/a", b"x" * len(BODY), BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY


def test_a_corrupt_part_is_fetched_once_more(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """Damage on our own disk is found by the same digest."""
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1000)
    url = host.serve("/a", BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"x" * len(BODY), "expected SHA-256 .{64}, got .{64}"),
        (BODY[:-1], "expected 1000000 bytes, got 999999"),
        (BODY + b"more", "expected 1000000 bytes, got 10000"),
    ],
    ids=["corrupt", "truncated", "too long"],
)
def test_a_wrong_file_is_refused_after_two_tries(
    tmp_path: Path, host: Any, make: Any, limits: Limits, *, body: bytes, found: str
) -> None:
    """The error names what was expected and what came, and nothing is kept."""
    url = host.serve("/a", body)
    with pytest.raises(DataError, match=f"is not what was published: {found}") as caught:
        download(web_file(make, url), tmp_path, limits=limits)
    assert "fetched twice" in (caught.value.hint or "")
    assert len(host.requests) == 2
    assert not [entry for entry in tmp_path.iterdir() if entry.is_file()]


def test_an_endless_file_is_cut_short(tmp_path: Path, host: Any, make: Any, limits: Limits) -> None:
    """No more is written to the disk than belongs there."""
    url = host.serve("/a", b"x" * 5_000_000)
    sizes: list[int] = []
    with pytest.raises(DataError, match="bytes, got"):
        download(
            web_file(make, url, b"small"),
            tmp_path,
            progress=lambda _what, done, _total: sizes.append(done),
            limits=limits,
        )
    assert max(sizes) < 1_000_000


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_host_that_is_busy_is_asked_again_later(
    tmp_path: Path, host: Any, make: Any, limits: Limits, *, slept: list[float], status: int
) -> None:
    """Pauses grow, and are not all the same."""
    busy = make.reply(b"", status=status)
    url = host.serve("/a", busy, busy, busy, BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY
    assert [round(pause_s / 2**number) for number, pause_s in enumerate(slept)] == [1, 1, 1]


def test_a_host_that_stays_busy_is_given_up(
    tmp_path: Path, host: Any, make: Any, limits: Limits, slept: list[float]
) -> None:
    """After so many tries without a byte, another source is better."""
    url = host.serve("/a", make.reply(b"", status=503))
    with pytest.raises(Unreachable, match="again and again: the server answered 503"):
        download(web_file(make, url), tmp_path, limits=limits)
    assert len(host.requests) == limits.tries
    assert len(slept) == limits.tries - 1


def test_a_slow_line_that_moves_on_is_not_given_up(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """Only tries that bring nothing are counted."""
    pieces = [make.reply(BODY, cut=100_000) for _ in range(9)]
    url = host.serve("/a", *pieces, BODY)
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY
    assert len(host.requests) == 10


@pytest.mark.parametrize("path", ["/none", "/forbidden"])
def test_a_host_without_the_file_is_not_asked_twice(
    tmp_path: Path, host: Any, make: Any, limits: Limits, *, path: str
) -> None:
    """Another source is tried at once."""
    host.serve("/forbidden", make.reply(b"no", status=403))
    with pytest.raises(Unreachable, match=r"the server answered 40[34]"):
        download(web_file(make, host.url + path), tmp_path, limits=limits)
    assert len(host.requests) == 1


def test_a_host_that_is_not_there_fails_at_once(
    tmp_path: Path, make: Any, limits: Limits, slept: list[float]
) -> None:
    """A refused connection is not tried again."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a"
        with pytest.raises(Unreachable, match="refused"):
            download(web_file(make, url), tmp_path, limits=limits)
    assert slept == []


def test_a_silent_host_is_not_waited_for(tmp_path: Path, make: Any, slept: list[float]) -> None:
    """A connection that is accepted and never answered ends by the time limit."""
    with socket.create_server(("127.0.0.1", 0)) as silent_host:
        url = f"http://127.0.0.1:{silent_host.getsockname()[1]}/a"
        with pytest.raises(Unreachable, match="timed out"):
            download(
                web_file(make, url), tmp_path, limits=Limits(silence_s=0.2, sleep=slept.append)
            )


def test_the_whole_time_is_limited(tmp_path: Path, host: Any, make: Any) -> None:
    """A download that takes for ever ends, and keeps what came for the next time."""
    url = host.serve("/a", BODY)
    with pytest.raises(Unreachable, match="took more than 0 s"):
        download(web_file(make, url), tmp_path, limits=Limits(whole_s=0.0))
    assert (tmp_path / "data.bin.part").stat().st_size > 0


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/a"])
def test_a_redirect_to_something_else_is_refused(
    tmp_path: Path, host: Any, make: Any, limits: Limits, *, target: str
) -> None:
    """A host cannot make us read our own files."""
    url = host.serve("/a", make.reply(b"", status=302, headers={"Location": target}))
    with pytest.raises(Unreachable):
        download(web_file(make, url), tmp_path, limits=limits)
    with pytest.raises(Unreachable):
        download(web_file(make, target), tmp_path, limits=limits)


def test_a_redirect_to_another_host_is_followed(
    tmp_path: Path, host: Any, make: Any, limits: Limits
) -> None:
    """Official pages move; the digest tells whether it is the same file."""
    there = host.serve("/there", BODY)
    url = host.serve("/a", make.reply(b"", status=301, headers={"Location": there}))
    assert download(web_file(make, url), tmp_path, limits=limits).read_bytes() == BODY
