"""What one host has of a manifest: pieces in files, and who waits for the next of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading

from paceline.relay.manifest import Manifest, piece_is_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SPARE_BYTES = 64 << 20
_DRAFT_MODE = 0o600


class Stock:
    """The pieces of a manifest on this host; threads add to it and wait for it."""

    def __init__(self, manifest: Manifest, target: str) -> None:
        self.manifest = manifest
        self.pieces = manifest.pieces()
        self._target = target
        self._ranges = list(_ranges(manifest))
        self._places = [self._final(number) for number in range(len(manifest.files))]
        self._have = [False] * len(self.pieces)
        self._changed = threading.Condition()
        self._missing = len(self.pieces)
        self._closed = False
        self.received_bytes = 0

    @property
    def missing_bytes(self) -> int:
        """How much is not here yet."""
        return sum(piece.size for piece, here in zip(self.pieces, self._have) if not here)

    @property
    def complete(self) -> bool:
        """Whether all pieces are here."""
        return self._missing == 0

    def bitmap(self) -> bytes:
        """Return one bit for each piece, set where it is here."""
        bits = bytearray(-(-len(self._have) // 8))
        for index, here in enumerate(self._have):
            if here:
                bits[index // 8] |= 1 << index % 8
        return bytes(bits)

    def believe(self) -> None:
        """Take it that everything is here, because it was surveyed a moment ago."""
        self._have, self._missing = [True] * len(self.pieces), 0

    def look(self) -> None:
        """Find out what is here: whole files, and what an earlier attempt has left."""
        for number, file in enumerate(self.manifest.files):
            if not self._is_final(number):
                self._places[number] = self._draft(number)
                for index in self._ranges[number]:
                    self._have[index] = False
                if file.size:
                    self._look_into(number, self._places[number])
        self._missing = self._have.count(False)

    def make_room(self) -> None:
        """Make the drafts of the files that are missing, if the disk can take them."""
        folder = os.path.dirname(self._final(0)) if self._places else self._target
        os.makedirs(folder or ".", exist_ok=True)
        room = os.statvfs(folder or ".")
        free = room.f_bavail * room.f_frsize
        if self.missing_bytes + _SPARE_BYTES > free:
            raise OSError(28, f"{self.missing_bytes} bytes are to come, and {free} are free")
        for number, file in enumerate(self.manifest.files):
            if self._places[number] != self._final(number):
                os.makedirs(os.path.dirname(self._places[number]) or ".", exist_ok=True)
                with self._opened(number, os.O_RDWR | os.O_CREAT) as descriptor:
                    os.ftruncate(descriptor, file.size)

    def add(self, index: int, data: memoryview, digest: str) -> bool:
        """Keep a piece that has arrived with a digest; False if it is not what it should be."""
        piece = self.pieces[index]
        if digest != piece.digest:
            return False
        with self._changed:
            if self._have[index]:
                return True
        with self._opened(piece.file, os.O_RDWR) as descriptor:
            _write_all(descriptor, data, piece.offset)
        with self._changed:
            if not self._have[index]:
                self._have[index] = True
                self._missing -= 1
                self.received_bytes += piece.size
            self._changed.notify_all()
        return True

    def wait_for(self, index: int) -> bool:
        """Wait until a piece is here; False if it never will be."""
        with self._changed:
            self._changed.wait_for(lambda: self._have[index] or self._closed)
            return self._have[index]

    def wait_for_more(self, seconds: float) -> bool:
        """Wait until everything is here; False if nothing at all arrives for so long."""
        with self._changed:
            while self._missing:
                before = self._missing
                if not self._changed.wait_for(lambda b=before: self._missing < b, seconds):  # type: ignore[misc]
                    return False
            return True

    def give_up(self) -> None:
        """Let everybody go who waits for a piece."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def finish(self) -> None:
        """Put the files in their places, each at once and whole."""
        for number, file in enumerate(self.manifest.files):
            final, place = self._final(number), self._places[number]
            if place == final:
                continue
            with self._changed:
                os.chmod(place, file.mode)
                os.replace(place, final)
                self._places[number] = final

    @contextlib.contextmanager
    def reading(self, index: int) -> Iterator[int]:
        """Open the file of a piece that is here."""
        with self._opened(self.pieces[index].file, os.O_RDONLY) as descriptor:
            yield descriptor

    @contextlib.contextmanager
    def _opened(self, number: int, flags: int) -> Iterator[int]:
        with self._changed:  # a file is not moved to its place between the look and the opening
            descriptor = os.open(self._places[number], flags | os.O_CLOEXEC, _DRAFT_MODE)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _is_final(self, number: int) -> bool:
        """Whether a file is in its place already, as it should be."""
        path = self._final(number)
        try:
            if os.path.getsize(path) != self.manifest.files[number].size:
                return False
        except OSError:
            return False
        self._look_into(number, path)
        return all(self._have[index] for index in self._ranges[number])

    def _look_into(self, number: int, path: str) -> None:
        with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
            for index in self._ranges[number]:
                self._have[index] = piece_is_there(file, self.pieces[index])

    def _final(self, number: int) -> str:
        name = self.manifest.files[number].name
        return os.path.join(self._target, name) if name else self._target

    def _draft(self, number: int) -> str:
        """Return where a file grows: by its content, so that another attempt finds it again."""
        file = self.manifest.files[number]
        folder, name = os.path.split(self._final(number))
        mark = hashlib.sha256(os.fsencode("".join((name, *file.digests)))).hexdigest()[:16]
        return os.path.join(folder, f".paceline-{mark}.part")


def _ranges(manifest: Manifest) -> Iterator[range]:
    start = 0
    for file in manifest.files:
        yield range(start, start + len(file.digests))
        start += len(file.digests)


def _write_all(descriptor: int, data: memoryview, offset: int) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], offset + done)
