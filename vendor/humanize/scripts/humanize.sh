#!/usr/bin/env bash
# Defines the shell function `humanize` for bash and zsh:
#     source ".../humanize/scripts/humanize.sh"
#     humanize monitor rlcr [--once] [--json]; humanize rlcr COMMAND [options]
# Run instead of sourced, it does the same once. Leaves no variable behind and changes no shell option.

if [ -z "${BASH_VERSION-}${ZSH_VERSION-}" ]; then
    printf '%s\n' 'humanize.sh: needs bash or zsh' >&2
    # shellcheck disable=SC2317  # exit is for the case that this is run, not sourced
    return 2 2>/dev/null || exit 2
fi

# Prints the real folder that holds scripts/ and rlcr/, through links to this file or to any folder above it.
_humanize_locate() (
    set +eu
    unset CDPATH
    file=$1
    hops=0
    while [ -L "$file" ] && [ "$hops" -lt 40 ]; do
        link=$(readlink "$file")
        case $link in
        /*) file=$link ;;
        *) file=$(dirname -- "$file")/$link ;;
        esac
        hops=$((hops + 1))
    done
    builtin cd -P -- "$(dirname -- "$file")/.." >/dev/null && pwd -P
)

# The place is written into a function's body, since a variable would be the user's to lose.
if [ -n "${ZSH_VERSION-}" ]; then
    eval '_humanize_place="${(%):-%x}"'
else
    _humanize_place=${BASH_SOURCE[0]}
fi
eval "_humanize_root() { printf '%s\\n' $(printf '%q' "$(_humanize_locate "$_humanize_place")"); }"
unset _humanize_place
unset -f _humanize_locate

_humanize_usage() {
    printf '%s\n' \
        'usage: humanize monitor rlcr [--once] [--json]' \
        '  shows the newest loop of the git repository you are in, again every 2 s until Ctrl-C' \
        '  --once  print once and end' \
        '  --json  print one JSON object and end' \
        '       humanize rlcr COMMAND [options]' \
        '  the commands of the loop: humanize rlcr --help lists them'
}

# Prints an interpreter of Python 3.10 or newer: the one that set the loop up, else the first on PATH.
_humanize_python() (
    set +eu
    file=$HOME/.local/state/humanize/python
    case $XDG_STATE_HOME in /*) file=$XDG_STATE_HOME/humanize/python ;; esac
    if [ -r "$file" ]; then
        IFS= read -r recorded <"$file"
    fi
    for python in "${recorded-}" python3 python; do
        if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 &&
            "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
            printf '%s\n' "$python"
            exit 0
        fi
    done
    exit 1
)

_humanize_monitor() (
    set +eu
    root=$(_humanize_root)
    if ! python=$(_humanize_python); then
        printf '%s\n' 'humanize: no Python 3.10 or newer on PATH' >&2
        exit 1
    fi
    exec "$python" -I -S -B -c 'import sys
sys.path.insert(0, sys.argv[1])
try:
    from rlcr.monitor import main
    sys.exit(main(sys.argv[2:]))
except KeyboardInterrupt:
    sys.exit(0)' "$root" "$@"
)

humanize() {
    case "${1-} ${2-}" in
    'monitor rlcr')
        shift 2
        _humanize_monitor "$@"
        ;;
    'rlcr '*)
        shift
        "$(_humanize_root)/scripts/rlcr" "$@"
        ;;
    '-h ' | '--help ') _humanize_usage ;;
    *)
        _humanize_usage >&2
        return 2
        ;;
    esac
}

if [ -n "${ZSH_VERSION-}" ]; then
    case ${ZSH_EVAL_CONTEXT-} in
    toplevel) humanize "$@" ;;
    esac
elif [ "${BASH_SOURCE[0]}" = "$0" ]; then
    humanize "$@"
fi
