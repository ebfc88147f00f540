#!/bin/sh
# Keeps a controller running on a machine that exists only for it. Needs a POSIX shell, setsid and /proc.
#
#   controller.sh start DIR      starts the controller unless it runs; it is restarted when it dies
#   controller.sh stop DIR       ends the controller; services continue
#   controller.sh boot DIR       makes it start at boot; prints how: systemd, cron or none
#   controller.sh forget DIR     undoes boot
#   controller.sh run DIR        becomes the supervisor process
#
# DIR holds: current (a link to the program), node (the Node.js binary), home (SVC_HOME), settings (shell: exports).
# Written files: supervisor ("PID TICKS" of the supervisor) and supervisor.log.

# Sets svc_ticks of process $1. Fails when it has ended or is a zombie. See runner.sh.
look_at() {
  { read -r svc_stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${svc_stat##*) }
  [ "$1" != Z ] && [ "$1" != X ] || return 1
  svc_ticks=${20}
}

# Whether the supervisor runs; sets svc_pid.
is_kept() {
  svc_pid= svc_since=
  { read -r svc_pid svc_since < "$svc_dir/supervisor"; } 2>/dev/null || return 1
  look_at "$svc_pid" && [ "$svc_ticks" = "$svc_since" ]
}

start() {
  is_kept && return 0
  setsid sh "$svc_self" run "$svc_dir" < /dev/null > /dev/null 2>> "$svc_dir/supervisor.log" &
}

# A controller that exits with 0 was stopped or had no work left. After any other exit it is restarted, at first with a
# short delay.
run() {
  umask 077
  look_at $$
  # Several may start at once. The link is created atomically, so only one succeeds. The others exit when they find it
  # alive.
  printf '%s %s\n' $$ "$svc_ticks" > "$svc_dir/supervisor.$$"
  while ! ln "$svc_dir/supervisor.$$" "$svc_dir/supervisor" 2>/dev/null; do
    if is_kept; then rm -f "$svc_dir/supervisor.$$" && exit 0; fi
    mv -f "$svc_dir/supervisor" "$svc_dir/supervisor.old.$$" && rm -f "$svc_dir/supervisor.old.$$"
  done
  rm -f "$svc_dir/supervisor.$$"
  svc_child= svc_ending= svc_pause=1
  trap 'svc_ending=1; [ -z "$svc_child" ] || kill -s TERM "$svc_child" 2>/dev/null' TERM INT HUP
  . "$svc_dir/settings"
  export SVC_HOME="$svc_dir/home" SVC_PROGRAM_ROOT="$svc_dir/current"
  while [ -z "$svc_ending" ]; do
    svc_began=$(date +%s)
    "$svc_dir/node" "$svc_dir/current/src/bundle/controller-main.js" < /dev/null >> "$svc_dir/home/controller.log" 2>&1 &
    svc_new=$!
    while is_beginning "$svc_new"; do sleep 0.01 2>/dev/null || sleep 1; done
    svc_child=$svc_new
    # SIGTERM came before the controller could receive it.
    [ -z "$svc_ending" ] || kill -s TERM "$svc_child" 2>/dev/null
    wait "$svc_child"
    svc_code=$?
    # A signal to this shell ends the wait before the controller has ended.
    while kill -s 0 "$svc_child" 2>/dev/null; do wait "$svc_child"; svc_code=$?; done
    svc_child=
    [ "$svc_code" != 0 ] || break
    if [ $(($(date +%s) - svc_began)) -gt 60 ]; then svc_pause=1; fi
    [ -n "$svc_ending" ] || pause "$svc_pause"
    svc_pause=$((svc_pause < 60 ? svc_pause * 2 : 60))
  done
  rm -f "$svc_dir/supervisor"
}

# Whether process $1 is still a copy of this shell, which would record a signal and lose it.
is_beginning() {
  { read -r svc_own < "/proc/$$/comm" && read -r svc_name < "/proc/$1/comm"; } 2>/dev/null && [ "$svc_name" = "$svc_own" ]
}

# In the background, because a signal must not wait for its end.
pause() {
  sleep "$1" &
  wait "$!"
  kill "$!" 2>/dev/null
}

stop() {
  is_kept || return 0
  svc_keeper=$svc_pid
  kill -s TERM "$svc_keeper" 2>/dev/null
  svc_left=300
  while is_kept && [ "$svc_pid" = "$svc_keeper" ]; do
    svc_left=$((svc_left - 1))
    [ "$svc_left" -gt 0 ] || return 1
    sleep 0.1 2>/dev/null || sleep 1
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

svc_unit_name() {
  printf 'svc-controller-%s.service' "$(printf '%s' "$svc_dir" | cksum | cut -d ' ' -f 1)"
}

# The unit runs `run`, so one supervisor serves all cases and systemd only starts it. KillMode=process: services outlive
# the controller.
unit() {
  cat << UNIT
[Unit]
Description=Controller of svc
After=network-online.target
Wants=network-online.target

[Service]
User=$(id -un)
ExecStart=/bin/sh $svc_self run $svc_dir
Restart=no
KillMode=process
TasksMax=infinity
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
UNIT
}

cron_line() {
  printf "@reboot sh '%s' start '%s' # svc controller\n" "$svc_self" "$svc_dir"
}

without_our_cron_line() {
  crontab -l 2>/dev/null | grep -vF "$(cron_line)"
}

boot() {
  svc_unit=$(svc_unit_name)
  if [ -d /run/systemd/system ] && unit | as_root tee "/etc/systemd/system/$svc_unit" > /dev/null 2>&1 &&
    as_root systemctl daemon-reload > /dev/null 2>&1 && as_root systemctl enable "$svc_unit" > /dev/null 2>&1; then
    echo systemd
  elif command -v crontab > /dev/null && { without_our_cron_line; cron_line; } | crontab - 2>/dev/null; then
    echo cron
  else
    echo none
  fi
}

forget() {
  svc_unit=$(svc_unit_name)
  if [ -e "/etc/systemd/system/$svc_unit" ]; then
    as_root systemctl disable "$svc_unit" > /dev/null 2>&1
    as_root rm -f "/etc/systemd/system/$svc_unit"
    as_root systemctl daemon-reload > /dev/null 2>&1
  fi
  if crontab -l 2>/dev/null | grep -qF "$(cron_line)"; then without_our_cron_line | crontab -; fi
  return 0
}

svc_self=$0
svc_dir=$2
case $1 in
  start | stop | boot | forget | run) "$1" ;;
  *) echo "usage: controller.sh start|stop|boot|forget|run DIR" >&2 && exit 2 ;;
esac
