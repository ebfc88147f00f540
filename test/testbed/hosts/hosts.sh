#!/bin/bash
# Machines for tests of what goes over SSH: each has a network, processes and a disk of its own, and a real sshd. Needs root.
#
#   hosts.sh claim PID                    takes a free network for as long as process PID lives; prints its folder, for SVC_HOSTS below
#   hosts.sh up NAME IP [OPTION...]       makes a machine, or starts one that was killed; returns when its sshd answers
#        --user NAME (ubuntu)  --key FILE (a public key; may be repeated)  --no-sudo  --no-rsync  --node FILE (a Node binary to have)
#        --disk MB (1024)  --cpus N  --mem MB  --user-data FILE (run as root at the first start)  --max-sessions N
#        --cable (its link can be shaped)  --delay MS  --loss PERCENT  --rate MBIT (one way, both ways alike)
#   hosts.sh kill NAME                    power cut: all processes die, the disk stays
#   hosts.sh reboot NAME                  kill and up, with the same options
#   hosts.sh down NAME                    kill, and the disk is gone
#   hosts.sh pause|resume NAME            freezes all processes; the kernel still accepts connections for them
#   hosts.sh cut|heal NAME                pulls or restores the cable: packets vanish without an error
#   hosts.sh shape NAME DELAY LOSS RATE   of one with a cable
#   hosts.sh firewall NAME PORT drop|reject|open
#   hosts.sh rekey NAME                   a new host key, as if reinstalled
#   hosts.sh exec NAME COMMAND...         as root on the machine
#   hosts.sh key                          prints the private key that every machine accepts
#   hosts.sh release                      all machines and the network are gone
#   hosts.sh sweep                        releases the claims of processes that have ended
#
# A network is 10.N.0.0/16 for an N that is unused on this machine. A route that refuses everything is added first and
# removed last, so no packet for the network ever leaves this machine. Machines are ports of a bridge that does not
# route, and know no other network.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
all=/run/svc-hosts
dir=${SVC_HOSTS:-}
first_network=100 last_network=119
# Folders of this system that machines must not see; the rest is the lower layer of their file system.
hidden=(root home tmp var/tmp work mnt media srv opt usr/local/bin/node usr/bin/node)

die() { echo "hosts.sh: $*" >&2; exit 1; }

. "$here/../machines.sh"

network() { basename "$dir"; }
bridge_name() { echo "svch$(network)"; }
host_dir() { [[ $1 =~ ^[a-z0-9][a-z0-9-]{0,40}$ ]] || die "a machine cannot be called $1"; echo "$dir/hosts/$1"; }
existing() { local host; host=$(host_dir "$1"); [ -d "$host" ] || die "there is no machine $1"; echo "$host"; }
port_of() { local last=${1#*.*.}; echo "v$(network)-${last/./-}"; }

# Folders of the control groups of machine $1: cgroup v2 for freezing, and either version for limits.
group() { echo "$(unified)/svc-hosts-$(network)-$1"; }
limit_group() { # CONTROLLER NAME
  if grep -qw "$1" "$(unified)/cgroup.controllers" 2>/dev/null; then
    echo "+$1" > "$(unified)/cgroup.subtree_control" 2>/dev/null || true
    group "$2"
  else echo "/sys/fs/cgroup/$1/svc-hosts-$(network)-$2"; fi
}

lock_all() {
  mkdir -p "$all"
  exec 9> "$all/lock"
  flock 9
}

cmd_claim() {
  lock_all
  sweep > /dev/null
  local n
  for ((n = first_network; n <= last_network; n++)); do
    [ -d "$all/$n" ] && continue
    is_free_range "$n" || continue
    dir=$all/$n
    mkdir -p "$dir/hosts"
    note_process "$1" "$dir/owner"
    take_range "$n"
    # --make-private undoes propagation at once: machines' mounts are not shared.
    mkdir -p "$dir/disk"
    mount -t tmpfs -o mode=755,size=8g svc-hosts "$dir/disk"
    mount --make-private "$dir/disk"
    ip link add "$(bridge_name)" type bridge
    ip addr add "10.$n.0.1/16" dev "$(bridge_name)"
    ip link set "$(bridge_name)" up
    ssh-keygen -q -t ed25519 -N '' -C test -f "$dir/key"
    make_base
    echo "$dir"
    return
  done
  die "all networks are taken: see $all"
}

# What all machines have in common, above this system.
make_base() {
  local base=$dir/disk/base path
  mkdir -p "$base/etc/ssh" "$base/etc/sudoers.d"
  for path in "${hidden[@]}"; do
    [ -e "/$path" ] && [ ! -L "/$path" ] || continue
    mkdir -p "$base/$(dirname "$path")"
    mknod "$base/$path" c 0 0
  done
  : > "$base/etc/resolv.conf"
}

cmd_up() {
  local name=$1 ip=$2 host
  shift 2
  host=$(host_dir "$name")
  [[ $ip == "10.$(network)."* ]] || die "$ip is not in 10.$(network).0.0/16"
  if [ -d "$host" ]; then
    [ -z "$(noted "$host/init" || true)" ] || die "$name is up"
  else
    mkdir -p "$host"
    echo "$ip" > "$host/ip"
  fi
  # One that was killed starts as it was.
  [ $# = 0 ] && [ -f "$host/options" ] || printf '%s\n' "$@" > "$host/options"
  start "$name"
}

start() {
  local name=$1 host ip user=ubuntu keys=() sudo=1 rsync=1 node= disk=1024 cpus= mem= user_data= sessions=10 cable= delay=0 loss=0 rate=0
  host=$(existing "$name")
  ip=$(cat "$host/ip")
  local options=()
  mapfile -t options < "$host/options"
  set -- "${options[@]}"
  while [ -n "${1:-}" ]; do
    case $1 in
      --no-sudo) sudo= ;;
      --no-rsync) rsync= ;;
      --cable) cable=1 ;;
      --user) user=$2 ;;
      --key) keys+=("$2") ;;
      --node) node=$2 ;;
      --disk) disk=$2 ;;
      --cpus) cpus=$2 ;;
      --mem) mem=$2 ;;
      --user-data) user_data=$2 ;;
      --max-sessions) sessions=$2 ;;
      --delay) delay=$2 cable=1 ;;
      --loss) loss=$2 cable=1 ;;
      --rate) rate=$2 cable=1 ;;
      *) die "up: no option $1" ;;
    esac
    case $1 in --no-* | --cable) shift ;; *) shift 2 ;; esac
  done
  [ -d "$dir/disk/$name" ] || make_disk
  [ ! -f "$host/cable.settings" ] || read -r delay loss rate < "$host/cable.settings"

  local group memory cpu
  group=$(group "$name")
  mkdir -p "$group"
  local groups=("$group")
  if [ -n "$mem" ]; then
    memory=$(limit_group memory "$name") && mkdir -p "$memory" && groups+=("$memory")
    if [ -e "$memory/memory.max" ]; then echo $((mem << 20)) > "$memory/memory.max"; else echo $((mem << 20)) > "$memory/memory.limit_in_bytes"; fi
  fi
  if [ -n "$cpus" ]; then
    cpu=$(limit_group cpu "$name") && mkdir -p "$cpu" && groups+=("$cpu")
    if [ -e "$cpu/cpu.max" ]; then awk "BEGIN { print int($cpus * 100000), 100000 }" > "$cpu/cpu.max"; else awk "BEGIN { print int($cpus * 100000) }" > "$cpu/cpu.cfs_quota_us"; fi
  fi
  printf '%s\n' "${groups[@]}" > "$host/groups"

  rm -f "$host/plugged"
  mkfifo "$host/plugged"
  (
    for group in "${groups[@]}"; do echo "$BASHPID" > "$group/cgroup.procs"; done
    export host_name=$name host_root=$dir/disk/$name host_base=$dir/disk/base host_node=$node host_plugged=$host/plugged host_sessions=$sessions
    exec setsid unshare --net --mount --uts --ipc --pid --fork --kill-child=KILL --propagation private "$here/hosts.sh" init
  ) > "$host/console" 2>&1 < /dev/null 9>&- &
  local outer=$! init= tries
  disown
  init=$(child_of "$outer")
  [ -n "$init" ] || die "$name did not start: $(tail -3 "$host/console")"
  note_process "$init" "$host/init"
  plug
  echo > "$host/plugged"
  for ((tries = 0; tries < 6000; tries++)); do
    in_network "$init" bash -c 'exec 3<> /dev/tcp/127.0.0.1/22 && head -c 4 <&3 | grep -q SSH-' 2>/dev/null && return 0
    [ -n "$(noted "$host/init" || true)" ] || die "$name ended: $(tail -3 "$host/console")"
    sleep 0.02
  done
  die "the sshd of $name does not answer: $(tail -3 "$host/console")"
}

# Uses the options of `start`.
make_disk() {
  local root=$dir/disk/$name upper=$dir/disk/$name/own/upper home path
  mkdir -p "$root/own" "$root/system"
  # The size of this tmpfs is the machine's free disk.
  mount -t tmpfs -o "mode=755,size=${disk}m" svc-host "$root/own"
  mount --make-private "$root/own"
  mkdir -p "$upper" "$root/own/work"
  for path in "${hidden[@]}"; do [ -d "/$path" ] && [ ! -L "/$path" ] && mkdir -p "$upper/$path"; done
  mkdir -p "$upper/etc/ssh" "$upper/etc/sudoers.d" "$upper/usr/bin" "$upper/usr/local/bin"
  chmod 1777 "$upper/tmp" "$upper/var/tmp"
  chmod 700 "$upper/root"
  home=$upper/home/$user
  mkdir -p "$home/.ssh"
  # The only ordinary user: the machine lacks this system's other users.
  { grep -vE '^[^:]*:[^:]*:(1[0-9]{3}):' /etc/passwd; echo "$user:x:1000:1000::/home/$user:/bin/bash"; } > "$upper/etc/passwd"
  { grep -vE '^[^:]*:[^:]*:(1[0-9]{3}):' /etc/group; echo "$user:x:1000:"; } > "$upper/etc/group"
  { grep -v "^$user:" /etc/shadow; echo "$user:*:19000:0:99999:7:::"; } > "$upper/etc/shadow"
  chmod 640 "$upper/etc/shadow"
  cat "$dir/key.pub" "${keys[@]}" > "$home/.ssh/authorized_keys"
  chown -R 1000:1000 "$home"
  chmod 700 "$home/.ssh"
  if [ -n "$sudo" ]; then
    echo "$user ALL=(ALL) NOPASSWD:ALL" > "$upper/etc/sudoers.d/$user"
    chmod 440 "$upper/etc/sudoers.d/$user"
  else mknod "$upper/usr/bin/sudo" c 0 0; fi
  [ -n "$rsync" ] || mknod "$upper/usr/bin/rsync" c 0 0
  if [ -n "$node" ]; then rm -f "$upper/usr/local/bin/node"; : > "$upper/usr/local/bin/node"; fi
  rm -f "$upper"/etc/ssh/ssh_host_*
  ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$upper/etc/ssh/ssh_host_ed25519_key"
  echo "$name" > "$upper/etc/hostname"
  printf '127.0.0.1 localhost\n::1 localhost\n%s %s\n' "$ip" "$name" > "$upper/etc/hosts"
  if [ -n "$user_data" ]; then install -m 755 "$user_data" "$root/own/user-data"; fi
}

# Uses the variables of `start`: connects the machine to the network.
plug() {
  local port mac
  port=$(port_of "$ip")
  mac=$(mac_of "$ip")
  ip link del "$port" 2>/dev/null || true
  if [ -n "$cable" ]; then
    echo "$delay $loss $rate" > "$host/cable.settings"
    if has_netem; then plug_pair; netem "$host" "$init"; else plug_cable; fi
  else plug_pair; fi
  ip link set "$port" master "$(bridge_name)"
  ip link set "$port" up
  in_network "$init" ip link set lo up
  in_network "$init" ip link set eth0 address "$mac"
  in_network "$init" ip addr add "$ip/16" dev eth0
  in_network "$init" ip link set eth0 up
  # A static entry: an unreachable machine is silent, as behind a router, instead of failing address resolution.
  ip neigh replace "$ip" lladdr "$mac" dev "$(bridge_name)" nud permanent
}

plug_pair() { ip link add "$port" type veth peer name eth0 netns "$init"; }

plug_cable() {
  local other=$port-
  # Machines start in parallel: rename the program into place, so that none executes a partial one.
  [ -x "$dir/wire" ] || { gcc -O2 -o "$dir/wire.$$" "$here/wire.c" && mv -f "$dir/wire.$$" "$dir/wire"; }
  rm -f "$host/ready"
  mkfifo "$host/ready"
  setsid "$dir/wire" "$port" "$other" "$host/cable.settings" > "$host/ready" 2>> "$host/console" < /dev/null 9>&- &
  note_process $! "$host/wire"
  disown
  [ "$(timeout 120 head -n 1 "$host/ready")" = ready ] || die "no cable: $(tail -1 "$host/console")"
  ip link set "$other" netns "$init" name eth0
}

has_netem() {
  [ -z "${SVC_HOSTS_NO_NETEM:-}" ] || return 1
  unshare --net sh -c 'ip link set lo up && tc qdisc add dev lo root netem delay 1ms' 2>/dev/null
}
netem() { # HOST_DIR INIT
  local delay loss rate port limits
  read -r delay loss rate < "$1/cable.settings"
  port=$(port_of "$(cat "$1/ip")")
  limits=(netem delay "${delay}ms" loss "$loss%" limit 65536)
  [ "$rate" = 0 ] || limits+=(rate "${rate}mbit")
  tc qdisc replace dev "$port" root "${limits[@]}"
  in_network "$2" tc qdisc replace dev eth0 root "${limits[@]}"
}

# The first process of a machine: makes its file system, waits for its network, and keeps sshd running.
cmd_init() {
  local system=$host_root/system upper=$host_root/own/upper
  mount -t overlay -o "lowerdir=$host_base:/,upperdir=$upper,workdir=$host_root/own/work" svc-host "$system"
  mount -t proc proc "$system/proc"
  mount -t sysfs -o ro sysfs "$system/sys"
  mount -t tmpfs -o mode=755 none "$system/run"
  mkdir -p "$system/run/sshd"
  mount -t tmpfs -o mode=755 none "$system/dev"
  mkdir "$system/dev/pts" "$system/dev/shm" "$system/dev/net"
  mount -t devpts -o newinstance,ptmxmode=666 devpts "$system/dev/pts"
  mount -t tmpfs -o mode=1777 none "$system/dev/shm"
  local device
  while read -r device; do
    set -- $device
    mknod -m 666 "$system/dev/$1" c "$2" "$3"
  done <<< $'null 1 3\nzero 1 5\nfull 1 7\nrandom 1 8\nurandom 1 9\ntty 5 0\nnet/tun 10 200'
  ln -s pts/ptmx "$system/dev/ptmx"
  ln -s /proc/self/fd "$system/dev/fd"
  local fd=0
  for device in stdin stdout stderr; do ln -s "/proc/self/fd/$fd" "$system/dev/$device"; fd=$((fd + 1)); done
  [ -z "$host_node" ] || mount --bind -o ro "$host_node" "$system/usr/local/bin/node"
  [ ! -f "$host_root/own/user-data" ] || { mkdir -p "$system/var/lib/svc-test" && mv "$host_root/own/user-data" "$system/var/lib/svc-test/user-data"; }
  hostname "$host_name"
  cat "$host_plugged" > /dev/null
  cd "$system"
  mkdir -p run/before
  pivot_root . run/before
  cd /
  umount -l /run/before
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root SESSIONS="$host_sessions" /bin/sh -c '
    if [ -x /var/lib/svc-test/user-data ]; then
      mv /var/lib/svc-test/user-data /var/lib/svc-test/user-data.started
      /var/lib/svc-test/user-data.started > /var/log/user-data 2>&1 &
    fi
    # Runs @reboot entries where cron is installed.
    [ ! -x /usr/sbin/cron ] || /usr/sbin/cron
    while :; do
      /usr/sbin/sshd -D -e -f /dev/null -h /etc/ssh/ssh_host_ed25519_key -o PidFile=none -o UsePAM=no -o UseDNS=no \
        -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o MaxSessions="$SESSIONS" -o "Subsystem=sftp internal-sftp" &
      sshd=$!
      # Reap orphaned processes.
      while kill -0 $sshd 2> /dev/null; do wait; done
      sleep 0.1
    done'
}

cmd_kill() {
  local host pid group tries
  host=$(existing "$1")
  # A frozen machine cannot die.
  cmd_resume "$1"
  ip link del "$(port_of "$(cat "$host/ip")")" 2>/dev/null || true
  pid=$(noted "$host/wire" || true)
  [ -z "$pid" ] || kill -KILL "$pid"
  pid=$(noted "$host/init" || true)
  [ -z "$pid" ] || kill -KILL "$pid"
  rm -f "$host/wire" "$host/init" "$host/plugged" "$host/ready"
  [ -f "$host/groups" ] || return 0
  while read -r group; do
    for ((tries = 0; tries < 300; tries++)); do rmdir "$group" 2>/dev/null && break; [ -d "$group" ] || break; sleep 0.01; done
  done < "$host/groups"
}
cmd_reboot() { cmd_kill "$1"; start "$1"; }
cmd_down() {
  local host
  host=$(existing "$1")
  cmd_kill "$1"
  umount -l "$dir/disk/$1/own" 2>/dev/null || true
  rm -rf --one-file-system "$dir/disk/$1" "$host"
}
cmd_pause() { existing "$1" > /dev/null; freeze "$1" 1; }
cmd_resume() { [ ! -e "$(group "$1")/cgroup.freeze" ] || freeze "$1" 0; }
freeze() { freeze_group "$(group "$1")" "$2" || die "$1 does not stand still"; }
# A port in this state (0, disabled; 3, forwarding) drops all packets, while its link stays up.
cmd_cut() { bridge link set dev "$(port_of "$(cat "$(existing "$1")/ip")")" state 0; }
cmd_heal() { bridge link set dev "$(port_of "$(cat "$(existing "$1")/ip")")" state 3; }
cmd_shape() {
  local host pid
  host=$(existing "$1")
  [ -f "$host/cable.settings" ] || die "$1 has no cable: up ... --cable"
  echo "$2 $3 $4" > "$host/cable.settings"
  if pid=$(noted "$host/wire"); then kill -HUP "$pid"; else netem "$host" "$(noted "$host/init")"; fi
}
cmd_firewall() {
  local init
  init=$(noted "$(existing "$1")/init")
  in_network "$init" nft -f - <<< $'table inet svc {\nchain in {\ntype filter hook input priority 0\n}\n}'
  case $3 in
    open) in_network "$init" nft flush chain inet svc in ;;
    drop) in_network "$init" nft add rule inet svc in iifname eth0 tcp dport "$2" drop ;;
    reject) in_network "$init" nft add rule inet svc in iifname eth0 tcp dport "$2" reject with tcp reset ;;
    *) die "firewall: $3?" ;;
  esac
}
cmd_rekey() { cmd_exec "$1" sh -c 'rm -f /etc/ssh/ssh_host_*; ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key; pkill -x sshd' || true; }
cmd_exec() {
  local init group
  init=$(noted "$(existing "$1")/init") || die "$1 is down"
  while read -r group; do echo $$ > "$group/cgroup.procs"; done < "$(host_dir "$1")/groups"
  shift
  exec nsenter -t "$init" -n -m -u -i -p env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
}
cmd_key() { echo "$dir/key"; }

cmd_release() {
  local host
  [ -d "$dir/hosts" ] || return 0
  for host in "$dir"/hosts/*/; do [ ! -d "$host" ] || cmd_down "$(basename "$host")"; done
  umount -l "$dir/disk" 2>/dev/null || true
  ip link del "$(bridge_name)" 2>/dev/null || true
  # Later packets are still refused.
  give_range "$(network)" || true
  rm -rf --one-file-system "$dir"
}
sweep() {
  local one
  for one in "$all"/[0-9]*/; do
    [ -d "$one" ] && [ -z "$(noted "$one/owner" || true)" ] || continue
    (dir=${one%/} && cmd_release)
  done
}
cmd_sweep() {
  [ -d "$all" ] || return 0
  lock_all
  sweep
}

run_command SVC_HOSTS 'claim sweep init' "$@"
