# A node is a process tree with containerd, kubelet, kube-proxy and pods, in separate PID, mount, network, UTS and IPC
# namespaces. When its process 1 is killed, the kernel ends everything, like a power cut.

node_dir() { [[ $1 =~ ^[1-9]$ ]] || die "there is no node $1"; echo "$dir/node$1"; }
node_init() { noted "$(node_dir "$1")/init"; }

# Folders of the control groups of node $1: one in every cgroup v1 hierarchy, and one of cgroup v2 for freezing.
group_name() { echo "svc-k$(number)-n$1"; }
make_groups() {
  local root group
  while read -r root; do
    group=$root/$(group_name "$1")
    mkdir -p "$group"
    # Without these, no process can run in a group.
    if [ -e "$group/cpuset.cpus" ]; then cat "$root/cpuset.cpus" > "$group/cpuset.cpus"; cat "$root/cpuset.mems" > "$group/cpuset.mems"; fi
  done < <(awk '$3 == "cgroup" { print $2 }' /proc/mounts)
  group=$(unified)/$(group_name "$1")
  mkdir -p "$group/system"
  # With cgroup v2 alone, pods' limits are below it as well.
  for root in "$(unified)" "$group"; do
    for controller in $(cat "$root/cgroup.controllers"); do echo "+$controller" > "$root/cgroup.subtree_control" 2>/dev/null || true; done
  done
}
remove_groups() {
  local tries left
  for ((tries = 0; tries < 1500; tries++)); do
    find $(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts) -depth -type d -path "*/$(group_name "$1")*" -exec rmdir {} + 2>/dev/null || true
    left=$(find $(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts) -maxdepth 1 -name "$(group_name "$1")")
    [ -n "$left" ] || return 0
    sleep 0.02
  done
}

cmd_node() {
  local n=$1 disk group init outer
  disk=$(node_dir "$n")
  [ -z "$(node_init "$n" || true)" ] || die "node $n is up"
  rm -rf --one-file-system "$disk"
  mkdir -p "$disk"/{network,manifests,plugins}
  fill_disk "$disk"
  make_user "node$n" "/O=system:nodes/CN=system:node:node$n"
  make_certificate "kubelet$n" "/CN=node$n" "IP:$(node_address "$n"),DNS:node$n"
  write_settings "$n" "$disk"
  make_groups "$n"
  mkfifo "$disk/plugged"
  group=$(unified)/$(group_name "$n")/system
  # Expand all words first: the search below must find only one child.
  local words=(env -i PATH="$PATH" HOME=/root disk="$disk" name="node$n" address="$(node_address "$n")" pods="$(pods_of "$n")" control="$(address_of 1)"
    bin="$bin" cluster="$dir" proxy="$(proxy_options "node$n" "$(node_address "$n")")" "$here/node-init.sh")
  (
    echo "$BASHPID" > "$group/cgroup.procs"
    exec setsid unshare --net --mount --uts --ipc --pid --fork --kill-child=KILL --propagation private --mount-proc "${words[@]}"
  ) > "$disk/console" 2>&1 < /dev/null 9>&- &
  outer=$!
  disown
  init=$(child_of "$outer")
  [ -n "$init" ] || die "node $n did not start: $(tail -n 3 "$disk/console")"
  note_process "$init" "$disk/init"
  plug "node$n" $((10 + n)) "$init"
  echo > "$disk/plugged"
}

# Images preloaded on all nodes were unpacked once. Nodes share their files, which never change; each node has a copy of
# the databases.
fill_disk() {
  local file
  if [ -n "${SVC_TESTBED_IMAGES:-}" ] && [ -d "$SVC_TESTBED_IMAGES/containerd" ]; then
    cp -al "$SVC_TESTBED_IMAGES/containerd" "$1/containerd" 2>/dev/null || { rm -rf "$1/containerd"; cp -a "$SVC_TESTBED_IMAGES/containerd" "$1/containerd"; }
    while read -r file; do cp --remove-destination "$SVC_TESTBED_IMAGES/containerd/$file" "$1/containerd/$file"; done \
      < <(cd "$SVC_TESTBED_IMAGES/containerd" && find . -name '*.db')
  fi
}

write_settings() { # N DISK
  cat > "$2/network/10-pods.conflist" <<END
{ "cniVersion": "0.4.0", "name": "pods", "plugins": [
  { "type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
    "ipam": { "type": "host-local", "dataDir": "$2/addresses", "ranges": [[{ "subnet": "$(pods_of "$1")" }]], "routes": [{ "dst": "0.0.0.0/0" }] } },
  { "type": "portmap", "capabilities": { "portMappings": true } } ] }
END
  "$here/containerd-settings.sh" "$2" "$(address_of 1)" > "$2/containerd.toml"
  : > "$2/resolv.conf"
  cat > "$2/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(node_address "$1")
port: 10250
readOnlyPort: 0
healthzPort: 10248
tlsCertFile: $dir/pki/kubelet$1.crt
tlsPrivateKeyFile: $dir/pki/kubelet$1.key
authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: $dir/pki/ca.crt } }
authorization: { mode: Webhook }
cgroupDriver: cgroupfs
cgroupRoot: /$(group_name "$1")
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
failSwapOn: false
staticPodPath: $2/manifests
volumePluginDir: $2/plugins
resolvConf: $2/resolv.conf
imageMinimumGCAge: 24h
imageGCHighThresholdPercent: 100
evictionHard: { memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0% }
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: 10s
nodeLeaseDurationSeconds: 8
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
END
}

cmd_kill_node() {
  local disk pid
  disk=$(node_dir "$1")
  [ -d "$disk" ] || die "there is no node $1"
  # A frozen node cannot die.
  thaw "$1"
  unplug $((10 + $1))
  pid=$(node_init "$1" || true)
  rm -f "$disk/init"
  if [ -n "$pid" ]; then
    kill -KILL "$pid" 2> /dev/null || true
    wait_for_end "$pid"
  fi
  remove_groups "$1"
}
kill_all_nodes() {
  local n jobs=() job
  for ((n = 1; n <= max_nodes; n++)); do
    [ -d "$dir/node$n" ] || continue
    cmd_kill_node "$n" & jobs+=($!)
  done
  for job in ${jobs[@]+"${jobs[@]}"}; do wait "$job" || true; done
}

cmd_pause_node() { freeze "$1" 1; }
cmd_resume_node() { freeze "$1" 0; }
thaw() { [ ! -e "$(unified)/$(group_name "$1")/cgroup.freeze" ] || freeze "$1" 0; }
freeze() { freeze_group "$(unified)/$(group_name "$1")" "$2" || die "node $1 does not stand still"; }

cmd_pause_kubelet() { signal_kubelet "$1" STOP; }
cmd_resume_kubelet() { signal_kubelet "$1" CONT; }
signal_kubelet() { # N SIGNAL
  local disk
  disk=$(node_dir "$1")
  (cmd_exec_node "$1" bash -c 'kill "-$0" "$1"' "$2" "$(cat "$disk/kubelet-pid")") || die "the kubelet of node $1 does not take SIG$2"
}

cmd_exec_node() {
  local init
  init=$(node_init "$1") || die "node $1 is down"
  shift
  exec nsenter -t "$init" -n -m -u -i -p "$@"
}

cmd_load() {
  local n pid imports=()
  ln -f "$1" "$dir/images/" 2>/dev/null || cp "$1" "$dir/images/"
  for ((n = 1; n <= max_nodes; n++)); do
    [ -n "$(node_init "$n" 2>/dev/null || true)" ] || continue
    (cmd_exec_node "$n" ctr -a "$dir/node$n/containerd.sock" -n k8s.io images import "$1" > /dev/null) &
    imports+=("$!")
  done
  for pid in "${imports[@]}"; do wait "$pid"; done
}
