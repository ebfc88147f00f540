# Caches slow build results in folders named after their inputs.
cache=${SVC_TESTBED_CACHE:-$HOME/.cache/svc-testbed}
# Otherwise a failure in $(...) would go unnoticed, and an incomplete result would be cached.
shopt -s inherit_errexit

# cached NAME FINGERPRINT FUNCTION: prints the folder. FUNCTION fills it (its argument) if it does not exist. The folder
# gets its name last, so an existing one is complete. Concurrent callers wait. Unused folders of the same name with
# other fingerprints are removed.
cached() {
  local name=$1 folder=$cache/$1-$2 old
  mkdir -p "$cache"
  exec 8> "$cache/$name.lock"
  flock 8
  if [ ! -d "$folder" ]; then
    rm -rf --one-file-system "$cache/$name"-*.making
    mkdir -p "$folder.making"
    "$3" "$folder.making" 8>&- >&2
    for old in "$cache/$name"-????????????; do
      [ ! -d "$old" ] || fuser -s "$old"/* "$old"/*/* 2>/dev/null || rm -rf --one-file-system "$old"
    done
    mv "$folder.making" "$folder"
  fi
  exec 8>&-
  echo "$folder"
}

# fingerprint FILE...: hashes their contents and standard input.
fingerprint() { { cat -- "$@"; cat; } | sha256sum | cut -c 1-12; }
