"""A process that decodes pictures: encoded bytes in on stdin, raw pixels out on stdout.

It is started by `decoding` and knows nothing of the program that wants the pictures: no
training script is imported a second time, and a picture that crashes the decoder takes
only this process with it.

It greets once it can decode. In: the number of pictures, then for each its length and bytes.
Out, for each: 1 and the pixels, or 0 and the reason, with their length in between. Lengths are
4 bytes, little endian. The end of stdin is the end.
"""

from __future__ import annotations

import io
import re
import struct
import sys
import warnings
from typing import BinaryIO

GREETING = b"ready\n"
NUMBER = struct.Struct("<I")
ANSWER = struct.Struct("<BI")
_ADDRESS = re.compile(r" <_io\.BytesIO object at \w+>")
_MODES = {1: "L", 3: "RGB"}


def decode(encoded: bytes, size: int, channels: int) -> bytes:
    """Return a picture as planes: its shorter side made `size`, the middle of the longer cut out.

    This is what torchvision's Resize and CenterCrop do. A JPEG picture of more than five times
    half the size is halved while it is decoded: twice as fast for 500x375 at 64, and on average
    less than one level of 255 beside the slow way, also in pictures full of detail.
    """
    from PIL import Image  # noqa: PLC0415 - Pillow is needed here only

    with Image.open(io.BytesIO(encoded)) as picture:
        picture.draft(None, (5 * size // 2, 5 * size // 2))
        whole = picture.convert(_MODES[channels])
    width, height = whole.size
    shorter = min(width, height)
    scaled = (max(size, size * width // shorter), max(size, size * height // shorter))
    if scaled != whole.size:
        whole = whole.resize(scaled, Image.Resampling.BILINEAR)
    left, top = round((scaled[0] - size) / 2), round((scaled[1] - size) / 2)
    cut = whole.crop((left, top, left + size, top + size))
    return b"".join(band.tobytes() for band in cut.split())


def serve(incoming: BinaryIO, outgoing: BinaryIO, size: int, channels: int) -> None:
    """Answer bundles of pictures until there are no more."""
    while head := incoming.read(NUMBER.size):
        bundle = [_blob(incoming) for _ in range(NUMBER.unpack(head)[0])]
        for encoded in bundle:
            good, content = _attempt(encoded, size, channels)
            outgoing.write(ANSWER.pack(good, len(content)))
            outgoing.write(content)
        outgoing.flush()


def _blob(incoming: BinaryIO) -> bytes:
    (length,) = NUMBER.unpack(incoming.read(NUMBER.size))
    return incoming.read(length)


def _attempt(encoded: bytes, size: int, channels: int) -> tuple[int, bytes]:
    try:
        return 1, decode(encoded, size, channels)
    except Exception as error:  # noqa: BLE001 - decoders raise anything; the picture is named
        words = _ADDRESS.sub("", str(error))  # the same on every run
        return 0, f"{type(error).__name__}: {words}".encode()[:200]


def main() -> None:
    """Serve stdin and stdout; the arguments are the size and the channels."""
    from PIL import Image  # noqa: F401, PLC0415 - better now than at the first picture

    warnings.simplefilter("ignore")
    size, channels = (int(word) for word in sys.argv[1:3])
    sys.stdout.buffer.write(GREETING)
    sys.stdout.buffer.flush()
    serve(sys.stdin.buffer, sys.stdout.buffer, size, channels)


if __name__ == "__main__":
    main()
