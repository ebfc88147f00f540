# etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

# Addresses of services. Without nodes no client connects to them, so they come from a range for documentation.
service_range() { if has_network; then echo "10.$(number).128.0/18"; else echo 198.51.100.0/24; fi; }
first_service_address() { local range; range=$(service_range); echo "${range%.0/*}.1"; }
pod_range() { echo "10.$(number).16.0/20"; }

cmd_start() {
  local without_beta= audit= grace=10 eviction=5
  while [ $# -gt 0 ]; do
    case $1 in
      --without-beta-apis) without_beta=1 ;;
      --audit) audit=1 ;;
      --node-grace) grace=$2; shift ;;
      --eviction) eviction=$2; shift ;;
      *) die "start: no option $1" ;;
    esac
    shift
  done
  [ -x "$bin/kube-apiserver" ] || die 'set SVC_TESTBED_BIN to what build.sh printed'
  start_etcd
  make_keys
  api_options "$without_beta" "$audit" "$eviction" > "$dir/api-options"
  start_api
  echo "$grace" > "$dir/node-grace"
  start_controllers
  if has_network; then start_edge; fi
  # The API server refuses pods until controllers have created the token of the service account.
  wait_for 'the token of the default service account' has_token /api/v1/namespaces/default/serviceaccounts/default
}

start_controllers() {
  start_process controllers "$bin/kube-controller-manager" --kubeconfig="$dir/controllers.kubeconfig" --leader-elect=false \
    --bind-address="$(loopback)" --port=0 --secure-port=10257 --service-account-private-key-file="$dir/pki/accounts.key" \
    --root-ca-file="$dir/pki/ca.crt" --cluster-signing-cert-file="$dir/pki/ca.crt" --cluster-signing-key-file="$dir/pki/ca.key" \
    --use-service-account-credentials=true --kube-api-qps=500 --kube-api-burst=1000 --node-monitor-period=1s --node-eviction-rate=10 \
    --node-monitor-grace-period="$(cat "$dir/node-grace")s" --pvclaimbinder-sync-period=1s --cert-dir="$dir/pki/controllers"
  start_process scheduler "$bin/kube-scheduler" --kubeconfig="$dir/scheduler.kubeconfig" --leader-elect=false \
    --bind-address="$(loopback)" --port=0 --secure-port=10259 --cert-dir="$dir/pki/scheduler"
}

start_etcd() {
  local data address
  address=$(loopback)
  # etcd waits for the disk after each write; memory is faster.
  data=$(mktemp -d "$(memory_folder)/svc-etcd-XXXXXX")
  echo "$data" > "$dir/etcd-data"
  start_process etcd etcd --name test --data-dir "$data" --listen-client-urls "http://$address:2379" --advertise-client-urls "http://$address:2379" \
    --listen-peer-urls "http://$address:2380" --initial-advertise-peer-urls "http://$address:2380" --initial-cluster "test=http://$address:2380"
}

memory_folder() { if [ -w /dev/shm ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi; }

# One option per line.
api_options() { # WITHOUT_BETA AUDIT EVICTION
  printf '%s\n' "--etcd-servers=http://$(loopback):2379" "--bind-address=$(api_address)" "--advertise-address=$(api_address)" --secure-port=6443 \
    "--service-cluster-ip-range=$(service_range)" "--tls-cert-file=$dir/pki/apiserver.crt" "--tls-private-key-file=$dir/pki/apiserver.key" \
    "--client-ca-file=$dir/pki/ca.crt" "--kubelet-client-certificate=$dir/pki/apiserver-kubelet.crt" \
    "--kubelet-client-key=$dir/pki/apiserver-kubelet.key" "--kubelet-certificate-authority=$dir/pki/ca.crt" \
    --kubelet-preferred-address-types=InternalIP "--service-account-key-file=$dir/pki/accounts.pub" \
    "--service-account-signing-key-file=$dir/pki/accounts.key" --service-account-issuer=https://kubernetes.default.svc \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    "--default-not-ready-toleration-seconds=$3" "--default-unreachable-toleration-seconds=$3" "--cert-dir=$dir/pki/api"
  # Kubernetes 1.20 itself needs these three: kube-proxy, its own fairness, and budgets, which had no other version
  # then.
  [ -z "$1" ] || echo "--runtime-config=api/beta=false,discovery.k8s.io/v1beta1=true,policy/v1beta1=true,flowcontrol.apiserver.k8s.io/v1beta1=true"
  [ -z "$2" ] || printf '%s\n' "--audit-policy-file=$here/audit-policy.yaml" "--audit-log-path=$dir/log/audit"
}

start_api() {
  local options
  mapfile -t options < "$dir/api-options"
  start_process api "$bin/kube-apiserver" "${options[@]}"
  # Programs that start before the API server back off, and are slower in the end.
  wait_for 'the API server' api_get /readyz
}
cmd_start_api() {
  [ -z "$(noted "$dir/pids/api" || true)" ] || return 0
  start_api
  # With leader election on, components restart after an outage. Components that continue would poll ever less often.
  end_process controllers
  end_process scheduler
  start_controllers
}
cmd_stop_api() { end_process api; }
cmd_pause_api() {
  local api
  api=$(noted "$dir/pids/api")
  kill -STOP "$api"
  wait_for 'the stop of the API server' stands_still "$api"
}
cmd_resume_api() { kill -CONT "$(noted "$dir/pids/api")"; }

api_get() { api_text "$1" > /dev/null; }
has_token() { api_text "$1" | grep '"secrets"' > /dev/null; }
api_text() {
  curl -sf --noproxy '*' --max-time 5 --cacert "$dir/pki/ca.crt" --cert "$dir/pki/admin.crt" --key "$dir/pki/admin.key" \
    "https://$(api_address):6443$1"
}

# wait_for WHAT COMMAND...
wait_for() {
  local what=$1 name deadline=$((SECONDS + 300))
  shift
  until "$@"; do
    for name in etcd api; do
      [ -n "$(noted "$dir/pids/$name" || true)" ] || die "$name ended: $(tail -n 5 "$dir/log/$name")"
    done
    [ $SECONDS -lt $deadline ] || die "waited in vain for $what: $(tail -n 5 "$dir/log/api")"
    sleep 0.1
  done
}
