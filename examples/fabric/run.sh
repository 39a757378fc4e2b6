#!/bin/sh
# What each container runs. NODE_RANK and the rest come from .env; arguments go to the program:
# the one of this folder, else the image's own.
program=dist_dcgan.py
[ -e "$program" ] || program=/opt/paceline/dist_dcgan.py
exec python -m torch.distributed.launch \
    --nproc_per_node="$NPROC" --nnodes="$NNODES" --node_rank="$NODE_RANK" \
    --master_addr="$MASTER_ADDR" --master_port="$MASTER_PORT" \
    "$program" "$@"
