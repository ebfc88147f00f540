# What takes long is made once, in a folder named after what it was made from.
cache=${SVC_TESTBED_CACHE:-$HOME/.cache/svc-testbed}
# Or what fails in $(...) would go unnoticed, and a half of something would be kept.
shopt -s inherit_errexit

# cached NAME FINGERPRINT FUNCTION: prints the folder, which FUNCTION fills (its argument) if it is not there. One that is there is whole:
# it gets its name last. Who starts meanwhile waits. Folders of the same name with other fingerprints are removed when nobody uses them.
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

# fingerprint FILE...: of their contents, and of what standard input says.
fingerprint() { { cat -- "$@"; cat; } | sha256sum | cut -c 1-12; }
