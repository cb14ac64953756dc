#!/bin/sh
# Trains a real model through the platform, from nothing: the environment of a pinned image, a server
# on loopback, one job. `make demo` calls it once .venv is there. What it makes stays, so that a
# second run starts at once. Its exit status is the job's.
#
#   DATA=DIR         the Fashion-MNIST IDX files (default: where Debian's dataset-fashion-mnist is)
#   EPOCHS=N         default 3, about a minute on two CPU cores
#   DANLU_DATA=DIR   where the server keeps everything (default: the user's data directory)
set -eu

cd "$(dirname "$0")/.."
danlu=.venv/bin/danlu
started=$(date +%s)

DANLU_DATA=${DANLU_DATA:-${XDG_DATA_HOME:-${HOME:?is not set: set DANLU_DATA}/.local/share}/danlu}
case "$DANLU_DATA" in
/*) ;;
*) DANLU_DATA=$PWD/$DANLU_DATA ;;
esac
export DANLU_DATA

holds_data() {
	for found in "$1"/train-images-idx3-ubyte* "$1"/*/train-images-idx3-ubyte*; do
		[ -f "$found" ] && return 0
	done
	return 1
}

debian=/usr/share/datasets/fashion-mnist
data=${DATA:-}
if [ -n "$data" ]; then
	if ! holds_data "$data"; then
		echo "demo: DATA=$data holds no train-images-idx3-ubyte[.gz]. Name the directory with the" \
			"four Fashion-MNIST files, or leave DATA out to train on a small bundled set." >&2
		exit 2
	fi
	data=$(cd "$data" && pwd)
elif holds_data "$debian"; then
	data=$debian
else
	echo "demo: no Fashion-MNIST here, so the job learns scikit-learn's bundled digits. For the real" \
		"thing: apt-get install dataset-fashion-mnist, or DATA=/directory/with/the/files" >&2
fi

# Gigabytes of CUDA's libraries are only for a machine that can use them.
image=pytorch-2.13-cpu
if [ -e /sys/module/nvidia/version ] || [ -e /proc/driver/nvidia/version ]; then
	image=pytorch-cuda-2.8
fi
"$danlu" image realise "$image" >/dev/null
"$danlu" up --data "$DANLU_DATA"

output=$DANLU_DATA/demo/$(date +%Y%m%d-%H%M%S)
mkdir -p "$output"
set -- run --name fashion-mnist --image "$image" \
	--output "model=$output" --param "epochs=${EPOCHS:-3}"
[ -z "$data" ] || set -- "$@" --input "data=$data"
set -- "$@" examples/fashion_mnist/train.py

# Ctrl-C is for danlu, which detaches and says how to go on; this script then ends with its status.
trap : INT
submitted=$(date +%s)
status=0
"$danlu" "$@" || status=$?
ended=$(date +%s)
trap - INT

if [ "$status" -ne 0 ]; then
	# Detached by Ctrl-C: all is said already.
	[ "$status" -eq 130 ] || echo "demo: the job did not succeed. Ask why: $danlu why @last" >&2
	exit "$status"
fi

metric() {
	sed -n "s/^ *\"$1\": *\([0-9.]*\).*/\1/p" "$output/metrics.json" | head -n 1
}
accuracy=$(metric test_accuracy)
if [ -z "$accuracy" ]; then
	echo "demo: the job succeeded, but $output/metrics.json tells no accuracy" >&2
	exit 70
fi
cat <<END

  test accuracy   $accuracy
  model           $output/model.pt
  the job took    $((ended - submitted)) s ($(metric cpu_seconds) s of CPU time), all together $((ended - started)) s

Worth typing next:
  $danlu ps            what ran and runs
  $danlu show @last    all about this job
  $danlu logs @last    what it printed
  $danlu down          stop the server; the next command starts it again
END
