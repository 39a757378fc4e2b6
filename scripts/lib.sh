# shellcheck shell=bash
# What demo, test and check share: a ready .venv, the Debian packages of the tests, the checks.
# To be sourced after `set -euo pipefail`. Progress goes to stderr, results to stdout.

root=$(cd -P -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
venv=$root/.venv
stamp=$venv/.paceline-ready         # a hash of all that the finished .venv was made from
unfinished=$venv/.paceline-making   # present while .venv is being filled
torch_index=${PACELINE_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
pythons=(python3 python3.14 python3.13 python3.12 python3.11 python3.10)
apt_updated=
failed=()

# An empty HOME would put caches into /; an unset one is looked up in the password file.
[[ -n ${HOME:-} ]] || unset HOME

say() { printf 'setup: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

# --- Debian packages -----------------------------------------------------------------------

apt_install() { # PACKAGE
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then return 1; fi
    export DEBIAN_FRONTEND=noninteractive
    if [[ -z $apt_updated ]]; then
        apt_updated=yes
        say 'reading the lists of Debian packages …'
        apt-get update -qq </dev/null >&2 || say 'apt-get update had errors; going on with the lists it has'
    fi
    say "installing the Debian package $1 …"
    apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$1" </dev/null >/dev/null
}

has_package() { # PACKAGE [PROGRAM…]: it is installed, or one of the programs is there anyway
    local program
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; then return 0; fi
    for program in "${@:2}"; do
        if PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null; then return 0; fi
    done
    return 1
}

ensure_test_packages() { # one line for each that cannot be had; in CI that is an error
    local line words missing=0
    while read -r line <&3; do
        read -ra words <<<"${line%%#*}"
        if [[ ${#words[@]} == 0 ]]; then continue; fi
        if has_package "${words[@]}" || apt_install "${words[0]}"; then continue; fi
        missing=$((missing + 1))
        say "missing: the Debian package ${words[0]} (${line#*# }); its tests are skipped"
    done 3<"$root/scripts/debian-packages.txt"
    if [[ $missing != 0 && ${CI:-} =~ ^(true|1)$ ]]; then
        die 'CI is set, so no test may be skipped: install what is missing, or run this as root'
    fi
}

# --- the virtual environment ---------------------------------------------------------------

version_of() { # PYTHON: prints X.Y if it runs and is new enough
    "$1" -ESc 'import sys
v = sys.version_info
print("%d.%d" % v[:2]) if v >= (3, 10) else sys.exit(1)' 2>/dev/null
}

makes_venvs() { "$1" -Ec 'import ensurepip, venv' 2>/dev/null; } # PYTHON: Debian splits this off

choose_python() { # prints the first that is new enough, better one that makes venvs as it is
    local python fallback='' candidates=("${pythons[@]}")
    if [[ -n ${PYTHON:-} ]]; then candidates=("$PYTHON"); fi
    for python in "${candidates[@]}"; do
        if ! version_of "$python" >/dev/null; then continue; fi
        if makes_venvs "$python"; then
            echo "$python"
            return
        fi
        fallback=${fallback:-$python}
    done
    if [[ -z $fallback ]]; then
        die "no Python >= 3.10 (tried ${candidates[*]}); install one, or name it: PYTHON=/path/to/python $0"
    fi
    echo "$fallback"
}

new_venv() {
    local python version
    python=$(choose_python)
    version=$(version_of "$python")
    if ! makes_venvs "$python"; then
        apt_install "python$version-venv" || true
        makes_venvs "$python" || die "$python cannot make a .venv; as root: apt-get install python$version-venv"
    fi
    say "creating .venv with Python $version …"
    rm -rf -- "$venv"
    mkdir -- "$venv"
    touch -- "$unfinished"
    "$python" -m venv "$venv" >&2 || die "$python -m venv failed; its reason stands above"
}

venv_id() { # the clone's path too: the programs in a .venv do not survive a move
    { version_of "$venv/bin/python" && echo "$root" && cat -- "$root/pyproject.toml" "$root/constraints.txt"; } |
        sha256sum
}

has_wanted_python() {
    [[ -z ${PYTHON:-} || $(version_of "$PYTHON") == "$(version_of "$venv/bin/python")" ]]
}

is_ready() { [[ -f $stamp && $(<"$stamp") == "$(venv_id)" ]] && has_wanted_python; }

can_be_filled() { # it was never interrupted, was made in this place, and works
    [[ -x $venv/bin/pip && ! -e $unfinished ]] && grep -qF -- "$venv/bin/python" "$venv/bin/pip" &&
        "$venv/bin/python" -c 'import pip' 2>/dev/null && has_wanted_python
}

pip_install() {
    PIP_USER=0 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" >&2 ||
        die 'pip failed; its reason stands above. Is there a network? Behind a proxy set HTTPS_PROXY,' \
            'with a mirror PIP_INDEX_URL; then run the same command again'
}

torch_index_answers() { # within seconds, by pip's own proxy and certificates
    timeout 8 "$venv/bin/python" - "$torch_index/torch/" 2>/dev/null <<'PYTHON'
import os, ssl, sys, urllib.request
if os.environ.get("PIP_PROXY"):
    os.environ["http_proxy"] = os.environ["https_proxy"] = os.environ["PIP_PROXY"]
trust = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
urllib.request.urlopen(sys.argv[1], timeout=4, context=trust).read(1)
PYTHON
}

install_torch() { # from the CPU index if possible: the default one may bring gigabytes of CUDA
    local torch version from=()
    torch=$(grep -m1 '^torch==' "$root/constraints.txt")
    version=${torch#torch==}
    if compgen -G "$venv/lib/python*/site-packages/torch-${version}*.dist-info" >/dev/null; then return; fi
    if torch_index_answers; then
        say "installing torch $version (CPU) … this takes a minute"
        from=(--extra-index-url "$torch_index")
    else
        say "$torch_index does not answer:" \
            "installing torch $version from the default index, where it may be large …"
    fi
    pip_install --constraint "$root/constraints.txt" "${from[@]}" "$torch"
}

fill_venv() {
    local conflicts
    trap 'say "interrupted; the next run makes .venv anew"; exit 130' INT
    can_be_filled || new_venv
    touch -- "$unfinished"
    rm -f -- "$stamp"
    install_torch
    say 'installing the other pinned packages …'
    pip_install --requirement "$root/constraints.txt"
    pip_install --no-deps --no-build-isolation --editable "$root"
    conflicts=$("$venv/bin/python" -m pip check) ||
        say "$conflicts" $'\n''setup: constraints.txt does not fit pyproject.toml; ./scripts/pin writes it anew'
    venv_id >"$stamp"
    rm -f -- "$unfinished"
    trap - INT
    say 'ready'
}

ensure_venv() {
    local lock
    if ! is_ready; then
        exec {lock}<"$root"
        flock -n "$lock" || { say 'another run is at work on .venv; waiting for it …' && flock "$lock"; }
        is_ready || fill_venv
        exec {lock}<&-
    fi
    # Where Python may not write bytecode by itself, each start would compile all sources again.
    if [[ -n ${PYTHONDONTWRITEBYTECODE:-} ]]; then
        "$venv/bin/python" -m compileall -q "$root/src" || true
    fi
}

# --- the checks, called at the root --------------------------------------------------------

check() { # NAME COMMAND…: one line if it passes, and all that it said if it does not
    local name=$1 output
    if output=$("${@:2}" 2>&1); then
        echo "ok      $name"
    else
        printf '%s\nFAILED  %s: %s\n' "$output" "$name" "${*:2}"
        failed+=("$name")
    fi
}

static_checks() {
    check format .venv/bin/ruff format --check .
    check lint .venv/bin/ruff check .
    check types .venv/bin/mypy
    check imports .venv/bin/lint-imports
}

run_pytest() { # in a place of its own: pytest's usual one is swept by every run, and may hold mounts
    local place code=0
    place=$(mktemp -d "${TMPDIR:-/tmp}/paceline-XXXXXX")
    .venv/bin/pytest --basetemp "$place" "$@" || code=$?
    if [[ $code != 0 ]]; then
        say "the files of these tests are in $place"
    elif ! rm -rf -- "$place"; then
        say "this could not be removed: $place"
    fi
    return "$code"
}

run_tests() { run_pytest "$@" || failed+=(tests); }

run_tests_twice() { # what fails beside others is tried once more, alone, and said either way
    run_pytest "$@" && return
    say 'some tests failed (see above); each of them once more, alone:'
    run_tests "$@" -n 0 --last-failed --last-failed-no-failures none -rA -q
}

verdict() { # silent if all is well, so that pytest's summary stands last
    if [[ ${#failed[@]} != 0 ]]; then
        echo "FAILED: ${failed[*]}" >&2
        exit 1
    fi
}
