"""Files that travel from host to host: each takes them from one peer and gives them to the next.

`python -m paceline.relay survey|give|take`, told what to do by JSON on its standard input, speaks
JSON lines. A file is cut into pieces, each with its SHA-256; a host verifies a piece before it
passes it on, while the next one is still arriving, so that a chain of hosts takes hardly longer
than one link. What a host has already is never sent to it; a host that fails is passed over.

This package travels to the hosts: the standard library only, Python 3.8 or newer. All hosts wait
for its start, so it imports little of that (no dataclasses, shutil, secrets or base64).
"""
