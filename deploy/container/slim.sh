#!/bin/sh
# Removes from an environment what a running hearsay never opens. Run at the end of the image's build stage.
set -eu
packages=$(echo "$1"/lib/python3*/site-packages)

"$1"/bin/python -m pip uninstall --quiet --yes pip setuptools 2>/dev/null || true
find "$packages" -depth -type d \( -name tests -o -name test \) -exec rm -rf {} +
find "$packages" -depth -type d -path '*/pyarrow/include' -exec rm -rf {} +
find "$packages" -type f \( -name '*.a' -o -name '*.h' -o -name '*.hpp' -o -name '*.pxd' -o -name '*.pyx' -o -name '*.pyi' \) -delete
# Arrow's network protocol.
rm -rf "$packages"/pyarrow/*flight*
# Not those in *.libs: they were patched, and stripped ones cannot be loaded.
find "$1" -type f -name '*.so*' -not -path '*.libs/*' -exec strip --strip-unneeded {} + 2>/dev/null || true
