"""The sections of a spec. Every key has a default; unknown keys are mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from paceline.model.spec.hostwords import host_words
from paceline.model.spec.types import (
    Arguments,
    ArgumentWord,
    Count,
    Duration,
    Environment,
    Few,
    Networks,
    PathText,
    Port,
    Regex,
    Scalar,
    Text,
    Usd,
    Whole,
    Word,
    Words,
    Yes,
)

WHAT_TO_RUN = ("program", "script", "command")
HOW_TO_MEASURE = ("measure", "iterations", "seconds")
WHERE_HOSTS_ARE = ("hosts", "hostfile", "inventory")
# The keys of a cluster that only say something about hosts that are rented.
RENTED_ONLY = (
    "region", "instance_type", "min_nodes", "image", "user", "disk", "placement_group", "market",
    "ssh_from", "open_ports", "zones", "subnet", "idle",
)  # fmt: skip


class Section(BaseModel):
    """What all sections share: frozen, and nothing in them that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class HostEntry(Section):
    """One host, as an address or with more: `192.0.2.7`, `ubuntu@node7:2222`, or these keys."""

    address: Text = Field(description="Where we reach it: an address, a name, or an ssh alias.")
    private_address: Text | None = Field(
        None, description="Where its peers reach it; else the same."
    )
    user: Text | None = Field(None, description="Who logs in; else as your ssh config says.")
    port: Port | None = Field(None, description="The port of sshd; else as your ssh config says.")
    key: PathText | None = Field(
        None, description="The private key; else those of your agent and your ssh config."
    )
    jump: Text | None = Field(
        None, description="The host that leads to it: `USER@HOST:PORT`; several with commas."
    )
    host_key: Text | None = Field(
        None, description="The one host key that is accepted: `ssh-ed25519 AAAA…` or `SHA256:…`."
    )
    slots: Few | None = Field(None, description="How many ranks mpirun may start on it.")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        return host_words(data) if isinstance(data, str) else data


def _or_text(schema: dict[str, Any]) -> None:
    schema["items"] = {"anyOf": [{"type": "string"}, schema["items"]]}


class DiskSpec(Section):
    """The root disk of each rented host; it goes away with the host."""

    size_gib: Few | None = Field(
        None, description="Its size; else 16, or the image's own where that is more."
    )
    type: Literal["gp3", "gp2"] = Field("gp3", description="The kind of volume.")
    encrypted: Yes = Field(default=True, description="Encrypt it with the account's own key.")


class ClusterSpec(Section):
    """The hosts, and who supplies them."""

    provider: Literal["local", "hosts", "ec2"] = Field(
        "local",
        description="Who supplies the hosts: `local` is this machine, `hosts` are any machines "
        "that answer to SSH, `ec2` are machines rented from Amazon.",
    )
    nodes: Few | None = Field(None, description="How many hosts a run uses; else all there are.")
    price_usd_per_hour: Usd | None = Field(
        None, description="What one host costs per hour; for rented hosts, else their list price."
    )
    hosts: tuple[HostEntry, ...] = Field(
        (),
        description="The hosts, the master first: addresses, or the keys of `cluster.hosts`.",
        json_schema_extra=_or_text,
    )
    hostfile: PathText | None = Field(
        None, description="An Open MPI hostfile that lists the hosts: `ADDRESS slots=4`."
    )
    inventory: PathText | None = Field(
        None, description="An Ansible inventory that lists the hosts, INI or YAML."
    )
    accept_new_host_keys: Yes = Field(
        default=False,
        description="Trust hosts that are not known yet, and remember their keys. A key that has "
        "changed is refused all the same.",
    )
    region: Text | None = Field(
        None, description="EC2: where the hosts stand; else your AWS profile's, else us-east-1."
    )
    instance_type: Words | None = Field(
        None,
        description="EC2: the kind of machine, else m5.large; or several, of which the next one "
        "is taken where there is no room for the one before it.",
    )
    min_nodes: Few | None = Field(
        None, description="EC2: with how many hosts we start if there are no more; else all."
    )
    image: Text | None = Field(
        None,
        description="EC2: what the hosts start from: an alias such as `ubuntu-24.04` (the "
        "default), `ubuntu-22.04`, `ubuntu-20.04`, `amazon-linux-2023`, `amazon-linux-2`, "
        "`deep-learning` or `deep-learning-pytorch`; an id `ami-…`; or the name of an image that "
        "`paceline bake` made.",
    )
    user: Text | None = Field(
        None, description="EC2: who logs in; else as is usual for the image, `ubuntu` for Ubuntu."
    )
    disk: DiskSpec | None = Field(None, description="EC2: the root disk; else 16 GiB, encrypted.")
    placement_group: Literal["cluster", "spread", "none"] | None = Field(
        None,
        description="EC2: `cluster` puts the hosts close together for a fast network, `spread` on "
        "separate hardware; else `none`.",
    )
    market: Literal["on-demand", "spot"] | None = Field(
        None,
        description="EC2: `spot` is cheaper and may be taken back at two minutes' notice; else "
        "`on-demand`.",
    )
    ssh_from: Networks | None = Field(
        None,
        description="EC2: who may reach the hosts' SSH: `me`, your own address alone (the "
        "default), or a list of networks.",
    )
    open_ports: tuple[Port, ...] = Field(
        (), description="EC2: further TCP ports to open to the same addresses as SSH."
    )
    zones: Words | None = Field(
        None, description="EC2: the availability zones to try, in this order; else all."
    )
    subnet: Text | None = Field(
        None, description="EC2: the subnet; else the default one of each zone."
    )
    idle: Duration | None = Field(
        None, description="EC2: take the cluster down after so long without a run; else never."
    )


class RuntimeSpec(Section):
    """How a process starts on a host."""

    kind: Literal["bare", "venv", "docker"] = Field(
        "bare",
        description="`bare`: with the host's own Python. `venv`: in an environment that is made "
        "for the job. `docker`: in containers.",
    )
    python: PathText | None = Field(
        None,
        description="The Python that runs the job: a path or a name; else Paceline's own, or "
        "`python3` on other hosts. A venv is made with it; with docker, it is one in the image.",
    )
    requirements: PathText | None = Field(
        None, description="venv: the file of what is installed, as pip reads it."
    )
    packages: tuple[Text, ...] = Field(
        (),
        description="venv: more to install, such as `torch==2.13.0`; if nothing is named at all, "
        "torch and numpy.",
    )
    torch: Text | None = Field(
        None,
        description="venv: the index that torch comes from in addition: `cpu`, `cu126`, or an "
        "address.",
    )
    wheels: PathText | None = Field(
        None,
        description="venv: `carry` fetches the wheels here and brings them along, so that hosts "
        "need no internet; or a folder of wheels. Else the hosts fetch them.",
    )
    dockerfile: PathText | None = Field(
        None, description="docker: what the image is built from; else `image` must be there."
    )
    context: PathText | None = Field(
        None, description="docker: the folder that the build may use; else the Dockerfile's own."
    )
    image: Text | None = Field(
        None, description="docker: the image's name; else `paceline/` and the spec's name."
    )
    build_args: Environment = Field(
        default_factory=dict, description="docker: values for the ARGs of the Dockerfile."
    )
    build_on: Literal["here", "host"] | None = Field(
        None,
        description="docker: where the image is built: `here`, or on the first `host`; else here "
        "if there is an engine for the hosts' kind of processor, and on rented hosts always there.",
    )
    build_options: tuple[ArgumentWord, ...] = Field(
        (), description="docker: more words for `docker build`."
    )
    options: tuple[ArgumentWord, ...] = Field(
        (), description="docker: more words for `docker run`."
    )
    env: Environment = Field(
        default_factory=dict, description="Variables for every process; `job.env` goes over them."
    )


class DataSpec(Section):
    """The images that a built-in trainer learns from."""

    dataset: Literal[
        "cifar10", "mnist", "fashion-mnist", "imagenet", "folder", "lfw", "lsun", "fake"
    ] = Field("fake", description="The data set; `fake` generates images and needs no file.")
    root: PathText | None = Field(
        None, description="The folder that holds it; else the usual places are searched."
    )
    download: Yes = Field(default=False, description="Fetch it where it is missing.")


class JobSpec(Section):
    """What runs on every host. One of `program`, `script` and `command` says what."""

    launcher: Literal["direct", "torchrun", "mpirun"] = Field(
        "direct",
        description="Who starts the ranks: `direct` with plain environment variables, `torchrun`, "
        "or `mpirun` (Open MPI).",
    )
    program: Literal["dcgan", "mlp"] | None = Field(
        None, description="A built-in trainer; `dcgan` if nothing else is named."
    )
    script: PathText | None = Field(None, description="Your own Python script.")
    command: tuple[ArgumentWord, ...] | None = Field(
        None, description="Any command, as a list of words; started once per rank.", min_length=1
    )
    procs_per_node: Few = Field(1, description="Processes on each host.")
    args: Arguments = Field(
        default_factory=dict,
        description="Arguments: `batch_size: 16` becomes `--batch_size 16`; "
        "true is a bare flag, false leaves it out.",
    )
    env: Environment = Field(
        default_factory=dict,
        description="Environment variables of the ranks. What is named like a secret (KEY, TOKEN, "
        "PASSWORD, SECRET) is never shown.",
    )
    workdir: PathText | None = Field(
        None, description="The folder in which the ranks start; else the spec's own."
    )
    sync: Yes = Field(
        default=True,
        description="Send the folder in which the ranks start to the hosts, before each run what "
        "has changed of it; false: it lies on every host already, at the same path.",
    )
    master_port: Port | None = Field(
        None, description="The port where the ranks meet; else a free one is found."
    )
    threads: Few | None = Field(
        None, description="Threads of each process; else cores / processes per host."
    )
    unit: Text = Field("img", description="What one item is called in reports.")
    extract: Mapping[Word, Regex] = Field(
        default_factory=dict,
        description="Numbers to read off the output, line by line: a name, and a regular "
        "expression whose group is the number. `epoch_s`, `iteration_s` and `items_per_s` become "
        "the sample's own figures.",
    )
    timeout: Duration | None = Field(None, description="How long a run may take; else no limit.")
    hang_timeout: Duration | None = Field(
        1800.0,
        description="How long the ranks may get nowhere before the job is ended, with their "
        "stacks as the reason; null waits for ever.",
    )
    oversubscribe: Yes = Field(default=False, description="Allow more processes than cores.")
    rendezvous: Literal["static", "c10d"] | None = Field(
        None,
        description="How torchrun's hosts meet: `static` numbers them in their order; `c10d` "
        "gathers all of them again after a failure, and numbers them by address. Else `c10d` "
        "where `max_restarts` is more than 0, and `static` where it is not.",
    )
    max_restarts: Count = Field(
        0, description="How often torchrun starts the ranks again after a failure."
    )

    @model_validator(mode="before")
    @classmethod
    def _default_program(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and all(data.get(key) is None for key in WHAT_TO_RUN):
            return {**data, "program": "dcgan"}
        return data


class BaselineSpec(Section):
    """The configuration that all others are compared with."""

    nodes: Few = Field(1, description="Hosts.")
    procs_per_node: Few = Field(1, description="Processes on each host.")
    batch_size: Whole | None = Field(
        None, description="Batch size of each process; else the job's, else the grid's only one."
    )
    global_batch_size: Whole | None = Field(
        None, description="Batch size of all processes together, instead of `batch_size`."
    )
    instance_type: Text | None = Field(None, description="The type of its hosts; else the spec's.")
    runtime: Text | None = Field(None, description="How its processes start; else the spec's.")
    launcher: Text | None = Field(None, description="Who starts its ranks; else the spec's.")
    args: Arguments = Field(
        default_factory=dict, description="Arguments that differ from `job.args`."
    )


class StudySpec(Section):
    """A baseline and a grid of configurations, each measured several times."""

    baseline: BaselineSpec = Field(
        default_factory=BaselineSpec, description="What all others are compared with."
    )
    grid: Mapping[Word, tuple[Scalar, ...]] | None = Field(
        None,
        description="Values to combine for `nodes`, `procs_per_node`, `batch_size` or "
        "`global_batch_size`, `instance_type`, `runtime`, `launcher` and any argument of the job; "
        "else powers of two up to the hosts and their cores.",
    )
    scaling: Literal["weak", "strong"] | None = Field(
        None,
        description="`weak`: the batch of each process stays the same, and the job grows with "
        "the processes. `strong`: the batch of all processes together stays the same and is "
        "split among them. Else `strong` where a `global_batch_size` is given, and `weak`.",
    )
    tensorboard: Yes = Field(
        default=False, description="Write event files for TensorBoard beside each run."
    )
    calibrate: Yes = Field(
        default=True,
        description="Measure what the hosts and their links can do, once per sitting, and keep it "
        "with the study; it takes a few seconds.",
    )
    samples: Few = Field(3, description="How often each configuration is measured.")
    adaptive: Yes = Field(
        default=False,
        description="Take only the samples that the answer needs: `samples` is then the most.",
    )
    measure: Literal["epoch"] | None = Field(None, description="`epoch`: time whole epochs.")
    iterations: Whole | None = Field(
        None,
        description="Time so many iterations, after the warm-up. If neither this nor `measure` "
        "nor `seconds` is given: 30 for a built-in trainer whose epochs are not given in "
        "`job.args`, otherwise epochs.",
    )
    seconds: Duration | None = Field(
        None, description="Train for so long, warm-up included, and time what was done."
    )
    warmup: Count = Field(3, description="First iterations of each rank that do not count.")
    seed: Count = Field(0, description="Decides the order of the samples.")


class BakeSpec(Section):
    """What an image gets besides the runtime and the data when it is baked."""

    commands: tuple[Text, ...] = Field(
        (),
        description="Lines for the builder's shell, in order, such as "
        "`sudo apt-get install -y htop`; each must succeed.",
    )


class LimitsSpec(Section):
    """What a study may cost and how long it may go on."""

    budget_usd: Usd | None = Field(
        None,
        description="The most that may be spent on hosts; a study ends "
        "before a sample that would not fit.",
    )
    ttl: Duration | None = Field(
        None, description="How long rented hosts may live, whatever happens."
    )
    deadline: Duration | None = Field(
        None,
        description="How long a study may take; no sample starts after that, and one that is "
        "still running then is cut short.",
    )
    retries: Count = Field(1, description="How often a failed sample is tried again.")
