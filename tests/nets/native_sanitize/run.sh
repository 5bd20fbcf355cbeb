#!/bin/sh
# Builds the native kernel with the address and undefined-behaviour sanitizers, once per instruction-set level that
# this processor can run, and checks it against plain loops. Exits non-zero at the first error. CXX chooses the compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

build() { # name, flags...
    name=$1
    shift
    ${CXX:-c++} -std=c++17 -O1 -g -ffp-contract=fast -Wall -Wextra -Werror -Wno-psabi -fno-omit-frame-pointer \
        -fsanitize=address,undefined -fno-sanitize-recover=all "$@" "$here/check.cpp" -o "$out/$name"
}

build base
level=$("$out/base" --level)
"$out/base"
if [ "$level" -ge 3 ]; then
    build v3 -mavx2 -mfma
    "$out/v3"
fi
if [ "$level" -ge 4 ]; then
    build v4 -mavx2 -mfma -mavx512f -mavx512vl -mavx512bw -mavx512dq
    "$out/v4"
fi
echo "sanitizers found nothing"
