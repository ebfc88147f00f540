# The files that a program in isolation can see. enter.sh sources this file.
#
# The host's files are read-only. svc's own folders are hidden under every path that leads to them. The program may
# write to its base folder (except the records of its jobs, which runner.sh trusts), to its own /tmp, /var/tmp, /run and
# /dev/shm, and to its own layer above the home folder. Unix sockets are hidden: a client can connect to a socket on a
# read-only file system.
#
# Every process costs time at each start. So one `mount --all` makes many mounts, and variables hold lists (dash reads
# files byte by byte).

# Devices that every program expects, and accelerators.
svc_devices='null zero full random urandom tty fuse net kvm nvidia* kfd dri dxg accel* infiniband davinci*'

# Files that mark a folder as a home of svc. A home has no state.db when its state is in PostgreSQL, its controller is
# remote, or its database was deleted. In the last case its control socket may still answer.
svc_home_files='state.db controller.lock controller.json'

# Files of /proc that root of the host may write to.
svc_proc_parts='sys sysrq-trigger irq bus fs acpi scsi mtrr driver dynamic_debug'

svc_newline='
'

# Calls $1 for each line of $2, with the line in svc_line.
for_each() {
  svc_ifs=$IFS
  set -f
  IFS=$svc_newline
  for svc_line in $2; do
    IFS=$svc_ifs
    set +f
    "$1"
    set -f
  done
  set +f
  IFS=$svc_ifs
}

# Calls $1 for each mount, with its fields of proc_pid_mountinfo(5) in variables.
for_each_mount() {
  svc_visit=$1
  for_each visit_mount "$svc_mounts"
}

visit_mount() {
  set -f
  set -- $svc_line
  set +f
  svc_number=$3 svc_root=$4 svc_point=$5 svc_options=$6
  shift 6
  svc_rest=" $*"
  "$svc_visit"
}

# Sets svc_path to the field $1 of mountinfo without its escapes.
decode() {
  svc_path=$1
  case $1 in *\\*) svc_path=$(printf '%b' "$1") ;; esac
}

escape() {
  printf '%s' "$1" | sed 's/\\/\\134/g; s/ /\\040/g; s/	/\\011/g'
}

# Adds the mount of $1 (source) on $2 (target) with $3 (type) and $4 (options) to svc_table, in the format of fstab(5).
add_mount() {
  case $1$2 in *[[:space:]\\]*) set -- "$(escape "$1")" "$(escape "$2")" "$3" "$4" ;; esac
  svc_table="$svc_table$1 $2 $3 $4 0 0$svc_newline"
}

# Schedules a bind mount of folder $1 below svc_built on $2, with options $3. It is made after everything is built.
place() {
  case $2 in *[[:space:]\\]*) set -- "$1" "$(escape "$2")" "$3" ;; esac
  svc_places="$svc_places$svc_built/$1 $2 none $3 0 0$svc_newline"
}

# For the real path $1, sets svc_device, svc_inner (the path inside its file system) and svc_flags (of its mount,
# without ro and rw).
find_mount() {
  svc_sought=$1 svc_mount= svc_device= svc_inner= svc_flags=
  for_each_mount match_mount
  decode "$svc_inner"
  svc_inner=${svc_path%/}${1#"${svc_mount%/}"}
  svc_flags=${svc_flags#r[wo]}
}

match_mount() {
  decode "$svc_point"
  case $svc_sought/ in
    "${svc_path%/}"/*) [ "${#svc_path}" -lt "${#svc_mount}" ] || svc_mount=$svc_path svc_device=$svc_number svc_inner=$svc_root svc_flags=$svc_options ;;
  esac
}

# Sets svc_real to the real path of folder $1. It starts no process, unlike $(pwd -P).
find_real() {
  cd -P "$1" 2>/dev/null && svc_real=$PWD && cd /
}

# Adds the path $1 to svc_hidden once.
hide() {
  case "$svc_newline$svc_hidden" in *"$svc_newline$1$svc_newline"*) return 0 ;; esac
  svc_hidden="$svc_hidden$1$svc_newline"
}

# Hides folder $svc_line, also where its file system, or a folder of it, is mounted a second time.
hide_everywhere() {
  find_real "$svc_line" && [ "$svc_real" != / ] || return 0
  case "$svc_newline$svc_hidden" in *"$svc_newline$svc_real$svc_newline"*) return 0 ;; esac
  hide "$svc_real"
  find_mount "$svc_real"
  for_each_mount hide_alias
}

hide_alias() {
  [ "$svc_number" = "$svc_device" ] || return 0
  decode "$svc_root"
  svc_root=${svc_path%/}
  decode "$svc_point"
  case $svc_inner/ in
    "$svc_root"/*)
      svc_path=${svc_path%/}${svc_inner#"$svc_root"}
      [ ! "$svc_path" -ef "$svc_real" ] || hide "$svc_path"
      return 0
      ;;
  esac
  case $svc_root/ in "$svc_inner"/*) hide "$svc_path" ;; esac
}

# Another instance of /proc may show the host's processes.
hide_proc() {
  case $svc_point:$svc_rest in
    /proc:* | /proc/*) ;;
    *' - proc '*) decode "$svc_point" && hide "$svc_path" ;;
  esac
}

hide_socket() {
  [ -S "$svc_line" ] && find_real "${svc_line%/*}/" || return 0
  hide "${svc_real%/}/${svc_line##*/}"
}

# Whether the folder $1 and one of its entries $2... belong to one user (svc_user), and not everybody may write to it.
# Sets svc_real to its real path, without line breaks. Checks it from inside the folder, as its owner may replace a link
# at any moment.
is_home() {
  case $1 in /*) ;; *) return 1 ;; esac
  cd -P "$1" 2>/dev/null && svc_real=$PWD || return 1
  shift
  svc_entries=$(stat -c %u:%a . "$@" 2>/dev/null)
  cd /
  svc_user=${svc_entries%%:*}
  case $svc_real in *"$svc_newline"*) return 1 ;; esac
  case ${svc_entries%%"$svc_newline"*} in *[2367]) return 1 ;; esac
  case $svc_entries in *"$svc_newline$svc_user":*) ;; *) return 1 ;; esac
}

# Adds homes with a running process: its sockets are in the home's run folder or in a separate one. In a mount namespace
# of their own, any user may give a socket any name, and create a home's sockets and files in /tmp. So a home counts
# only where the socket exists and one user owns the home.
add_home_of() {
  case $svc_line in
    */run/*.sock) svc_path=${svc_line%/run/*} svc_names=$svc_home_files ;;
    */svc-*/controller.sock) svc_path=${svc_line%/*} svc_names=controller.sock ;;
    *) return 0 ;;
  esac
  case "$svc_newline$svc_homes" in *"$svc_newline$svc_path$svc_newline"*) return 0 ;; esac
  [ -S "$svc_line" ] && is_home "$svc_path" $svc_names || return 0
  svc_homes="$svc_homes$svc_real$svc_newline"
}

# Adds the homes of all users, even without a running controller. Only root's programs may access other users' homes. A
# process with a time limit reads the lists of other users, because they may contain a pipe that blocks. Without root's
# rights svc trusts HOME, regardless of its owner, if ~/.svc belongs to this user.
add_known_homes() {
  set -- "${HOME-}"
  for svc_folder in /root /home/*; do [ "$svc_folder" = "${HOME-}" ] || set -- "$@" "$svc_folder"; done
  for svc_folder in "$@"; do
    [ -d "$svc_folder/.svc" ] || continue
    if [ -O "$svc_folder" ] || { [ "$svc_kind" != root ] && [ "$svc_folder" = "${HOME-}" ] && [ -O "$svc_folder/.svc" ]; }; then
      svc_homes="$svc_homes$(print_homes "$svc_folder" '')$svc_newline"
    elif [ "$svc_kind" = root ]; then
      if command -v timeout > /dev/null; then
        svc_homes="$svc_homes$(timeout 5 sh "$0" --homes "$svc_folder")$svc_newline"
      else
        echo "the program may see the svc homes of $svc_folder: the command timeout is missing" >&2
      fi
    fi
  done
}

# Prints the homes of the user whose home folder is $1: ~/.svc and the homes it lists. $2 is a command that limits the
# time to read one list: BusyBox's timeout kills only the process that it starts. A user namespace shows all other users
# as one user, so only this user's homes count in it.
print_homes() {
  svc_own=$(id -u) && svc_owner=$(stat -c %u "$1/." 2>/dev/null) && find_real "$1/" || return 0
  [ "$svc_kind" = root ] || svc_owner=$svc_own
  svc_folder=${svc_real%/}/.svc
  # A link may lead to a folder of any user. A folder at this path is safe to hide, regardless of its owner.
  ! is_home "${1%/}/.svc" . || case $svc_user:$svc_real in "$svc_owner":* | *:"$svc_folder") printf '%s\n' "$svc_real" ;; esac
  stat -c '%u %f %n' "$1/.svc/homes"/* 2>/dev/null | while read -r svc_lister svc_mode svc_path; do
    # 8 is for regular files: no links.
    case "$svc_lister $svc_mode" in "$svc_owner 8"??? | "$svc_own 8"???) ;; *) continue ;; esac
    is_home "$($2 head -c 4096 "$svc_path" 2>/dev/null)" $svc_home_files && [ "$svc_user" = "$svc_lister" ] && printf '%s\n' "$svc_real"
  done
}

# Sets svc_hidden to the paths that the program must not see: folders of svc's homes, sockets, and views of the host's
# processes.
find_hidden() {
  svc_hidden=
  svc_mounts=$(cat /proc/self/mountinfo)
  # The host's /proc/net/unix: flag 00010000 marks listening sockets.
  svc_listeners=$(sed -n 's,^[^ ]* [^ ]* [^ ]* 00010000 [^ ]* [^ ]* *[^ ]* /,/,p' <&5)
  exec 5<&-
  svc_homes=$svc_hide$svc_newline
  for_each add_home_of "$svc_listeners"
  add_known_homes
  for_each hide_everywhere "$svc_homes"
  for_each_mount hide_proc
  for_each hide_socket "$svc_listeners"
}

# Whether the path $1 is in a folder that is hidden anyway or replaced by the program's own.
is_covered() {
  case $svc_self/ in "$1"/*) ;; *)
    case $1 in
      /dev/* | /run/*) return 0 ;;
      /tmp/*) is_below "$svc_kept" "$1/." || return 0 ;;
    esac
    ;;
  esac
  is_below "$svc_hidden" "$1"
}

# Whether a folder above the path $2 is a line of $1.
is_below() {
  svc_above=${2%/*}
  while [ -n "$svc_above" ]; do
    case "$svc_newline$1" in *"$svc_newline$svc_above$svc_newline"*) return 0 ;; esac
    svc_above=${svc_above%/*}
  done
  return 1
}

# Sorts the folders below /tmp that stay visible: real paths into svc_kept, paths that a link leads to into svc_links. A
# link stays a link, because hidden folders are hidden under their real paths.
find_kept() {
  svc_kept= svc_links=
  for_each sort_kept "$svc_keep"
}

sort_kept() {
  find_real "$svc_line" || return 0
  [ "$svc_real" = "$svc_line" ] || svc_links="$svc_links$svc_line$svc_newline"
  case $svc_real in
    /tmp/*) is_below "$svc_kept$svc_hidden" "$svc_real/." || svc_kept="$svc_kept$svc_real$svc_newline" ;;
  esac
}

# The overlay does not include a file system that the host has mounted below the home folder.
keep_mount_in_home() {
  decode "$svc_point"
  case $svc_path in "$svc_self"/*) return 0 ;; "$svc_home"/*) ;; *) return 0 ;; esac
  [ -d "$svc_path" ] && ! is_covered "$svc_path" || return 0
  svc_count=$((svc_count + 1))
  mkdir "$svc_stage/mount$svc_count" && mount --bind "$svc_path" "$svc_stage/mount$svc_count" 2>/dev/null || return 0
  place "mount$svc_count" "$svc_path" bind
}

# Makes a layer above the home folder for the program's writes. The kernel rejects a layer inside the folder below it,
# and svc's own folder usually is inside. The first overlay counts as another file system, so the second one may have
# its layer there. Without overlays the home is read-only.
make_home_layer() {
  svc_home=
  find_real "${HOME:-/}" || return 0
  case $svc_real/ in
    / | /dev/* | /run/* | /tmp/ | "$svc_self"/*) return 0 ;;
    /tmp/*) is_below "$svc_kept" "$svc_real/." || return 0 ;;
  esac
  case $svc_real$svc_self in *[,:\\[:space:]]*) return 0 ;; esac
  # User namespaces may not write the attributes of root's overlays; they need this option.
  svc_option=
  [ "$svc_kind" = root ] || svc_option=,userxattr
  add_mount svc "$svc_stage/below" overlay "lowerdir=$svc_real:$svc_stage/empty$svc_option"
  add_mount svc "$svc_stage/merged" overlay "lowerdir=$svc_stage/below,upperdir=$svc_layer/upper,workdir=$svc_layer/work$svc_option"
  printf '%s' "$svc_table" > "$svc_stage/table"
  svc_table=
  mount --all --fstab "$svc_stage/table" 2>/dev/null || return 0
  svc_home=$svc_real
}

add_home() {
  [ -n "$svc_home" ] || return 0
  svc_count=0
  add_mount "$svc_stage/merged" "$svc_built/home" none bind,rw,nodev
  place home "$svc_home" rbind,rw,nodev
  for_each_mount keep_mount_in_home
}

add_devices() {
  cp -P /dev/fd /dev/stdin /dev/stdout /dev/stderr "$svc_stage/dev/" 2>/dev/null
  cd /dev
  for svc_device in $svc_devices; do
    if [ -c "$svc_device" ]; then : > "$svc_stage/dev/$svc_device"; else [ -d "$svc_device" ] || continue; fi
    add_mount "/dev/$svc_device" "$svc_built/dev/$svc_device" none rbind
  done
  cd /
  : > "$svc_stage/dev/ptmx"
  case $svc_self in
    # The cover of svc's folder is mounted in it.
    /dev/shm/*) ;;
    *) add_mount svc "$svc_built/dev/shm" tmpfs nosuid,nodev,mode=1777 ;;
  esac
  add_mount svc "$svc_built/dev/pts" devpts nosuid,noexec,newinstance,ptmxmode=0666,mode=0620
  add_mount "$svc_built/dev/pts/ptmx" "$svc_built/dev/ptmx" none bind
}

# An empty /run, with the host's links, its resolv.conf if that is in /run, and the session's folder.
fill_run() {
  set --
  for svc_path in /run/*; do [ ! -L "$svc_path" ] || set -- "$@" "$svc_path"; done
  [ $# = 0 ] || cp -P "$@" "$svc_stage/run/"
  if [ -L /etc/resolv.conf ]; then
    svc_path=$(readlink -f /etc/resolv.conf)
    case $svc_path in /run/*) mkdir -p "$svc_stage${svc_path%/*}" && cp /etc/resolv.conf "$svc_stage$svc_path" 2>/dev/null ;; esac
  fi
  case ${XDG_RUNTIME_DIR-} in /run/*) mkdir -p "$svc_stage$XDG_RUNTIME_DIR" && chmod 700 "$svc_stage$XDG_RUNTIME_DIR" ;; esac
}

keep_in_tmp() {
  add_mount "$svc_line" "$svc_built$svc_line" none rbind
}

# The program's own /tmp, with the entries of the host's /tmp that must stay visible.
add_tmp() {
  add_mount "$svc_self/tmp" "$svc_built/tmp" none "bind,rw,nodev$svc_own_flags"
  for_each keep_in_tmp "$svc_kept"
  place tmp /tmp "rbind,rw,nodev$svc_own_flags"
  ! has_own_var_tmp || place tmp /var/tmp "bind,rw,nodev$svc_own_flags"
}

# Whether /var/tmp is replaced as well: not when it contains svc's folder.
has_own_var_tmp() {
  [ -d /var/tmp ] && [ ! -L /var/tmp ] || return 1
  case $svc_self in /var/tmp/*) return 1 ;; esac
}

# Makes the folder $1 below /tmp in the program's own /tmp. A program of an earlier command may have put a link in the
# path. So this enters each folder and checks its path before it makes the next one.
make_in_tmp() {
  cd "$svc_self/tmp" || return 1
  svc_rest=${1#/tmp} svc_above=$svc_self/tmp
  while svc_rest=${svc_rest#/} && [ -n "$svc_rest" ]; do
    svc_above=$svc_above/${svc_rest%%/*}
    [ -d "./${svc_rest%%/*}" ] || mkdir "./${svc_rest%%/*}" 2>/dev/null
    cd -P "./${svc_rest%%/*}" 2>/dev/null && [ "$PWD" = "$svc_above" ] || { echo "the folder $1 could not be made in the own /tmp" >&2 && exit 97; }
    case $svc_rest in */*) svc_rest=${svc_rest#*/} ;; *) svc_rest= ;; esac
  done
}

make_place() {
  make_in_tmp "$svc_line"
}

make_link() {
  find_real "$svc_line" && make_in_tmp "${svc_line%/*}"
  [ -e "./${svc_line##*/}" ] || ln -s "$svc_real" "./${svc_line##*/}"
}

# A mount point for a path that the program's own /tmp covers anyway would only reveal its name.
make_hidden_place() {
  case $svc_line in /tmp/*) is_covered "$svc_line" || is_below "$svc_kept" "$svc_line" || make_in_tmp "$svc_line" ;; esac
}

# Makes the mount points while the machine's folder is still writable.
make_places() {
  mkdir -p "$svc_self/stage" "$svc_self/base/jobs" "$svc_layer/upper" "$svc_layer/work" || return 1
  for_each make_place "$svc_kept"
  for_each make_link "$svc_links"
  for_each make_hidden_place "$svc_hidden"
  cd /
  make_tmpdir
}

# Programs expect the session's folder in /tmp to exist. A program that has blocked its path starts without it.
make_tmpdir() {
  case ${TMPDIR-} in /tmp/*) [ -d "$svc_self$TMPDIR" ] || (make_in_tmp "$TMPDIR" && chmod 700 .) || return 0 ;; esac
}

add_cover() {
  ! is_covered "$svc_line" || return 0
  case $svc_self/ in
    "$svc_line"/*) ;;
    *)
      # The socket may be removed or replaced at any moment, and one missing target fails the whole table. So sockets
      # are covered one by one.
      if [ -S "$svc_line" ]; then
        svc_late_sockets="$svc_late_sockets$svc_line$svc_newline"
      else
        svc_late_folders="$svc_late_folders$svc_line$svc_newline"
      fi
      return 0
      ;;
  esac
  svc_inside=${svc_self#"$svc_line"}/base
  add_mount "$svc_self/base" "$svc_built/svc$svc_inside" none "bind,rw,nodev$svc_own_flags"
  add_mount "$svc_self/base/jobs" "$svc_built/svc$svc_inside/jobs" none bind
  case $svc_line in
    # These folders are mounted last, with this mount in them.
    /run/* | /dev/*) mkdir -p "$svc_stage$svc_line" && add_mount "$svc_built/svc" "$svc_built$svc_line" none rbind,ro ;;
    *) place svc "$svc_line" rbind,ro ;;
  esac
}

# A mount follows a link, and another user may have put a link at the socket's path.
cover_socket() {
  [ -S "$svc_line" ] && [ ! -L "$svc_line" ] || return 0
  mount --bind /dev/null "$svc_line" 2>/dev/null || [ ! -S "$svc_line" ] || { echo "the socket $svc_line could not be hidden" >&2 && exit 97; }
}

# Another user may replace this folder by a link to any folder or file. So it is covered from inside.
cover_folder() {
  cd -P "$svc_line" 2>/dev/null && [ "$PWD" = "$svc_line" ] || { cd / && return 0; }
  mount --no-canonicalize -t tmpfs -o ro,nosuid,nodev,mode=755 svc . 2>/dev/null || [ ! "$svc_line" -ef . ] ||
    { echo "the folder $svc_line could not be hidden" >&2 && exit 97; }
  cd /
}

make_mount_read_only() {
  case $svc_point:$svc_options in
    *:ro | *:ro,* | /dev:* | /dev/*:* | /proc:* | /proc/*:* | /run:* | /run/*:* | /tmp:*) return 0 ;;
  esac
  decode "$svc_point"
  make_path_read_only "$svc_path" "${svc_options#rw}"
}

# A mount that cannot be made private is not visible: it is below another mount, or in a folder that is closed to this
# process and so to the program.
make_path_read_only() {
  ! mount -o "remount,bind,ro$2" "$1" 2>/dev/null && mount --make-private "$1" 2>/dev/null || return 0
  echo "the files in $1 could not be made read-only" >&2
  exit 97
}

make_cover_read_only() {
  [ ! -d "$svc_line" ] || [ ! -w "$svc_line" ] || make_path_read_only "$svc_line" ''
}

# Makes every mount read-only that is not replaced. An old mount(8) only handles the mounts in fstab; the others are
# made read-only one by one.
make_read_only() {
  mount --all -o remount,bind,ro 2>/dev/null
  svc_mounts=$(cat /proc/self/mountinfo)
  for_each_mount make_mount_read_only
}

# The folder in which everything is built. Its subfolders are created first: those of devices, and those above the base
# folder.
make_stage() {
  mount -t tmpfs -o nosuid,nodev,mode=755,size=64m,nr_inodes=64k svc "$svc_stage" || exit 97
  set -- empty below merged run tmp home dev/pts dev/shm
  for_each add_way_to_base "$svc_hidden"
  cd /dev
  for svc_device in $svc_devices; do [ ! -d "$svc_device" ] || set -- "$@" "dev/$svc_device"; done
  set -f
  svc_ifs=$IFS
  IFS=$svc_newline
  cd "$svc_stage" && mkdir -p "$@" $svc_ways || exit 97
  IFS=$svc_ifs
  set +f
  cd /
}

add_way_to_base() {
  case $svc_self/ in "$svc_line"/*) svc_ways="${svc_ways}svc${svc_self#"$svc_line"}/base$svc_newline" ;; esac
}

# Runs in a mount namespace of the command's own. Becomes the command $3... with the rights that $2 leaves it. $1 names
# its layer above the home folder.
#
# Everything is built in one folder first. That folder is then mounted on /run, or on /dev/shm if svc's folder is in
# /run. There it stays accessible while the other folders are replaced; it is replaced last.
confine() {
  svc_layer_name=$1 svc_drop=$2
  shift 2
  find_real "$svc_here" || exit 97
  svc_self=$svc_real
  svc_layer=$svc_self/$svc_layer_name svc_stage=$svc_self/stage svc_built=/run svc_table= svc_places= svc_late_folders= svc_late_sockets= svc_ways=
  case $svc_self in /run/*) svc_built=/dev/shm ;; esac
  find_hidden
  find_kept
  find_mount "$svc_self"
  svc_own_flags=$svc_flags
  make_places || exit 97
  make_stage
  make_home_layer
  fill_run
  add_devices
  add_tmp
  add_home
  for_each add_cover "$svc_hidden"
  [ "$svc_built" = /dev/shm ] || place dev /dev rbind,ro
  place run /run rbind,rw,nodev
  [ -L /var/run ] || [ ! -d /var/run ] || place run /var/run bind,rw,nodev
  [ "$svc_built" = /run ] || place dev /dev rbind,ro
  svc_places="${svc_places}svc /proc proc nosuid,nodev,noexec 0 0$svc_newline"
  # The owner of the root folder is root of the host and may write to these files.
  [ ! -O / ] || for svc_part in $svc_proc_parts; do
    [ ! -e "/proc/$svc_part" ] || svc_places="$svc_places/proc/$svc_part /proc/$svc_part none bind,ro 0 0$svc_newline"
  done
  svc_parts=$svc_table
  svc_table=
  add_mount "$svc_stage" "$svc_built" none rbind,rw,nosuid,nodev
  printf '%s' "$svc_table$svc_parts$svc_places" > "$svc_stage/table"
  make_read_only
  mount --all --fstab "$svc_stage/table" || exit 97
  for_each cover_folder "$svc_late_folders"
  for_each cover_socket "$svc_late_sockets"
  # A bind mount of older versions of mount(8) stays writable, that of newer ones becomes read-only.
  for_each make_cover_read_only "/dev$svc_newline$svc_hidden"
  for svc_path in "$svc_self/base" /tmp /var/tmp /run "$svc_home"; do
    [ ! -d "$svc_path" ] || [ -w "$svc_path" ] || mount -o "remount,bind,rw,nodev$svc_own_flags" "$svc_path" 2>/dev/null
  done
  [ -w "$svc_self/base" ] && [ ! -e "$svc_self/enter.sh" ] || { echo "the folder $svc_self could not be set apart" >&2 && exit 97; }
  exec $svc_drop setsid "$@"
}

# Adds arguments for bubblewrap to svc_arguments, one per line.
add_arguments() {
  for svc_argument in "$@"; do svc_arguments="$svc_arguments$svc_argument$svc_newline"; done
}

cover_by_bwrap() {
  ! is_covered "$svc_line" || return 0
  [ -d "$svc_line" ] || { add_arguments --ro-bind /dev/null "$svc_line" && return 0; }
  add_arguments --tmpfs "$svc_line"
  case $svc_self/ in
    "$svc_line"/*)
      # The first process inside and the inbound forwarder run these scripts.
      for svc_name in enter.sh confine.sh enter.conf forwarder.mjs; do add_arguments --ro-bind "$svc_self/$svc_name" "$svc_self/$svc_name"; done
      # On an SSH host, the Node.js binary is in svc's folder too.
      svc_path=$(readlink -f "$svc_node")
      case $svc_path in "$svc_line"/*) add_arguments --ro-bind "$svc_path" "$svc_path" ;; esac
      add_arguments --bind "$svc_self/base" "$svc_self/base" --ro-bind "$svc_self/base/jobs" "$svc_self/base/jobs"
      ;;
  esac
  add_arguments --remount-ro "$svc_line"
}

keep_by_bwrap() {
  add_arguments --ro-bind "$svc_line" "$svc_line"
}

link_by_bwrap() {
  [ -L "$svc_self$svc_line" ] || { find_real "$svc_line" && add_arguments --symlink "$svc_real" "$svc_line"; }
}

# The same by bubblewrap's own mounts, before the command $@: where AppArmor confines bubblewrap, no process inside may
# mount. The home folder is read-only.
confine_by_bwrap() {
  find_real "$svc_here" || exit 97
  svc_self=$svc_real
  [ -d "$svc_self/base/jobs" ] || mkdir -p "$svc_self/base/jobs"
  svc_arguments=
  exec 5< /proc/net/unix
  find_hidden
  find_kept
  add_arguments --ro-bind / / --proc /proc --dev /dev
  # The network settings stay writable: the first process inside opens the ports below 1024 there.
  [ ! -O / ] || for svc_path in /proc/sys/*; do [ "$svc_path" = /proc/sys/net ] || add_arguments --ro-bind "$svc_path" "$svc_path"; done
  [ ! -O / ] || for svc_part in $svc_proc_parts; do
    [ "$svc_part" = sys ] || [ ! -e "/proc/$svc_part" ] || add_arguments --ro-bind "/proc/$svc_part" "/proc/$svc_part"
  done
  cd /dev
  for svc_device in $svc_devices; do
    [ ! -e "$svc_device" ] || add_arguments --dev-bind "/dev/$svc_device" "/dev/$svc_device"
  done
  cd /
  add_arguments --tmpfs /dev/shm --remount-ro /dev
  # Older versions cannot limit the size of the program's files there.
  svc_size=
  case $(bwrap --help 2>&1) in *--size*) svc_size="--size${svc_newline}67108864" ;; esac
  if [ -d /run ]; then
    add_arguments $svc_size --tmpfs /run
    for svc_path in /run/*; do [ ! -L "$svc_path" ] || add_arguments --symlink "$(readlink "$svc_path")" "$svc_path"; done
    [ -L /var/run ] || [ ! -d /var/run ] || add_arguments $svc_size --tmpfs /var/run
    case ${XDG_RUNTIME_DIR-} in /run/*) add_arguments --dir "$XDG_RUNTIME_DIR" ;; esac
  fi
  add_arguments --bind "$svc_self/tmp" /tmp
  ! has_own_var_tmp || add_arguments --bind "$svc_self/tmp" /var/tmp
  make_tmpdir
  for_each keep_by_bwrap "$svc_kept"
  for_each link_by_bwrap "$svc_links"
  if svc_path=$(readlink -f /etc/resolv.conf) && [ -e "$svc_path" ]; then
    svc_source=$svc_path
    [ ! -e "$svc_self/resolv.conf" ] || svc_source=$svc_self/resolv.conf
    add_arguments --ro-bind "$svc_source" "$svc_path"
  fi
  for_each cover_by_bwrap "$svc_hidden"
  set -f
  svc_ifs=$IFS
  IFS=$svc_newline
  set -- $svc_arguments "$@"
  IFS=$svc_ifs
  set +f
  exec_bwrap "$@"
}
