#!/bin/sh
# The Stop hook under the name that older registrations know it by; links to this file or to its folder are followed.
self=$0
while [ -L "$self" ]; do
    target=$(readlink "$self")
    case $target in /*) self=$target ;; *) self=${self%/*}/$target ;; esac
done
# A file that is not there must not make sh end with 2 or 127: the turn goes on or ends as if there were no hook.
case $self in */*) here=${self%/*} ;; *) here=. ;; esac
[ -x "$here/stop-hook" ] || exit 0
exec "$here/stop-hook"
