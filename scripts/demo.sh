#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The main job: SHARP against ring on two leaves, two spines and eight hosts. demo.sh BUILD
set -eu
build=$(cd "${1:-build}" && pwd)
cd "$(dirname "$0")/.."
TRIB_BUILD=$build exec scripts/trib perf conf/leaf-spine-8.conf all_reduce -g 8 --algo ring,sharp \
    -b 4K -e 16M -f 4 -n 5 -w 1 -c 1 -J "$build/demo.json"
