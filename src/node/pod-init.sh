#!/bin/sh
# Process 1 of the container of a replica's pod: sh -c "$(cat pod-init.sh)" svc BASE_DIR
#
# It makes the replica's folder and then only waits: svc starts everything else in the container from outside. It reaps
# orphaned processes. When the pod ends, all processes get SIGTERM, after a delay while a job runs. The container ends
# with the last of them, or when the termination grace period ends. Any POSIX shell will do; all variables begin with
# svc_.

svc_dir=$1
mkdir -p -- "$1" || { echo "The folder $1 cannot be made: is there no volume at ${1%/*} that user $(id -u) may write to?" >&2; exit 1; }

# Whether any process besides this one remains; zombies do not count.
has_others() {
  for svc_entry in /proc/[0-9]*; do
    [ "$svc_entry" != "/proc/$$" ] || continue
    { read -r svc_stat < "$svc_entry/stat"; } 2> /dev/null || continue
    set -- ${svc_stat##*) }
    [ "$1" = Z ] || [ "$1" = X ] || return 0
  done
  return 1
}

# Whether a job runs, by its record (see runner.sh).
is_working() {
  for svc_record in "$svc_dir"/jobs/*/status; do
    while read -r svc_line; do [ "$svc_line" != phase=run ] || return 0; done 2> /dev/null < "$svc_record"
  done
  return 1
}

# Clients learn of the pod's end no earlier than this process. For three seconds, requests in progress and new ones
# still get answers.
linger() {
  svc_looks=0
  while [ "$svc_looks" -lt 30 ] && is_working; do
    svc_looks=$((svc_looks + 1))
    sleep 0.1 2> /dev/null || { sleep 1 && svc_looks=$((svc_looks + 9)); }
  done
}

end() {
  trap '' TERM INT
  linger
  # From process 1, -1 means every other process of the container.
  [ "$$" != 1 ] || kill -TERM -1 2> /dev/null
  while [ "$$" = 1 ] && has_others; do sleep 0.1 2> /dev/null || sleep 1; done
  exit 143
}

trap end TERM INT
# A shell that waits for one child also reaps its inherited children. The signal must not wait for the end of a sleep,
# so the sleep runs in the background.
while :; do
  sleep 3600 &
  wait "$!"
done
