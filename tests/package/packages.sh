#!/usr/bin/env bash
# The Debian package and the tarball, made from a build tree and looked into: packages.sh BUILD_DIR
set -euo pipefail
build=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "packages: $*" >&2
  exit 1
}

for generator in DEB TGZ; do
  cpack --config "$build/CPackConfig.cmake" -G "$generator" -B "$scratch" >"$scratch/log" 2>&1 || fail "$(tail -5 "$scratch/log")"
done

dpkg-deb -c "$scratch"/*.deb >"$scratch/contents"
for path in ./usr/bin/moebius ./usr/share/man/man1/moebius.1 ./usr/share/moebius/scenarios/schema.json \
  ./usr/share/bash-completion/completions/moebius; do
  grep -qE " ${path//./\\.}\$" "$scratch/contents" || fail "no $path in the Debian package"
done
[ "$(awk '$6 !~ /^\.\/(usr\/.*)?$/' "$scratch/contents" | wc -l)" = 0 ] || fail "files outside of /usr in the Debian package"
grep -q ' ./usr/lib/moebius/moebius-simgrid.so$' "$scratch/contents" || fail "no driver by SimGrid in the Debian package"
dpkg-deb -f "$scratch"/*.deb Depends | grep -q libsimgrid || fail "the Debian package does not say that it needs SimGrid"

# Away from where it was built, without an environment: the same answer.
mkdir "$scratch/elsewhere"
tar xzf "$scratch"/moebius-*.tar.gz -C "$scratch/elsewhere" --strip-components 1
scenario=share/moebius/scenarios/smoke/allreduce-1024.json
cd "$scratch/elsewhere"
env -i ./bin/moebius run "$scenario" | grep -v ' of CPU, ' >"$scratch/away.txt"
"$build/moebius" run "$scenario" | grep -v ' of CPU, ' >"$scratch/here.txt"
[ -s "$scratch/here.txt" ] || fail "no report of $scenario"
diff "$scratch/away.txt" "$scratch/here.txt" || fail "the tarball's answer is another one than the build's"
if [ -e ./lib/moebius/moebius-simgrid.so ]; then
  env -i ./bin/moebius run "$scenario" --driver simgrid | grep -v -e ' of CPU, ' -e '^  driver ' >"$scratch/driven.txt"
  grep -v '^  driver ' "$scratch/here.txt" | diff "$scratch/driven.txt" - || fail "the tarball's SimGrid gives another answer than the build's plain loop"
fi
env -i ldd ./lib/moebius/moebius | grep -v -e ' => /lib' -e linux-vdso -e ld-linux >"$scratch/brought" || true
grep -q "$scratch/elsewhere/" "$scratch/brought" || fail "the tarball runs with the libraries of this machine"
