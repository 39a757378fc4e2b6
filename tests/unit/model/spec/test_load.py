"""From a file, a text or a mapping to a spec, with all mistakes at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from paceline.errors import SpecError, UsageError
from paceline.model.command import REDACTED, Secret
from paceline.model.spec import Spec, load_spec, to_plain
from paceline.model.spec.complaints import sections


def mistakes(source: Any, *overrides: str) -> tuple[str, ...]:
    """Return what is wrong with a spec."""
    with pytest.raises(SpecError) as caught:
        load_spec(source, overrides)
    return caught.value.problems


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


DESIGN = """\
name: dcgan-scaling
cluster: {provider: local}
runtime: {kind: bare}
data: {dataset: cifar10}
job:
  launcher: torchrun
  program: dcgan
  procs_per_node: 2
  args: {epochs: 1, batch_size: 16}
study:
  baseline: {nodes: 1, procs_per_node: 1}
  grid: {nodes: [2, 4], procs_per_node: [1, 2, 4], batch_size: [16]}
  samples: 3
limits: {budget_usd: 5, ttl: 4h}
"""


def test_reads_a_whole_spec() -> None:
    """Every section of a spec arrives with its types."""
    spec = load_spec(DESIGN)
    assert spec.name == "dcgan-scaling"
    assert spec.job.launcher == "torchrun"
    assert spec.job.args == {"epochs": 1, "batch_size": 16}
    assert spec.study.grid == {
        "nodes": (2, 4),
        "procs_per_node": (1, 2, 4),
        "batch_size": (16,),
    }
    assert spec.limits.ttl == 14_400.0
    assert spec.limits.budget_usd == 5.0


@pytest.mark.parametrize("source", [None, "", {}, "# empty\n", "study:\njob:\n"])
def test_everything_has_a_default(source: Any, here: Path) -> None:
    """No spec, an empty one, or empty sections are a DCGAN study on this machine."""
    (here / "spec.yaml").write_text(source) if isinstance(source, str) else None
    spec = load_spec(here / "spec.yaml" if isinstance(source, str) else source)
    assert (spec.cluster.provider, spec.cluster.nodes) == ("local", None)
    assert (spec.job.program, spec.job.launcher, spec.data.dataset) == ("dcgan", "direct", "fake")
    assert (spec.study.samples, spec.study.grid, spec.study.warmup) == (3, None, 3)


def test_all_mistakes_are_said_at_once_with_their_lines(here: Path) -> None:
    """Form, keys, types, values and rules are checked in one go and told in the file's order."""
    text = """\
name: "bad name!"
cluster: {provider: local, node: 2}
samples: 4
job:
  luncher: torchrun
  launcher: torchrn
  script: own.py
  program: dcgan
  epochs: 3
  args: {batch_size: [1], --lr: 0.1, none: }
  procs_per_node: 0
  timeout: soon
  extract: {loss: "loss (["}
study:
  samples: three
  samples: 4
  baseline: {node: 1, procs_per_node: 1.5}
  grid: {nproc_per_node: [1], nodes: [], batch_size: [16, big, -1]}
  seed: "1"
limits: {budget_usd: -3}
data: 3
"""
    assert mistakes(text) == (
        (
            "line 1: name: must be 1 to 63 letters, digits, dots, dashes or underscores, and begin "
            'with a letter or a digit, not "bad name!"'
        ),
        "line 2: cluster.node: unknown key; did you mean nodes?",
        "line 3: samples: unknown key here; did you mean study.samples?",
        "line 5: job.luncher: unknown key; did you mean launcher?",
        (
            'line 6: job.launcher: must be one of direct, torchrun, mpirun, not "torchrn"; '
            "did you mean torchrun?"
        ),
        "line 7: job.script: stands beside job.program; give only one of them",
        f"line 7: job.script: there is no file {here}/own.py",
        "line 9: job.epochs: unknown key; an argument of the job goes under job.args",
        (
            "line 10: job.args.batch_size: must be a single value: text, a number, true or false, "
            "not a list"
        ),
        "line 10: job.args.--lr: is written without its dashes: lr",
        (
            "line 10: job.args.none: must be a single value: text, a number, true or false, "
            "not nothing"
        ),
        "line 11: job.procs_per_node: must be at least 1, not 0",
        'line 12: job.timeout: must be a duration such as 90, 90s, 10m or 1h30m, not "soon"',
        (
            "line 13: job.extract.loss: is not a regular expression: unterminated character set "
            "at position 6"
        ),
        'line 15: study.samples: must be a whole number, not "three"',
        "line 16: study.samples: is given twice, first in line 15",
        "line 17: study.baseline.procs_per_node: must be a whole number, not 1.5",
        "line 17: study.baseline.node: unknown key; did you mean nodes?",
        (
            "line 18: study.grid.nproc_per_node: did you mean procs_per_node? If it is an argument "
            "of your job, give it a value in job.args as well"
        ),
        "line 18: study.grid.nodes: must not be empty",
        "line 18: study.grid.batch_size[1]: must be a whole number",
        "line 18: study.grid.batch_size[2]: must be at least 1, not -1",
        'line 19: study.seed: must be a whole number, not "1"',
        "line 20: limits.budget_usd: must be more than 0, not -3",
        "line 21: data: must be a section with keys of its own, not 3",
    )


def test_the_message_counts_and_hints() -> None:
    """The error as a whole names the source, the number of mistakes and where to read on."""
    with pytest.raises(SpecError) as caught:
        load_spec("job: {luncher: direct}")
    assert str(caught.value) == (
        "spec: 1 mistake\nline 1: job.luncher: unknown key; did you mean launcher?"
    )
    assert caught.value.exit_code == 2
    assert caught.value.hint is not None
    assert "docs/spec.md" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("job: {command: python train.py}",
         'line 1: job.command: must be a list such as [a, b], not "python train.py"'),
        ("job: {command: []}",
         "line 1: job.command: must be a list of at least one, not an empty list"),
        ("job: {command: [A=1, python]}",
         "line 1: job.command[0]: must be a program; put variables for it under job.env"),
        ("job: {command: [true]}",
         "line 1: job.command[0]: must be a number, or text in quotes, not true"),
        ("name: 3", 'line 1: name: must be text, not 3; write it in quotes: "3"'),
        ("job: {oversubscribe: yes}",
         'line 1: job.oversubscribe: must be true or false, not "yes"'),
        ("job: {master_port: 70000}", "line 1: job.master_port: must be at most 65,535, not 70000"),
        ("limits: {budget_usd: .inf}", ("line 1: limits.budget_usd: must be a finite number, "
         "not inf")),
        ("job: {args: {lr: .nan}}", "line 1: job.args.lr: must be a finite number, not nan"),
        ("job: {args: {n: 99999999999999999999}}",
         "line 1: job.args.n: must be a number that fits into 64 bits, not 99999999999999999999"),
        ("job: {max_restarts: 1}",
         "line 1: job.max_restarts: needs `launcher: torchrun`; direct ranks are not restarted"),
        ("study: {iterations: 3, seconds: 9}",
         "line 1: study.seconds: stands beside study.iterations; give only one of them"),
        ("study: {grid: {}}",
         "line 1: study.grid: is empty; take the line out to get the default grid"),
        ("study: {grid: {nodes: 2}}",
         "line 1: study.grid.nodes: must be a list such as [a, b], not 2"),
        ("study: {grid: {flag: [true, 'True']}}",
         "line 1: study.grid.flag: holds True and 'True', which cannot be told apart"),
        ("job: {args: {lr: 1}}\nstudy: {baseline: {args: {lrs: 2}}}",
         None),
        ("job: {args: {rate: 1}}\nstudy: {baseline: {args: {rat: 2}}}",
         ("line 2: study.baseline.args.rat: is no argument of the job or the grid; "
         "did you mean rate?")),
        ("study: {baseline: {args: {batch_size: 2}}}",
         ("line 1: study.baseline.args.batch_size: is an axis of its own; "
         "write study.baseline.batch_size")),
        ("data: {dataset: imagenet}",
         "line 1: data.root: is needed: the folder that holds the imagenet images"),
        ("data: {dataset: cifar-10}",
         ("line 1: data.dataset: must be one of cifar10, mnist, fashion-mnist, imagenet, folder, "
         'lfw, lsun, fake, not "cifar-10"; did you mean cifar10?')),
        ("job: {env: {RANK: 0}}",
         "line 1: job.env.RANK: is set for each rank and cannot be given"),
        ("job: {env: {MASTER_PORT: 1}}",
         "line 1: job.env.MASTER_PORT: is given as job.master_port"),
        ("job: {threads: 2, env: {OMP_NUM_THREADS: 1}}",
         "line 1: job.env.OMP_NUM_THREADS: stands beside job.threads; give only one of them"),
        ("job: {env: {1X: a}}",
         "line 1: job.env.1X: must be a variable's name: letters, digits and underscores"),
        ("job: {workdir: nowhere/at/all}", None),
        ("study: {grid: {launcher: [direct, mpi]}}",
         "line 1: study.grid.launcher[1]: must be one of direct, torchrun, mpirun, not mpi"),
        ("study: {baseline: {launcher: slurm}}",
         "line 1: study.baseline.launcher: must be one of direct, torchrun, mpirun, not slurm"),
        ("study: {grid: {runtime: [1]}}", "line 1: study.grid.runtime[0]: must be text"),
        ("study: {grid: {instance_type: [m5.large]}}",
         "line 1: study.grid.instance_type: needs `cluster.provider: ec2`"),
        ("study: {scaling: weak, grid: {global_batch_size: [64]}}",
         ("line 1: study.grid.global_batch_size: is split among the processes: that is "
          "`scaling: strong`")),
        ("study: {scaling: strong, grid: {batch_size: [64]}}",
         ("line 1: study.grid.batch_size: is the batch of each process, which strong scaling "
          "decides; write global_batch_size, the batch of all together")),
        ("study: {baseline: {batch_size: 4, global_batch_size: 4}}",
         ("line 1: study.baseline.global_batch_size: stands beside study.baseline.batch_size; "
          "give only one of them")),
        ("study: {grid: {global_batch_size: [64.5]}}",
         "line 1: study.grid.global_batch_size[0]: must be a whole number"),
        ("cluster: {price_usd_per_hour: 0}",
         "line 1: cluster.price_usd_per_hour: must be more than 0, not 0"),
        ("foo: 1",
         ("line 1: foo: unknown key; there are: "
          "name, cluster, runtime, data, job, study, bake, limits")),
        ("- a", "must hold keys such as `job:`, not a list"),
        ('job: {unit: "a\\0b"}', "line 1: job.unit: must not hold a NUL character"),
        ('job: {unit: " "}', "line 1: job.unit: must not be empty"),
        ('job: {unit: "\\ud800"}', "line 1: job.unit: must not hold half a surrogate pair"),
    ],
)  # fmt: skip
def test_each_mistake_has_plain_words(text: str, problem: str | None, tmp_path: Path) -> None:
    """Every kind of mistake says what must be, what is, and what may have been meant."""
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    found = mistakes(tmp_path / "spec.yaml") if problem else ()
    assert found == ((problem,) if problem else ())


def test_the_keys_of_a_runtime_go_with_its_kind(tmp_path: Path) -> None:
    """What belongs to another kind is a mistake, unless the study varies the runtime."""
    assert mistakes("runtime: {kind: bare, torch: cpu, options: [--gpus]}\n") == (
        "line 1: runtime.torch: needs `kind: venv`",
        "line 1: runtime.options: needs `kind: docker`",
    )
    assert mistakes("runtime: {kind: docker}\n") == (
        "line 1: runtime: docker needs a `dockerfile`, or an `image` that there is",
    )
    assert mistakes("runtime: {kind: docker, image: x, build_on: here}\n") == (
        "line 1: runtime.build_on: needs a `dockerfile` to build from",
    )
    (tmp_path / "spec.yaml").write_text(
        "runtime: {requirements: r.txt, image: x}\nstudy: {grid: {runtime: [bare, venv, docker]}}\n"
    )
    (tmp_path / "r.txt").touch()
    spec = load_spec(tmp_path / "spec.yaml")
    assert spec.runtime.requirements == str(tmp_path / "r.txt")


def test_the_files_of_a_runtime_must_be_there(tmp_path: Path) -> None:
    """Each is looked for beside the spec; `carry` is a word and no folder."""
    path = tmp_path / "spec.yaml"
    path.write_text("runtime: {kind: docker, dockerfile: Dockerfile}\n")
    assert mistakes(path) == (
        f"line 1: runtime.dockerfile: there is no file {tmp_path / 'Dockerfile'}",
    )
    path.write_text("runtime: {kind: venv, wheels: carry}\n")
    assert load_spec(path).runtime.wheels == "carry"
    path.write_text("runtime: {kind: venv, wheels: gone}\n")
    assert mistakes(path) == (f"line 1: runtime.wheels: there is no folder {tmp_path / 'gone'}",)


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        ("{instance_type: m5.large}", "cluster.instance_type: needs `provider: ec2`"),
        ("{provider: local, open_ports: [80]}", "cluster.open_ports: needs `provider: ec2`"),
        ("{provider: ec2, nodes: 2, min_nodes: 3}",
         "cluster.min_nodes: must be at most cluster.nodes, which is 2"),
        ("{provider: ec2, ssh_from: 10.0.0.1/8}",
         "cluster.ssh_from[0]: is not where a network begins; did you mean 10.0.0.0/8?"),
        ("{provider: ec2, ssh_from: home}",
         'cluster.ssh_from[0]: must be me, or a network such as 203.0.113.0/24, not "home"'),
        ("{provider: ec2, ssh_from: []}",
         "cluster.ssh_from: must be a list of at least one, not an empty list"),
        ("{provider: ec2, subnet: subnet-1, zones: a}",
         "cluster.zones: stands beside cluster.subnet, which is in one zone; give only one of them"),  # noqa: E501
        ("{provider: ec2, image: ami-xyz}",
         "cluster.image: is no image id: ami-xyz; ids are ami- and hex digits"),
        ("{provider: ec2, disk: {size: 8}}",
         "cluster.disk.size: unknown key; did you mean size_gib?"),
        ("{provider: ec2, market: sopt}",
         'cluster.market: must be one of on-demand, spot, not "sopt"; did you mean spot?'),
    ],
)  # fmt: skip
def test_mistakes_about_rented_hosts(cluster: str, problem: str) -> None:
    """What can be wrong with a cluster on EC2 is said before anything is asked of Amazon."""
    assert mistakes(f"cluster: {cluster}") == (f"line 1: {problem}",)


def test_rented_hosts_are_described_as_people_write_them() -> None:
    """One type or several, one network or several: both may be written plainly."""
    spec = load_spec(
        "cluster: {provider: ec2, instance_type: c5.xlarge, ssh_from: [me, 198.51.100.7], "
        "zones: us-east-1a, disk: {type: gp2}, idle: 20m}"
    )
    assert spec.cluster.instance_type == ("c5.xlarge",)
    assert spec.cluster.ssh_from == ("me", "198.51.100.7/32")
    assert spec.cluster.zones == ("us-east-1a",)
    assert spec.cluster.disk is not None
    assert spec.cluster.disk.encrypted
    assert spec.cluster.idle == 1200
    assert load_spec(to_plain(spec)) == spec


def test_hosts_are_addresses_or_more() -> None:
    """A host is typed as people type it, or with keys; all become the same thing."""
    spec = load_spec(
        "cluster: {provider: hosts, hosts: [192.0.2.1, 'ubuntu@node7:2222', '[2001:db8::7]:22', "
        "{address: x, private_address: 10.0.0.4, user: me}]}"
    )
    words = [entry.model_dump(exclude_none=True) for entry in spec.cluster.hosts]
    assert words == [
        {"address": "192.0.2.1"},
        {"address": "node7", "user": "ubuntu", "port": 2222},
        {"address": "2001:db8::7", "port": 22},
        {"address": "x", "private_address": "10.0.0.4", "user": "me"},
    ]
    assert load_spec(to_plain(spec)) == spec


def test_hosts_on_the_command_line_replace_those_of_the_file() -> None:
    """`--hosts` goes over whatever names the hosts in the file."""
    text = "cluster: {provider: hosts, hostfile: /no/such/file}"
    spec = load_spec(text, ('cluster.provider="hosts"', 'cluster.hosts=["a", "b"]'))
    assert [entry.address for entry in spec.cluster.hosts] == ["a", "b"]
    assert spec.cluster.hostfile is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cluster: {provider: hosts}",
         "line 1: cluster: needs the hosts: give hosts, hostfile, inventory"),
        ("cluster: {hosts: [a]}", "line 1: cluster.hosts: needs `provider: hosts`"),
        ("cluster: {provider: hosts, hosts: [a], hostfile: /etc/hosts}",
         "line 1: cluster.hostfile: stands beside cluster.hosts; give only one of them"),
        ("cluster: {provider: hosts, hosts: [{adress: a}]}",
         "line 1: cluster.hosts[0].adress: unknown key; did you mean address?"),
        ("cluster: {provider: hosts, hosts: [{address: a, port: 70000}]}",
         "line 1: cluster.hosts[0].port: must be at most 65,535, not 70000"),
        ("cluster: {provider: hosts, hostfile: /no/such/file}",
         "line 1: cluster.hostfile: there is no file /no/such/file"),
    ],
)  # fmt: skip
def test_mistakes_about_hosts_are_named(text: str, problem: str) -> None:
    """What does not fit among the hosts is said with its place."""
    assert problem in mistakes(text)


def test_paths_of_hosts_are_those_of_this_machine_and_the_python_is_theirs(
    tmp_path: Path,
) -> None:
    """Keys and lists lie beside the spec; an interpreter of the hosts is not looked for here."""
    (tmp_path / "hosts.ini").write_text("a\n")
    (tmp_path / "spec.yaml").write_text(
        "cluster: {provider: hosts, hosts: [{address: a, key: my.pem}]}\n"
        "runtime: {python: /opt/there/python}\n"
    )
    spec = load_spec(tmp_path / "spec.yaml")
    assert spec.cluster.hosts[0].key == str(tmp_path / "my.pem")
    assert spec.runtime.python == "/opt/there/python"


def test_a_grid_may_not_be_endless() -> None:
    """A grid of more points than anybody can measure is refused before it is built."""
    values = list(range(1, 102))
    assert mistakes({"study": {"grid": {"a_rate": values, "b_rate": values}}}) == (
        "study.grid: has 10201 points; at most 10000 can be studied",
    )


class TestPlaces:
    """Where paths lead."""

    def test_paths_are_relative_to_the_file(self, tmp_path: Path, here: Path) -> None:
        """A spec means the same wherever it is read from."""
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "train.py").touch()
        spec = folder / "spec.yaml"
        spec.write_text("job: {script: ./train.py}\ndata: {root: ../images}\n")
        loaded = load_spec(os.path.relpath(spec, here))
        assert loaded.job.script == str(folder / "train.py")
        assert loaded.job.workdir == str(folder)
        assert loaded.data.root == str(tmp_path / "images")

    def test_paths_of_overrides_are_relative_to_the_current_folder(self, here: Path) -> None:
        """What is typed means what the shell would complete."""
        (here / "project").mkdir()
        (here / "train.py").touch()
        spec = here / "project" / "spec.yaml"
        spec.write_text("name: x\n")
        loaded = load_spec(spec, ["job.script=train.py"])
        assert loaded.job.script == str(here / "train.py")

    def test_home_is_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`~` is the user's home."""
        monkeypatch.setenv("HOME", "/home/somebody")
        assert load_spec({"data": {"root": "~/images"}}).data.root == "/home/somebody/images"

    def test_a_missing_script_is_named_with_its_neighbour(self, here: Path) -> None:
        """The nearest file name is offered."""
        (here / "train_dcgan.py").touch()
        assert mistakes("job:\n  script: traindcgan.py\n") == (
            (
                f"line 2: job.script: there is no file {here}/traindcgan.py; "
                "did you mean train_dcgan.py?"
            ),
        )
        assert mistakes("job: {workdir: nowhere}") == (
            f"line 1: job.workdir: there is no folder {here}/nowhere",
        )

    def test_what_is_there_is_not_asked_for_records(self) -> None:
        """A record of a study can be read when its script is gone."""
        spec = load_spec({"job": {"script": "/gone/train.py"}}, check_files=False)
        assert spec.job.script == "/gone/train.py"

    def test_a_python_is_a_path_or_a_name(self, here: Path) -> None:
        """A name is left to the host's PATH; a path must be there."""
        assert load_spec({"runtime": {"python": "python3.12"}}).runtime.python == "python3.12"
        assert mistakes("runtime: {python: venv/bin/python}") == (
            f"line 1: runtime.python: there is no file {here}/venv/bin/python",
        )


class TestFiles:
    """Files that cannot be a spec."""

    def test_a_missing_file_offers_its_neighbour(self, tmp_path: Path) -> None:
        """A typing error in the name is met with the right name."""
        (tmp_path / "spec.yaml").touch()
        with pytest.raises(UsageError, match=r"there is no spec file .*/spce\.yaml") as caught:
            load_spec(tmp_path / "spce.yaml")
        assert caught.value.hint == f"did you mean {tmp_path}/spec.yaml?"
        assert caught.value.exit_code == 2

    def test_a_missing_file_alone(self, tmp_path: Path) -> None:
        """Without neighbours there is still a way on."""
        with pytest.raises(UsageError) as caught:
            load_spec(tmp_path / "no" / "spec.yaml")
        assert caught.value.hint == "check the path; without a file, the defaults apply"

    def test_a_folder_is_not_a_spec(self, tmp_path: Path) -> None:
        """A folder is said to be one, and a file in it is offered."""
        (tmp_path / "a.yaml").touch()
        with pytest.raises(UsageError, match="is a folder, not a spec file") as caught:
            load_spec(tmp_path)
        assert caught.value.hint == f"name a file in it, such as {tmp_path}/a.yaml"

    def test_other_encodings_are_named(self, tmp_path: Path) -> None:
        """The line of the first byte that is not UTF-8 is named."""
        path = tmp_path / "spec.yaml"
        path.write_bytes(b"name: a\nunit: \xe9t\xe9\n")
        assert mistakes(path) == ("line 2: is not UTF-8 text",)

    def test_a_byte_order_mark_is_no_mistake(self, tmp_path: Path) -> None:
        """Some editors put one in front."""
        path = tmp_path / "spec.yaml"
        path.write_bytes(b"\xef\xbb\xbfname: a\n")
        assert load_spec(path).name == "a"

    def test_a_large_file_is_not_read(self) -> None:
        """A device or a data set in place of a spec does not fill the memory."""
        with pytest.raises(UsageError, match="is larger than any spec"):
            load_spec(Path("/dev/zero"))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_an_unreadable_file_says_why(self, tmp_path: Path) -> None:
        """A missing right is said in the system's words."""
        path = tmp_path / "spec.yaml"
        path.touch(mode=0)
        with pytest.raises(UsageError, match="cannot be read: Permission denied"):
            load_spec(path)

    def test_a_path_that_is_none(self) -> None:
        """A path that the system refuses is a plain message as well."""
        with pytest.raises(UsageError, match="cannot be read"):
            load_spec(Path("a\0b"))


class TestNames:
    """What a study is called when nobody says."""

    def test_the_file_names_the_study(self, tmp_path: Path) -> None:
        """The file's own name, made fit for a name."""
        path = tmp_path / "my first study.yaml"
        path.touch()
        assert load_spec(path).name == "my-first-study"

    def test_the_script_or_program_names_it_otherwise(self, here: Path) -> None:
        """Without a file, what runs gives the name."""
        (here / "train.py").touch()
        assert load_spec({"job": {"script": "train.py"}}).name == "train"
        assert load_spec({"job": {"program": "mlp"}}).name == "mlp"
        assert load_spec({"job": {"command": ["./x"]}}).name == "dcgan"
        assert load_spec(None).name == "dcgan"


class TestOverrides:
    """What the command line puts over the file."""

    def test_values_are_yaml(self) -> None:
        """Numbers, lists, quoted and plain text arrive as such."""
        spec = load_spec(
            DESIGN,
            [
                "study.samples=5",
                "job.args.batch_size=32",
                "job.args.note=a: b # c",
                "job.args.optimizer.lr=1e-3",
                'name="quoted"',
                "study.grid.procs_per_node=[1, 2]",
                "limits.ttl=10m",
                "job.args.empty=''",
            ],
        )
        assert spec.study.samples == 5
        assert spec.job.args == {
            "epochs": 1,
            "batch_size": 32,
            "note": "a: b # c",
            "optimizer.lr": 0.001,
            "empty": "",
        }
        assert spec.name == "quoted"
        assert spec.study.grid is not None
        assert spec.study.grid["procs_per_node"] == (1, 2)
        assert spec.limits.ttl == 600.0

    def test_the_last_word_counts(self) -> None:
        """Later overrides go over earlier ones."""
        assert load_spec(None, ["study.samples=4", "study.samples=5"]).study.samples == 5

    def test_mistakes_name_the_override(self, here: Path) -> None:
        """What is wrong is said of the word that was typed, after what is wrong in the file."""
        found = mistakes(
            "job: {luncher: x}",
            "study.samples=three",
            "nonsense",
            "study.grid=[",
            "name.x=3",
            "job.script=own.py",
            "study.grid.nodes=[1, 0]",
            "cluster.nodes.x=1",
        )
        assert found == (
            "line 1: job.luncher: unknown key; did you mean launcher?",
            "--set nonsense: must be KEY=VALUE, as in study.samples=5",
            "--set study.grid: is not YAML: expected the node content, but found '<stream end>'",
            "--set study.grid.nodes=[1, 0]: study.grid.nodes[1]: must be at least 1, not 0",
            f"--set job.script=own.py: there is no file {here}/own.py",
            "--set name.x=3: name: must be text, not a section with keys",
            (
                "--set cluster.nodes.x=1: cluster.nodes: must be a whole number, "
                "not a section with keys"
            ),
            '--set study.samples=three: must be a whole number, not "three"',
        )

    def test_a_value_is_no_section(self) -> None:
        """An override below a plain value is refused by name."""
        assert mistakes("name: x", "name.y=1") == ("--set name.y=1: name is not a section",)

    def test_what_runs_is_replaced_as_a_whole(self, here: Path) -> None:
        """To name a script takes back the file's program; the same goes for the measure."""
        (here / "own.py").touch()
        spec = load_spec(
            "job: {program: mlp}\nstudy: {measure: epoch}",
            ["job.script=own.py", "study.iterations=5"],
        )
        assert (spec.job.program, spec.job.script) == (None, str(here / "own.py"))
        assert (spec.study.measure, spec.study.iterations) == (None, 5)

    def test_null_takes_back(self) -> None:
        """A key can be reset to its default, and that takes back nothing else."""
        words = ["job.program=null", "job.script=null", 'job.command=["a", "b"]']
        assert load_spec({"job": {"program": "mlp"}}, words).job.command == ("a", "b")
        spec = load_spec({"job": {"program": "mlp"}}, ["job.script=null"])
        assert spec.job.program == "mlp"

    def test_a_spec_can_be_overridden(self) -> None:
        """A loaded spec is a source like any other, and keeps its secrets."""
        first = load_spec({"job": {"env": {"HF_TOKEN": "s3cret"}}})
        second = load_spec(first, ["study.samples=9"])
        assert second.job.env == {"HF_TOKEN": Secret("s3cret")}
        assert second.study.samples == 9
        assert first.study.samples == 3


class TestSecrets:
    """Values that nobody else may see."""

    SPEC: dict[str, Any] = {  # noqa: RUF012 - never changed
        "job": {"env": {"HF_TOKEN": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "PLAIN": "open"}},
        "runtime": {"env": {"PGPASSWORD": "s3cret", "TOKENIZERS_PARALLELISM": "no", "MAX": 3}},
    }

    def test_they_are_told_by_their_names(self) -> None:
        """Names that end like those of secrets make secrets; others stay plain text."""
        spec = load_spec(self.SPEC)
        assert spec.job.env == {
            "HF_TOKEN": Secret("s3cret"),
            "AWS_SECRET_ACCESS_KEY": Secret("s3cret"),
            "PLAIN": "open",
        }
        assert spec.runtime.env == {
            "PGPASSWORD": Secret("s3cret"),
            "TOKENIZERS_PARALLELISM": "no",
            "MAX": "3",
        }

    @pytest.mark.parametrize(
        "show",
        [
            repr,
            str,
            to_plain,
            Spec.model_dump,
            Spec.model_dump_json,
            lambda spec: spec.model_dump(mode="json"),
        ],
    )
    def test_no_form_of_a_spec_shows_them(self, show: Callable[[Spec], object]) -> None:
        """However a spec is shown or dumped, its secrets are a redacted word."""
        shown = str(show(load_spec(self.SPEC)))
        assert "s3cret" not in shown
        assert REDACTED in shown
        assert "open" in shown

    def test_complaints_do_not_show_them(self) -> None:
        """Whatever is wrong with a variable, its value is not in the message."""
        found = mistakes(
            "job: {env: {A_TOKEN: [s3cret], B_TOKEN: {x: s3cret}}}",
            "job.env.C_TOKEN=[s3cret]",
            "job.env.D_TOKEN=[s3cret",
        )
        assert len(found) == 4
        assert "s3cret" not in " ".join(found)


def test_a_plain_spec_makes_the_same_spec_again() -> None:
    """What is kept with a study can be read back."""
    spec = load_spec(DESIGN)
    assert load_spec(to_plain(spec)) == spec


def test_a_spec_cannot_be_changed() -> None:
    """A spec is frozen."""
    with pytest.raises(ValueError, match="frozen"):
        load_spec(None).name = "other"  # type: ignore[misc]


def test_rules_hold_for_specs_made_in_python() -> None:
    """A spec that is built without a file obeys the rules between keys, too."""
    with pytest.raises(ValueError, match="stands beside job"):
        Spec.model_validate({"job": {"program": "dcgan", "command": ["x"]}})


def test_the_measurement_follows_from_what_is_said() -> None:
    """Iterations for a trainer left open; epochs where epochs are named or the job is yours."""

    def measured(data: dict[str, Any]) -> tuple[str, float | None, int | None]:
        found = load_spec(data).measurement
        return (found.kind, found.amount, found.total_iterations)

    own = {"command": ["./train"]}
    assert measured({}) == ("iterations", 30, 33)
    assert measured({"study": {"warmup": 0}}) == ("iterations", 30, 30)
    assert measured({"job": {"args": {"epochs": 2}}}) == ("epoch", None, None)
    assert measured({"job": {"args": {"num_epochs": 2}}}) == ("epoch", None, None)
    assert measured({"job": own}) == ("epoch", None, None)
    assert measured({"study": {"measure": "epoch"}}) == ("epoch", None, None)
    assert measured({"job": own, "study": {"iterations": 7}}) == ("iterations", 7, 10)
    assert measured({"study": {"seconds": "1m"}}) == ("seconds", 60.0, None)


KEYS = sorted({name for model in sections().values() for name in model.model_fields})
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=3),
    st.sampled_from(["dcgan", "direct", "epoch", "ec2", "docker", "mpirun", "10m", "a=b", "~"]),
)
keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=6), st.integers(), st.none())
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(keys, inner, max_size=4),
        st.sets(st.integers(), max_size=2),
    ),
    max_leaves=12,
)
near_specs = st.fixed_dictionaries(
    {},
    optional={
        name: st.one_of(st.dictionaries(keys, anything, max_size=4), anything)
        for name in ("cluster", "runtime", "data", "job", "study", "limits", "name")
    },
)


def outcome(source: Any, words: Sequence[str] = ()) -> Spec | tuple[str, ...]:
    """Return the spec, or what is wrong with it."""
    try:
        return load_spec(source, words)
    except SpecError as error:
        return error.problems


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=300, deadline=None)
@given(st.one_of(near_specs, st.dictionaries(keys, anything, max_size=4)))
@example({"job": {"args": {1: 2}}})
@example({"study": {"grid": {None: [1]}, "baseline": {"args": {3: 4}}}})
@example({"job": {"command": ["a" * 10_000]}, "name": 10**5000})
@example({"runtime": {"kind": []}, "study": {"grid": {"runtime": 3}}})
def test_any_mapping_is_a_spec_or_a_list_of_mistakes(data: dict[Any, Any]) -> None:
    """No data make the loader fail in any other way, and what it accepts can be kept."""
    found = outcome(data)
    if isinstance(found, Spec):
        assert to_plain(load_spec(to_plain(found), check_files=False)) == to_plain(found)
    else:
        assert found
        assert all(problem.strip() for problem in found)


@settings(deadline=None)
@given(st.text(alphabet="jobargsstudy:{}[]-&*'\"!|\n \t#12.,", max_size=60))
def test_any_text_is_a_spec_or_a_list_of_mistakes(text: str) -> None:
    """The same for text."""
    assert outcome("# text\n" + text)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="jobargsnamestudy.=[]{}:'\"12 ", max_size=30), max_size=3))
def test_any_override_is_taken_or_complained_about(words: list[str]) -> None:
    """The same for what is typed."""
    assert outcome(None, words)


def test_mappings_without_end_are_refused() -> None:
    """A mapping that holds itself is complained about like any other wrong value."""
    data: dict[str, Any] = {}
    data["job"] = data
    assert mistakes(data) == ("job.job: unknown key here; did you mean job?",)
