#!/bin/sh
# Finds a Python >= 3.10 and hands everything to lib/kernelpilot_install. `./install.sh --help` says what it does.
set -eu

self=$0
while [ -L "$self" ]; do
    target=$(readlink "$self")
    case $target in
        /*) self=$target ;;
        *) self=$(dirname -- "$self")/$target ;;
    esac
done
clone=$(CDPATH='' cd -- "$(dirname -- "$self")" && pwd -P)

found=
for python in python3 python3.13 python3.12 python3.11 python3.10; do
    command -v "$python" >/dev/null 2>&1 || continue
    found="$found $("$python" -I -c 'import platform; print(platform.python_version())' 2>/dev/null || true)"
    if "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
        exec "$python" -I -B "$clone/lib/kernelpilot_install" "$@"
    fi
done

cat >&2 <<MESSAGE
error: KernelPilot needs Python 3.10 or newer; found:${found:- none}
  fix: Debian, Ubuntu: sudo apt-get install python3 python3-venv
       Fedora:         sudo dnf install python3
       macOS:          xcode-select --install, or a newer python3 from your package manager
       then run ./install.sh again. Nothing was changed.
MESSAGE
exit 1
