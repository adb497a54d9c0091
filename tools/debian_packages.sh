#!/usr/bin/env bash
# Install the Debian packages that some tests compare with, where that is possible; say what is left out where it is not.
set -u
declare -A needed=([wordnet-base]="rebuilding the WordNet table and the corpus from their source")
for package in "${!needed[@]}"; do
  if dpkg -s "$package" >/dev/null 2>&1; then
    continue
  elif ! command -v apt-get >/dev/null; then
    why="this is not Debian"
  elif [ "$(id -u)" != 0 ]; then
    why="only root may install it"
  elif (apt-get install -y --no-install-recommends "$package" || { apt-get update && apt-get install -y --no-install-recommends "$package"; }) >/dev/null 2>&1; then
    continue
  else
    why="apt-get could not install it"
  fi
  echo "Left out: ${needed[$package]}, because $package is not installed ($why)."
done
[ -d ../shared/data ] || echo "Left out: the tests on real logs, because ../shared/data is not there."
exit 0
