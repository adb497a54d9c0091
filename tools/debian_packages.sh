#!/usr/bin/env bash
# Install the Debian packages that some tests compare with or talk to, where that is possible; say before what is
# installed and why, and what is left out where it is not. No service of theirs is started: tests start servers of
# their own, on free ports of this machine.
set -u
cd "$(dirname "$0")/.."
declare -A needed=(
  [wordnet-base]="rebuilding the WordNet table and the corpus from their source"
  [redis-server]="the tests of the live anonymizer with a real Redis"
  [postgresql]="the tests of the live anonymizer with its state in a real PostgreSQL"
  [chromium]="the tests of the live page in a browser"
  [chromium-driver]="the tests of the live page in a browser"
)
command -v java >/dev/null || needed[openjdk-17-jre-headless]="the tests on Spark"
declare -A service=([redis-server]=redis-server [postgresql]=postgresql)

missing=()
for package in "${!needed[@]}"; do
  dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done

why_not=""
if ! command -v apt-get >/dev/null; then
  why_not="this is not Debian"
elif [ "$(id -u)" != 0 ]; then
  why_not="only root may install it"
elif [ -n "${QUERYVEIL_NO_APT:-}" ]; then
  why_not="QUERYVEIL_NO_APT is set"
fi

if [ ${#missing[@]} -gt 0 ] && [ -z "$why_not" ]; then
  echo "Installing these Debian packages with apt-get, without starting any service (QUERYVEIL_NO_APT=1 leaves them out):"
  for package in "${missing[@]}"; do
    echo "  $package, for ${needed[$package]}"
  done
fi

# Packages start what they bring with these two commands; in this folder, which apt puts first, they do nothing.
mkdir -p .venv
quiet=$(mktemp -d "$PWD/.venv/no-services-XXXXXX")
trap 'rm -rf "$quiet"' EXIT
for command in invoke-rc.d deb-systemd-invoke; do
  printf '#!/bin/sh\nexit 0\n' >"$quiet/$command" && chmod 755 "$quiet/$command"
done

install_quietly() {
  local package=$1
  local options=(-y --no-install-recommends -o "DPkg::Path=$quiet:$PATH")
  export DEBIAN_FRONTEND=noninteractive
  apt-get install "${options[@]}" "$package" || { apt-get update && apt-get install "${options[@]}" "$package"; } || return 1
  if [ -n "${service[$package]:-}" ] && [ -d /run/systemd/system ]; then
    systemctl disable "${service[$package]}"
  fi
}

for package in "${missing[@]}"; do
  why=$why_not
  if [ -z "$why" ]; then
    install_quietly "$package" >/dev/null 2>&1 && continue
    why="apt-get could not install it"
  fi
  echo "Left out: ${needed[$package]}, because $package is not installed ($why)."
done
[ -d ../shared/data ] || echo "Left out: the tests on real logs, because ../shared/data is not there."
exit 0
