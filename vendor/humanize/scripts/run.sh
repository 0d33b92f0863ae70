#!/bin/sh
# Runs one command of the loop with the first Python >= 3.10 that is found: run.sh COMMAND ARGUMENTS...
here=$(dirname -- "$(readlink -f -- "$0")")
for python in python3 python3.13 python3.12 python3.11 python3.10; do
    if "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
        exec "$python" -I "$here/entry.py" "$@"
    fi
done
echo "Error: Missing required dependencies: python3 (3.10 or newer) was not found on PATH" >&2
[ "$1" = stop-gate ] && exit 20
exit 1
