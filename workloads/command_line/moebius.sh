#!/bin/sh
# The program of the tarball, with its libraries beside it.
here=$(dirname "$(readlink -f "$0")")
LD_ORIGIN_PATH=$(readlink -f "$here/../lib/moebius")
export LD_ORIGIN_PATH
exec "$LD_ORIGIN_PATH/moebius" "$@"
