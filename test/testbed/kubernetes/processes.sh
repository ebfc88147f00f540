# Processes of a cluster are identified by pid and start time, so that no other process is ever killed.

. "$here/../machines.sh"

# start_process NAME COMMAND...: runs it in the background, with a log.
start_process() {
  local name=$1
  shift
  setsid "$@" >> "$dir/log/$name" 2>&1 < /dev/null 9>&- &
  note_process $! "$dir/pids/$name"
  disown
}

# An unreaped process stays a zombie. It counts as ended once its last thread has ended, because its sockets are open
# until then.
wait_for_end() {
  local tries
  for ((tries = 0; tries < 3000; tries++)); do
    start_of "$1" > /dev/null || [ "$(ls "/proc/$1/task" 2>/dev/null | wc -l)" -gt 1 ] || return 0
    sleep 0.01
  done
}

# end_process NAME: kills it at once; no process here needs a clean shutdown.
end_process() {
  local pid
  pid=$(noted "$dir/pids/$1" || true)
  rm -f "$dir/pids/$1"
  [ -n "$pid" ] || return 0
  kill -KILL "$pid" 2>/dev/null || true
  wait_for_end "$pid"
}

end_processes() {
  local file
  for file in "$dir"/pids/*; do
    [ -f "$file" ] || continue
    [ "$(noted "$file" || true)" != $$ ] || continue
    end_process "$(basename "$file")"
  done
}

# Whether every thread of process $1 is stopped. The thread that takes SIGSTOP stops the others, which run until then.
stands_still() {
  local file stat
  for file in /proc/"$1"/task/*/stat; do
    read -r stat < "$file" || return 1
    stat=${stat##*) }
    [ "${stat%% *}" = T ] || return 1
  done
}
