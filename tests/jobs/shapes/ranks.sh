#!/bin/bash
# One process for each device, as the launcher of an Ascend job starts them.
export RANK_SIZE=4
for DEVICE_ID in 0 1 2 3; do
  DEVICE_ID=$DEVICE_ID RANK_ID=$DEVICE_ID python "$MA_CODE_DIR/adapter.py" "$@" &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid" || exit 1; done
