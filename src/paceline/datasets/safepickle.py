"""Reads the dictionaries in CIFAR's pickle files, and executes nothing that stands in them.

A pickle is a program: whoever loads one runs it. This reader knows the few names that a numpy
array in a pickle needs, and answers them with inert stand-ins of its own; every other name is
refused. Before that, the opcodes are looked through, because some of them can claim gigabytes
of memory with a few bytes.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.errors import DataError

_ITEM_BYTES = {"u1": 1, "i1": 1, "b1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "i8": 8, "u8": 8}
_UNTOUCHED = "nothing of it was executed; get the data from a source that you trust"
_MEMO_OPCODES = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_REFUSED_OPCODES = frozenset(
    {"PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"}
    | {"NEXT_BUFFER", "READONLY_BUFFER"}
)


class RefusedPickle(DataError):
    """A pickle asks for something that data does not need."""


@dataclass(frozen=True)
class Array:
    """A numpy array of integers: its shape and its bytes, in C order."""

    shape: tuple[int, ...]
    item: str
    raw: bytes

    def numbers(self) -> Sequence[int]:
        """Return the items as integers."""
        size = _ITEM_BYTES[self.item]
        if self.item == "u1":
            return self.raw
        signed = self.item[0] == "i"
        return [
            int.from_bytes(self.raw[at : at + size], "little", signed=signed)
            for at in range(0, len(self.raw), size)
        ]


class _Type:
    """Stands in for a numpy.dtype: it remembers which kind of integer it was asked for."""

    __slots__ = ("big_endian", "item")

    def __init__(self, kind: Any = None, *_: Any) -> None:
        name = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
        self.item = name.lstrip("<|=>") if isinstance(name, str) else None
        self.big_endian = isinstance(name, str) and name.startswith(">")

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        self.big_endian = self.big_endian or order in (b">", ">")


class _Numbers:
    """Stands in for a numpy.ndarray: it takes its state and does nothing with it."""

    __slots__ = ("state",)

    def __init__(self, state: tuple[Any, ...] = ()) -> None:
        self.state = state

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, tuple) else ()


class _Name:
    """Stands in for a name of numpy: it can be called, and a pickle cannot change it."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[..., Any]) -> None:
        self._answer = answer

    def __call__(self, *arguments: Any) -> Any:
        return self._answer(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise RefusedPickle("a pickle tries to change a name instead of using it", hint=_UNTOUCHED)


def _reconstruct(*_: Any) -> _Numbers:
    return _Numbers()


def _from_buffer(raw: Any, kind: Any, shape: Any, order: Any = "C", *_: Any) -> _Numbers:
    return _Numbers((1, shape, kind, order != "C", raw))


def _encode(text: Any, encoding: Any = None, *_: Any) -> bytes:
    # Python 3 writes the bytes of protocol 2 as a text and the order to encode it.
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise RefusedPickle("a pickle asks for an encoding that data does not need")
    return text.encode("latin1")


def _refuse(*_: Any) -> None:
    raise RefusedPickle("a pickle makes an array in an unusual way", hint=_UNTOUCHED)


_ALLOWED: Mapping[tuple[str, str], _Name] = {
    ("numpy.core.multiarray", "_reconstruct"): _Name(_reconstruct),
    ("numpy._core.multiarray", "_reconstruct"): _Name(_reconstruct),
    ("numpy.core.numeric", "_frombuffer"): _Name(_from_buffer),
    ("numpy._core.numeric", "_frombuffer"): _Name(_from_buffer),
    ("numpy", "ndarray"): _Name(_refuse),
    ("numpy", "dtype"): _Name(_Type),
    ("_codecs", "encode"): _Name(_encode),
}


class _Reader(pickle.Unpickler):
    """An unpickler in which only the names above have a meaning."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise RefusedPickle(
                f"a pickle asks for {module_name}.{global_name}, which data does not need",
                hint=_UNTOUCHED,
            ) from None


def read(raw: bytes, name: str = "the pickle") -> dict[str, Any]:
    """Return the dictionary in a pickle: text keys, and `Array` for every numpy array."""
    try:
        _look_through(raw)
        found = _Reader(io.BytesIO(raw), encoding="bytes").load()
    except RefusedPickle as error:
        raise RefusedPickle(f"{name}: {error.message}", hint=error.hint) from None
    except Exception as error:  # noqa: BLE001 - a broken pickle can raise anything
        raise DataError(
            f"{name} is not a readable pickle: {type(error).__name__}: {error}",
            hint="it is damaged or no CIFAR batch; fetch it again",
        ) from None
    if not isinstance(found, dict):
        raise DataError(f"{name} holds no dictionary", hint="is it a CIFAR batch?")
    return {_text(key): _finished(value, name) for key, value in found.items()}


def _look_through(raw: bytes) -> None:
    """Refuse opcodes that data never needs, and memo numbers that would claim much memory."""
    for seen, (opcode, argument, _) in enumerate(pickletools.genops(raw), 1):
        if opcode.name in _REFUSED_OPCODES:
            raise RefusedPickle(
                f"a pickle uses {opcode.name}, which data does not need",
                hint=_UNTOUCHED,
            )
        if opcode.name in _MEMO_OPCODES and int(argument or 0) > seen:
            raise RefusedPickle("a pickle numbers its parts far beyond their count")


def _text(key: Any) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def _finished(value: Any, name: str) -> Any:
    return _array(value, name) if isinstance(value, _Numbers) else value


def _array(numbers: _Numbers, name: str) -> Array:
    try:
        _, shape, kind, fortran, raw = numbers.state
        item = kind.item
        size = _ITEM_BYTES[item]
        sides = tuple(int(side) for side in shape)
        content = bytes(raw)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{name} holds an array that is not made of plain integers") from None
    if kind.big_endian or (fortran and len(sides) > 1):
        raise DataError(f"{name} holds an array in an order that is not supported")
    expected = size
    for side in sides:
        expected *= side
    if min(sides, default=0) < 0 or expected != len(content):
        raise DataError(f"{name} holds an array of {len(content)} bytes where {expected} belong")
    return Array(sides, item, content)
