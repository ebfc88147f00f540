# Common parts of test machines and cluster nodes: process identity, an isolated network, control groups.

# Field 22 of /proc/PID/stat: together with it a pid identifies one process.
start_of() { local stat; stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; stat=${stat##*) }; set -- $stat; [ "$1" != Z ] && echo "${20}"; }
note_process() { echo "$1 $(start_of "$1")" > "$2"; }
# Prints the pid in file $1 if that very process lives.
noted() { local pid start; [ -f "$1" ] && read -r pid start < "$1" && [ "$(start_of "$pid")" = "$start" ] && echo "$pid"; }

# Prints the first child of process $1; nothing when there is none within a minute, which a loaded machine may need.
child_of() {
  local child tries
  for ((tries = 0; tries < 6000; tries++)); do
    child=$(cat "/proc/$1/task/$1/children" 2>/dev/null) || true
    child=${child%% *}
    if [ -n "$child" ]; then echo "$child"; return; fi
    sleep 0.01
  done
}

in_network() { nsenter --net="/proc/$1/ns/net" "${@:2}"; }
mac_of() { local IFS=.; printf '02:00:%02x:%02x:%02x:%02x' $1; }

# Whether this machine uses no part of 10.N.0.0/16.
is_free_range() { [ -z "$(ip route show root "10.$1.0.0/16")$(ip route show match "10.$1.0.0/16" | grep -v '^default')" ]; }
# Added first and removed last: no packet of the range takes the default route.
take_range() { ip route replace unreachable "10.$1.0.0/16" metric 4000000; }
# The refusing route takes effect now. It is removed once no local socket sends to the network; fails while a socket
# still does.
give_range() {
  local tries
  ss -K dst "10.$1.0.0/16" > /dev/null 2>&1 || true
  for ((tries = 0; tries < 50; tries++)); do
    if [ -z "$(ss -Htn state all exclude time-wait dst "10.$1.0.0/16" 2>/dev/null)" ]; then
      ip route del unreachable "10.$1.0.0/16" metric 4000000 2>/dev/null || true
      return 0
    fi
    sleep 0.1
  done
  return 1
}

# Mount point of cgroup v2, whichever version has the controllers.
unified() { awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts; }
# freeze_group FOLDER 1|0: freezes or resumes all processes of a group; fails when they do not follow.
freeze_group() {
  local tries
  echo "$2" > "$1/cgroup.freeze" || return 1
  for ((tries = 0; tries < 6000; tries++)); do
    if grep -q "^frozen $2" "$1/cgroup.events"; then return 0; fi
    sleep 0.01
  done
  return 1
}

# run_command VARIABLE NAMES COMMAND ARGUMENT...: runs the calling script's function cmd_COMMAND. Without such a
# function it prints the usage, which is the script's first comment. Commands other than NAMES work on the folder in
# VARIABLE.
run_command() {
  local variable=$1 free=" $2 " command=${3:-}
  local function=cmd_${command//-/_}
  if [[ $(type -t "$function") != function ]]; then
    sed -n '2,/^set -e/p' "${BASH_SOURCE[1]}" | sed '$d; s/^# \{0,1\}//'
    exit 2
  fi
  if [[ "$free" != *" $command "* ]] && [ ! -d "${!variable:-}" ]; then die "set $variable to what claim printed"; fi
  "$function" "${@:4}"
}
