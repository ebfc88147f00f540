#!/bin/sh
# Runs one job on a machine, in a folder of its own, and keeps a record of it. Needs a POSIX shell, setsid and /proc; nothing else of svc.
#
#   runner.sh start DIR            runs setup, then run, and returns when both ended. A job that was started before is left alone.
#   runner.sh phase DIR PHASE      becomes the commands of one phase
#   runner.sh stop DIR GRACE_MS    asks the job to end, waits, then makes it end
#
# DIR holds: settings (shell: svc_workdir, svc_waits, svc_isolated, svc_enter), env (shell: exports), setup.sh and run.sh (each may be missing), and go, which is
# put there once all nodes of a job may run. Written here: job.log, status (the record, replaced in one step), token.* (marks of the processes of a
# phase), term (who takes SIGTERM for all), stopping.
#
# All variables begin with svc_, so that no exported variable of the user's is changed by accident.

# Sets svc_ticks and svc_session of process $1; fails when it is gone or only its zombie is left, without threads that are still ending.
look_at() {
  { read -r svc_stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  # The command's name is in parentheses and may hold spaces: fields are counted after it (proc(5): state is field 3, start time 22).
  set -- ${svc_stat##*) }
  [ "$1" != X ] && { [ "$1" != Z ] || [ "${18}" -gt 1 ]; } || return 1
  svc_session=$4 svc_ticks=${20}
}

# Whether the very process "PID TICKS" still runs.
is_alive() {
  [ -n "$1" ] && look_at "${1%% *}" && [ "$svc_ticks" = "${1##* }" ]
}

# Sets svc_now (ms since the epoch) and svc_time (for people).
look_at_clock() {
  svc_time=$(date -u '+%s%3N %Y-%m-%dT%H:%M:%SZ')
  svc_now=${svc_time%% *} svc_time=${svc_time#* }
  # Not every date knows %N.
  case $svc_now in *[!0-9]*) svc_now=$(date +%s)000 ;; esac
}

say() {
  printf '[svc %s] %s\n' "$svc_time" "$*"
}

print_record() {
  printf 'phase=%s\nboot=%s\nrunner=%s\n' "$svc_phase" "$svc_boot" "$svc_runner"
  [ -z "$svc_program" ] || printf 'program=%s\n' "$svc_program"
  [ -z "$svc_started" ] || printf 'started=%s\n' "$svc_started"
  [ "$svc_phase" != ended ] || printf 'ended=%s\nexit=%s\nsignal=%s\nfailed=%s\n' "$svc_now" "$svc_code" "$svc_signal" "$svc_failed"
}

write_record() {
  print_record > status.new && mv -f status.new status
}

# Waits for child $1 and sets svc_code; signals to this process do not cut it short.
await() {
  svc_code=
  while :; do
    svc_interrupted=
    wait "$1"
    svc_waited=$?
    # 127 after an interruption: the child was already waited for by the call that was interrupted.
    [ "$svc_waited" = 127 ] && [ -n "$svc_code" ] || svc_code=$svc_waited
    [ -n "$svc_interrupted" ] || return 0
  done
}

# Sends signal $1 to every process of session $2; fails when there is none.
signal_session() {
  svc_any=1
  for svc_entry in /proc/[0-9]*; do
    look_at "${svc_entry#/proc/}" && [ "$svc_session" = "$2" ] || continue
    svc_any=0
    [ "$1" = 0 ] || kill -s "$1" "${svc_entry#/proc/}" 2>/dev/null
  done
  return "$svc_any"
}

# Whether a process is just becoming another program: for a moment it has no environment that could be read. Kernel threads and zombies never have one,
# and no memory either (proc(5): its size is field 23, the end of the environment in it field 51).
is_any_becoming() {
  for svc_entry in $(grep -Lz '' /proc/[0-9]*/environ 2>/dev/null); do
    { read -r svc_stat < "${svc_entry%environ}stat"; } 2>/dev/null || continue
    set -- ${svc_stat##*) }
    [ "${21}" = 0 ] || [ "${49}" != 0 ] || return 0
  done
  return 1
}

# Ends every process that carries the mark in file $1: all are stopped until no new one shows up, so that none can fork away, then killed. One that was
# just becoming another program at one look shows its mark at the next, or that it still is.
kill_marked() {
  [ -e "$1" ] || return 0
  svc_rounds=0 svc_clean=
  while [ "$svc_rounds" -lt 50 ]; do
    svc_marked=
    svc_known=' '
    while :; do
      svc_new=
      for svc_entry in $(grep -lzFx -f "$1" /proc/[0-9]*/environ 2>/dev/null); do
        svc_entry=${svc_entry#/proc/} svc_entry=${svc_entry%/environ}
        case $svc_known in *" $svc_entry "*) continue ;; esac
        look_at "$svc_entry" || continue
        svc_known="$svc_known$svc_entry " svc_new=1
        kill -s STOP "$svc_entry" 2>/dev/null
      done
      [ -n "$svc_new" ] || break
      svc_marked=1
    done
    svc_rounds=$((svc_rounds + 1))
    if [ -n "$svc_marked" ] || is_any_becoming; then
      svc_clean=
    else
      [ -z "$svc_clean" ] || return 0
      svc_clean=1
      continue
    fi
    for svc_entry in $svc_known; do kill -s KILL "$svc_entry" 2>/dev/null; done
    sleep 0.02 2>/dev/null || sleep 1
  done
}

# Runs phase $1 to its end and sets svc_code. Run enters the machine's isolation; setup stays outside, where the whole network is.
run_phase() {
  read -r svc_token < /proc/sys/kernel/random/uuid
  printf 'SVC_JOB_TOKEN=%s' "$svc_token" > "token.$1"
  look_at_clock
  say "$1 started"
  svc_since=$svc_now
  become_phase "$1" &
  svc_child=$!
  if look_at "$svc_child"; then svc_program="$svc_child $svc_ticks"; else svc_program="$svc_child 0"; fi
  svc_phase=$1
  [ "$1" = setup ] || svc_started=$svc_since
  write_record
  await "$svc_child"
  # Asked to stop: what the first process leaves behind may still be finishing its work.
  while [ -e stopping ] && signal_session 0 "$svc_child"; do sleep 0.05 2>/dev/null || sleep 1; done
  look_at_clock
  say "$1 ended with exit code $svc_code after $(((svc_now - svc_since) / 1000)) s"
}

# A session of its own for each phase; svc_enter, from settings, is the same with the machine's isolation around it.
become_phase() {
  export SVC_JOB_TOKEN="$svc_token" SVC_TERM_FILE="$svc_dir/term"
  set -- sh "$svc_dir/runner.sh" phase "$svc_dir" "$1"
  if [ "$5" = run ]; then svc_enter "$@"; else exec setsid "$@"; fi
}

# Jobs of several nodes run together: whoever started them sees that all are prepared.
wait_for_others() {
  svc_phase=waiting svc_program=
  write_record
  while [ ! -e go ] && [ ! -e stopping ]; do sleep 0.1 2>/dev/null || sleep 1; done
}

finish() {
  svc_phase=ended svc_failed=$1 svc_signal=
  if [ "$svc_code" -gt 128 ] && [ "$svc_code" -lt 193 ]; then
    svc_signal=$(kill -l $((svc_code - 128)) 2>/dev/null)
    svc_signal=${svc_signal:+SIG${svc_signal#SIG}}
  fi
  look_at_clock
  write_record
  exit 0
}

start() {
  cd "$svc_dir" || exit 1
  svc_phase=setup svc_program= svc_started= svc_code=0
  { read -r svc_boot < /proc/sys/kernel/random/boot_id; } 2>/dev/null
  look_at $$
  svc_runner="$$ $svc_ticks"
  (umask 077 && : >> job.log)
  # A link is made in one step and by one process only: whoever comes second finds the job started.
  print_record > "status.$$" && ln "status.$$" status 2>/dev/null
  svc_linked=$?
  rm -f "status.$$"
  [ "$svc_linked" = 0 ] || exit 0
  exec >> job.log 2>&1 < /dev/null
  trap 'svc_interrupted=1' HUP INT TERM
  svc_waits=
  . ./settings
  [ -d "$svc_workdir" ] || mkdir -p "$svc_workdir"
  if [ -e setup.sh ]; then
    run_phase setup
    [ "$svc_code" = 0 ] || finish setup
  fi
  [ -z "$svc_waits" ] || [ ! -e run.sh ] || wait_for_others
  [ ! -e stopping ] || { svc_code=143 && finish run; }
  [ -e run.sh ] || finish ''
  run_phase run
  # Where the isolation has no process tree that ends as one, the program's children are found by their mark.
  [ -e term ] || kill_marked token.run
  [ "$svc_code" = 0 ] || finish run
  finish ''
}

phase() {
  . "$svc_dir/settings"
  cd "$svc_workdir" || exit 126
  unset SVC_TERM_FILE
  set -- "$svc_dir/$1.sh"
  if command -v bash > /dev/null; then set -- bash "$@"; else set -- sh "$@"; fi
  # A shell without job control makes its background commands ignore these two; the program is to find them as on any machine.
  if env --default-signal=INT,QUIT true 2>/dev/null; then set -- env --default-signal=INT,QUIT "$@"; fi
  # Last, as from here on every variable, PATH included, is the user's.
  . "$svc_dir/env"
  exec "$@"
}

read_record() {
  svc_phase= svc_runner= svc_program= svc_boot= svc_taker=
  while IFS='=' read -r svc_name svc_value; do
    case $svc_name in
      phase) svc_phase=$svc_value ;;
      boot) svc_boot=$svc_value ;;
      runner) svc_runner=$svc_value ;;
      program) svc_program=$svc_value ;;
    esac
  done < status
  [ ! -e term ] || read -r svc_taker < term
}

# Whether process $1 has said that it wants SIGTERM: the first process of a namespace that has not never hears of it (pid_namespaces(7)). SIGTERM is the
# fifteenth bit of SigCgt (proc(5)); where the system does not tell, it has.
catches_term() {
  while read -r svc_name svc_value; do
    [ "$svc_name" = SigCgt: ] || continue
    case $svc_value in *[4-7c-f]???) return 0 ;; *) return 1 ;; esac
  done 2>/dev/null < "/proc/$1/status"
  return 0
}

# SIGTERM, once: in an isolation to the process there that takes it for all, else to the session of the phase.
ask() {
  [ "$svc_asked" != "$svc_program/$svc_taker" ] || return 0
  if [ "$svc_phase$svc_isolated" = runyes ]; then
    # Not to what makes the isolation: a program that begins at this moment would end with it unasked, or go on without it and never be asked.
    is_alive "$svc_taker" && catches_term "${svc_taker%% *}" || return 0
    kill -s TERM "${svc_taker%% *}"
  else
    # One that has just begun has no session yet: it is asked when it has.
    is_alive "$svc_program" && signal_session TERM "${svc_program%% *}" || return 0
  fi
  svc_asked="$svc_program/$svc_taker"
}

# Whether there was a program whose session may still have processes. A pid that another process has by now was given away: so was the session's.
had_program() {
  [ -n "$svc_program" ] && { ! look_at "${svc_program%% *}" || [ "$svc_ticks" = "${svc_program##* }" ]; }
}

force() {
  is_alive "$svc_taker" && kill -s KILL "${svc_taker%% *}"
  is_alive "$svc_program" && kill -s KILL "${svc_program%% *}"
  ! had_program || signal_session KILL "${svc_program%% *}"
  kill_marked token.setup
  kill_marked token.run
}

# Sets svc_uptime, ms: unlike the clock it is never put right.
look_at_uptime() {
  read -r svc_uptime svc_idle < /proc/uptime
  svc_parts=${svc_uptime#*.}
  svc_uptime=$((${svc_uptime%.*} * 1000 + ${svc_parts#0} * 10))
}

stop() {
  cd "$svc_dir" 2>/dev/null && [ -e status ] || exit 0
  : > stopping
  svc_asked= svc_isolated= svc_this_boot=
  . ./settings
  { read -r svc_this_boot < /proc/sys/kernel/random/boot_id; } 2>/dev/null
  look_at_uptime
  svc_deadline=$((svc_uptime + $1))
  while :; do
    read_record
    [ "$svc_phase" != ended ] || exit 0
    # Nothing is left of it, and its pids are others' now.
    [ "$svc_boot" = "$svc_this_boot" ] || exit 0
    look_at_uptime
    if [ "$svc_uptime" -ge "$svc_deadline" ]; then force; else ask; fi
    # Nobody is left to write how it ended.
    is_alive "$svc_runner" || is_alive "$svc_program" || is_alive "$svc_taker" || { force && exit 0; }
    sleep 0.05 2>/dev/null || sleep 1
  done
}

svc_dir=$2
case $1 in
  start) start ;;
  phase) phase "$3" ;;
  stop) stop "$3" ;;
  *) echo "usage: runner.sh start|phase|stop DIR [ARGUMENT]" >&2 && exit 2 ;;
esac
