#!/bin/sh
# Runs a script on the newest Python that works:  sh scripts/python.sh SCRIPT [ARGUMENT ...]
# PYTHON=... names one instead. This file runs before a Python is found, so it is plain POSIX sh.

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

# The interpreter behind NAME: not a version manager's shim that fails, not a virtual environment's own copy.
interpreter() {
    "$1" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))' 2>/dev/null
}

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Debian and Ubuntu ship Python without the modules that create virtual environments.
complete() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

choose() {
    for name in "$@"; do
        found=$(interpreter "$name") || continue
        if ! recent "$found"; then
            old=$found
        elif complete "$found"; then
            python=$found
            return
        else
            bare=$found
        fi
    done
}

old='' bare='' python=''
if [ -n "${PYTHON:-}" ]; then
    choose "$PYTHON"
else
    choose python3.13 python3.12 python3.11 python3.14 python3
fi

if [ -n "$python" ]; then
    exec "$python" "$@"
elif [ -n "$bare" ]; then
    version=$("$bare" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    fail "$bare can't make virtual environments: install $version (sudo apt install $version) and run make again."
elif [ -n "$old" ]; then
    fail "Python 3.11 or newer is needed and $old is $("$old" -c 'import platform; print(platform.python_version())'): install a newer one, or name it with PYTHON=/path/to/python."
elif [ -n "${PYTHON:-}" ]; then
    fail "There is no working Python at PYTHON=$PYTHON: name one that is 3.11 or newer."
else
    fail "Python 3.11 or newer is needed and none was found: install it, or name it with PYTHON=/path/to/python."
fi
