#!/bin/sh
# Commands of the provider `ssh` on an SSH host: host.sh COMMAND [ARGUMENT...]. Sent along with each call, so no copy
# stays on the host.
#
#   look [facts]                    lists the machines; with `facts` also the resources of the host
#   create ID REVISION PORT MIN_KB  makes the machine ID of the files on standard input
#   destroy ID SECONDS              ends everything of the machine ID and removes it; a missing machine is success
#   try NAME SECONDS COMMAND...     runs enter.sh of the files on standard input once
#
# limits.sh is sent above this script.
#
# Answers are lines NAME=VALUE after the line `svc-host=1`. Earlier output comes from a login script and is not part of
# them. Each file on standard input is a line `MODE BYTES NAME` and its bytes. Needs a POSIX shell, coreutils,
# findutils, util-linux, grep, awk and /proc.
#
# A machine is a folder with machine.json in it. It is made atomically under a lock, which the kernel releases when its
# holder dies. `revision` counts creations: a create based on an older revision is rejected, and the caller must decide
# again.

umask 077
svc_home=$HOME/.svc
svc_dir=$svc_home/machines
# Hosts that share a home have separate folders: one host's machines must not count as another's.
case $(stat -f -c %T "$HOME" 2>/dev/null) in
  nfs* | lustre | smb* | cifs | fuse* | ceph | gpfs | afs) svc_dir=$svc_home/machines-$(uname -n) ;;
esac

answer() {
  printf '%s\n' "$*"
}

fail() {
  answer "result=failed"
  answer "why=$*"
  exit 0
}

# Sets svc_ticks of process $1. Fails when it has ended or is a zombie without threads that are still ending.
look_at() {
  { read -r svc_stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  # The command's name is in parentheses and may hold spaces. Fields are counted after it (proc(5): state is field 3,
  # start time 22).
  set -- ${svc_stat##*) }
  [ "$1" != X ] && { [ "$1" != Z ] || [ "${18}" -gt 1 ]; } || return 1
  svc_ticks=${20}
}

read_boot() {
  svc_boot=
  { read -r svc_boot < /proc/sys/kernel/random/boot_id; } 2>/dev/null
}

lock() {
  # A failed redirection of exec would end this shell without a message.
  true >> "$svc_home/machines.lock" || fail "$svc_home cannot be written"
  exec 9>> "$svc_home/machines.lock"
  flock -w 20 9 || fail "the lock $svc_home/machines.lock cannot be taken"
}

read_revision() {
  svc_revision=0
  [ ! -e "$svc_dir/revision" ] || read -r svc_revision < "$svc_dir/revision"
}

# Stores the files of standard input in folder $1.
take_files() {
  while read -r svc_mode svc_bytes svc_name; do
    head -c "$svc_bytes" > "$1/$svc_name" && chmod "$svc_mode" "$1/$svc_name" || return 1
  done
}

# Removes the remains of interrupted calls. The kernel releases the lock of a try when its last process ends.
sweep() {
  remove_old "$svc_dir" '.*-*'
  remove_old "$svc_home" 'try-*'
  for svc_lock in "$svc_home"/try-*/lock; do
    [ ! -f "$svc_lock" ] || (flock -n 8 && remove_tree "${svc_lock%/*}") 8>> "$svc_lock"
  done 2>/dev/null
}

# Removes the entries of folder $1 with the name pattern $2 that have not changed for an hour.
remove_old() {
  find "$1" -maxdepth 1 -type d -name "$2" -mmin +60 -exec chmod -R u+rwx {} + -exec rm -rf {} + 2>/dev/null
}

# Programs may create folders that even their owner cannot change.
remove_tree() {
  rm -rf "$1" 2>/dev/null || { chmod -R u+rwx "$1" && rm -rf "$1"; } 2>/dev/null
}

tools() {
  for svc_tool in flock setsid unshare setpriv ip perl bwrap slirp4netns pasta rsync tar gzip sha256sum timeout awk; do
    ! command -v "$svc_tool" > /dev/null 2>&1 || printf '%s ' "$svc_tool"
  done
}

libc() {
  getconf GNU_LIBC_VERSION 2>/dev/null && return
  svc_version=$(ldd --version 2>&1)
  case $svc_version in
    *musl*) echo musl ;;
    *GLIBC* | *GNU*) echo "glibc $(printf '%s' "$svc_version" | sed -n '1s/.* //p')" ;;
    *) echo unknown ;;
  esac
}

memory_kb() {
  svc_kb=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
  # A container may have less memory than its computer.
  { read -r svc_limit < /sys/fs/cgroup/memory.max; } 2>/dev/null
  case ${svc_limit-} in
    '' | *[!0-9]*) ;;
    *) [ "$((svc_limit / 1024))" -ge "$svc_kb" ] || svc_kb=$((svc_limit / 1024)) ;;
  esac
  echo "$svc_kb"
}

free_kb() {
  df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'
}

# Ports with a listener, in hexadecimal (proc_pid_net(5): 0A is LISTEN).
listening() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" { sub(/.*:/, "", $2); print $2 }' | sort -u
}

has_route() {
  awk 'NR > 1 && $1 != "lo" { found = 1 } END { exit !found }' /proc/net/route 2>/dev/null && return
  awk '$1 ~ /^0+$/ && $2 == "00" && $NF != "lo" { found = 1 } END { exit !found }' /proc/net/ipv6_route 2>/dev/null
}

facts() {
  answer "system=$(uname -s)"
  answer "arch=$(uname -m)"
  answer "libc=$(libc)"
  answer "uid=$(id -u)"
  answer "user=$(id -un 2>/dev/null)"
  answer "cpus=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
  answer "memory_kb=$(memory_kb)"
  answer "tools=$(tools)"
  answer "node=$(command -v node 2>/dev/null)"
  answer "node_version=$(node --version 2>/dev/null)"
  ! has_route || answer route=yes
  answer "apparmor_userns=$(cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns 2>/dev/null)"
  answer "max_userns=$(cat /proc/sys/user/max_user_namespaces 2>/dev/null)"
  { grep -E '^(search|domain|options)[[:space:]]' /etc/resolv.conf | sed 's/^/resolv=/'; } 2>/dev/null
  report_limits
  # The query also makes the driver create its device files, which programs then find.
  { PATH=$PATH:/usr/local/bin:/usr/local/cuda/bin timeout 20 nvidia-smi --query-gpu=index,name,memory.total --format=csv,noheader,nounits |
    sed 's/^/gpu=/'; } 2>/dev/null
}

look() {
  read_boot
  answer "home=$HOME"
  answer "dir=$svc_dir"
  # A restarted container has the same boot ID as before, but another first process.
  look_at 1 && answer "boot=$svc_boot-$svc_ticks" || answer "boot=$svc_boot"
  # Before the machines: a concurrent creation then shows as a revision that is too old.
  read_revision
  answer "revision=$svc_revision"
  mkdir -p "$svc_dir" 2>/dev/null && [ -w "$svc_dir" ] && answer writable=yes
  svc_free=$(free_kb "$svc_dir")
  answer "free_kb=${svc_free:-$(free_kb "$HOME")}"
  [ "${1-}" != facts ] || facts
  for svc_file in "$svc_dir"/*/machine.json; do
    [ -e "$svc_file" ] && read -r svc_record < "$svc_file" && answer "machine=$svc_record"
  done 2>/dev/null
  answer result=ok
}

create() {
  svc_id=$1 svc_seen=$2 svc_port=$3 svc_least=$4
  mkdir -p "$svc_dir" "$svc_home/run" 2>/dev/null || fail "the folder $svc_dir cannot be made"
  sweep
  svc_stage=$svc_dir/.new-$svc_id-$$
  mkdir "$svc_stage" "$svc_stage/base" "$svc_stage/tmp" || fail "the folder $svc_stage cannot be made"
  chmod 1777 "$svc_stage/tmp"
  # Before the lock, because a slow connection would hold the lock for long.
  take_files "$svc_stage" || { rm -rf "$svc_stage" && fail 'files cannot be written: is the disk full?'; }
  # A power cut must not leave a machine with an unreadable record.
  sync "$svc_stage/machine.json" 2>/dev/null
  lock
  read_revision
  svc_free=$(free_kb "$svc_dir")
  if [ -e "$svc_dir/$svc_id/machine.json" ]; then
    read -r svc_record < "$svc_dir/$svc_id/machine.json"
    answer "machine=$svc_record"
    svc_result=exists
  elif [ "$svc_revision" != "$svc_seen" ]; then
    svc_result=outdated
  elif [ "${svc_free:-0}" -lt "$svc_least" ]; then
    answer "free_kb=${svc_free:-0}"
    svc_result=no-space
  elif [ "$svc_port" != 0 ] && listening | grep -qix "$(printf '%04x' "$svc_port")"; then
    svc_result=port-busy
  else
    # The count comes first: a crash between both steps only skips a number. A folder at this path has no record and is
    # not in use.
    rm -rf "${svc_dir:?}/$svc_id"
    answer "$((svc_revision + 1))" > "$svc_dir/revision.new" && mv -f "$svc_dir/revision.new" "$svc_dir/revision" &&
      mv "$svc_stage" "$svc_dir/$svc_id" || { rm -rf "$svc_stage" && fail "the folder $svc_dir/$svc_id cannot be made"; }
    svc_result=created
  fi
  rm -rf "$svc_stage"
  answer "result=$svc_result"
}

# Kills the first process of each of the machine's namespaces; the kernel then kills all others inside. Succeeds when
# one was still alive.
kill_first_processes() {
  svc_any=1
  for svc_file in "$1"/init.*; do
    [ -e "$svc_file" ] && read -r svc_pid svc_since svc_since_boot < "$svc_file" || continue
    look_at "$svc_pid" && [ "$svc_ticks" = "$svc_since" ] && [ "$svc_since_boot" = "$svc_boot" ] || continue
    kill -s KILL "$svc_pid" 2>/dev/null
    svc_any=0
  done
  return "$svc_any"
}

# Sets svc_marked to the processes that carry the machine's cookie, each as PID:TICKS.
find_marked() {
  svc_marked=
  [ -s "$1/cookie" ] || return 0
  for svc_entry in $(grep -lzFx -f "$1/cookie" /proc/[0-9]*/environ 2>/dev/null); do
    svc_entry=${svc_entry#/proc/} svc_entry=${svc_entry%/environ}
    look_at "$svc_entry" && svc_marked="$svc_marked $svc_entry:$svc_ticks"
  done
}

# Whether process $1, as PID:TICKS, still exists.
is_left() {
  look_at "${1%:*}" && [ "$svc_ticks" = "${1#*:}" ]
}

# Kills every process that carries the cookie. First stops them all until no new one appears, so that none can fork
# away. Sets svc_alive to the remaining ones, those of earlier calls included. While the kernel frees its memory, a
# killed process has no environment, but still holds its ports and GPUs.
kill_marked() {
  svc_known=' '
  while :; do
    find_marked "$1"
    svc_new=
    for svc_entry in $svc_marked; do
      case $svc_known in *" $svc_entry "*) continue ;; esac
      svc_known="$svc_known$svc_entry " svc_new=1
      kill -s STOP "${svc_entry%:*}" 2>/dev/null
    done
    [ -n "$svc_new" ] || break
  done
  for svc_entry in $svc_known; do kill -s KILL "${svc_entry%:*}" 2>/dev/null; done
  find_marked "$1"
  for svc_entry in $svc_alive $svc_known; do
    case "$svc_marked " in *" $svc_entry "*) continue ;; esac
    ! is_left "$svc_entry" || svc_marked="$svc_marked $svc_entry"
  done
  svc_alive=$svc_marked
  [ -n "$svc_alive" ]
}

pids_alive() {
  for svc_entry in $svc_alive; do printf ' %s' "${svc_entry%:*}"; done
}

# Kills everything in the control group that machine $1 has recorded, and removes the group. Succeeds when it still
# exists. The name protects groups of others from a damaged record.
kill_group() {
  svc_group=
  [ ! -s "$1/group" ] || read -r svc_group < "$1/group"
  case $svc_group in "$svc_cgroups"/*/*..* | "$svc_cgroups"/..*) return 1 ;; "$svc_cgroups"/*svc-"${1##*/}") ;; *) return 1 ;; esac
  [ -d "$svc_group" ] || return 1
  # Before Linux 5.14 the file is missing. The machine's cookie then finds the processes.
  { [ -e "$svc_group/cgroup.kill" ] && echo 1 > "$svc_group/cgroup.kill"; } 2>/dev/null
  # A program may have made groups below its own.
  find "$svc_group" -depth -type d -exec rmdir {} \; 2>/dev/null
  [ -d "$svc_group" ]
}

# Fails when processes remain after $2 seconds.
end_processes() {
  svc_rounds=0 svc_alive=
  while :; do
    svc_left=1
    kill_group "$1" && svc_left=0
    kill_first_processes "$1" && svc_left=0
    kill_marked "$1" && svc_left=0
    [ "$svc_left" = 0 ] || return 0
    svc_rounds=$((svc_rounds + 1))
    [ "$svc_rounds" -lt "$(($2 * 10))" ] || return 1
    sleep 0.1 2>/dev/null || sleep 1
  done
}

# Mount points below folder $1 (proc_pid_mountinfo(5): field 5, with octal escapes), newest first.
mounts_below() {
  awk -v dir="$1/" 'index($5, dir) == 1 { lines[++n] = $5 } END { while (n > 0) print lines[n--] }' /proc/self/mountinfo
}

# File systems below are unmounted, and files in them are never deleted: they do not belong to svc.
unmount_below() {
  for svc_way in 'umount --lazy' 'fusermount3 -uz' 'fusermount -uz'; do
    mounts_below "$1" | while read -r svc_mount; do $svc_way "$(printf '%b' "$svc_mount")" 2>/dev/null; done
    [ -n "$(mounts_below "$1")" ] || return 0
  done
  return 1
}

destroy() {
  svc_machine=$svc_dir/$1
  read_boot
  sweep
  if [ ! -d "$svc_machine" ]; then
    answer result=gone
    return
  fi
  # From now on no process starts in the machine. If the disk is too full for this file, starting processes find their
  # scripts missing.
  true > "$svc_machine/destroying"
  end_processes "$svc_machine" "$2" || fail "processes cannot be ended:$(pids_alive)"
  unmount_below "$svc_machine" || fail "a file system is mounted below $svc_machine and cannot be unmounted: $(mounts_below "$svc_machine" | head -n 1)"
  # The record and the cookie, which identifies the machine's processes, are removed last.
  for svc_entry in "$svc_machine"/* "$svc_machine"/.[!.]* "$svc_machine"/..?*; do
    case ${svc_entry##*/} in machine.json | cookie | destroying | group | init.*) continue ;; esac
    remove_tree "$svc_entry"
  done
  end_processes "$svc_machine" "$2" || fail "processes cannot be ended:$(pids_alive)"
  rm -f "$svc_home/run/$1.sock" "$svc_home/run/$1.sock.new" "$svc_home/run/$1.out"
  mv "$svc_machine" "$svc_dir/.gone-$1-$$" 2>/dev/null && rm -rf "$svc_dir/.gone-$1-$$"
  [ ! -d "$svc_machine" ] || fail "the folder $svc_machine cannot be removed"
  answer result=gone
}

# Locks the try for this process and those that it starts. The lock is taken before a sweep can find its file. Without
# flock only an old try is swept.
lock_try() {
  true > "$svc_try/lock.new" && exec 8>> "$svc_try/lock.new" || return 1
  ! flock 8 2>/dev/null || mv "$svc_try/lock.new" "$svc_try/lock"
}

try() {
  svc_try=$svc_home/$1 svc_seconds=$2
  shift 2
  sweep
  mkdir -p "$svc_home/run" "$svc_try/tmp" && chmod 1777 "$svc_try/tmp" && lock_try && take_files "$svc_try" ||
    fail 'files cannot be written: is the disk full?'
  timeout "$svc_seconds" sh "$svc_try/enter.sh" "$@" < /dev/null > /dev/null 2> "$svc_try/complaint"
  svc_code=$?
  [ -s "$svc_try/complaint" ] || cat "$svc_try/outbound.log" > "$svc_try/complaint" 2>/dev/null
  [ "$svc_code" = 0 ] || answer "why=$(tail -n 1 "$svc_try/complaint")"
  remove_tree "$svc_try"
  answer "code=$svc_code"
  answer result=ok
}

answer svc-host=1
case ${1-} in
  look | create | destroy | try) "$@" ;;
  *) fail "there is no command '${1-}'" ;;
esac
