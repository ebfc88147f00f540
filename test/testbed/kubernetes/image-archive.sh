# make_image FILE NAME ROOT CONFIG: an image archive, as `docker save` writes them, of the folder ROOT as its only layer. CONFIG is the JSON of the
# image's settings. The same folder gives the same image.
make_image() {
  local work digest
  work=$(mktemp -d)
  # mktemp makes folders that only root may enter.
  chmod 0755 "$3"
  tar -C "$3" --owner=0 --group=0 --numeric-owner --sort=name --mtime=@0 -cf "$work/layer.tar" .
  digest=$(sha256sum < "$work/layer.tar" | cut -d ' ' -f 1)
  printf '{"architecture":"%s","os":"linux","created":"1970-01-01T00:00:00Z","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"1970-01-01T00:00:00Z"}]}' \
    "$(dpkg --print-architecture)" "$4" "$digest" > "$work/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$2" > "$work/manifest.json"
  tar -C "$work" -cf "$1" manifest.json config.json layer.tar
  rm -rf "$work"
}
