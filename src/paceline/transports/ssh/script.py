"""What is said to a host's shell: constant scripts, and one line that makes any command of it.

The shell that sshd starts is the user's own, whatever it is. It is given one constant line; the
command itself follows through standard input, so that its length is free and its environment
stands in nobody's list of processes.
"""

from __future__ import annotations

from paceline.model.command import Command

READ_AND_RUN = "exec /bin/sh -c 'IFS= read -r _pl_line && eval \"$_pl_line\"'"

# Asks a process group ($1) to end, and kills what is left of it after two seconds. Once begun, it
# needs us no more: a busy host may be slow to answer.
END_GROUP = (
    "n=0; kill -s TERM -- -$1 2>/dev/null || exit 0; "
    "while [ $n -lt 40 ] && kill -s 0 -- -$1 2>/dev/null; do "
    "n=$((n+1)); sleep 0.05 2>/dev/null || { sleep 1; n=$((n+20)); }; done; "
    "[ $n -lt 40 ] || kill -s KILL -- -$1 2>/dev/null"
)

_NEWLINE = "_pl_n=$(printf '\\nx'); _pl_n=${_pl_n%x}"

# Each is given its paths as $1, $2, …; what they print on stderr is shown to the user.
WRITE_FILE = """set -e; umask 077; mkdir -p -- "$2"
if [ -d "$1" ]; then echo "$1 is a folder" >&2; exit 1; fi
trap 'rm -f -- "$3"' EXIT; trap 'exit 143' HUP INT TERM
cat > "$3"; chmod "$4" "$3"
if [ "$(wc -c < "$3")" -ne "$5" ]; then echo "not all of it arrived" >&2; exit 1; fi
mv -f -- "$3" "$1"
"""
UNPACK_FILE = """set -e; mkdir -p -- "$2"
if [ -d "$1" ]; then echo "$1 is a folder" >&2; exit 1; fi
trap 'rm -f -- "$3"' EXIT; trap 'exit 143' HUP INT TERM
tar -xpof - -C "$2"; mv -f -- "$3" "$1"
"""
UNPACK_FOLDER = """set -e; mkdir -p -- "$1"; tar -xpof - -C "$1"
"""
PACK = """if [ -d "$1" ]; then exec tar -cf - -C "$1" .; fi
if [ ! -e "$1" ]; then echo "there is no $1" >&2; exit 1; fi
exec tar -chf - -C "$2" "./$3"
"""


def shell(script: str, *words: str, stdin: bytes | None = None) -> Command:
    """Return the command that runs a constant script on words of the caller's."""
    return Command(("/bin/sh", "-c", script, "sh", *words), env={"LC_ALL": "C"}, stdin=stdin)


def first_line(command: Command, token: str) -> bytes:
    """Return the line that makes the waiting shell become a command.

    Before that, the token goes out on both streams, so that whatever the user's own start-up
    files have printed can be told from the command's output. On stderr a verdict follows it:
    `ok` and the pid, or what is missing.
    """
    program = quote(command.argv[0])
    words = (*command.argv, *command.plain_env().values(), command.cwd or "")
    # Only where it is needed: it costs the host another process.
    steps = [_NEWLINE] if any("\n" in word for word in words) else []
    if command.cwd is not None:
        steps.append(f"cd -- {quote(command.cwd)} 2>/dev/null || {_give_up(token, 'folder')}")
    steps += [f"export {name}={quote(value)}" for name, value in command.plain_env().items()]
    steps += [
        f"command -v {program} >/dev/null 2>&1 || {_give_up(token, 'program')}",
        f"echo {token}; echo {token} ok $$ >&2",
        f"exec {' '.join(quote(word) for word in command.argv)}",
    ]
    return "; ".join(steps).encode("utf-8", "surrogateescape") + b"\n"


def quote(word: str) -> str:
    """Quote a word for the shell within one line; a newline stands as the variable of one."""
    if "\0" in word:
        raise ValueError("a word of a command cannot hold a NUL character")
    return "'" + word.replace("'", "'\"'\"'").replace("\n", "'\"$_pl_n\"'") + "'"


def _give_up(token: str, what: str) -> str:
    return f"{{ echo {token}; echo {token} {what} >&2; exit 127; }}"
