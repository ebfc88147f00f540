#!/bin/bash
# Builds the project's Dockerfile as it stands, without a registry and without a daemon. Prints the image as an archive. Needs root, buildah, debootstrap and npm,
# and reaches Debian's and npm's packages.
#
# The two images that the Dockerfile begins with are made here under their names: Debian by debootstrap, and the same with this machine's npm.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
. "$here/cache.sh"
source=$(readlink -f "$here/../../..")
node=$(readlink -f "${SVC_TESTBED_NODE:-$source/node_modules/.bin/node}")
image=localhost/svc-controller:test
base=docker.io/library/debian:bookworm-slim
build_base=docker.io/library/node:24-bookworm-slim

# Storage of its own, which goes with its folder.
storage() { buildah --root "$1/storage" --runroot "$1/run" --storage-driver "$driver" "${@:2}"; }

# Layers by overlay where the file system can do that; copying them takes thrice as long.
choose_driver() {
  local probe
  probe=$(mktemp -d "$1/probe.XXXXXX")
  mkdir "$probe"/{lower,upper,work,merged}
  driver=vfs
  if unshare --mount mount -t overlay overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" "$probe/merged" 2> /dev/null; then
    driver=overlay
  fi
  rm -rf "$probe"
}

make_bases() {
  local container npm
  choose_driver "$1"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$1/debian" http://deb.debian.org/debian
  rm -rf "$1"/debian/var/cache/apt/archives/*.deb "$1"/debian/var/lib/apt/lists/*
  container=$(storage "$1" from scratch)
  storage "$1" add -q "$container" "$1/debian" /
  storage "$1" commit -q "$container" "$base"
  # Where it is, and not where it would install: under `npm run` that is a folder of the project's own Node.js.
  npm=$(readlink -f "$(command -v npm)")
  npm=${npm%/bin/npm-cli.js}
  storage "$1" copy -q "$container" "$node" /usr/local/bin/node
  storage "$1" copy -q "$container" "$npm" /usr/local/lib/node_modules/npm
  # The packages of this machine's npm are trusted as it is: where TLS is looked into on the way, by a certificate of the machine's own.
  storage "$1" copy -q "$container" /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
  storage "$1" config --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt "$container"
  storage "$1" run --isolation chroot "$container" -- ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
  storage "$1" commit -q "$container" "$build_base"
  storage "$1" rm "$container"
  storage "$1" push -q "$base" "docker-archive:$1/debian.tar:$base"
  storage "$1" push -q "$build_base" "docker-archive:$1/node.tar:$build_base"
  rm -rf --one-file-system "$1"/{debian,storage,run}
}

make_controller() {
  choose_driver "$1"
  for archive in "$bases"/*.tar; do storage "$1" pull -q "docker-archive:$archive"; done
  storage "$1" bud --isolation chroot --pull-never --timestamp 0 --ignorefile "$source/.dockerignore" -f "$source/Dockerfile" -t "$image" "$source"
  storage "$1" push -q "$image" "docker-archive:$1/image.tar:$image"
  rm -rf --one-file-system "$1"/{storage,run}
}

[ "$(id -u)" = 0 ] || { echo 'controller-image.sh: only root can make it' >&2; exit 1; }
# A year's Debian does; what is in it is not what is tested.
bases=$({ "$node" --version; } | fingerprint "$here/controller-image.sh")
bases=$(cached controller-bases "$bases" make_bases)
sources=$(cd "$source" && find src catalog scripts/bundle.ts package.json package-lock.json .npmrc Dockerfile .dockerignore -type f ! -name '*.test.ts' ! -name '*.snap' -print0 |
  sort -z | xargs -0 sha256sum | fingerprint "$here/controller-image.sh")
echo "$(cached controller-image "$sources" make_controller)/image.tar"
