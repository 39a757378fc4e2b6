"""`python -m paceline.model.spec docs`: write the schema and the table of keys into a folder."""

import sys
from pathlib import Path

from paceline.model.spec.schema import write_docs

if __name__ == "__main__":
    write_docs(Path(sys.argv[1]))
