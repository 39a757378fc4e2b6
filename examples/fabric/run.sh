#!/bin/sh
# What each container runs. NODE_RANK and the rest come from .env; arguments go to the program.
exec python -m torch.distributed.launch \
    --nproc_per_node="$NPROC" --nnodes="$NNODES" --node_rank="$NODE_RANK" \
    --master_addr="$MASTER_ADDR" --master_port="$MASTER_PORT" \
    dist_dcgan.py "$@"
