# The network of a cluster with nodes: a bridge whose ports are nodes. It has no route to other networks.

bridge_name() { echo "svck$(number)"; }
address_of() { echo "10.$(number).0.$1"; }
node_address() { address_of $((10 + $1)); }
pods_of() { echo "10.$(number).$((16 + $1)).0/24"; }

make_network() {
  local n
  n=$(number)
  : > "$dir/network"
  take_range "$n"
  nft -f - <<END
table inet svck$n {
  chain out {
    type filter hook postrouting priority 0
    ip daddr 10.$n.0.0/16 oifname != { "lo", "$(bridge_name)" } counter drop
  }
}
END
  ip link add "$(bridge_name)" type bridge
  ip addr add "$(address_of 1)/24" dev "$(bridge_name)"
  ip link set "$(bridge_name)" up
  save_kernel
}

remove_network() {
  local n
  n=$(number)
  ip link del "$(bridge_name)" 2>/dev/null || true
  if give_range "$n"; then nft delete table inet "svck$n" 2>/dev/null || true; fi
}

# plug NAME LAST_BYTE PID: connects the network namespace of a process to its port of the bridge.
plug() {
  local port=svck$(number)-$2 address mac other
  address=$(address_of "$2")
  mac=$(mac_of "$address")
  ip link del "$port" 2>/dev/null || true
  ip link add "$port" type veth peer name eth0 netns "$3"
  ip link set "$port" master "$(bridge_name)" up
  # Static neighbour entries: an unreachable node is silent, as behind a router, instead of failing address resolution.
  {
    echo "link set lo up"
    echo "link set eth0 address $mac"
    echo "addr add $address/24 dev eth0"
    echo "link set eth0 up"
    for ((other = 0; other <= max_nodes; other++)); do
      [ "$other" = 0 ] && other_address=$(address_of 2) || other_address=$(node_address "$other")
      [ "$other_address" = "$address" ] && continue
      echo "neigh replace $other_address lladdr $(mac_of "$other_address") dev eth0 nud permanent"
      [ "$other" = 0 ] || echo "route replace $(pods_of "$other") via $other_address"
    done
  } | in_network "$3" ip -batch -
  in_network "$3" sysctl -qw net.ipv4.ip_forward=1
  ip neigh replace "$address" lladdr "$mac" dev "$(bridge_name)" nud permanent
}
unplug() { ip link del "svck$(number)-$1" 2>/dev/null || true; }

# A port in this state (0, disabled; 3, forwarding) drops all packets, while its link stays up.
cmd_cut_node() { bridge link set dev "svck$(number)-$((10 + $1))" state 0; }
cmd_heal_node() { bridge link set dev "svck$(number)-$((10 + $1))" state 3; }

# A kube-proxy without a node: this machine's access to services and load balancers, independent of nodes.
start_edge() {
  local pid
  rm -f "$dir/edge-plugged"
  mkfifo "$dir/edge-plugged"
  start_process edge unshare --net bash -c 'read -r < "$1"; shift; exec "$@"' edge "$dir/edge-plugged" "$bin/kube-proxy" $(proxy_options edge "$(address_of 2)")
  pid=$(cut -d ' ' -f 1 "$dir/pids/edge")
  wait_for_namespace "$pid"
  plug edge 2 "$pid"
  cmd_routes on
  echo > "$dir/edge-plugged"
}
# Until then it is in this machine's namespace.
wait_for_namespace() {
  local tries
  for ((tries = 0; tries < 3000; tries++)); do
    [ "$(readlink "/proc/$1/ns/net")" = "$(readlink /proc/self/ns/net)" ] || return 0
    sleep 0.01
  done
  die 'no network namespace'
}

# Connection limits belong to the kernel; a namespace cannot set them.
proxy_options() { # NAME ADDRESS
  echo --kubeconfig="$dir/proxy.kubeconfig" --hostname-override="$1" --proxy-mode=iptables --cluster-cidr="$(pod_range)" --bind-address="$2" \
    --healthz-bind-address=127.0.0.1:10256 --metrics-bind-address=127.0.0.1:10249 --iptables-min-sync-period=100ms \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
}

cmd_routes() {
  local i range
  for ((i = 1; i <= max_nodes; i++)); do change_route "$1" "$(pods_of "$i")" "$(node_address "$i")"; done
  for range in "$(service_range)" "10.$(number).192.0/20"; do change_route "$1" "$range" "$(address_of 2)"; done
}
change_route() { if [ "$1" = on ]; then ip route replace "$2" via "$3" dev "$(bridge_name)"; else ip route del "$2" 2>/dev/null || true; fi; }

cmd_leaks() { nft list table inet "svck$(number)" | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'; }

# Settings of the whole kernel that kubelet changes; the last cluster to end restores them.
kernel_settings=(vm.overcommit_memory kernel.panic kernel.panic_on_oops)
save_kernel() { [ -e "$all/kernel" ] || sysctl "${kernel_settings[@]}" > "$all/kernel"; }
restore_kernel() {
  local one
  [ -e "$all/kernel" ] || return 0
  for one in "$all"/[0-9]*; do [ -e "$one/network" ] && return 0; done
  sed 's/ = /=/' "$all/kernel" | xargs -n 1 sysctl -qw
  rm -f "$all/kernel"
}
