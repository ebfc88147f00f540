#!/bin/sh
# Runs a command inside the namespaces of a local machine: enter.sh COMMAND [ARGUMENT...]
#
# Copied into the machine's folder, beside enter.conf (shell) with:
#   svc_kind       root | userns | bwrap
#   svc_node       the Node binary, svc_socket the inbound socket, svc_address the machine's own address
#   svc_keep       folders below /tmp that stay visible, one per line
#   svc_hide       folders to hide from the program, one per line; of the machine's own folder only base/ stays visible
#   svc_outbound   slirp4netns | pasta | proxy | none, svc_proxy_socket, svc_proxy_port, svc_egress (script)
#
# With unshare it becomes the process that holds the namespaces open: when it dies, they end with everything in them. With
# bubblewrap it waits, and the namespaces end with the first process inside. When the command ends, it exits with the
# same code. The first process inside (its pid is written to init.PID and to
# $SVC_TERM_FILE) passes SIGTERM on to all others.
#
# All variables begin with svc_, so that no exported variable of the user's is changed by accident.

svc_here=${0%/*}
. "$svc_here/enter.conf"
. "$svc_here/confine.sh"

# Sets svc_session and svc_ticks of process $1. Fails when it has ended or is a zombie without threads that are still
# ending. See runner.sh.
look_at() {
  { read -r svc_stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${svc_stat##*) }
  [ "$1" != X ] && { [ "$1" != Z ] || [ "${18}" -gt 1 ]; } || return 1
  svc_session=$4 svc_ticks=${20}
}

# Whether another command's namespaces of this machine still live: that command runs the inbound forwarder. Removes the
# files of killed commands.
has_living_init() {
  svc_living=1
  for svc_file in "$svc_here"/init.*; do
    [ -e "$svc_file" ] && read -r svc_pid svc_since svc_since_boot < "$svc_file" || continue
    if look_at "$svc_pid" && [ "$svc_ticks" = "$svc_since" ] && [ "$svc_since_boot" = "$svc_boot" ]; then svc_living=0; else forget "$svc_pid"; fi
  done
  return "$svc_living"
}

# Removes the files of the command whose first process was $1.
forget() {
  [ ! -e "$svc_here/home.$1" ] || rm -rf "$svc_here/home.$1" 2>/dev/null || return 0
  rm -f "$svc_here/init.$1"
}

# Serves the outbound network from outside of the namespaces. Reads two facts on descriptor 8, in either order: the
# first process's pid, and that the namespaces are furnished. Reports on descriptor 6 when it is ready. Exits at the end
# of 8: only this command's processes hold its other side.
serve_outbound() {
  exec 9>&- 7<&-
  svc_pid= svc_furnished=
  while [ -z "$svc_pid" ] || [ -z "$svc_furnished" ]; do
    read -r svc_line <&8 || exit 0
    # An empty line: the start of this process failed, and another one follows.
    case $svc_line in furnished) svc_furnished=1 ;; *) svc_pid=$svc_line ;; esac
  done
  case $svc_outbound in
    slirp4netns) exec slirp4netns --configure --mtu=65520 --disable-host-loopback --ready-fd=6 --exit-fd=8 "$svc_pid" tap0 ;;
    proxy) exec "$svc_node" "$svc_egress" "$svc_proxy_socket" <&8 >&6 ;;
    pasta)
      # pasta continues in the background once it is ready. Without access to its device it never becomes ready. The
      # network equals that of slirp4netns. It is not a copy of the host's: the host's own address could then not be
      # reached.
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
  # Opened for both directions first, because that never waits for the other side.
  exec 9<> "$svc_pipe.life" 6<> "$svc_pipe.ready"
  exec 8< "$svc_pipe.life" 7< "$svc_pipe.ready"
  rm -f "$svc_pipe.life" "$svc_pipe.ready"
  serve_outbound > /dev/null 2> "$svc_here/outbound.log" &
  exec 6>&- 8<&-
}

# Records the first process $1 inside, for three readers: the provider that ends the machine, runner.sh, and the
# outbound network.
note_first() {
  look_at "$1" || return 1
  printf '%s %s %s\n' "$1" "$svc_ticks" "$svc_boot" > "$svc_here/init.$1"
  # Atomic: a half-written file would look like a process that has ended.
  [ -z "${SVC_TERM_FILE-}" ] || { printf '%s %s\n' "$1" "$svc_ticks" > "$SVC_TERM_FILE.new" && mv -f "$SVC_TERM_FILE.new" "$SVC_TERM_FILE"; }
  [ "$svc_outbound" = none ] || printf '%s\n' "$1" >&9
}

# bubblewrap reports the first process's pid in JSON, on descriptor 5.
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

# Runs the command $@ behind bubblewrap. bubblewrap fails when a path that it covers disappears while it starts, and
# sockets of the host may disappear at any moment. Then this starts it again, at most five times, with the paths that
# exist at that time. A complaint about a permanent cause also begins with "Can't"; five failed starts take 0.2 s.
run_bwrap() {
  svc_messages=$svc_here/messages.$$ svc_tries=5
  while :; do
    svc_begun= svc_complaint=
    mkfifo -m 600 "$svc_here/pipe.$$.info" || exit 97
    # Opened by this process, and for both directions first. If bubblewrap has already failed, another process that opens
    # the pipe would wait forever. Its own copy of the writing side, which a shell keeps when it redirects a function,
    # would have the same effect.
    exec 8<> "$svc_here/pipe.$$.info"
    exec 4< "$svc_here/pipe.$$.info"
    rm -f "$svc_here/pipe.$$.info"
    { exec <&4 4<&- 8>&- && note_bwrap_first; } &
    svc_note_reader=$!
    # The inbound forwarder works outside of the program's view: in the folder of its socket, and with its log.
    exec 4>> "$svc_here/forwarder.log" 3< "${svc_socket%/*}" 6> "$svc_messages"
    # Removed now, because a killed shell removes nothing.
    rm -f "$svc_messages"
    (confine_by_bwrap "$@")
    svc_code=$?
    while read -r svc_line; do
      case $svc_line in begun) svc_begun=1 ;; *) svc_complaint=${svc_complaint:-$svc_line} ;; esac
    done < /proc/self/fd/6
    exec 3<&- 4>&- 6>&- 8>&-
    # The failed start's note must not come after that of the next one.
    wait "$svc_note_reader"
    [ -z "$svc_begun" ] || exit "$svc_code"
    svc_tries=$((svc_tries - 1))
    case $svc_tries:$svc_complaint in
      [1-9]:*": Can't "*)
        [ ! -e "$svc_here/destroying" ] || exit 98
        [ "$svc_outbound" = none ] || echo >&9
        ;;
      *)
        [ -z "$svc_complaint" ] || printf '%s\n' "$svc_complaint" >&2
        exit "$svc_code"
        ;;
    esac
  done
}

# $@: bubblewrap's arguments for the visible files, and the command. Messages before the command begins go to a file:
# those of a failed start do not belong in the program's log.
exec_bwrap() {
  exec 5>&8 8>&2 2>&6
  exec bwrap --unshare-user --unshare-net --unshare-pid --unshare-ipc --cap-add CAP_NET_ADMIN --as-pid-1 --info-fd 5 "$@"
}

# Sets svc_processes to the process limit that the program gets by itself, because no control group bounds it. Inside a
# user namespace the kernel counts its processes alone (since Linux 5.14). For root, the kernel ignores such a limit.
find_process_limit() {
  svc_processes=
  [ "$svc_kind" != root ] && [ -e "$svc_here/limits.conf" ] && [ ! -e "$svc_here/group" ] && command -v prlimit > /dev/null || return 0
  # In a shell of its own: limits.sh has functions with other meanings.
  svc_processes=$(
    . "$svc_here/limits.conf"
    . "$svc_here/limits.sh"
    [ -n "$svc_processes" ] || default_processes
    echo "$svc_processes"
  )
}

# Adds to svc_drop a command that sets the seccomp filter svc_seccomp and becomes the program. No other tool of a base
# system can do so (setpriv since util-linux 2.41). The code has no blanks and no wildcards, because the shell splits and
# expands svc_drop. Without Perl, or with another processor, there is no filter.
add_filter() {
  case $(uname -m) in x86_64) svc_calls='317 157' ;; aarch64) svc_calls='277 167' ;; *) return ;; esac
  command -v perl > /dev/null || return
  # seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, struct sock_fprog); where the kernel refuses it,
  # prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ...), which before Linux 5.16 also slows the program down by mitigations
  # against Spectre. Perl would complain about a locale that is not installed.
  svc_drop="$svc_drop env PERL_BADLANG=0 perl -e delete(\$ENV{PERL_BADLANG});\$f=pack(q(H).length(\$h=shift),\$h);\$p=pack(q(Sx6p),length(\$f)/8,\$f);syscall(${svc_calls% *},1,4,\$p)==0||syscall(${svc_calls#* },22,2,\$p);exec(@ARGV);exit(127) $svc_seccomp"
}

outside() {
  [ ! -e "$svc_here/destroying" ] || exit 98
  find_process_limit
  { read -r svc_boot < /proc/sys/kernel/random/boot_id; } 2>/dev/null
  svc_way_in=yes
  ! has_living_init || svc_way_in=no
  [ "$svc_outbound" = none ] || open_outbound
  [ "$svc_kind" != bwrap ] || run_bwrap sh "$0" --inside "$svc_way_in" "$svc_boot" "$svc_processes" "$@"
  # Only the host's network namespace lists its sockets. confine.sh reads them from this descriptor: an environment
  # variable would reveal them to every process and is limited in size.
  exec 5< /proc/net/unix
  set -- --net --pid --ipc --mount --fork --kill-child=SIGKILL sh "$0" --inside "$svc_way_in" "$svc_boot" "$svc_processes" "$@"
  # The user stays the same inside: a program that believes it is root behaves differently.
  [ "$svc_kind" != userns ] || set -- --user --map-current-user --keep-caps "$@"
  exec unshare "$@"
}

open_way_in() {
  set --
  if [ "$svc_outbound" = proxy ]; then
    set_proxy_variables
    set -- "$svc_proxy_port" "$svc_proxy_socket"
  fi
  serve_way_in "$@" < /dev/null > /dev/null 2>> "$svc_log" 9>&- 7<&- 5<&- &
}

serve_way_in() {
  # SIGTERM is for the program: the inbound forwarder stays until the program has ended. It ignores SIGTERM itself.
  trap '' TERM
  # The user's Node options are not meant for the forwarder either.
  unset NODE_OPTIONS NODE_EXTRA_CA_CERTS
  while :; do
    # The forwarder sees the host's files, and the program must not gain access to them through it. It has a capability
    # that the program lacks, so the kernel forbids the program to trace it or to read its files. A signal must not open
    # its debugger either.
    $svc_drop_less "$svc_node" --disable-sigusr1 "$svc_here/forwarder.mjs" "$svc_socket" "$svc_address" "$@"
    sleep 0.1 2>/dev/null || sleep 1
  done
}

# Whether the forwarder listens on the proxy's port: the program's first connection must not be refused.
has_relay() {
  while read -r svc_line; do
    case $svc_line in *": 0100007F:$svc_hex_port "*' 0A '*) return 0 ;; esac
  done < /proc/net/tcp
  return 1
}

# The log of the forwarder has the reason of a failed start. The program may not need the network, so the wait is
# limited.
await_relay() {
  svc_hex_port=$(printf '%04X' "$svc_proxy_port")
  svc_looks=0
  until has_relay || [ "$svc_looks" -ge 1000 ]; do
    svc_looks=$((svc_looks + 1))
    sleep 0.02 2>/dev/null || { sleep 1 && svc_looks=$((svc_looks + 49)); }
  done
}

# Whether processes exist besides this one and the inbound forwarder, which shares its session.
has_others() {
  look_at $$ && svc_own_session=$svc_session
  for svc_entry in /proc/[0-9]*; do
    look_at "${svc_entry#/proc/}" && [ "$svc_session" != "$svc_own_session" ] && return 0
  done
  return 1
}

# Passes SIGTERM on once, as soon as the command can receive it.
on_term() {
  svc_interrupted=1 svc_stopping=1
  [ -z "$svc_asked" ] && ! is_beginning || return 0
  svc_asked=1
  # The only form that dash, bash and busybox all accept.
  kill -TERM -1 2>/dev/null
}

# Whether the command has no session of its own yet. Its process is then a copy of this shell, which would record a
# signal and lose it.
is_beginning() {
  [ -n "$svc_child" ] || return 0
  look_at "$svc_child" && [ "$svc_session" != "$svc_child" ]
}

# Namespaces of unshare have only the host's mounts; those of bubblewrap already have /proc, loopback and /tmp.
enter_process_tree() {
  # This is still the outer /proc: it shows this process's pid outside.
  { read -r svc_stat < /proc/self/stat; } 2>/dev/null
  svc_first=${svc_stat%% *}
  note_first "$svc_first" && mount -t proc proc /proc || exit 97
}

# Starts loopback, with an address of the machine's own. Debian's base image has Perl, but no ip. The numbers are of
# <linux/sockios.h>, for Linux's struct ifreq: SIOCSIFFLAGS with IFF_UP, then address and netmask of a second address.
open_loopback() {
  if command -v ip > /dev/null || ! command -v perl > /dev/null; then
    printf 'link set lo up\naddress add %s/32 dev lo\n' "$svc_address" | ip -batch -
    return
  fi
  perl -e '
    socket(my $socket, 2, 2, 0) or die "socket: $!\n";
    sub set { my ($request, $name, $value) = @_; ioctl($socket, $request, pack("a16 a24", $name, $value)) or die "ioctl $request: $!\n"; }
    sub address { pack("S n C4", 2, 0, split(/\./, $_[0])) }
    set(0x8914, "lo", pack("s", 1));
    set(0x8916, "lo:svc", address($ARGV[0]));
    set(0x891c, "lo:svc", address("255.255.255.255"));' "$svc_address"
}

# Addresses at which clouds serve credentials to every process of a machine: link-local ones, and those of Alibaba Cloud
# and Azure. egress.ts refuses the same for the proxy. slirp4netns and pasta would pass them on; both are IPv4 only.
svc_metadata='169.254.0.0/16 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32'

# Refuses those addresses by routes, which the program may not change. The numbers are of <linux/route.h>: SIOCADDRT,
# with RTF_UP and RTF_REJECT in Linux's struct rtentry.
deny_metadata() {
  case $svc_outbound in slirp4netns | pasta) ;; *) return 0 ;; esac
  if command -v ip > /dev/null || ! command -v perl > /dev/null; then
    printf 'route add prohibit %s\n' $svc_metadata | ip -batch -
    return
  fi
  perl -e '
    socket(my $socket, 2, 2, 0) or die "socket: $!\n";
    sub address { pack("S n C4 x8", 2, 0, split(/\./, $_[0])) }
    for (@ARGV) {
      my ($target, $bits) = split(/\//);
      my $mask = join(".", unpack("C4", pack("N", 0xffffffff << (32 - $bits) & 0xffffffff)));
      ioctl($socket, 0x890b, pack("x[L!] a16 x16 a16 S x62", address($target), address($mask), 0x201)) or die "route $_: $!\n";
    }' $svc_metadata
}

furnish() {
  open_loopback && deny_metadata || exit 97
  echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start || exit 97
  { echo '0 2147483647' > /proc/sys/net/ipv4/ping_group_range; } 2>/dev/null
}

inside() {
  svc_way_in=$1 svc_boot=$2 svc_processes=$3
  shift 3
  svc_stopping= svc_asked= svc_child= svc_first=
  # Set before any process learns this pid as the target of SIGTERM.
  trap on_term TERM
  svc_drop='setpriv --inh-caps=-all --ambient-caps=-all --no-new-privs'
  svc_drop_less='setpriv --inh-caps=-all,+lease --ambient-caps=-all,+lease --no-new-privs --bounding-set=-all,+lease'
  svc_log=$svc_here/forwarder.log
  case $svc_kind in
    bwrap)
      echo begun >&6
      exec 2>&8 6>&- 8>&-
      svc_socket=/proc/self/fd/3/${svc_socket##*/} svc_proxy_socket=/proc/self/fd/3/${svc_proxy_socket##*/} svc_log=/proc/self/fd/4
      svc_drop_less='setpriv --inh-caps=-all,+net_admin --ambient-caps=-all,+net_admin --no-new-privs'
      # Without the rights the machine has only loopback, and no ports below 1024.
      open_loopback 2>/dev/null || svc_address=127.0.0.1
      deny_metadata || exit 97
      { echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start; } 2>/dev/null
      $svc_drop --bounding-set=-all true 2>/dev/null && svc_drop="$svc_drop --bounding-set=-all"
      ;;
    userns) svc_drop="$svc_drop --bounding-set=-all" ;;
    # The default capabilities of a container's root: it may write, own and serve, but not leave its namespaces.
    root)
      svc_drop="$svc_drop --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+setfcap,+net_bind_service,+sys_chroot"
      # Raw packets pass the routes that refuse the metadata addresses. The kernel lets ping work without them.
      case $svc_outbound in slirp4netns | pasta) ;; *) svc_drop="$svc_drop,+net_raw" ;; esac
      ;;
  esac
  add_filter
  [ -z "$svc_processes" ] || svc_drop="prlimit --nproc=$svc_processes:$svc_processes $svc_drop"
  [ "$svc_kind" = bwrap ] || enter_process_tree
  # First, because it takes longest to start.
  [ "$svc_way_in" = no ] || open_way_in
  [ "$svc_kind" = bwrap ] || furnish
  if [ "$svc_outbound" != none ]; then
    echo furnished >&9
    # One byte, or the end of the pipe after a failure.
    head -c 1 <&7 > /dev/null
    exec 7<&-
    [ "$svc_outbound$svc_way_in" != proxyyes ] || await_relay
    [ "$svc_kind" = bwrap ] || [ ! -e "$svc_here/resolv.conf" ] || mount --bind "$svc_here/resolv.conf" /etc/resolv.conf 2>/dev/null
  fi
  # SIGTERM came before the command was started.
  [ -z "$svc_stopping" ] || exit 143
  if [ "$svc_kind" = bwrap ]; then
    cd / && $svc_drop setsid "$@" 9>&- 4>&- 3<&- &
  else
    # A layer belongs to one command at a time.
    svc_layer=home
    [ "$svc_way_in" != no ] || svc_layer=home.$svc_first
    unshare --mount sh "$0" --confine "$svc_layer" "$svc_drop" "$@" 9>&- &
  fi
  svc_child=$!
  exec 5<&-
  while is_beginning; do sleep 0.01 2>/dev/null || sleep 1; done
  [ -z "$svc_stopping" ] || on_term
  svc_code=
  while :; do
    svc_interrupted=
    wait "$svc_child"
    svc_waited=$?
    # 127 after an interruption: the interrupted call has already waited for the command.
    [ "$svc_waited" = 127 ] && [ -n "$svc_code" ] || svc_code=$svc_waited
    [ -n "$svc_interrupted" ] || break
  done
  # After SIGTERM, remaining processes may finish their work. Otherwise they are killed now.
  while [ -n "$svc_stopping" ] && has_others; do sleep 0.05 2>/dev/null || sleep 1; done
  [ -z "$svc_first" ] || [ "$svc_way_in" = yes ] || { kill -KILL -1 2>/dev/null; forget "$svc_first"; }
  exit "$svc_code"
}

set_proxy_variables() {
  http_proxy=http://127.0.0.1:$svc_proxy_port
  export http_proxy https_proxy="$http_proxy" HTTP_PROXY="$http_proxy" HTTPS_PROXY="$http_proxy"
  export no_proxy="127.0.0.1,localhost,::1,$svc_address" NO_PROXY="127.0.0.1,localhost,::1,$svc_address" NODE_USE_ENV_PROXY=1
}

case ${1-} in
  --inside) shift && inside "$@" ;;
  --confine) shift && confine "$@" ;;
  --homes) print_homes "$2" 'timeout 1' ;;
  *) outside "$@" ;;
esac
