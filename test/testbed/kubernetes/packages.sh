#!/bin/bash
# Installs the missing Debian packages of the testbed. As root.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
missing=()
while read -r path package _; do
  [ "${path:0:1}" != / ] || [ -e "$path" ] || missing+=("$package")
done < "$here/programs.txt"
[ ${#missing[@]} -gt 0 ] || exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq > /dev/null
apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
