"""`python -m paceline.trainer`: one rank of a training."""

import sys

from paceline.trainer.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
