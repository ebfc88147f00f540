#!/bin/bash
# Process 1 of a node.
export LC_ALL=C
# Paths that a node's programs hard-code are private to this node.
mount -t tmpfs -o mode=755 node /var/lib
mount -t tmpfs -o mode=755 node /var/log
mount -t tmpfs -o mode=755 node /run
mkdir -p /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /run/lock
hostname "$name"
containerd -c "$disk/containerd.toml" >> "$disk/containerd.log" 2>&1 < /dev/null &
read -r < "$disk/plugged"
# Pods leave the cluster with their node's address, as usual, so peers without a route to pods can answer.
iptables -t nat -A POSTROUTING -s "$pods" -d "$control" -j MASQUERADE
"$bin/kube-proxy" $proxy >> "$disk/kube-proxy.log" 2>&1 < /dev/null &
until ctr -a "$disk/containerd.sock" version > /dev/null 2>&1; do sleep 0.05; done
for image in "$cluster"/images/*.tar; do
  [ ! -f "$image" ] || ctr -a "$disk/containerd.sock" -n k8s.io images import "$image" >> "$disk/import.log" 2>&1
done
"$bin/kubelet" --config="$disk/kubelet.yaml" --kubeconfig="$cluster/$name.kubeconfig" --root-dir="$disk/kubelet" --cert-dir="$disk/kubelet-pki" \
  --container-runtime=remote --container-runtime-endpoint="unix://$disk/containerd.sock" --hostname-override="$name" --node-ip="$address" \
  >> "$disk/kubelet.log" 2>&1 < /dev/null &
echo "$!" > "$disk/kubelet-pid"
while :; do wait -n 2> /dev/null || sleep 0.2; done
