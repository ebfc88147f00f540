#!/bin/sh
# Runs a command inside the namespaces of a local machine: enter.sh COMMAND [ARGUMENT...]
#
# Copied into the machine's folder, beside enter.conf (shell) with:
#   svc_kind       root | userns | bwrap
#   svc_node       the Node binary, svc_socket the way in, svc_address the machine's own address
#   svc_keep       folders below /tmp that stay visible, one per line
#   svc_outbound   slirp4netns | pasta | proxy | none, svc_proxy_socket, svc_proxy_port, svc_egress (script)
#
# It becomes the process that holds the namespaces open: when it dies they end with everything in them, and when the command ends so does it,
# with the same exit code. The first process inside (its pid is written to init.PID and to $SVC_TERM_FILE) passes SIGTERM on to all others.
#
# All variables begin with svc_, so that no exported variable of the user's is changed by accident.

svc_here=${0%/*}
. "$svc_here/enter.conf"

# Sets svc_session and svc_ticks of process $1; fails when it is gone or only its zombie is left, without threads that are still ending. See runner.sh.
look_at() {
  { read -r svc_stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${svc_stat##*) }
  [ "$1" != X ] && { [ "$1" != Z ] || [ "${18}" -gt 1 ]; } || return 1
  svc_session=$4 svc_ticks=${20}
}

# Whether another command's namespaces of this machine still live: that command keeps the way in.
has_living_init() {
  for svc_file in "$svc_here"/init.*; do
    [ -e "$svc_file" ] && read -r svc_pid svc_since svc_since_boot < "$svc_file" || continue
    look_at "$svc_pid" && [ "$svc_ticks" = "$svc_since" ] && [ "$svc_since_boot" = "$svc_boot" ] && return 0
  done
  return 1
}

# The way out of the namespaces, outside of them. Told on descriptor 8 the first process's pid and that the namespaces are furnished, in either
# order, it says on 6 that it is ready, and goes when 8 is at its end: its other side is held by the namespaces' processes alone.
serve_outbound() {
  exec 9>&- 7<&-
  svc_pid= svc_furnished=
  while [ -z "$svc_pid" ] || [ -z "$svc_furnished" ]; do
    read -r svc_line <&8 || exit 0
    case $svc_line in furnished) svc_furnished=1 ;; *) svc_pid=$svc_line ;; esac
  done
  case $svc_outbound in
    slirp4netns) exec slirp4netns --configure --mtu=65520 --disable-host-loopback --ready-fd=6 --exit-fd=8 "$svc_pid" tap0 ;;
    proxy) exec "$svc_node" "$svc_egress" "$svc_proxy_socket" <&8 >&6 ;;
    pasta)
      # It goes on in the background once it is ready, and where it cannot use its device it never is.
      # The network is the one slirp4netns makes: not a copy of the host's, whose own address could then not be reached.
      timeout 10 pasta --config-net --quiet --address 10.0.2.100 --netmask 24 --gateway 10.0.2.2 --no-map-gw --dns-forward 10.0.2.3 --ipv4-only \
        -t none -u none -T none -U none --pid "$svc_here/pasta.$svc_pid" "$svc_pid" || exit 1
      read -r svc_pasta < "$svc_here/pasta.$svc_pid" && look_at "$svc_pasta" && svc_since=$svc_ticks
      echo >&6
      exec 6>&-
      read -r svc_end <&8
      look_at "$svc_pasta" && [ "$svc_ticks" = "$svc_since" ] && kill "$svc_pasta"
      ;;
  esac
}

open_outbound() {
  svc_pipe=$svc_here/pipe.$$
  mkfifo -m 600 "$svc_pipe.life" "$svc_pipe.ready" || exit 97
  # Opened for both directions first, as that never waits for the other side.
  exec 9<> "$svc_pipe.life" 6<> "$svc_pipe.ready"
  exec 8< "$svc_pipe.life" 7< "$svc_pipe.ready"
  rm -f "$svc_pipe.life" "$svc_pipe.ready"
  serve_outbound > /dev/null 2> "$svc_here/outbound.log" &
  exec 6>&- 8<&-
}

# Notes the first process $1 inside: for whoever ends the machine, for whoever stops the command, and for the way out.
note_first() {
  look_at "$1" || return 1
  printf '%s %s %s\n' "$1" "$svc_ticks" "$svc_boot" > "$svc_here/init.$1"
  # In one step: half of it would look like a process that has ended.
  [ -z "${SVC_TERM_FILE-}" ] || { printf '%s %s\n' "$1" "$svc_ticks" > "$SVC_TERM_FILE.new" && mv -f "$SVC_TERM_FILE.new" "$SVC_TERM_FILE"; }
  [ "$svc_outbound" = none ] || printf '%s\n' "$1" >&9
}

# bubblewrap tells the first process's pid in JSON, on descriptor 5.
note_bwrap_first() {
  while read -r svc_line; do
    case $svc_line in
      *'"child-pid"'*)
        svc_line=${svc_line##*: }
        note_first "${svc_line%%[!0-9]*}"
        return
        ;;
    esac
  done
}

become_bwrap() {
  set -- sh "$0" --inside "$svc_way_in" "$svc_boot" "$@"
  svc_ifs=$IFS
  IFS='
'
  for svc_dir in $svc_keep; do set -- --bind "$svc_dir" "$svc_dir" "$@"; done
  IFS=$svc_ifs
  mkfifo -m 600 "$svc_here/pipe.$$.info" || exit 97
  # Opened here, for both directions first: bubblewrap may have failed before another process gets to it, which would then wait for ever. So it would
  # with its own hold on the writing side, which a shell that redirects a function keeps.
  exec 5<> "$svc_here/pipe.$$.info"
  exec 4< "$svc_here/pipe.$$.info"
  rm -f "$svc_here/pipe.$$.info"
  { exec <&4 4<&- 5>&- && note_bwrap_first; } &
  exec 4<&-
  exec bwrap --dev-bind / / --unshare-user --unshare-net --unshare-pid --proc /proc --cap-add CAP_NET_ADMIN --as-pid-1 --info-fd 5 \
    --bind "$svc_here/tmp" /tmp "$@"
}

outside() {
  [ ! -e "$svc_here/destroying" ] || exit 98
  { read -r svc_boot < /proc/sys/kernel/random/boot_id; } 2>/dev/null
  svc_way_in=yes
  ! has_living_init || svc_way_in=no
  [ "$svc_outbound" = none ] || open_outbound
  [ "$svc_kind" != bwrap ] || become_bwrap "$@"
  set -- --net --pid --mount --fork --kill-child=SIGKILL sh "$0" --inside "$svc_way_in" "$svc_boot" "$@"
  # The same user inside: a program that believes it is root behaves differently.
  [ "$svc_kind" != userns ] || set -- --user --map-current-user --keep-caps "$@"
  exec unshare "$@"
}

# A /tmp of the machine's own. What must stay visible although it lies below /tmp is bound into it at its old place.
make_private_tmp() {
  svc_tmp=$svc_here/tmp
  svc_ifs=$IFS
  IFS='
'
  for svc_dir in $svc_keep; do
    mkdir -p "$svc_tmp${svc_dir#/tmp}" && mount --rbind "$svc_dir" "$svc_tmp${svc_dir#/tmp}" || return 1
  done
  IFS=$svc_ifs
  mount --rbind "$svc_tmp" /tmp || return 1
  # Where a session has a folder of its own there, programs expect to find it.
  case ${TMPDIR-} in /tmp/*) mkdir -p -m 700 "$TMPDIR" ;; esac
}

open_way_in() {
  set --
  if [ "$svc_outbound" = proxy ]; then
    set_proxy_variables
    set -- "$svc_proxy_port" "$svc_proxy_socket"
  fi
  serve_way_in "$@" < /dev/null > /dev/null 2>> "$svc_here/forwarder.log" 9>&- 7<&- &
}

serve_way_in() {
  # SIGTERM is for the program: the way in stays open until the program has ended. The forwarder sees to that itself.
  trap '' TERM
  # Nor are options for it.
  unset NODE_OPTIONS NODE_EXTRA_CA_CERTS
  while :; do
    $svc_drop "$svc_node" "$svc_here/forwarder.mjs" "$svc_socket" "$svc_address" "$@"
    sleep 0.1 2>/dev/null || sleep 1
  done
}

# Whether the forwarder listens where programs look for the proxy: their first connection must not be refused.
has_relay() {
  while read -r svc_line; do
    case $svc_line in *": 0100007F:$svc_hex_port "*' 0A '*) return 0 ;; esac
  done < /proc/net/tcp
  return 1
}

# A forwarder that cannot start is in its log, and the program may need no way out: it is not kept waiting for ever.
await_relay() {
  svc_hex_port=$(printf '%04X' "$svc_proxy_port")
  svc_looks=0
  until has_relay || [ "$svc_looks" -ge 1000 ]; do
    svc_looks=$((svc_looks + 1))
    sleep 0.02 2>/dev/null || { sleep 1 && svc_looks=$((svc_looks + 49)); }
  done
}

# Processes besides this one and the way in, which share its session.
has_others() {
  look_at $$ && svc_own_session=$svc_session
  for svc_entry in /proc/[0-9]*; do
    look_at "${svc_entry#/proc/}" && [ "$svc_session" != "$svc_own_session" ] && return 0
  done
  return 1
}

# Passes SIGTERM on, once, as soon as the command is there to hear it.
on_term() {
  svc_interrupted=1 svc_stopping=1
  [ -z "$svc_asked" ] && ! is_beginning || return 0
  svc_asked=1
  # The one way to say it that dash, bash and busybox have in common.
  kill -TERM -1 2>/dev/null
}

# Whether the command has no session of its own yet: its process is a copy of this shell then, which would take note of a signal and forget it.
is_beginning() {
  [ -n "$svc_child" ] || return 0
  look_at "$svc_child" && [ "$svc_session" != "$svc_child" ]
}

# Namespaces made by unshare have nothing but the host's mounts; bubblewrap's have a /proc, loopback and a /tmp already.
enter_process_tree() {
  # The outer /proc still: it says which pid this process has outside.
  { read -r svc_stat < /proc/self/stat; } 2>/dev/null
  note_first "${svc_stat%% *}" && mount -t proc proc /proc || exit 97
}

furnish() {
  printf 'link set lo up\naddress add %s/32 dev lo\n' "$svc_address" | ip -batch - || exit 97
  echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start || exit 97
  make_private_tmp || exit 97
}

inside() {
  svc_way_in=$1 svc_boot=$2
  shift 2
  svc_stopping= svc_asked= svc_child=
  # Before anybody is told whom to ask.
  trap on_term TERM
  svc_drop='setpriv --inh-caps=-all --ambient-caps=-all --no-new-privs'
  case $svc_kind in
    bwrap)
      # Where the rights are missing the machine has loopback alone, and no ports below 1024.
      ip address add "$svc_address/32" dev lo 2>/dev/null || svc_address=127.0.0.1
      { echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start; } 2>/dev/null
      $svc_drop --bounding-set=-all true 2>/dev/null && svc_drop="$svc_drop --bounding-set=-all"
      ;;
    userns) svc_drop="$svc_drop --bounding-set=-all" ;;
    # What a container's root has by default: it may write, own and serve, but not leave its namespaces.
    root) svc_drop="$svc_drop --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+setfcap,+net_bind_service,+net_raw,+sys_chroot" ;;
  esac
  [ "$svc_kind" = bwrap ] || enter_process_tree
  # First, as it takes longest to start.
  [ "$svc_way_in" = no ] || open_way_in
  [ "$svc_kind" = bwrap ] || furnish
  if [ "$svc_outbound" != none ]; then
    echo furnished >&9
    # One byte, or the end when it failed.
    head -c 1 <&7 > /dev/null
    exec 7<&-
    [ "$svc_outbound$svc_way_in" != proxyyes ] || await_relay
    [ ! -e "$svc_here/resolv.conf" ] || mount --bind "$svc_here/resolv.conf" /etc/resolv.conf 2>/dev/null
  fi
  # Asked to stop before there was anything to stop.
  [ -z "$svc_stopping" ] || exit 143
  $svc_drop setsid "$@" 9>&- &
  svc_child=$!
  while is_beginning; do sleep 0.01 2>/dev/null || sleep 1; done
  [ -z "$svc_stopping" ] || on_term
  svc_code=
  while :; do
    svc_interrupted=
    wait "$svc_child"
    svc_waited=$?
    # 127 after an interruption: the command was already waited for by the call that was interrupted.
    [ "$svc_waited" = 127 ] && [ -n "$svc_code" ] || svc_code=$svc_waited
    [ -n "$svc_interrupted" ] || break
  done
  # Asked to stop: what the first process leaves behind may still be finishing its work. Otherwise it ends here and now.
  while [ -n "$svc_stopping" ] && has_others; do sleep 0.05 2>/dev/null || sleep 1; done
  exit "$svc_code"
}

set_proxy_variables() {
  http_proxy=http://127.0.0.1:$svc_proxy_port
  export http_proxy https_proxy="$http_proxy" HTTP_PROXY="$http_proxy" HTTPS_PROXY="$http_proxy"
  export no_proxy="127.0.0.1,localhost,::1,$svc_address" NO_PROXY="127.0.0.1,localhost,::1,$svc_address" NODE_USE_ENV_PROXY=1
}

if [ "${1-}" = --inside ]; then
  shift
  inside "$@"
else
  outside "$@"
fi
