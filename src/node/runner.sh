#!/bin/sh
# Runs one job on a machine, in a folder of its own, and keeps a record of it. Needs only a POSIX shell, setsid and
# /proc.
#
#   runner.sh start DIR            runs setup, then run; returns when both ended. Does nothing for a started job.
#   runner.sh phase DIR PHASE      becomes the commands of one phase
#   runner.sh stop DIR GRACE_MS    sends SIGTERM to the job, waits, then kills it
#
# DIR holds: settings (shell: svc_workdir, svc_waits, svc_isolated, svc_begin, svc_enter), env (shell: exports), setup.sh and
# run.sh (each optional), and go, which appears once all nodes of a job may run. Written files: job.log (bounded, see
# keep_log), status (the record, replaced atomically), token.* (marks of a phase's processes), term (the process that
# receives SIGTERM for all), stopping.
#
# All variables begin with svc_, so that no exported variable of the user's is changed by accident.

# Sets svc_ticks and svc_session of process $1. Fails when it has ended or is a zombie without threads that are still
# ending.
look_at() {
  { read -r svc_stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  # The command's name is in parentheses and may hold spaces. Fields are counted after it (proc(5): state is field 3,
  # start time 22).
  set -- ${svc_stat##*) }
  [ "$1" != X ] && { [ "$1" != Z ] || [ "${18}" -gt 1 ]; } || return 1
  svc_session=$4 svc_ticks=${20}
}

# Whether exactly the process "PID TICKS" still runs.
is_alive() {
  [ -n "$1" ] && look_at "${1%% *}" && [ "$svc_ticks" = "${1##* }" ]
}

# Sets svc_now (ms since the epoch) and svc_time (readable).
look_at_clock() {
  svc_time=$(date -u '+%s%3N %Y-%m-%dT%H:%M:%SZ')
  svc_now=${svc_time%% *} svc_time=${svc_time#* }
  # Not every date supports %N.
  case $svc_now in *[!0-9]*) svc_now=$(date +%s)000 ;; esac
}

svc_newline='
'

say() {
  svc_said="[svc $svc_time] $*"
  printf '%s\n' "$svc_said"
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
    # 127 after an interruption: the interrupted call has already waited for the child.
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

# Whether a process is inside exec: its environment is unreadable for a moment. Kernel threads and zombies never have
# one, and no memory either (proc(5): its size is field 23, the end of the environment in it field 51).
is_any_becoming() {
  for svc_entry in $(grep -Lz '' /proc/[0-9]*/environ 2>/dev/null); do
    { read -r svc_stat < "${svc_entry%environ}stat"; } 2>/dev/null || continue
    set -- ${svc_stat##*) }
    [ "${21}" = 0 ] || [ "${49}" != 0 ] || return 0
  done
  return 1
}

# Kills every process that carries the mark in file $1. First stops them all until no new one appears, so that none can
# fork away. A process inside exec shows its mark, or that it is still inside exec, in the next round.
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

# The log keeps its newest output: at this size in bytes the older half is freed. settings may set another limit.
svc_log_limit=67108864

# Writes standard input to job.log, as the only writer. It never ends the program or blocks it for long. On a full disk
# output is lost, and above about 80 MB/s the program slows down. The older half becomes a hole: offsets stay valid for
# readers.
keep_log() {
  trap '' HUP INT TERM
  svc_size=$(wc -c < job.log) svc_kept=0 svc_is_lost=
  while :; do
    # Up to 64 reads, each written immediately. The text differs between versions; the last line begins with the bytes.
    svc_words=$(LC_ALL=C dd bs=65536 count=64 2>&1 >> job.log)
    svc_failed=$?
    svc_bytes=${svc_words##*"$svc_newline"}
    svc_bytes=${svc_bytes%% *}
    case $svc_bytes in '' | *[!0-9]*) svc_bytes=$(($(wc -c < job.log) - svc_size)) ;; esac
    if [ "$svc_failed" != 0 ]; then
      # The folder was removed. The program continues, and its output is dropped until its end.
      [ -e job.log ] || exec cat > /dev/null
      svc_is_lost=yes
      # Other files need space too, such as the record of the job's end.
      [ "$((svc_size - svc_kept))" -lt 1048576 ] || trim_log
      sleep 0.05 2>/dev/null || sleep 1
    elif [ "$svc_bytes" = 0 ]; then
      return 0
    elif [ -n "$svc_is_lost" ]; then
      look_at_clock
      say 'output is missing here: the disk was full' >> job.log && svc_is_lost=
    fi
    svc_size=$((svc_size + svc_bytes))
    [ "$svc_bytes" -lt 2097152 ] || sleep 0.05 2>/dev/null || sleep 1
    [ "$((svc_size - svc_kept))" -lt "$svc_log_limit" ] || trim_log
  done
} 2>/dev/null

# Frees the older half of the log's remaining data.
trim_log() {
  svc_size=$(wc -c < job.log)
  svc_kept=$((svc_size - (svc_size - svc_kept) / 2))
  look_at_clock
  if fallocate --punch-hole --offset 0 --length "$svc_kept" job.log; then
    say "older output is gone: $svc_kept bytes" | dd of=job.log bs=1 seek="$svc_kept" conv=notrunc
  else
    say 'later output is not kept: the log has reached its limit, and its file system cannot give up the older output' >> job.log
    exec cat > /dev/null
  fi
}

# Puts a process between the program and job.log. Without a named pipe the log would have no limit, so the job is
# refused.
open_log() {
  svc_pipe=$svc_dir/log.pipe
  rm -f "$svc_pipe"
  if ! mkfifo -m 600 "$svc_pipe" 2>/dev/null; then
    # The file system of the job has no named pipes, or no inode left.
    read -r svc_pipe < /proc/sys/kernel/random/uuid
    svc_pipe=/tmp/svc-log.$svc_pipe
    mkfifo -m 600 "$svc_pipe" 2>/dev/null || refuse
  fi
  # Opened for both directions first, because that never waits for the other side.
  exec 3<> "$svc_pipe"
  exec 4< "$svc_pipe"
  # By exec: for a function's redirections a shell keeps the old descriptors. The reader would hold the writing side and
  # never see the end.
  { exec <&4 3>&- 4<&- > /dev/null && keep_log; } &
  svc_keeper=$!
  exec > "$svc_pipe" 2>&1 < /dev/null 3>&- 4<&-
  rm -f "$svc_pipe"
}

refuse() {
  exec >> job.log 2>&1 < /dev/null
  look_at_clock
  say "the job was not started: no named pipe for its log could be made in $svc_dir or /tmp (see: command -v mkfifo; df -i)"
  svc_code=73
  finish setup
}

# Waits until the last message is in the log, or no more output comes: a user who learns of the end reads the reason
# there. Processes that outlive their job may continue to write.
close_log() {
  exec > /dev/null 2>&1
  svc_rounds=0
  while [ -n "$svc_keeper" ] && look_at "$svc_keeper" && [ "$svc_rounds" -lt 100 ]; do
    [ "$svc_rounds" -lt 3 ] || ! tail -c 65536 job.log | grep -qF "$svc_said" || return 0
    svc_rounds=$((svc_rounds + 1))
    sleep 0.01 2>/dev/null || { sleep 1 && svc_rounds=100; }
  done
}

# Runs phase $1 to its end and sets svc_code. run enters the machine's isolation; setup stays outside, with the whole
# network.
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
  # After SIGTERM, remaining processes may finish their work.
  while [ -e stopping ] && signal_session 0 "$svc_child"; do sleep 0.05 2>/dev/null || sleep 1; done
  look_at_clock
  say "$1 ended with exit code $svc_code after $(((svc_now - svc_since) / 1000)) s"
}

# Each phase has a session of its own. svc_begin and svc_enter, from settings, add the machine's limits to it; svc_enter
# also adds its isolation.
become_phase() {
  export SVC_JOB_TOKEN="$svc_token" SVC_TERM_FILE="$svc_dir/term"
  set -- sh "$svc_dir/runner.sh" phase "$svc_dir" "$1"
  if [ "$5" = run ]; then svc_enter "$@"; else svc_begin "$@"; fi
}

# The jobs of several nodes run together: the controller waits until all are prepared.
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
  close_log
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
  # A link is created atomically by one process only. Another process finds the job started.
  print_record > "status.$$" && ln "status.$$" status 2>/dev/null
  svc_linked=$?
  rm -f "status.$$"
  [ "$svc_linked" = 0 ] || exit 0
  # PIPE too: the record must be written even when no process reads the pipe.
  trap 'svc_interrupted=1' HUP INT TERM PIPE
  svc_waits= svc_keeper= svc_said=
  . ./settings
  open_log
  [ -d "$svc_workdir" ] || mkdir -p "$svc_workdir"
  if [ -e setup.sh ]; then
    run_phase setup
    [ "$svc_code" = 0 ] || finish setup
  fi
  [ -z "$svc_waits" ] || [ ! -e run.sh ] || wait_for_others
  [ ! -e stopping ] || { svc_code=143 && finish run; }
  [ -e run.sh ] || finish ''
  run_phase run
  # Where the isolation has no process tree that ends as one, the mark identifies the program's children.
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
  # Background commands of a shell without job control ignore these two signals. The program must get the usual
  # defaults.
  if env --default-signal=INT,QUIT true 2>/dev/null; then set -- env --default-signal=INT,QUIT "$@"; fi
  # Last: after this line every variable, PATH included, is the user's.
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

# Whether process $1 has a handler for SIGTERM. A namespace's first process without a handler never receives it
# (pid_namespaces(7)). SIGTERM is the fifteenth bit of SigCgt (proc(5)). Where the system does not report it, a handler
# is assumed.
catches_term() {
  while read -r svc_name svc_value; do
    [ "$svc_name" = SigCgt: ] || continue
    case $svc_value in *[4-7c-f]???) return 0 ;; *) return 1 ;; esac
  done 2>/dev/null < "/proc/$1/status"
  return 0
}

# Sends SIGTERM once: in an isolation to the process that receives it for all, else to the session of the phase.
ask() {
  [ "$svc_asked" != "$svc_program/$svc_taker" ] || return 0
  if [ "$svc_phase$svc_isolated" = runyes ]; then
    # Not to the process that makes the isolation. A program that starts at this moment would be killed without SIGTERM,
    # or never receive it.
    is_alive "$svc_taker" && catches_term "${svc_taker%% *}" || return 0
    kill -s TERM "${svc_taker%% *}"
  else
    # A program that has just started has no session yet; SIGTERM follows when it has one.
    is_alive "$svc_program" && signal_session TERM "${svc_program%% *}" || return 0
  fi
  svc_asked="$svc_program/$svc_taker"
}

# Whether a program existed whose session may still have processes. A reused pid means that the session is reused too.
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

# Sets svc_uptime, ms: unlike the clock it is never adjusted.
look_at_uptime() {
  read -r svc_uptime svc_idle < /proc/uptime
  svc_parts=${svc_uptime#*.}
  svc_uptime=$((${svc_uptime%.*} * 1000 + ${svc_parts#0} * 10))
}

stop() {
  cd "$svc_dir" 2>/dev/null && [ -e status ] || exit 0
  # Not the command ":": with a full disk it would end this shell.
  true > stopping
  svc_asked= svc_isolated= svc_this_boot=
  . ./settings
  { read -r svc_this_boot < /proc/sys/kernel/random/boot_id; } 2>/dev/null
  look_at_uptime
  svc_deadline=$((svc_uptime + $1))
  while :; do
    read_record
    [ "$svc_phase" != ended ] || exit 0
    # No process of the job remains, and other processes may have its pids.
    [ "$svc_boot" = "$svc_this_boot" ] || exit 0
    look_at_uptime
    if [ "$svc_uptime" -ge "$svc_deadline" ]; then force; else ask; fi
    # No process remains that would record the end.
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
