#!/bin/bash
# Makes the images that all nodes have, without a registry, from what is installed here. Prints their folder: NAME.tar, and containerd/, what the
# disk of a node begins with. Needs root, gcc and busybox-static.
#
#   svc-test/pause:1     the sandbox of pods
#   svc-test/busybox:1   a shell and little else; `/serve.sh` answers HTTP requests at $PORT (8080) with the pod's name
#   svc-test/debian:1    bash, coreutils, tar, perl, procps, iproute2, python3 and node: like what services run in
set -euo pipefail
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
. "$here/cache.sh"
. "$here/image-archive.sh"
node=$(readlink -f "${SVC_TESTBED_NODE:-$here/../../../node_modules/.bin/node}")
path='"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"'
debian_packages=(base-files base-passwd bash ca-certificates coreutils dash debianutils diffutils findutils gawk mawk grep gzip hostname iproute2 libc-bin libstdc++6
  login openssl passwd perl-base procps python3 sed tar util-linux)

make_pause() {
  local root
  root=$(mktemp -d)
  gcc -Os -static -s -o "$root/pause" "$here/pause.c"
  make_image "$1/pause.tar" docker.io/svc-test/pause:1 "$root" '{"Entrypoint":["/pause"]}'
  rm -rf "$root"
}

make_busybox() {
  local root program
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,etc,tmp,proc,sys,dev,root,var/tmp}
  cp /bin/busybox "$root/bin/busybox"
  for program in $(/bin/busybox --list); do [ -e "$root/bin/$program" ] || ln -s busybox "$root/bin/$program"; done
  echo root:x:0:0:root:/root:/bin/sh > "$root/etc/passwd"
  echo root:x:0: > "$root/etc/group"
  chmod 1777 "$root/tmp" "$root/var/tmp"
  cp "$here/serve.sh" "$root/serve.sh"
  chmod 0755 "$root/serve.sh"
  make_image "$1/busybox.tar" docker.io/svc-test/busybox:1 "$root" "{\"Env\":[$path],\"Cmd\":[\"sh\"]}"
  rm -rf "$root"
}

# The packages and all that they need, as they are installed here, without documentation.
package_closure() {
  local seen=" " queue=("$@") package need
  while [ ${#queue[@]} -gt 0 ]; do
    package=${queue[0]}
    queue=("${queue[@]:1}")
    [[ $seen != *" $package "* ]] || continue
    [ "$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | head -n 1)" = installed ] || continue
    seen+="$package "
    for need in $(dpkg-query -W -f '${Pre-Depends}, ${Depends}\n' "$package" | sed 's/([^)]*)//g; s/:[a-z]*//g; s/|[^,]*//g; s/,/ /g'); do queue+=("$need"); done
  done
  tr ' ' '\n' <<< "$seen" | sed '/^$/d' | sort
}

make_debian() {
  local root package
  root=$(mktemp -d)
  mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,etc,tmp,proc,sys,dev,run,root,home,var/tmp,var/log,opt,srv,mnt,usr/local/bin}
  for package in bin sbin lib lib64; do [ ! -L "/$package" ] || ln -s "usr/$package" "$root/$package"; done
  package_closure "${debian_packages[@]}" | while read -r package; do dpkg -L "$package"; done |
    grep -vE '^/(usr/share/(doc|man|locale|info|lintian|bash-completion|perl5/Debconf)|var/cache)(/|$)|__pycache__|^/\.$' | sort -u |
    while read -r package; do [ ! -d "$package" ] || [ -L "$package" ] || continue; [ -e "$package" ] || [ -L "$package" ] || continue; echo "$package"; done |
    tar -C / --no-recursion -cf - -T - 2> /dev/null | tar -C "$root" --keep-directory-symlink -xf -
  # Made at the installation of packages.
  tar -C / -cf - etc/alternatives usr/bin/awk usr/share/ca-certificates etc/ssl/certs 2>/dev/null | tar -C "$root" --keep-directory-symlink -xf -
  cp "$here/passwd" "$root/etc/passwd"
  printf 'root:x:0:\ndaemon:x:1:\nuser:x:1000:\nnogroup:x:65534:\n' > "$root/etc/group"
  mkdir -p "$root/home/user"
  chmod 0777 "$root/home/user"
  chmod 1777 "$root/tmp" "$root/var/tmp"
  cp "$node" "$root/usr/local/bin/node"
  : > "$root/dev/null"
  chroot "$root" /sbin/ldconfig
  chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin bash -c 'python3 -c "import http.server, json, ssl" && perl -e 1 && tar --version && node --version' > /dev/null
  rm "$root/dev/null"
  make_image "$1/debian.tar" docker.io/svc-test/debian:1 "$root" "{\"Env\":[$path],\"Cmd\":[\"bash\"]}"
  rm -rf "$root"
}

# Unpacks the images once, so that a node need not.
make_disk() {
  local work pid image
  work=$(mktemp -d)
  mkdir -p "$1/containerd" "$work/network"
  "$here/containerd-settings.sh" "$work" 127.0.0.1 | sed "s,^root = .*,root = \"$1/containerd\"," > "$work/settings.toml"
  unshare --mount --pid --fork --kill-child=KILL containerd -c "$work/settings.toml" > "$work/log" 2>&1 8>&- &
  pid=$!
  until ctr -a "$work/containerd.sock" version > /dev/null 2>&1; do
    [ -d "/proc/$pid" ] || { tail -n 5 "$work/log" >&2; return 1; }
    sleep 0.1
  done
  for image in "$1"/*.tar; do ctr -a "$work/containerd.sock" -n k8s.io images import "$image"; done
  # Written to the disk before it ends.
  kill -TERM "$(cat "/proc/$pid/task/$pid/children")"
  wait "$pid" || true
  rm -rf "$work"
}

make_all() {
  make_pause "$1"
  make_busybox "$1"
  make_debian "$1"
  make_disk "$1"
}

[ "$(id -u)" = 0 ] || { echo 'images.sh: only root can make them' >&2; exit 1; }
recipe=$({ dpkg-query -W "${debian_packages[@]}" busybox-static containerd 2>/dev/null || true; "$node" --version; } |
  fingerprint "$here"/{images.sh,image-archive.sh,containerd-settings.sh,pause.c,serve.sh,passwd})
cached images "$recipe" make_all
