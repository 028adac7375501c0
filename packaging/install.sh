#!/bin/sh
# Installs Hyperslab from this folder: no root, no network, nothing outside of the folders named.
set -eu

version=@VERSION@ arch=@ARCH@ glibc=@GLIBC@
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)

usage() {
    cat <<END
usage: ./install.sh [--prefix DIR] [--modules DIR]
       ./install.sh --remove [--prefix DIR] [--modules DIR]

  --prefix DIR    where it goes: DIR/bin, DIR/lib, DIR/share [default: ~/.local]
  --modules DIR   write module files for Lmod and Tcl modules to DIR/hyperslab
  --remove        remove what an earlier ./install.sh put there, nothing else
END
}

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '  try: %s\n' "$2" >&2
    exit 1
}

prefix=${HOME:-}/.local modules='' remove=''
while [ $# -gt 0 ]; do
    case $1 in
        --prefix=*) prefix=${1#*=} ;;
        --modules=*) modules=${1#*=} ;;
        --prefix | --modules)
            [ $# -gt 1 ] || fail "$1 needs a folder" "./install.sh --help"
            [ "$1" = --prefix ] && prefix=$2 || modules=$2
            shift ;;
        --remove) remove=yes ;;
        -h | --help) usage; exit 0 ;;
        *) fail "there is no option $1" "./install.sh --help" ;;
    esac
    shift
done
[ -n "$prefix" ] || fail "--prefix is empty" "./install.sh --prefix DIR"
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
case $modules in '' | /*) ;; *) modules=$PWD/$modules ;; esac
case $prefix in *:* | *'
'*) fail "HDF5_PLUGIN_PATH cannot hold a colon or a line break, and $prefix has one" "another --prefix" ;; esac
installed=$prefix/share/hyperslab/files

# Removes files of the list that is read, and folders that are empty then.
remove_listed() {
    while IFS= read -r file; do
        rm -f -- "$prefix/$file"
        folder=${file%/*}
        while [ "$folder" != . ] && rmdir -- "$prefix/$folder" 2>/dev/null; do folder=$(dirname -- "$folder"); done
    done
}

if [ -n "$remove" ]; then
    [ -f "$installed" ] || fail "nothing of an earlier installation is in $prefix" "the --prefix that was given then"
    # Python keeps what it compiled there.
    rm -rf -- "$prefix/lib/hyperslab-python/hyperslab/__pycache__"
    remove_listed <"$installed"
    rm -f -- "$installed"
    rmdir -- "$prefix/share/hyperslab" "$prefix/share" "$prefix" 2>/dev/null || true
    if [ -n "$modules" ]; then
        rm -f -- "$modules/hyperslab/$version.lua" "$modules/hyperslab/$version"
        rmdir -- "$modules/hyperslab" 2>/dev/null || true
    fi
    printf 'removed from %s\n' "$prefix"
    exit 0
fi

[ "$(uname -s)-$(uname -m)" = "Linux-$arch" ] ||
    fail "this is for Linux on $arch, and here is $(uname -s) on $(uname -m)" "build it: docs/building.md in the sources"
have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || have=''
[ -n "$have" ] || fail "this Linux does not have the GNU C library" "build it: docs/building.md in the sources"
oldest=$(printf '%s\n%s\n' "$glibc" "$have" | sort -t. -k1,1n -k2,2n | head -n 1)
[ "$oldest" = "$glibc" ] || fail "this needs glibc $glibc or newer, and here is $have" "build it: docs/building.md in the sources"

mkdir -p -- "$prefix" || fail "cannot make $prefix" "--prefix DIR with a folder that you may write to"
[ -w "$prefix" ] || fail "$prefix cannot be written to" "--prefix DIR with another folder"
while IFS= read -r file; do
    to=$prefix/$file
    mkdir -p -- "${to%/*}"
    # Renamed into its place, so that programs that run keep what they have. The dot hides it from libhdf5 meanwhile.
    passing=${to%/*}/.${to##*/}.$$
    cp -- "$here/$file" "$passing" && mv -f -- "$passing" "$to" ||
        { rm -f -- "$passing"; fail "cannot write $to" "whether there is room: df -h $prefix"; }
done <"$here/files"
# What an earlier version had and this one does not must not stay.
mkdir -p -- "${installed%/*}"
[ ! -f "$installed" ] || grep -vxFf "$here/files" "$installed" | remove_listed
cp -- "$here/files" "$installed"
said=$("$prefix/bin/hyperslab" --version) || fail "$prefix/bin/hyperslab does not run here" "a file system without noexec"

if [ -n "$modules" ]; then
    mkdir -p -- "$modules/hyperslab"
    quoted=$(printf '%s' "$prefix" | sed 's/[&|\\]/\\&/g')
    for kind in lua tcl; do
        [ $kind = lua ] && to=$modules/hyperslab/$version.lua || to=$modules/hyperslab/$version
        sed "s|@PREFIX@|$quoted|g" "$here/modulefile.$kind" >"$to"
    done
fi

printf '%s is in %s\n' "$said" "$prefix"
if [ -n "$modules" ]; then
    printf '  module use %s && module load hyperslab/%s\n' "$modules" "$version"
else
    printf '  export PATH="%s/bin:$PATH"\n' "$prefix"
fi
printf '  hyperslab run -- COMMAND    a program with its HDF5 calls accelerated\n'
printf '  hyperslab doctor            what works here\n'
printf '  %s/install.sh --remove --prefix %s    to remove it\n' "$here" "$prefix"
