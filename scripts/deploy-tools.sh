#!/bin/sh
# What `make deploy-test` needs beyond `make test`: installed where we may (Debian, as root), named otherwise. Steps whose
# tools are missing are skipped, so nothing here fails.
set -eu

packages=""
have() { command -v "$1" >/dev/null 2>&1; }
have podman || packages="$packages podman"
have runc || packages="$packages runc"
[ -e /usr/lib/podman/netavark ] || packages="$packages netavark"
[ -e /usr/lib/podman/aardvark-dns ] || packages="$packages aardvark-dns"
have mmdebstrap || packages="$packages mmdebstrap"
have promtool || packages="$packages prometheus"
have etcd || packages="$packages etcd-server"
have openssl || packages="$packages openssl"

if [ -z "$packages" ]; then
  :
elif have apt-get && [ "$(id -u)" = 0 ]; then
  echo "installing$packages"
  # Installing a server must not start one: Debian asks this program, if there is one, whether it may.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
  fi
  apt-get update -qq
  # One by one: a system that lacks one of them may have the others.
  for package in $packages; do
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$package" >/dev/null ||
      echo "$package could not be installed" >&2
  done
else
  echo "please install (names of Debian):$packages" >&2
fi
have go || echo "please install Go 1.24 or later: kube-apiserver is built with it, once" >&2
