#!/bin/bash
# The command of a custom image: everything it knows is in variables, and its arguments go on.
set -e
cd "$MA_CODE_DIR"
[ "$MA_JOB_DIR" = "$(dirname "$MA_CODE_DIR")" ]
MASTER_ADDR=${VC_WORKER_HOSTS%%,*}
NPROC=$(( MA_NUM_GPUS > 0 ? MA_NUM_GPUS : 1 ))
exec torchrun --nnodes="$MA_NUM_HOSTS" --node_rank="$VC_TASK_INDEX" --nproc_per_node="$NPROC" \
  --master_addr="$MASTER_ADDR" --master_port="$MA_RENDEZVOUS_PORT" distributed.py "$@"
