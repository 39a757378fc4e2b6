"""The public DCGAN program's name and flags, over Paceline's trainer.

python dist_dcgan.py --dataset cifar10 --dataroot ./cifar10 --num_epochs 1 --batch_size 16

Works from a clone with torch alone installed, under torchrun, torch.distributed.launch, mpirun,
or plain RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. What differs from the original, and why,
stands in docs/trainer.md.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    if find_spec("paceline") is None:
        sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))
    from paceline.trainer.main import main

    sys.exit(main(sys.argv[1:]))
