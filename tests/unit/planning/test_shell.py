"""A run as lines that a person could type."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.host import Cluster, Host, HostFacts
from paceline.model.plan import Configuration, RunPlan
from paceline.model.spec import load_spec
from paceline.planning.run import plan_run
from paceline.planning.shell import shell_lines, shell_script


def planned(job: dict[str, Any], procs: int = 1) -> RunPlan:
    """Return the plan of a run on one host."""
    return plan_run(
        load_spec({"job": {"workdir": "/my work", **job}}, check_files=False),
        Configuration(1, procs),
        Cluster("here", "local", (Host("here", "127.0.0.1", "127.0.0.1"),)),
        {"here": HostFacts("here", cores=2)},
        "r1",
        job_folder="/jobs/r 1",
        python="python3",
        import_path=None,
        port=29500,
        measured=False,
    )


def test_a_script_can_be_typed_by_hand() -> None:
    """Folders first, then the ranks, all but the last in the background; secrets are hidden."""
    run = planned({"script": "/my work/train.py", "env": {"HF_TOKEN": "s3cret"}}, procs=2)
    rank = (
        "cd '/my work' && GLOO_SOCKET_IFNAME=lo GROUP_RANK=0 HF_TOKEN='[secret]' LOCAL_RANK={0} "
        "LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 NCCL_SOCKET_IFNAME=lo "
        "NODE_RANK=0 OMP_NUM_THREADS=1 PACELINE_EVENTS='/jobs/r 1/events' "
        "PACELINE_OUT='/jobs/r 1/out' PYTHONUNBUFFERED=1 RANK={0} WORLD_SIZE=2 "
        "python3 '/my work/train.py'"
    )
    assert shell_script(run) == (
        "# on here (127.0.0.1), node 0\n"
        "mkdir -p '/jobs/r 1/events' '/jobs/r 1/out'\n"
        f"{rank.format(0)} &\n"
        f"{rank.format(1)}\n"
        "wait\n"
    )


words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)


@settings(deadline=None)
@given(st.lists(words, max_size=4), st.dictionaries(st.sampled_from("ABC"), words))
def test_a_shell_reads_back_every_word(more: list[str], env: dict[str, str]) -> None:
    """Whatever stands in words and variables, a shell splits the line into the same again."""
    run = planned({"command": ["program", *more], "env": env})
    command = run.hosts[0].processes[0].command
    *_, line = shell_lines(run, run.hosts[0])
    variables = [f"{name}={value}" for name, value in sorted(command.plain_env().items())]
    assert shlex.split(line) == ["cd", "/my work", "&&", *variables, *command.argv]


def test_a_real_shell_agrees() -> None:
    """The line does in a shell what the command is."""
    nasty = 'a\'b "c" $HOME `id` \\ * \n ; & é'
    run = planned(
        {"command": ["printf", "%s|%s", nasty, "$X"], "workdir": "/", "env": {"X": nasty}}
    )
    *_, line = shell_lines(run, run.hosts[0])
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == f"{nasty}|$X"


@settings(deadline=None)
@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=3))
def test_no_secret_is_ever_shown(secret: str) -> None:
    """A secret is in the command, and not in any line."""
    run = planned({"command": ["x"], "env": {"API_KEY": f"<{secret}>"}})
    assert run.hosts[0].processes[0].command.plain_env()["API_KEY"] == f"<{secret}>"
    assert f"<{secret}>" not in shell_script(run)
