#!/usr/bin/env bash
# Builds the image with buildah on a Debian base that is made here, then trains and evaluates in it as
# a user whom the image does not know. Debian, root, about 8 GB under $TMPDIR (or /var/tmp) for a while.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly suite=bookworm
readonly caller=12345
readonly certificates=/usr/local/share/ca-certificates/build-host.crt
export BUILDAH_ISOLATION=chroot # works inside another container too, where namespaces are refused

fail() {
    echo "docker/check.sh: $*" >&2
    exit 1
}

say() { printf '\n== %s\n' "$*"; }

install_tools() {
    command -v buildah >/dev/null && command -v debootstrap >/dev/null && return
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends buildah debootstrap
}

# buildah takes overlay where it can and vfs, which needs no mounts, elsewhere; STORAGE_DRIVER decides otherwise.
store() {
    buildah ${STORAGE_DRIVER:+--storage-driver "$STORAGE_DRIVER"} \
        --root "$work/storage" --runroot "$work/run" "$@"
}

# A stand-in for debian:12-slim. A host whose downloads need a certificate of its own lends it.
make_base() {
    local container root
    container=$(store from scratch)
    root=$(store mount "$container")
    debootstrap --variant=minbase "$suite" "$root" >"$work/debootstrap.log" 2>&1 ||
        fail "debootstrap: $(tail -n 3 "$work/debootstrap.log")"
    rm -rf "$root"/usr/share/{doc,info,locale,man}/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
    if [ -n "${PIP_CERT:-}" ]; then
        install -D -m 644 "$PIP_CERT" "$root$certificates"
        store config --env PIP_CERT="$certificates" "$container"
    fi
    store commit --quiet --rm "$container" localhost/fls-base >/dev/null
}

build() {
    store build --pull-never --build-arg BASE_IMAGE=localhost/fls-base \
        --tag localhost/fl-saliency . >"$work/build.log" 2>&1 ||
        fail "the build failed: $(tail -n 30 "$work/build.log")"
}

inspect() { store inspect --type image --format "{{$1}}" localhost/fl-saliency; }

in_image() {
    store run --user "$caller:$caller" --volume "$work/out:/work/out" "$container" -- fls-entrypoint "$@"
}

[ "$(id -u)" = 0 ] || fail "root is needed"
install_tools
work=$(mktemp -d "${TMPDIR:-/var/tmp}/fls-check.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

say "base image"
make_base
say "build"
build
store images --format '{{.Name}} {{.Size}}'
[ "$(inspect .OCIv1.Config.Entrypoint)" = "[fls-entrypoint]" ] || fail "the entry point is another"
[ "$(inspect .OCIv1.Config.User)" = 1000:1000 ] || fail "the image's own user is another"

container=$(store from --pull-never localhost/fl-saliency)
install -d -o "$caller" -g "$caller" "$work/out"
say "fls"
in_image fls --version
say "train"
in_image train_baselines.py --network cnn_sparse_fls --env-name BreakoutNoFrameskip-v4 \
    --num-timesteps 1024 --output-dir out/run
say "evaluate"
in_image run_baselines.py --experiment-dir out/run --num-env 2 --evals-per-env 1 --max-eplen 1000 \
    --raw-obs --processed-obs --output-dir out/eval
in_image benchmark_atari_head.py --help >/dev/null || fail "benchmark_atari_head.py --help fails"

say "results"
for file in run/{config.json,model.pkl,logs/progress.csv,logs/0.0.monitor.csv} \
    eval/{results.json,perception.mkv,perception.mp4}; do
    [ -s "$work/out/$file" ] || fail "$file is missing or empty"
done
foreign=$(find "$work/out" ! -uid "$caller")
[ -z "$foreign" ] || fail "not the caller's: $foreign"
find "$work/out" -type f -printf '%10s %P\n' | sort -k 2
say "docker/check.sh: all is well"
