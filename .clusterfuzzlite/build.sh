#!/bin/bash
# Build all fuzz targets with the compiler, flags and engine of the environment into $OUT, each with its seeds.
# https://google.github.io/oss-fuzz/getting-started/new-project-guide/#buildsh
set -euo pipefail
: "${CC:?}" "${OUT:?}" "${LIB_FUZZING_ENGINE:?}"
root=$(dirname "$(dirname "$(readlink -f "$0")")")
if [ ! -e "$root/CMakeLists.txt" ]; then
    root=${SRC:?}/certroll # where the Dockerfile has put us beside the sources
fi
work=${WORK:-$(mktemp --directory)}/certroll

# $CXX links, as an engine may be in C++; the runner has our shared libraries in $OUT/lib alone.
cmake -S "$root" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=None -DCERTROLL_FUZZ=ON -DCERTROLL_TESTS=OFF -DCERTROLL_WERROR=OFF \
    -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="${CFLAGS:-}" -DCERTROLL_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
    -DCMAKE_C_LINK_EXECUTABLE="${CXX:-$CC} ${CXXFLAGS:-${CFLAGS:-}} <OBJECTS> -o <TARGET> <LINK_LIBRARIES>" \
    -DCMAKE_BUILD_RPATH='$ORIGIN/lib'
cmake --build "$work" --target fuzzers

mkdir -p "$OUT/lib"
for program in "$work"/fuzz/fuzz_*; do
    name=$(basename "$program")
    cp "$program" "$OUT/"
    # All but what each runner has; what is in common is copied again.
    ldd "$program" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)\.so/ { print $3 }' |
        xargs --no-run-if-empty cp --dereference --target-directory "$OUT/lib"
    zip --quiet --junk-paths "$OUT/${name}_seed_corpus.zip" "$root/test/fuzz/corpus/${name#fuzz_}"/*
done
