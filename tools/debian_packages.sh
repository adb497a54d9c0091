#!/usr/bin/env bash
# Install the Debian packages that some tests compare with or talk to, where that is possible; say what is left out where
# it is not. No service of theirs is started: tests start servers of their own, on free ports of this machine.
set -u
declare -A needed=(
  [wordnet-base]="rebuilding the WordNet table and the corpus from their source"
  [redis-server]="the tests of the live anonymizer with a real Redis"
  [postgresql]="the tests of the live anonymizer with its state in a real PostgreSQL"
  [chromium]="the tests of the live page in a browser"
  [chromium-driver]="the tests of the live page in a browser"
)
command -v java >/dev/null || needed[openjdk-17-jre-headless]="the tests on Spark"
declare -A service=([redis-server]=redis-server [postgresql]=postgresql)
policy=/usr/sbin/policy-rc.d

install_quietly() {
  local package=$1 is_ours=no done=1
  # Packages ask this file whether they may start what they bring.
  if [ ! -e "$policy" ]; then
    is_ours=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  if apt-get install -y --no-install-recommends "$package" ||
    { apt-get update && apt-get install -y --no-install-recommends "$package"; }; then
    done=0
    if [ -n "${service[$package]:-}" ] && [ -d /run/systemd/system ]; then
      systemctl disable "${service[$package]}"
    fi
  fi
  [ "$is_ours" = no ] || rm -f "$policy"
  return "$done"
}

for package in "${!needed[@]}"; do
  if dpkg -s "$package" >/dev/null 2>&1; then
    continue
  elif ! command -v apt-get >/dev/null; then
    why="this is not Debian"
  elif [ "$(id -u)" != 0 ]; then
    why="only root may install it"
  elif install_quietly "$package" >/dev/null 2>&1; then
    continue
  else
    why="apt-get could not install it"
  fi
  echo "Left out: ${needed[$package]}, because $package is not installed ($why)."
done
[ -d ../shared/data ] || echo "Left out: the tests on real logs, because ../shared/data is not there."
exit 0
