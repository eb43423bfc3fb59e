#!/bin/sh
# Writes an image archive of one static program in the format of `docker save`: mkimage.sh PROGRAM OUT.tar NAME...
# Needs no builder and no base image. Every NAME is a tag of the same image.
set -eu
program=$1 out=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
entry=$(basename "$program")
cp "$program" "$work/$entry"
chmod 755 "$work/$entry"
tar -C "$work" --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" "$entry"
layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
cat > "$work/config.json" <<JSON
{"architecture": "$(go env GOARCH)", "os": "linux", "config": {"User": "65532:65532", "Entrypoint": ["/$entry"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}}
JSON
tags=$(printf '"%s", ' "$@")
printf '[{"Config": "config.json", "RepoTags": [%s], "Layers": ["layer.tar"]}]\n' "${tags%, }" > "$work/manifest.json"
tar -C "$work" -cf "$out" manifest.json config.json layer.tar
