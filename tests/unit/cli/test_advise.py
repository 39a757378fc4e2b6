"""`paceline advise --from`: the fixed words in, the fixed document out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from paceline.cli import main as entry

DATA = Path(__file__).parents[2] / "data" / "ec2-dcgan-iterations.csv.gz"
KEYS = {
    "instance_type", "nodes", "procs_per_node", "batch_size", "iteration_s", "epoch_s",
    "epoch_s_low", "epoch_s_high", "cost_usd", "basis",
}  # fmt: skip


def advise(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the exit code, stdout and stderr of `paceline advise`."""
    try:
        entry.main(["advise", *words])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def probes(path: Path) -> Path:
    """Write a plain file that holds the first 20 iterations of every run."""
    header, *rows = gzip.decompress(DATA.read_bytes()).decode().splitlines()
    early = [row for row in rows if int(row.split(",")[7]) < 20]
    path.write_text("\n".join([header, *early, ""]), encoding="utf-8")
    return path


def test_the_document_has_the_promised_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each target in the order asked for; what cannot be predicted has nulls and a reason."""
    words = ("--predict", "c5.large:2:1:32", "--predict", "m5.large:4:1:32", "p3.2xlarge:1:1:16")
    code, out, _ = advise(capsys, "--from", str(probes(tmp_path / "p.csv")), *words, "--json")
    assert code == 0
    found = json.loads(out)["predictions"]
    assert all(set(item) >= KEYS for item in found)
    assert [item["basis"] for item in found] == ["probe", "scaled", None]
    assert found[0]["epoch_s"] == pytest.approx(1006, rel=0.01)
    assert found[0]["cost_usd"] == pytest.approx(2 * 0.085 * found[0]["epoch_s"] / 3600)
    assert found[2]["epoch_s"] is None
    assert found[2]["reason"]


def test_prices_of_ones_own_and_none_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file, a region and a market are heard; without a price the cost is null, not zero."""
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "region,instance_type,on_demand_usd_per_hour,mean_spot_usd_per_hour\n"
        "moon-1,c5.large,3600,36\n",
        encoding="utf-8",
    )
    words = ("--from", str(DATA), "--prices", str(prices), "--predict", "c5.large:2:1:32", "--json")
    for further, usd_per_s in (((), 1.0), (("--market", "spot"), 0.01)):
        _, out, _ = advise(capsys, *words, "--region", "moon-1", *further)
        (found,) = json.loads(out)["predictions"]
        assert found["cost_usd"] == pytest.approx(2 * usd_per_s * found["epoch_s"])
    code, out, err = advise(capsys, *words)
    assert code == 0
    assert json.loads(out)["predictions"][0]["cost_usd"] is None
    assert "us-east-1" in err


def test_people_get_a_table_with_the_day_of_the_prices(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without --predict, all that the file holds is told."""
    code, out, _ = advise(capsys, "--from", str(DATA))
    assert code == 0
    assert "t2.medium:4:1:128" in out
    assert "list prices of 2026-08-22" in out
    assert "CPU credits" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "nowhere.csv"), "nowhere.csv cannot be read"),
        (("--from", str(DATA), "--predict", "m5.large"), "names no configuration"),
        (("--from", str(DATA), "--market", "black"), "is no market"),
    ],
)
def test_wrong_words_are_said_with_a_hint(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, nothing on stdout."""
    code, out, err = advise(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "hint" in err


def test_without_a_study_and_without_a_file_both_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit code 8, and a hint that says what to learn from."""
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    code, out, err = advise(capsys)
    assert (code, out) == (8, "")
    assert "there is no study yet" in err
    assert "--from" in err


@pytest.mark.parametrize("words", [("--budget", "much"), ("--deadline", "soon"), ("a", "b")])
def test_limits_that_are_none_are_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and the wrong word is said."""
    code, out, err = advise(capsys, *words)
    assert (code, out) == (2, "")
    assert words[-1] in err
