#!/bin/sh
# Bounds what a machine's processes use, by a control group of their own (cgroup v2).
#
#   limits.sh run COMMAND [ARGUMENT...]   becomes the command, inside the machine's group
#   limits.sh report                      prints `limits=` with the controllers that work, and `limits_lack=` with the
#                                         first reason why others do not
#
# Copied into the machine's folder, beside limits.conf (shell) with svc_memory (bytes), svc_cpu (thousandths of a CPU)
# and svc_processes. An empty value is no limit; for processes it is the default. `group`, in the same folder, has the
# path of the group; the provider kills and removes the group with the machine. host.sh uses the functions too.

svc_cgroups=/sys/fs/cgroup

# Sets svc_working to the controllers that groups below folder $1 can use. Controllers of memory and processes are
# required.
can_limit() {
  [ -w "$1/cgroup.procs" ] && [ -w "$1/cgroup.subtree_control" ] || return 1
  # Each by itself, because one that is missing would refuse the others.
  for svc_controller in memory pids cpu; do { echo "+$svc_controller" > "$1/cgroup.subtree_control"; } 2>/dev/null; done
  svc_working=
  read -r svc_working < "$1/cgroup.subtree_control"
  case " $svc_working " in *' memory '*) ;; *) return 1 ;; esac
  case " $svc_working " in *' pids '*) ;; *) return 1 ;; esac
}

# Sets svc_parent to the topmost folder above this process in which its user may make groups with limits. A process may
# only move between groups below a folder that its user owns. So an ordinary user needs a user manager of systemd, and
# must be below it. Without a folder, sets svc_lack.
find_parent() {
  svc_parent=$svc_cgroups svc_working='' svc_rest='' svc_lack=delegation
  [ -e "$svc_cgroups/cgroup.controllers" ] || { svc_lack=v2 && return 1; }
  while IFS= read -r svc_line; do case $svc_line in 0::/*) svc_rest=${svc_line#0::/} ;; esac done < /proc/self/cgroup
  while ! can_limit "$svc_parent"; do
    [ -n "$svc_rest" ] || return 1
    svc_parent=$svc_parent/${svc_rest%%/*}
    case $svc_rest in */*) svc_rest=${svc_rest#*/} ;; *) svc_rest= ;; esac
  done
  svc_lack=
}

# Whether systemd can move this process below its user's manager. Without lingering, that manager and everything below
# it end at the user's logout. Replicas must outlive it.
has_manager() {
  [ "$svc_lack" = delegation ] && [ -d /run/systemd/system ] && [ "$(id -u)" != 0 ] && command -v systemd-run > /dev/null || return 1
  [ -e "/var/lib/systemd/linger/$(id -un)" ] || { svc_lack=linger && return 1; }
  # `su` and cron do not set the variable that leads to the user's systemd.
  export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
  systemd-run --user --scope --quiet true > /dev/null 2>&1 < /dev/null
}

# The default is a quarter of the computer's process ids, so that several replicas that multiply leave some for others.
# 16384 is above the threads of model servers on large machines.
default_processes() {
  # Not by `read`: it reads byte by byte, and the kernel gives the rest of a setting only to the first read.
  svc_processes=$(cat /proc/sys/kernel/pid_max 2>/dev/null)
  svc_processes=$((${svc_processes:-32768} / 4))
  [ "$svc_processes" -le 16384 ] || svc_processes=16384
}

# Puts this process into the machine's group below svc_parent. The path is recorded first: a crash then leaves no group
# that the provider does not find.
join_group() {
  svc_group=$svc_parent/svc-${svc_here##*/}
  printf '%s\n' "$svc_group" > "$svc_here/group" || return 1
  [ -d "$svc_group" ] || mkdir "$svc_group" || return 1
  echo "$svc_processes" > "$svc_group/pids.max"
  if [ -n "$svc_memory" ]; then
    echo "$svc_memory" > "$svc_group/memory.max"
    # A replica that swaps would be slow rather than replaced. Kernels without swap lack the file.
    [ ! -e "$svc_group/memory.swap.max" ] || echo 0 > "$svc_group/memory.swap.max"
    # All processes end together: a program that has lost one of its processes often hangs.
    echo 1 > "$svc_group/memory.oom.group"
  fi
  case " $svc_working " in
    *' cpu '*) [ -z "$svc_cpu" ] || echo "$((svc_cpu * 100)) 100000" > "$svc_group/cpu.max" ;;
    *) [ -z "$svc_cpu" ] || complain 'cpus' ;;
  esac
  # Last: the process is bounded from its first instruction there.
  echo 0 > "$svc_group/cgroup.procs"
}

complain() {
  echo "[svc] the limit of $1 does not hold on this computer; svc check says why"
}

# $1: whether systemd has already moved this process.
run() {
  svc_moved=$1
  shift
  svc_memory='' svc_cpu='' svc_processes=''
  . "$svc_here/limits.conf"
  [ -n "$svc_processes" ] || default_processes
  if find_parent; then
    # enter.sh then knows that no group bounds its processes.
    join_group || {
      rmdir "$svc_group" 2>/dev/null
      [ -d "$svc_group" ] || rm -f "$svc_here/group"
      complain 'processes, memory and cpus'
    }
  elif [ "$svc_moved" = no ] && has_manager; then
    exec systemd-run --user --scope --quiet sh "$0" run-below-manager "$@"
  elif [ -n "$svc_memory$svc_cpu" ]; then
    complain 'memory and cpus'
  fi
  exec "$@"
}

report_limits() {
  find_parent || { has_manager && can_limit "$svc_cgroups/user.slice/user-$(id -u).slice/user@$(id -u).service" && svc_lack=; } || svc_working=
  case " $svc_working " in *' cpu '*) ;; *) svc_lack=${svc_lack:-cpu} ;; esac
  echo "limits=$svc_working"
  echo "limits_lack=$svc_lack"
}

case ${0##*/} in
  limits.sh)
    svc_here=${0%/*}
    case ${1-} in
      run) shift && run no "$@" ;;
      run-below-manager) shift && run yes "$@" ;;
      report) report_limits ;;
    esac
    ;;
esac
