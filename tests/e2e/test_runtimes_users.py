"""Containers of a user who is not root: through sudo, with podman, and where no engine is yet."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

from paceline.rehearsal.images import MACHINE_IMAGE, PATH, machine_mounts, machine_skeleton
from paceline.rehearsal.machines.rehearsal import Rehearsal
from tests.fakes.terminal import Terminal, wait_until
from tests.rehearsing import skip_unless_possible

pytestmark = [pytest.mark.e2e, pytest.mark.torch]

# `sh offer.sh ENGINE`, as root: this is the only one that the machine has from then on.
OFFER = """\
kept=/root/kept; mkdir -p $kept; rm -f /usr/local/bin/podman
for path in /usr/local/bin/docker /usr/bin/docker /usr/bin/podman; do
    name=$kept/$(echo $path | tr / _)
    case $1$path in
        docker*/docker | *podman*/podman) if [ -e $name ]; then mv $name $path; fi ;;
        *) if [ -e $path ]; then mv $path $name; fi ;;
    esac
done
if [ $1 = podman-of-root ]; then
    printf '#!/bin/sh\\n[ $(id -u) = 0 ] || exit 125\\nexec /usr/bin/podman "$@"\\n' \\
        > /usr/local/bin/podman
    chmod 755 /usr/local/bin/podman
fi
"""
# There is no way out to Debian's packages: what would be installed is put back.
APT_GET = """\
#!/bin/sh
echo "$*" >> /var/log/apt-get.log
case "$*" in *install*docker.io*) sh /home/ubuntu/offer.sh docker ;; esac
"""
ADD_UP = """\
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
open(os.environ["PACELINE_OUT"] + "/made-" + os.environ["RANK"], "w").write("by a rank")
os.write(1, f"sum {int(one)}\\n".encode())
dist.destroy_process_group()
"""
SLEEPER = "import os, time\nprint('up', os.environ['HF_TOKEN'], flush=True)\ntime.sleep(300)\n"
# What a rank writes: beside the code, into its results, at home, and for later jobs.
WRITES = """\
echo mine | tee left-$RANK "$PACELINE_OUT/made-$RANK" "$HOME/any" "${PACELINE_DATA%/*}/kept" \\
    >/dev/null && echo rank $RANK of $WORLD_SIZE"""
ENGINES = {
    "docker": "sudo -n docker",
    "podman": "podman",
    "podman-of-root": "sudo -n podman",
}
CHECK = "find ~ -path ~/.local -prune -o -not -user ubuntu -print; cat ~/.cache/paceline/kept"
KILL = """\
for one in $(grep -ho '"supervisor_pid": [0-9]*' ~/.paceline/jobs/*/state.json); do
    case $one in [0-9]*) kill -9 $(ps -o ppid= -p $one) $one ;; esac
done"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """Return a terminal with two rented hosts, whose user may become root and is in no group."""
    skip_unless_possible()
    lacking = [name for name in ("dockerd", "podman", "newuidmap") if not _is_there(name)]
    if lacking:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with Rehearsal(tmp_path_factory.mktemp("rehearsal"), bandwidth_mbit=1000) as rehearsal:
        made = Terminal(tmp_path_factory.mktemp("desk") / "at work")
        made.env |= rehearsal.emulator.environ
        made.env["PACELINE_MY_ADDRESS"] = str(rehearsal.keeper.caller)
        made.file("spec.yaml", _spec())
        said(made, "up", "spec.yaml")
        made.file("offer.sh", OFFER)
        made.file("apt-get", APT_GET)
        (made.folder / "machine.tar").write_bytes(machine_skeleton())
        # The image is on one host only; it travels to the other.
        for name, host in (("offer.sh", "all"), ("apt-get", "all"), ("machine.tar", "0")):
            said(made, "cp", name, f"{host}:{name}")
            (made.folder / name).unlink()
        yield made
        said(made, "down")
        held = rehearsal.emulator.inventory()
        assert {kind: items for kind, items in held.items() if items} == {}
        assert made.clear_up() == []


def _is_there(program: str) -> bool:
    return shutil.which(program, path="/usr/sbin:/usr/bin:/usr/local/bin:/sbin:/bin") is not None


def _spec() -> str:
    mounts = (*machine_mounts(), "/opt/pytorch:/opt/pytorch:ro")
    options = [word for mount in mounts for word in ("--volume", mount)]
    runtime = {"kind": "docker", "image": MACHINE_IMAGE, "options": options}
    return (
        "name: trial\ncluster: {provider: ec2, instance_type: m5.large, nodes: 2}\n"
        f"limits: {{ttl: 1h}}\nruntime: {json.dumps(runtime)}\n"
    )


def said(terminal: Terminal, *words: str) -> str:
    """Say a verb that must do well; return what it prints."""
    done = terminal.paceline(*words, timeout_s=300.0)
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout


def there(terminal: Terminal, line: str, *words: str) -> str:
    """Run a line of shell on the hosts; return what all of them have printed, without names."""
    out = said(terminal, "exec", *words, "--", "sh", "-c", line)
    return "".join(f"{line.partition(' | ')[2]}\n" for line in out.splitlines())


def offer(terminal: Terminal, engine: str) -> None:
    """Let the hosts have one engine and no other; one of them has an image for it."""
    words = f"import --change 'ENV PATH=/opt/pytorch/bin:{PATH}' machine.tar {MACHINE_IMAGE}"
    image = f"if [ -e machine.tar ]; then {ENGINES[engine]} {words} >/dev/null 2>&1; fi"
    there(terminal, f"sudo sh offer.sh {engine}; {image}")


@pytest.mark.parametrize(
    ("engine", "launcher"),
    [("docker", "mpirun"), ("podman", "torchrun"), ("podman-of-root", "direct")],
)
def test_a_user_has_containers_by_any_engine(desk: Terminal, engine: str, launcher: str) -> None:
    """What ranks write is the user's own; all ends, though client, supervisors and keepers die."""
    if launcher == "mpirun" and shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    offer(desk, engine)
    if launcher == "torchrun":
        script = str(desk.file("add_up.py", ADD_UP))
        train = ("train", "spec.yaml", "--script", script, "--launcher", launcher)
        assert said(desk, *train).count("sum 2") == 2
    words = ("-s", f"job.launcher={'direct' if launcher == 'torchrun' else launcher}")
    out = said(desk, "run", "--spec", "spec.yaml", *words, "--", "sh", "-c", WRITES)
    assert sorted(out.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    run = max((desk.folder / "paceline-results").iterdir(), key=lambda path: path.stat().st_mtime)
    assert sorted(path.name for path in run.glob("out/made-*")) == ["made-0", "made-1"]
    assert there(desk, f"{CHECK}; {ENGINES[engine]} ps --all --quiet").split() == ["mine"] * 2
    _expect_an_end(desk, ENGINES[engine])


def _expect_an_end(desk: Terminal, engine: str) -> None:
    script = str(desk.file("sleeper.py", SLEEPER))
    words = ("--script", script, "-s", "job.env.HF_TOKEN=sesame", "--detach")
    said(desk, "train", "spec.yaml", *words)
    wait_until(lambda: desk.paceline("logs").stdout.count("up sesame") == 2)
    shows = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]esame'"
    seen = there(desk, f"{engine} ps --quiet | wc -l; {shows}; {KILL}").split()
    assert seen == ["1", "0"] * 2
    assert desk.paceline("wait").returncode == 5
    assert there(desk, f"{engine} ps --all --quiet") == ""


def test_a_rented_host_without_an_engine_is_given_one(desk: Terminal) -> None:
    """`plan` says so, `doctor` too; then docker is there, for the user as well, and stays."""
    there(desk, "sudo sh offer.sh none; sudo install -m 755 apt-get /usr/local/bin/apt-get")
    words = f"import --change 'ENV PATH={PATH}' machine.tar {MACHINE_IMAGE}"
    there(desk, f"sudo /root/kept/_usr_bin_docker {words} >/dev/null", "--on", "0")
    assert "a host without a docker engine gets one" in said(desk, "plan", "spec.yaml")
    looked = desk.paceline("doctor", "spec.yaml").stdout
    assert looked.count("containers: there is no docker engine") == 2
    line = 'test -e /.dockerenv && id -u && echo mine > "$PACELINE_OUT/file"'
    done = desk.paceline("run", "--spec", "spec.yaml", "--", "sh", "-c", line, timeout_s=300)
    assert (done.returncode, done.stdout.split()) == (0, ["1000", "1000"]), done.stderr
    assert done.stderr.count("installing a docker engine") == 2
    assert "through sudo" not in done.stderr
    assert (
        there(desk, "grep -c 'install -y -q docker.io' /var/log/apt-get.log").split() == ["1"] * 2
    )
