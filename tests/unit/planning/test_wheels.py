"""Which wheels a host's Python takes, and where torch comes from."""

from __future__ import annotations

import pytest

from paceline.planning.wheels import PythonKind, download_words, platform_words, torch_index


def test_platforms_go_down_from_the_hosts_own() -> None:
    """A host takes what was built for its glibc or an older one, under the old names as well."""
    words = platform_words(PythonKind("3.12.4", "x86_64", "2.19"))
    platforms = [words[at + 1] for at, word in enumerate(words) if word == "--platform"]
    assert platforms[:4] == [
        "manylinux_2_19_x86_64", "manylinux_2_18_x86_64", "manylinux_2_17_x86_64",
        "manylinux2014_x86_64",
    ]  # fmt: skip
    assert platforms[-1] == "linux_x86_64"
    assert "manylinux_2_20_x86_64" not in platforms
    assert [words[at + 1] for at, word in enumerate(words) if word == "--abi"] == [
        "cp312", "abi3", "none",
    ]  # fmt: skip


def test_a_download_is_of_wheels_only() -> None:
    """Nothing is built here for a machine that is elsewhere; pip itself comes along."""
    kind = PythonKind("3.9.2", "aarch64", "2.31")
    words = download_words(kind, ("https://i.example",), "/to", "/r.txt", "/c.txt")
    assert words[0] == "download"
    assert "--only-binary=:all:" in words
    assert words[words.index("--extra-index-url") + 1] == "https://i.example"
    assert words[-2:] == ("pip", "setuptools")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        (None, ()),
        ("cpu", ("https://download.pytorch.org/whl/cpu",)),
        ("https://mine.example/simple", ("https://mine.example/simple",)),
    ],
)
def test_where_torch_comes_from(word: str | None, found: tuple[str, ...]) -> None:
    """A short word is PyTorch's own index of that name."""
    assert torch_index(word) == found
