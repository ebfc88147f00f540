#!/bin/bash
# Kubernetes clusters for tests: a real control plane and real nodes with real pods, all on this machine.
#
#   cluster.sh claim PID nodes|api        takes what a cluster needs for as long as process PID lives; prints its folder, for SVC_CLUSTER below
#   cluster.sh start [OPTION...]          starts the control plane; returns when the API answers and its controllers work
#        --without-beta-apis  --audit  --node-grace SECONDS (10: without a word from a node until it is not ready)
#        --eviction SECONDS (5: how long pods stay on such a node)
#   cluster.sh node N                     makes node N, with an empty disk; needs root. Ready a few seconds later
#   cluster.sh kill-node N                power cut: its processes are gone, and what is sent to it vanishes
#   cluster.sh pause-node|resume-node N   freezes or resumes all its processes
#   cluster.sh pause-kubelet|resume-kubelet N  freezes or resumes its kubelet alone: pods continue, but the node reports nothing
#   cluster.sh cut-node|heal-node N       pulls or restores its cable: it continues, but is unreachable
#   cluster.sh exec-node N COMMAND...     runs a command in its namespaces
#   cluster.sh stop-api|start-api         the API server is killed, or started again; pause-api|resume-api: it stands still
#   cluster.sh routes on|off              whether this machine has routes to pods, services and load balancers
#   cluster.sh certificate NAME GROUP     a kubeconfig of a user; prints its file
#   cluster.sh load TAR                   loads an image on all nodes, including later ones
#   cluster.sh leaks                      how many packets for the cluster were about to leave this machine (and were dropped)
#   cluster.sh release                    everything is gone
#   cluster.sh sweep                      releases the claims of processes that have ended
#
# `nodes` takes a network 10.N.0.0/16 that is unused on this machine (10.N.0.x nodes, 10.N.16.0/20 pods, 10.N.128.0/18
# services, 10.N.192.0/20 load balancers). A route that refuses everything is added first and removed last, so no packet
# for the network ever leaves this machine. `api` has no nodes, needs no root, and is reachable at a loopback address.
#
# SVC_TESTBED_CACHE is the folder for all large files. SVC_TESTBED_BIN has the programs of Kubernetes (see build.sh) and
# SVC_TESTBED_IMAGES the initial content of nodes' disks (see images.sh).
set -euo pipefail
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
uid=$(id -u)
cache=${SVC_TESTBED_CACHE:-$HOME/.cache/svc-testbed}
# Registers all clusters of this user, whichever cache they use.
if [ "$uid" = 0 ]; then all=/run/svc-kubernetes; else all=/tmp/svc-kubernetes-$uid; fi
dir=${SVC_CLUSTER:-}
bin=${SVC_TESTBED_BIN:-}
first_network=150 last_network=179
max_nodes=9

. "$here/processes.sh"
. "$here/keys.sh"
. "$here/control-plane.sh"
. "$here/network.sh"
. "$here/nodes.sh"

die() { echo "cluster.sh: $*" >&2; exit 1; }
number() { basename "$dir"; }
# A cluster with nodes has a network; its control plane is this machine's end of the bridge.
has_network() { [ -e "$dir/network" ]; }
api_address() { if has_network; then echo "10.$(number).0.1"; else loopback; fi; }
# A loopback address of this cluster alone, for internal ports of the control plane. Users differ in the second byte.
loopback() { echo "127.$((77 + uid % 100)).$(number).1"; }

lock_all() {
  mkdir -p -m 0700 "$all"
  exec 9> "$all/lock"
  flock 9
}

cmd_claim() {
  local owner=$1 kind=$2 n
  lock_all
  sweep > /dev/null
  case $kind in nodes) n=$first_network ;; api) n=1 ;; *) die "claim: $kind?" ;; esac
  for (( ; n <= last_network; n++)); do
    [ ! -L "$all/$n" ] || continue
    [ "$kind" = nodes ] || [ "$n" -lt "$first_network" ] || break
    dir=$cache/clusters/$n
    if [ "$kind" = nodes ]; then
      is_free_range "$n" || continue
    else
      [ -z "$(ss -Hltn src "$(loopback)")" ] || continue
    fi
    rm -rf --one-file-system "$dir"
    mkdir -p "$dir"/{pids,log,pki,images}
    chmod 0700 "$dir"
    note_process "$owner" "$dir/owner"
    ln -s "$dir" "$all/$n"
    [ "$kind" = api ] || make_network
    # The creating process may be killed; without a guard the cluster would then never end.
    start_process guard "$here/guard.sh" "$dir" "$here/cluster.sh"
    echo "$dir"
    return
  done
  die "all numbers are taken: see $all"
}

cmd_release() {
  # The guard and a sweep may run this concurrently. The second one must stop, because the number may already belong to
  # a new cluster.
  { exec 7< "$dir"; } 2> /dev/null || return 0
  flock 7
  [ "$dir" -ef /proc/self/fd/7 ] || return 0
  if has_network; then kill_all_nodes; fi
  # The guard may be the caller.
  end_processes
  [ ! -f "$dir/etcd-data" ] || rm -rf --one-file-system "$(cat "$dir/etcd-data")"
  if has_network; then remove_network; fi
  rm -f "$all/$(number)"
  rm -rf --one-file-system "$dir"
  restore_kernel
  exec 7<&-
}

sweep() {
  local one
  for one in "$all"/[0-9]*; do
    [ -L "$one" ] || continue
    if [ ! -d "$one" ]; then rm -f "$one"; continue; fi
    [ -z "$(noted "$one/owner" || true)" ] || continue
    # Its guard may release it at the same time.
    (dir=$(readlink "$one") && cmd_release) || true
  done
}
cmd_sweep() {
  [ -d "$all" ] || return 0
  lock_all
  sweep
}

run_command SVC_CLUSTER 'claim sweep' "$@"
