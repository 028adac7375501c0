#!/bin/sh
# What was installed into the folder $1, on its own: a program, a connector, pages of the manual, module files in $2.
set -eu
prefix=$1 modules=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PATH=$prefix/bin:/usr/bin:/bin
export PATH HOME="$work"

hyperslab --version -v | tee version
for word in commit features libraries connector hdf5 zarr; do
    grep -qw "$word" version || { echo "--version -v does not tell of $word" >&2; exit 1; }
done
hyperslab bench --format posix,hdf5,zarr --verify --launcher threads >bench
grep 'every byte verified' bench
hyperslab run --quiet -- true
for page in hyperslab hyperslab-run hyperslab-bench hyperslab-recover; do test -s "$prefix/share/man/man1/$page.1"; done
for file in bash-completion/completions/hyperslab zsh/site-functions/_hyperslab fish/vendor_completions.d/hyperslab.fish \
    licenses/hyperslab/third-party.txt licenses/hyperslab/LICENSE-MIT licenses/hyperslab/LICENSE-APACHE; do
    test -s "$prefix/share/$file"
done
grep -q '^hdf5-metno-src v' "$prefix/share/licenses/hyperslab/third-party.txt"
grep -qi 'Terms and Conditions for Use, Reproduction, and Distribution\|HDF5 (Hierarchical Data Format 5)' "$prefix/share/licenses/hyperslab/third-party.txt"
if command -v bash >/dev/null; then bash -c ". '$prefix/share/bash-completion/completions/hyperslab'"; fi
if command -v python3 >/dev/null; then
    PYTHONPATH=$prefix/lib/hyperslab-python python3 -c '
import hyperslab
print(hyperslab.version().strip(), "from Python")
with hyperslab.enable(): pass'
fi
for file in "$modules"/hyperslab/*; do
    if grep -q '@[A-Z]*@' "$file"; then echo "$file has a place that was not filled in" >&2; exit 1; fi
    grep -q "$prefix" "$file"
done
