#!/bin/sh
# Names images by their digests, at a release. Nothing that is committed changes:
#
#   sh scripts/image-digests.sh strimzi hearsay=registry.example.org/hearsay@sha256:... kafka=... redis=... prometheus=...
#
# writes deploy/kubernetes/release, an overlay of base, strimzi or tls (the first argument) with hearsay by its digest, and
# deploy/compose/.env, which compose reads by itself. Images that are not named stay as they are.
set -eu
cd "$(dirname "$0")/.."

refuse() { echo "$1" >&2; exit 1; }

overlay=${1:-}
[ -f "deploy/kubernetes/$overlay/kustomization.yaml" ] && [ -n "$overlay" ] || refuse "the first argument is base, strimzi or tls"
shift
[ $# -gt 0 ] || refuse "name at least one image: hearsay=NAME@sha256:DIGEST"

ours="" variables=""
for pair in "$@"; do
  name=${pair%%=*} image=${pair#*=}
  case $name in hearsay | kafka | redis | prometheus) ;; *) refuse "$name is none of hearsay, kafka, redis, prometheus" ;; esac
  echo "$image" | grep -Eq '^[^@[:space:]]+@sha256:[0-9a-f]{64}$' || refuse "$name: $image does not end with @sha256: and 64 digits"
  variables="$variables
IMAGE_$(echo "$name" | tr a-z A-Z)=$image"
  [ "$name" = hearsay ] && ours=$image
done

printf '%s\n' "# Written by scripts/image-digests.sh.$variables" >deploy/compose/.env
echo "wrote deploy/compose/.env"
[ -n "$ours" ] || exit 0
mkdir -p deploy/kubernetes/release
cat >deploy/kubernetes/release/kustomization.yaml <<YAML
# Written by scripts/image-digests.sh.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../$overlay]
images:
  - { name: hearsay, newName: ${ours%@*}, digest: "${ours#*@}" }
YAML
echo "wrote deploy/kubernetes/release: kubectl apply --kustomize deploy/kubernetes/release"
