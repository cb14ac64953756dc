#!/bin/sh
# Runs the first Python here that is new enough and can make virtual environments:
#   sh scripts/python.sh ARGUMENTS...       (PYTHON=/path/to/python to name one)
# Each candidate is started, not only looked up: a name on PATH may be a shim with nothing behind it.
set -eu

chosen=''
too_old=''
for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3.14 python3; do
	version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || version=''
	case "$version" in
	'') too_old=${too_old:-$([ "$candidate" != "${PYTHON:-}" ] || echo "PYTHON=$PYTHON does not start")} ;;
	[0-2].* | 3.[0-9] | 3.10) too_old=${too_old:-$candidate is Python $version} ;;
	*)
		chosen=$candidate
		break
		;;
	esac
	# Whoever names an interpreter does not want another one in its place.
	[ "$candidate" != "${PYTHON:-}" ] || break
done

if [ -z "$chosen" ]; then
	echo "danlu: Python 3.11 or newer is needed${too_old:+, but $too_old}. Install it" \
		"(apt-get install python3 python3-venv), or name one: make PYTHON=/path/to/python ..." >&2
	exit 1
fi
if ! "$chosen" -c 'import ensurepip, venv' 2>/dev/null; then
	echo "danlu: $chosen (Python $version) cannot make virtual environments. Install the missing part:" \
		"apt-get install python$version-venv" >&2
	exit 1
fi
exec "$chosen" "$@"
