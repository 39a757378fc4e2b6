"""Which commands give a host a docker engine."""

from __future__ import annotations

import pytest

from paceline.errors import EnvironmentFault
from paceline.model.command import render
from paceline.model.spec import load_spec
from paceline.planning.engine_setup import engine_facts, engine_note, install_engine

START = ["sudo -n systemctl enable --now docker", "sudo -n usermod -aG docker ubuntu"]
QUIETLY = "sudo -n env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a"
PATIENTLY = 'n=0; until "$@"; do n=$((n + 1)); [ "$n" -lt 24 ] || exit 1; sleep 5; done'


def lines(told: str) -> list[str]:
    """Return the commands for a host that has told this, as a person would type them."""
    return [render(command) for command in install_engine(engine_facts(told))]


def test_a_fresh_ubuntu_gets_docker_from_its_own_packages() -> None:
    """The lists first; whoever holds the lock of apt is waited for; nobody is asked anything."""
    assert lines("engine=no answers=no manager=apt-get user=ubuntu") == [
        f"{QUIETLY} sh -c '{PATIENTLY}' sh apt-get update -q",
        f"{QUIETLY} apt-get -o DPkg::Lock::Timeout=600 install -y -q docker.io",
        *START,
    ]


@pytest.mark.parametrize("manager", ["dnf", "yum"])
def test_amazon_linux_gets_docker_by_its_manager(manager: str) -> None:
    """2023 has dnf, 2 has yum."""
    told = f"engine=no answers=no manager={manager} user=ubuntu"
    assert lines(told) == [f"sudo -n {manager} install -y -q docker", *START]


def test_what_is_there_is_not_installed_again() -> None:
    """An engine that answers needs nothing; one that sleeps is started."""
    assert lines("engine=yes answers=yes manager=apt-get user=ubuntu") == []
    assert lines("engine=yes answers=no manager=apt-get user=ubuntu") == START


def test_an_engine_that_answers_to_root_alone_lets_the_user_in() -> None:
    """People type `docker run` there without sudo, and so do their scripts."""
    assert lines("engine=yes answers=sudo manager=apt-get user=ubuntu") == START[1:]


def test_a_host_that_can_install_nothing_is_told_of() -> None:
    """Without a package manager that we know there is no way."""
    with pytest.raises(EnvironmentFault, match="apt, dnf nor yum"):
        lines("engine=no answers=no manager=none user=root")


@pytest.mark.parametrize(
    ("provider", "runtime", "told"),
    [
        ("ec2", {"kind": "docker", "image": "i"}, True),
        ("ec2", {"kind": "bare"}, False),
        ("local", {"kind": "docker", "image": "i"}, False),
    ],
)
def test_a_plan_says_what_will_be_installed(
    provider: str, runtime: dict[str, str], *, told: bool
) -> None:
    """On rented hosts with containers; on machines that people own, nothing is installed."""
    note = engine_note(load_spec({"cluster": {"provider": provider}, "runtime": runtime}))
    assert (note is not None) == told
