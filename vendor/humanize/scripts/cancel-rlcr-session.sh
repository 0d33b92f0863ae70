#!/bin/sh
exec "$(dirname -- "$(readlink -f -- "$0")")/run.sh" cancel-session "$@"
