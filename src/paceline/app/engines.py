"""The docker engine of a host, or what stands in for it: how it is spoken to, and as whom."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.errors import EnvironmentFault, MissingProgram
from paceline.model.command import Command
from paceline.model.host import HostFacts
from paceline.ports import Transport

_TIMEOUT_S = 60.0
LINGER = (
    "systemd may take away what its podman needs as soon as nobody is logged in; there: "
    "sudo loginctl enable-linger $USER"
)
# For each engine: what it says, and whether it says it through sudo, which must let variables
# pass. Whoever is not root has podman in a session's folder, which systemd may take away.
_LOOK = """
cache=${HOME:-/}/.cache/paceline; [ "$1" = look ] || mkdir -p "$cache" 2>/dev/null
lingers=yes
case ${XDG_RUNTIME_DIR:-} in /run/user/*)
  [ "$(loginctl show-user "$(id -u)" --property=Linger --value 2>/dev/null)" = no ] && lingers=no
esac
echo "who $(id -u) $(id -g) $lingers $cache"
for engine in docker podman; do
  command -v "$engine" >/dev/null 2>&1 || continue
  look=version; [ "$engine" = podman ] && look=info
  if said=$("$engine" $look 2>&1); then echo "ok $engine"; exit 0; fi
  if command -v sudo >/dev/null 2>&1; then
    PACELINE_LOOK=1 sudo -n --preserve-env=PACELINE_LOOK "$engine" $look >/dev/null 2>&1 && {
      echo "ok sudo -n $engine"; exit 0
    }
  fi
  echo "bad $engine $(echo "$said" | tail -n 1)"
done
"""


@dataclass(frozen=True)
class EngineFound:
    """How the engine of a host is spoken to, who we are there, and where data is cached."""

    words: tuple[str, ...]
    uid: int
    gid: int
    cache: str
    lingers: bool = True

    @property
    def through_sudo(self) -> bool:
        """Whether only root may speak to it."""
        return self.words[0] == "sudo"

    @property
    def is_rootless(self) -> bool:
        """Whether root inside is ourselves outside."""
        return self.words == ("podman",) and self.uid != 0


async def find_engine(
    link: Transport, facts: HostFacts | None = None, *, look_only: bool = False
) -> EngineFound:
    """Find the engine of a host; where there is none that answers, say what to type there.

    Unless it only looks, there is a folder for data afterwards, which containers can be given.
    """
    words = ("/bin/sh", "-c", _LOOK, "sh", "look" if look_only else "make")
    done = await link.run(Command(words), timeout_s=_TIMEOUT_S)
    lines = done.stdout.splitlines()
    who = next((line.split(" ", 4) for line in lines if line.startswith("who ")), None)
    if who is None:
        raise EnvironmentFault(
            f"the host could not be looked at: {done.stderr.strip()}", host=link.host.name
        )
    for line in lines:
        if line.startswith("ok "):
            return EngineFound(
                tuple(line.split()[1:]), int(who[1]), int(who[2]), who[4], lingers=who[3] == "yes"
            )
    bad = [line.split(" ", 2)[1:] for line in lines if line.startswith("bad ")]
    raise _no_engine(link.host.name, bad, facts)


def _no_engine(host: str, bad: list[list[str]], facts: HostFacts | None) -> MissingProgram:
    if not bad:
        return MissingProgram(
            "there is no docker engine", host=host, hint=f"there: {_install_line(facts)}"
        )
    name, said = bad[0][0], bad[0][1] if len(bad[0]) > 1 else "it said nothing"
    if "permission denied" in said.lower():
        hint = "there: sudo usermod -aG docker $USER, and log in anew; sudo without a password"
        hint += " would do as well"
    else:
        hint = f"there: sudo systemctl enable --now {name}"
    return MissingProgram(f"its {name} does not answer: {said}", host=host, hint=hint)


def _install_line(facts: HostFacts | None) -> str:
    system = "" if facts is None else facts.platform.lower()
    if any(word in system for word in ("amazon", "fedora", "red hat", "centos", "rocky", "alma")):
        return (
            "sudo dnf install -y docker && sudo systemctl enable --now docker && "
            "sudo usermod -aG docker $USER"
        )
    return "sudo apt-get install -y docker.io && sudo usermod -aG docker $USER"
