#!/bin/bash
# containerd-settings.sh DISK REGISTRY_HOST: containerd's settings for a node whose disk is the folder DISK.
cat <<END
version = 2
root = "$1/containerd"
state = "$1/containerd-state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "$1/containerd.sock"
[ttrpc]
  address = "$1/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "$1/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/svc-test/pause:1"
  # Root here may lack the right to lower it.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$1/network"
  # A test may answer there as a registry.
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."registry.test"]
    endpoint = ["http://$2:5000"]
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
END
