# Processes of a cluster: each is known by its pid and when it started, so that nothing else is ever killed.

. "$here/../machines.sh"

# start_process NAME COMMAND...: in the background, with a log.
start_process() {
  local name=$1
  shift
  setsid "$@" >> "$dir/log/$name" 2>&1 < /dev/null 9>&- &
  note_process $! "$dir/pids/$name"
  disown
}

# One that nobody waits for stays a zombie and is as good as gone, once its last thread has ended: until then its sockets are open.
wait_for_end() {
  local tries
  for ((tries = 0; tries < 3000; tries++)); do
    start_of "$1" > /dev/null || [ "$(ls "/proc/$1/task" 2>/dev/null | wc -l)" -gt 1 ] || return 0
    sleep 0.01
  done
}

# end_process NAME: at once; nothing here is worth a clean shutdown.
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
