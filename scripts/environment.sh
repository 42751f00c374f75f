# Create a virtual environment and install into it: sh scripts/environment.sh FOLDER "PYTHON ..." PIP-ARGUMENTS...
# The first of the commands PYTHON that is Python 3.11 to 3.13 creates it. A working environment is kept. It is created again if its
# installation was interrupted or its Python does not exist any more, because pip cannot tell which of its packages are complete.
set -eu

folder=$1
pythons=$2
shift 2
python=$folder/bin/python
unfinished=$folder/.unfinished

fail() {
    echo "$1" >&2
    exit 2
}

is_supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

make_environment() {
    for candidate in $pythons; do
        if is_supported "$candidate"; then
            "$candidate" -m venv --clear "$folder"
            return
        fi
    done
    fail "Python 3.11 to 3.13 is required, but no command of this list is one: $pythons. Install it, or name it with PYTHON=/path/to/python"
}

if test ! -e "$folder/pyvenv.cfg" && test -n "$(ls -A "$folder" 2>/dev/null)"; then
    fail "$folder is not empty and is not a virtual environment; remove it, or name another folder"
fi
if test -e "$unfinished" || ! "$python" -c '' 2>/dev/null; then
    make_environment
fi
is_supported "$python" || fail "$folder has $("$python" --version), but Python 3.11 to 3.13 is required; remove $folder"
"$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip

touch "$unfinished"
"$python" -m pip install --quiet --disable-pip-version-check "$@"
rm "$unfinished"
