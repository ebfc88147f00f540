#!/bin/sh
# Brings files to a machine: `sh fetch.sh DIR TARGET MERGE ID`. Downloads objects to DIR, assembles a tree from them as
# DIR/assemble describes, and moves it to TARGET. MERGE is `merge` to keep other files in TARGET, `replace` to remove
# them. ID identifies the tree: a tree that TARGET already has is not fetched again. The script can be killed and
# repeated at any time; complete objects are not downloaded twice.
#
# Standard input has one line for each object: NAME SHA256 SIZE ADDRESS, with `-` for unknown values. Addresses are
# secrets. They appear only in standard inputs and in unlinked files, never in messages. An address that begins with a
# slash is a file of this machine.
#
# Exit codes: 0 done; 3 this machine lacks a program; 4 no space; 5 a download failed; 6 another error; 7 an object has
# unexpected content. The reason is on standard error.

set -u
umask 077

dir=$1 target=$2 merge=$3 id=$4
objects=$dir/objects
stage=$dir/tree
newline='
'
workers=4
attempts=4

fail() {
  code=$1
  shift
  printf '%s\n' "$*" >&2
  exit "$code"
}

# Fails with a command's output and the matching exit code.
fail_with() {
  case $2 in
    *'No space left'* | *'Disk quota'*) fail 4 "There is no space left for $target." ;;
    # The first of its lines: tar's last line is generic.
    *) fail "$1" "${2%%"$newline"*}" ;;
  esac
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# An aborted attempt may have left folders without write permission.
remove() {
  if [ -e "$1" ] || [ -L "$1" ]; then
    [ -L "$1" ] || [ ! -d "$1" ] || chmod -R u+rwX "$1" 2>/dev/null
    rm -rf -- "$1" || fail 6 "$1 cannot be removed."
  fi
}

sha256_of() {
  if has sha256sum; then
    sum=$(sha256sum <"$1")
  else
    sum=$(openssl dgst -sha256 -r <"$1")
  fi
  printf '%s' "${sum%% *}"
}

# Downloads from $address to $part, resuming an earlier attempt. Prints why it failed.
download() {
  case $address in
    /*) cp -- "$address" "$part" 2>&1 ;;
    *)
      if [ "$tool" = curl ]; then
        # -q: ignores the user's settings. A minute without a byte ends the download.
        printf 'url = "%s"\n' "$address" |
          curl -q -sS -f -L --proto '=http,https' --proto-redir '=http,https' --connect-timeout 20 --speed-limit 1 --speed-time 60 \
            $resume -o "$part" -K - 2>&1
      else
        printf '%s\n' "$address" | wget -q --timeout=60 --tries=1 $wget_resume -O "$part" -i - 2>&1 || {
          echo "wget ended with exit code $?"
          return 1
        }
      fi
      ;;
  esac
}

size_of() {
  if [ -f "$1" ]; then echo $(($(wc -c <"$1"))); else echo 0; fi
}

# Downloads the object $name. Returns when it is complete and its content matches its hash.
bring() {
  [ -f "$objects/$name" ] && return 0
  part=$objects/$name.part
  attempt=1
  while :; do
    resume= wget_resume= reason=
    have=$(size_of "$part")
    if [ "$size" = - ] || [ "$have" -gt "$size" ]; then rm -f "$part"; elif [ "$have" -gt 0 ]; then resume='-C -' wget_resume=-c; fi
    if [ "$size" = 0 ]; then
      : >"$part"
    elif [ "$size" = - ] || [ "$have" -ne "$size" ]; then
      reason=$(download) || {
        # A server that cannot resume sends the object from the start.
        [ -z "$resume" ] || [ "$attempt" -lt 2 ] || rm -f "$part"
        reason=${reason:-unknown}
      }
    fi
    have=$(size_of "$part")
    if [ "$size" != - ] && [ "$have" -gt "$size" ]; then
      rm -f "$part"
      reason="it has more than $size bytes"
    elif [ "$size" = - ] && [ -z "$reason" ] || [ "$have" = "$size" ] && [ -f "$part" ]; then
      if [ "$sha256" = - ] || [ "$(sha256_of "$part")" = "$sha256" ]; then
        mv -f "$part" "$objects/$name"
        return 0
      fi
      rm -f "$part"
      # Retries once, because the remains of an earlier attempt may be the cause.
      [ "$attempt" -lt 2 ] || fail 7 "An object of $size bytes came, and its content is not what it should be."
      attempt=2
      continue
    fi
    case $reason in *'No space left'* | *'writing body'* | *'writing output'* | *'Disk quota'*) fail 4 "There is no space left for $target." ;; esac
    # A permanent refusal, for example of an expired address. A new address may succeed.
    case $reason in *'error: 4'* | *'exit code 8') attempt=$attempts ;; esac
    [ "$attempt" -lt "$attempts" ] || fail 5 "An object of $size bytes could not be downloaded: ${reason:-it came only in part}"
    sleep "$attempt"
    attempt=$((attempt + 1))
  done
}

worker() {
  exec <"$dir/list.$1"
  rm -f "$dir/list.$1"
  while read -r name sha256 size address; do bring; done
}

# An attempt that lost its connection may still be writing to this folder.
stop_earlier() {
  [ -f "$dir/pid" ] || return 0
  for entry in /proc/[0-9]*; do
    [ "${entry#/proc/}" != "$$" ] || continue
    case $({ tr '\0' ' ' <"$entry/cmdline"; } 2>/dev/null) in
      *"fetch.sh $dir "* | *"$objects/"*) kill -9 "${entry#/proc/}" 2>/dev/null ;;
    esac
  done
}

# ---- Commands of DIR/assemble.

# pack NAME [PATH ...]: unpacks an archive, without the paths.
pack() {
  archive=$objects/$1
  shift
  if [ $# -eq 0 ]; then
    unpack "$archive" "$stage"
  else
    remove "$dir/part"
    mkdir "$dir/part"
    unpack "$archive" "$dir/part"
    (cd "$dir/part" && rm -rf -- "$@") || fail 6 'A pack could not be cleared of what is not wanted.'
    copy "$dir/part" "$stage"
    remove "$dir/part"
  fi
}

# blob NAME MODE TIME [PATH]: puts a file at its path, or in place of the whole tree.
blob() {
  place=$stage${4:+/$4}
  case ${4-} in */*) mkdir -p "${place%/*}" ;; esac
  # A second use of the same content must not be the same file.
  if [ -f "$objects/$1" ] && [ ! -e "$objects/$1.used" ] && ln "$objects/$1" "$place" 2>/dev/null; then
    : >"$objects/$1.used"
  else
    said=$(cp "$objects/$1" "$place" 2>&1) || fail_with 6 "$said"
  fi
  chmod "$2" "$place" && { [ "$3" = - ] || TZ=UTC0 touch -t "$3" "$place"; } || fail 6 'A file could not be put in its place.'
}

unpack() {
  said=$(tar -xpof "$1" -C "$2" 2>&1) || fail_with 6 "$said"
}

# The target folder may have content. A link in it may stand for a folder: GNU's tar can keep it.
keep_links=
if tar --help 2>/dev/null | grep -q -- --keep-directory-symlink; then keep_links=--keep-directory-symlink; fi

copy() {
  said=$({ (cd "$1" && tar -cf - .) | (cd "$2" && tar -xpof - $keep_links); } 2>&1) || fail_with 6 "$said"
}

# ----

has tar || fail 3 'tar is missing.'
has sha256sum || has openssl || fail 3 'Neither sha256sum nor openssl is there.'
mkdir -p "$objects" || fail 6 "$dir cannot be made."
if [ "$merge" = replace ] && [ -e "$target" ] && [ "$(cat "$dir/done" 2>/dev/null)" = "$id" ]; then
  rm -rf "$objects" "$dir/assemble"
  exit 0
fi
stop_earlier
rm -f "$dir"/list.* "$dir/done"
printf '%s' "$$" >"$dir/pid"
# Not after a kill: workers may then remain.
trap 'rm -f "$dir/pid"' EXIT

count=0 is_remote=
for number in 1 2 3 4; do : >"$dir/list.$number"; done
while read -r line; do
  case $line in *' '*' '*' /'*) ;; *) is_remote=yes ;; esac
  printf '%s\n' "$line" >>"$dir/list.$((count % workers + 1))"
  count=$((count + 1))
done
tool=
if has curl; then tool=curl; elif wget --help 2>&1 | grep -q -- --input-file; then tool=wget; fi
if [ -n "$is_remote" ] && [ -z "$tool" ]; then
  rm -f "$dir"/list.*
  fail 3 'Neither curl nor wget (GNU) is there.'
fi

pids=
for number in 1 2 3 4; do
  (worker "$number") &
  pids="$pids $!"
done
result=0
for pid in $pids; do
  wait "$pid" || result=$?
done
[ "$result" -eq 0 ] || exit "$result"

remove "$stage"
find "$objects" -name '*.used' -exec rm -f {} +
umask 022
. "$dir/assemble"

[ -e "$stage" ] || fail 6 'Nothing was put together.'
parent=${target%/*}
mkdir -p "${parent:-/}" 2>/dev/null || fail 6 "The folder of $target cannot be made."
if [ "$merge" = merge ] && [ -d "$stage" ]; then
  # An existing folder keeps its mode: it may be a user's home.
  mode=$(stat -c %a "$target/." 2>/dev/null) && chmod "$mode" "$stage" && touch -r "$target" "$stage"
  mkdir -p "$target" 2>/dev/null || fail 6 "$target cannot be made."
  # Folders that an earlier tree made read-only are opened to be filled; they get their modes again.
  (
    cd "$stage" && find . -type d -exec sh -c '
      for folder; do
        [ ! -d "$0/$folder" ] || [ -w "$0/$folder" ] || chmod u+rwx "$0/$folder" 2>/dev/null
      done' "$target" {} +
  )
  copy "$stage" "$target"
else
  [ "$merge" = merge ] || remove "$target"
  [ ! -d "$target" ] || fail 6 "$target is a folder there."
  said=$(mv -f "$stage" "$target" 2>&1) || fail_with 6 "$said"
fi
printf '%s' "$id" >"$dir/done"
remove "$stage"
rm -rf "$objects" "$dir/assemble"
