"""The reader of pickles: it reads what numpy writes, and executes nothing."""

from __future__ import annotations

import builtins
import contextlib
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.datasets import safepickle
from paceline.datasets.safepickle import Array, RefusedPickle
from paceline.errors import DataError

numpy = pytest.importorskip("numpy")

# What Python 2 wrote for {'data': array([[1, 2]], dtype=uint8), 'labels': [3], 'name': 'x'}.
PYTHON_2 = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
    b"q\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x01K\x02\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01"
    b"\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x02\x01\x02tb"
    b"U\x06labelsq\x08]q\x09K\x03aU\x04nameq\x0aU\x01xu."
)


class Call:
    """Pickles as a call of any function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.parts = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.parts


def test_a_batch_as_python_2_wrote_it_is_read() -> None:
    """This is how the published CIFAR-10 files look inside."""
    assert safepickle.read(PYTHON_2) == {
        "data": Array((1, 2), "u1", b"\x01\x02"),
        "labels": [3],
        "name": b"x",
    }


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("core", [b"numpy.core", b"numpy._core"])
def test_arrays_of_every_protocol_and_numpy_are_read(protocol: int, core: bytes) -> None:
    """Batches that people pickle today are read as well."""
    array = numpy.arange(12, dtype=numpy.uint8).reshape(3, 4)
    raw = pickle.dumps({b"data": array, "labels": [1, 2, 3]}, protocol=protocol)
    if protocol < 4:  # later ones carry lengths, which a replacement would break
        raw = raw.replace(b"numpy._core", core)
    found = safepickle.read(raw)
    assert found == {"data": Array((3, 4), "u1", bytes(range(12))), "labels": [1, 2, 3]}


@pytest.mark.parametrize("kind", ["u1", "i1", "<i2", "<u4", "<i8"])
def test_arrays_of_labels_become_numbers(kind: str) -> None:
    """Labels may be an array of any integers."""
    values = [0, 3, 100]
    raw = pickle.dumps({"labels": numpy.array(values, dtype=kind)}, protocol=2)
    found = safepickle.read(raw)["labels"]
    assert list(found.numbers()) == values


@pytest.mark.parametrize(
    "array",
    [
        numpy.array([1.5]),
        numpy.array([1], dtype=">i4"),
        numpy.asfortranarray(numpy.arange(6, dtype=numpy.uint8).reshape(2, 3)),
    ],
    ids=["floats", "big-endian", "fortran"],
)
def test_other_arrays_are_refused_and_not_misread(array: Any) -> None:
    """Bytes in another order would become wrong pictures without an error."""
    with pytest.raises(DataError, match="holds an array"):
        safepickle.read(pickle.dumps({"data": array}, protocol=2))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "function", [os.system, eval, exec, subprocess.Popen, builtins.__import__, getattr]
)
def test_a_call_of_anything_is_refused(function: Any, protocol: int, tmp_path: Path) -> None:
    """A malicious pickle does nothing: the file that it would make is not there."""
    target = tmp_path / "executed"
    call = Call(function, f"touch {target}")
    with pytest.raises(RefusedPickle, match="which data does not need"):
        safepickle.read(pickle.dumps({"data": call}, protocol=protocol), "batch")
    assert not target.exists()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"cnumpy\nload\n(S'/etc/passwd'\ntR.", "numpy.load"),
        (b"cnumpy.core.multiarray\n_reconstruct.__globals__\n.", "_reconstruct.__globals__"),
        (b"cnumpy\nndarray\n)R.", "unusual way"),
        (b"cnumpy\ndtype\n}U\x08__call__U\x01xsb.", "change a name"),
        (b"c_codecs\nencode\nN}U\x0c__defaults__U\x01xs\x86b.", "change a name"),
        (b"c_codecs\nencode\n(Vx\nVrot13\ntR.", "encoding"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", "NEWOBJ"),
        (b"(S'x'\nios\nsystem\n.", "INST"),
        (b"(cos\nsystem\nS'x'\no.", "OBJ"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"Pid\n.", "PERSID"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"Nr\xff\xff\xff\x7f.", "far beyond"),
        (b"Np2147483647\n.", "far beyond"),
    ],
)
def test_every_other_way_to_do_something_is_refused(raw: bytes, reason: str) -> None:
    """Old and new opcodes that call, build, look up or claim memory."""
    with pytest.raises(RefusedPickle, match=reason):
        safepickle.read(raw)


def test_a_claimed_length_takes_no_memory() -> None:
    """Nine bytes that announce a terabyte are an error at once."""
    with pytest.raises(DataError, match="not a readable pickle"):
        safepickle.read(b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x.")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not a readable pickle"),
        (pickle.dumps([1, 2]), "no dictionary"),
        (PYTHON_2[:-30], "not a readable pickle"),
        (PYTHON_2.replace(b"\x89U\x02\x01\x02", b"\x89U\x01\x01"), "1 bytes where 2 belong"),
    ],
)
def test_damaged_pickles_are_named(raw: bytes, reason: str) -> None:
    """The error says which file and what is wrong."""
    with pytest.raises(DataError, match=f"^batch 1.*{reason}"):
        safepickle.read(raw, "batch 1")


@given(st.binary(max_size=200))
def test_no_bytes_whatever_lead_to_another_error(raw: bytes) -> None:
    """Anything that is no batch is a DataError or a dictionary."""
    with contextlib.suppress(DataError):
        assert isinstance(safepickle.read(raw), dict)


@given(st.integers(0, len(PYTHON_2) - 1), st.binary(min_size=1, max_size=4))
def test_no_damage_whatever_leads_to_another_error(at: int, change: bytes) -> None:
    """A batch with some bytes changed is a DataError or a dictionary."""
    with contextlib.suppress(DataError):
        assert isinstance(safepickle.read(PYTHON_2[:at] + change + PYTHON_2[at + 1 :]), dict)
