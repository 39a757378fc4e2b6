from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from paceline import errors
from paceline.model.command import Secret
from paceline.model.ec2 import Request
from paceline.planning.ec2 import questions
from paceline.providers.ec2 import Ec2Cloud, default_region, find_own_address
from paceline.providers.ec2.cloud import opened
from paceline.providers.ec2.errors import refused
from paceline.rehearsal.emulator import Emulator, Fault


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """Return an account to which AWS's own settings lead."""
    with Emulator() as made:
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AuthFailure", errors.EnvironmentFault),
        ("ExpiredTokenException", errors.EnvironmentFault),
        ("UnauthorizedOperation", errors.NotPermitted),
        ("AccessDeniedException", errors.NotPermitted),
        ("VcpuLimitExceeded", errors.QuotaExceeded),
        ("MaxSpotInstanceCountExceeded", errors.QuotaExceeded),
        ("InsufficientInstanceCapacity", errors.NoCapacity),
        ("Unsupported", errors.NoCapacity),
        ("InvalidKeyPair.Duplicate", errors.AlreadyThere),
        ("InvalidPermission.Duplicate", errors.AlreadyThere),
        ("InvalidGroup.NotFound", errors.NotThere),
        ("InvalidPlacementGroup.Unknown", errors.NotThere),
        ("DependencyViolation", errors.StillInUse),
        ("InvalidPlacementGroup.InUse", errors.StillInUse),
        ("IdempotentParameterMismatch", errors.TokenSpent),
        ("RequestLimitExceeded", errors.CloudError),
        ("OptInRequired", errors.CloudError),
        ("SomethingElse", errors.CloudError),
    ],
)
def test_every_refusal_has_its_place_in_the_tree(
    code: str, kind: type[errors.PacelineError]
) -> None:
    """What AWS says becomes an error of ours that says the same in plain words."""
    error = refused({"Code": code, "Message": "why"}, Request("RunInstances"))
    assert type(error) is kind
    assert "why" in str(error)
    assert "RunInstances" in str(error)


def test_encoded_messages_are_not_shown() -> None:
    """AWS adds kilobytes that only its own tool can read."""
    said = {
        "Code": "UnauthorizedOperation",
        "Message": "You are not authorized. Encoded authorization failure message: abc123",
    }
    error = refused(said, Request("RunInstances"))
    assert "abc123" not in str(error)
    assert "paceline doctor --iam" in str(error.hint)


def test_without_credentials_we_say_how_to_get_some(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No keys at all, keys that nobody knows, and a profile that is not there: all are named."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAWRONGWRONGWRONG0")
    with pytest.raises(errors.EnvironmentFault, match="does not accept the credentials"):
        asyncio.run(Ec2Cloud(emulator.region).call(questions.subnets(None)))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(errors.EnvironmentFault, match="no way into AWS") as caught:
        asyncio.run(Ec2Cloud(emulator.region).call(questions.subnets(None)))
    assert "aws sso login" in str(caught.value.hint)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(errors.EnvironmentFault, match="nobody"):
        asyncio.run(Ec2Cloud(emulator.region).call(questions.subnets(None)))


def test_pages_are_put_together(emulator: Emulator) -> None:
    """A listing is whole, however many pages AWS makes of it."""
    cloud = Ec2Cloud(emulator.region)
    asked = Request("GetProducts", {"ServiceCode": "AmazonEC2", "Filters": []}, service="pricing")
    assert len(asyncio.run(cloud.call(asked))["PriceList"]) > 100


def test_a_rest_of_retries_is_left_for_bad_minutes(emulator: Emulator) -> None:
    """A call that is refused twice succeeds the third time, without anybody noticing."""
    fault = emulator.faults.add(
        Fault("refuse", action="DescribeSubnets", code="RequestLimitExceeded", times=2, status=503)
    )
    assert asyncio.run(Ec2Cloud(emulator.region).call(questions.subnets(None)))["Subnets"]
    assert fault.struck == 2


def test_secrets_are_opened_for_aws_alone() -> None:
    """Parameters are sent open and printed closed."""
    words = {"UserData": Secret("x"), "List": [Secret("y"), {"Deep": Secret("z")}]}
    assert opened(words) == {"UserData": "x", "List": ["y", {"Deep": "z"}]}
    assert "x" not in repr(words["UserData"])


def test_our_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting decides; where AWS is on this machine, nobody outside is asked."""
    monkeypatch.delenv("PACELINE_MY_ADDRESS", raising=False)
    assert asyncio.run(find_own_address("http://127.0.0.1:5000")) == "127.0.0.1"
    monkeypatch.setenv("PACELINE_MY_ADDRESS", "203.0.113.9")
    assert asyncio.run(find_own_address("https://ec2.us-east-1.amazonaws.com")) == "203.0.113.9"
    monkeypatch.setenv("PACELINE_MY_ADDRESS", "nonsense")
    assert asyncio.run(find_own_address("https://ec2.us-east-1.amazonaws.com")) is None


def test_the_users_own_region(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """AWS_REGION, else the region of the profile, as AWS's own tools have it."""
    config = tmp_path / "config"
    config.write_text("[default]\nregion = eu-west-1\n[profile work]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    assert default_region() == "eu-west-1"
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert default_region() == "eu-central-1"
    monkeypatch.setenv("AWS_REGION", "sa-east-1")
    assert default_region() == "sa-east-1"


def ask_for_the_endpoint() -> object:
    """Have a new client made, as the first request of a verb does."""
    return asyncio.run(Ec2Cloud("us-east-1").endpoint())


@pytest.mark.parametrize("way", [default_region, ask_for_the_endpoint])
def test_boto_is_loaded_by_one_thread_at_a_time(
    way: Callable[[], object], emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that ask at once import its parts in turns: at once, each may wait for another's."""
    monkeypatch.delenv("AWS_REGION", raising=False)
    really, count, threads = importlib.import_module, threading.Lock(), 4
    entries: list[int] = []
    inside = 0

    def slowly(name: str, package: str | None = None) -> ModuleType:
        nonlocal inside
        with count:
            inside += 1
            entries.append(inside)
        # Time enough for all the others to come in, too, if nothing keeps them out.
        time.sleep(0.05)
        with count:
            inside -= 1
        return really(name, package)

    together = threading.Barrier(threads)

    def go(_: int) -> None:
        together.wait()
        way()

    with monkeypatch.context() as patch, ThreadPoolExecutor(threads) as pool:
        patch.setattr(importlib, "import_module", slowly)
        list(pool.map(go, range(threads)))
    assert len(entries) >= threads
    assert set(entries) == {1}
    del emulator
