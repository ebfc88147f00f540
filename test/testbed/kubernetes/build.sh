#!/bin/bash
# Builds Kubernetes 1.20.2 from Debian's source package with Debian's Go; prints the folder with the programs. About four minutes on two cores, once:
# it is kept in SVC_TESTBED_CACHE (~/.cache/svc-testbed). Root gets the Debian packages that are missing; others need to have those of programs.txt.
#
# Nothing of this computer's package lists is changed: the source package comes through lists of its own.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
. "$here/cache.sh"
version=1.20.2

# get_source FOLDER: the unpacked source as FOLDER/kubernetes-1.20.2.
get_source() {
  local lists=$1/lists release options
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mkdir -p "$lists/partial" "$1/archives/partial"
  printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian %s main\n' "$release" > "$1/sources.list"
  options=(-o "Dir::Etc::sourcelist=$1/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$lists" -o "Dir::Cache=$1" -o "Dir::Cache::archives=$1/archives"
    -o APT::Sandbox::User= -o Acquire::Retries=3 -o Debug::NoLocking=1)
  apt-get "${options[@]}" -qq update
  # Its signature and checksums are checked; the patches of Debian are for other things than what is needed here.
  (cd "$1" && apt-get "${options[@]}" -qq source --download-only kubernetes && tar -xzf kubernetes_*.orig.tar.gz)
  [ -d "$1/kubernetes-$version" ] || { echo "build.sh: this release has another version: $(cd "$1" && echo kubernetes*.dsc)" >&2; return 1; }
}

# What this version needs to work with the Go of today's Debian, and what makes tests quicker.
change_source() {
  # Go 1.18 changed how maps are walked: a caller of before has the runtime write over whatever memory it finds, and the API server then answers some
  # requests with a crash.
  local reflect=vendor/github.com/modern-go/reflect2
  sed -i 's/^func mapiterinit(.*/func mapiterinit(rtype unsafe.Pointer, m unsafe.Pointer, it *hiter)/' "$reflect/unsafe_link.go"
  sed -i 's#^\t// rest fields are ignored#\trest1 [6]unsafe.Pointer\n\trest2 [6]uintptr#' "$reflect/unsafe_link.go"
  sed -i 's/^\treturn &UnsafeMapIterator{/\tvar it hiter\n\tmapiterinit(type2.rtype, *(*unsafe.Pointer)(obj), \&it)\n&/; s/^\t\thiter: .*/\t\thiter:      \&it,/' "$reflect/unsafe_map.go"
  grep -q 'it \*hiter)' "$reflect/unsafe_link.go" && grep -q 'rest2' "$reflect/unsafe_link.go" && grep -q '&it,' "$reflect/unsafe_map.go"
  # A kubelet tells the API only every ten seconds that pods are gone.
  sed -i 's/^const syncPeriod = 10 \* time.Second/const syncPeriod = 1 * time.Second/' pkg/kubelet/status/status_manager.go
  grep -q '^const syncPeriod = 1 \*' pkg/kubelet/status/status_manager.go
  # The controller that has pods leave lost nodes looks at what it remembers of a node right after it has found it lost: where that is still of before, it
  # takes the node for ready, and never has its pods leave.
  local lifecycle=pkg/controller/nodelifecycle/node_lifecycle_controller.go
  sed -i "/was in a taint queue, but it's ready now/{n;s/return true, 0/return false, 50 * time.Millisecond/}" "$lifecycle"
  grep -A1 "was in a taint queue, but it's ready now" "$lifecycle" | grep -q 'return false, 50'
  mkdir -p cmd/kubernetes-all
  cp "$here/kubernetes-all.go" cmd/kubernetes-all/main.go
}

# The only generated file that the source package lacks: a description of all types, for /openapi/v2.
generate_openapi() {
  local packages
  go build -o "$1/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
  packages=$(grep -rlE --include='*.go' '^// *\+k8s:openapi-gen=' cmd pkg plugin vendor/k8s.io/ staging/src/k8s.io |
    sed 's#^staging/src/#vendor/#' | grep -vE '^vendor/k8s.io/(code-generator|sample-apiserver)/' | xargs -n 1 dirname | sort -u | sed 's#^#k8s.io/kubernetes/#' | paste -sd ,)
  "$1/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
    -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$1/violations"
}

build() {
  local work=$1/work package flags="-s -w"
  mkdir -p "$work/gopath/src/k8s.io" "$1/bin"
  get_source "$work"
  # Not as a module: this Go finds its list of vendored packages out of date. Go takes a package's name from $PWD: so through the link.
  ln -s "$work/kubernetes-$version" "$work/gopath/src/k8s.io/kubernetes"
  cd "$work/gopath/src/k8s.io/kubernetes"
  GOROOT=$(go env GOROOT)
  export GOPATH=$work/gopath GOCACHE=${SVC_TESTBED_GOCACHE:-$work/gocache} GOROOT GO111MODULE=off GOPROXY=off CGO_ENABLED=0 GOFLAGS=-trimpath GOGC=400
  change_source
  generate_openapi "$work"
  for package in component-base/version client-go/pkg/version; do
    package=k8s.io/kubernetes/vendor/k8s.io/$package
    flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=20 -X $package.gitTreeState=clean"
  done
  # One program for all five: it is linked once.
  go build -tags 'providerless dockerless' -ldflags "$flags" -o "$1/bin/kubernetes-all" ./cmd/kubernetes-all
  for package in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy; do ln -s kubernetes-all "$1/bin/$package"; done
  cd /
  "$1/bin/kube-apiserver" --version >&2
  chmod -R u+w "$work"
  rm -rf "$work"
}

if [ "$(id -u)" = 0 ]; then "$here/packages.sh"; fi
recipe=$(go version | fingerprint "$here/build.sh" "$here/kubernetes-all.go")
folder=$(cached kubernetes "$recipe" build)
echo "$folder/bin"
