#!/bin/bash
# guard.sh FOLDER SCRIPT: releases the cluster in FOLDER when its owner process has ended. A killed test run cannot
# clean up.
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
. "$here/processes.sh"
while noted "$1/owner" > /dev/null; do sleep 1; done
[ -d "$1" ] || exit 0
SVC_CLUSTER=$1 exec "$2" release
