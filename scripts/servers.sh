#!/bin/sh
# Java and Maven for the local Kafka, Redis for the memo store, Node.js for the JavaScript library: installed where we may
# (Debian, as root), named otherwise.
set -eu

packages=""
have() { command -v "$1" >/dev/null 2>&1; }
have java || packages="$packages default-jre-headless"
have mvn || packages="$packages maven"
have redis-server || packages="$packages redis-server"
have node || packages="$packages nodejs"
have npm || packages="$packages npm"

# Installing a server must not start one: Debian asks this program, if there is one, whether it may.
policy=/usr/sbin/policy-rc.d
install_quietly() {
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
  fi
  apt-get update -qq
  # shellcheck disable=SC2086  # a list of names
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $packages >/dev/null
}

if [ -n "$packages" ] && have apt-get && [ "$(id -u)" = 0 ]; then
  echo "installing$packages"
  install_quietly
elif ! have java || ! have mvn; then
  echo "The tests start a real Kafka broker: please install Java 17 or later and Maven (Debian:$packages)." >&2
  exit 1
fi

# A browser to look at reports with. Not every system has one to install: without it, that test says so and is skipped.
if ! have chromium && ! have google-chrome && have apt-get && [ "$(id -u)" = 0 ]; then
  echo "installing chromium"
  packages=chromium
  install_quietly 2>/dev/null || echo "no chromium here: nobody will look at the reports' pages" >&2
fi

# The packages of the tests of the pages, once for each lock file. Without them their tests say so and are skipped.
if ! have node || ! have npm; then
  echo "no Node.js and npm here: the JavaScript library is not tested" >&2
elif ! [ tests/pages/node_modules/.package-lock.json -nt tests/pages/package-lock.json ]; then
  npm ci --prefix tests/pages --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000 >/dev/null || echo "npm ci failed in tests/pages" >&2
fi
