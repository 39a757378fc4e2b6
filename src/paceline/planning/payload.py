"""What every rank executes: a built-in trainer, a script, or a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paceline.model.plan import ArgValue, Configuration
from paceline.model.spec import Measurement, Spec
from paceline.planning.arguments import argument_words, merged_arguments
from paceline.supervisor.job import OUT_FOLDER

_TRAINER = "paceline.trainer"
_EPOCH_NAMES = ("epochs", "num_epochs")


@dataclass(frozen=True)
class Payload:
    """A Python module, a Python script, or a command, with the words that follow it."""

    kind: Literal["module", "script", "command"]
    words: tuple[str, ...]

    def argv(self, python: str) -> tuple[str, ...]:
        """Return the command line of one rank."""
        if self.kind == "module":
            return (python, "-m", *self.words)
        return (python, *self.words) if self.kind == "script" else self.words

    def torchrun_words(self) -> tuple[str, ...]:
        """Return the same as torchrun wants it, at the end of its own command line."""
        if self.kind == "module":
            return ("-m", *_literal(self.words))
        if self.kind == "script":
            return _literal(self.words)
        # The program of a command is taken as it is; only what follows it is a template.
        return ("--no-python", self.words[0], *_literal(self.words[1:]))


def payload_of(
    spec: Spec,
    configuration: Configuration,
    *,
    job_folder: str,
    measured: bool,
    script: str | None = None,
) -> Payload:
    """Return what the ranks of one configuration execute.

    `measured` is a sample of a study, which ends when it has been measured; otherwise the job
    runs as long as its own arguments say. `script` is where the job's script lies on the host, if
    not where the spec says.
    """
    arguments = merged_arguments(spec, configuration)
    job = spec.job
    if job.command is not None:
        return Payload("command", (*job.command, *argument_words(arguments)))
    if job.script is not None:
        return Payload("script", (script or job.script, *argument_words(arguments)))
    if measured:
        arguments = _limited(spec.measurement, arguments)
    words = [_TRAINER, "--program", str(job.program), "--dataset", spec.data.dataset]
    if spec.data.root is not None:
        words += ["--dataroot", spec.data.root]
    if spec.data.download:
        words.append("--download")
    words += ["--out_folder", f"{job_folder}/{OUT_FOLDER}"]
    return Payload("module", (*words, *argument_words(arguments)))


def _limited(measurement: Measurement, arguments: dict[str, ArgValue]) -> dict[str, ArgValue]:
    """Return a trainer's arguments with the length of a sample in place of their own."""
    total = measurement.total_iterations
    if total is not None:
        return {"iterations": total, **_without(arguments, ("iterations", "seconds"))}
    if measurement.kind == "seconds" and measurement.amount is not None:
        limit = {"seconds": measurement.amount}
        return {**limit, **_without(arguments, ("iterations", "seconds"))}
    if not any(name in arguments for name in _EPOCH_NAMES):
        return {"epochs": 1, **arguments}
    return arguments


def _without(arguments: dict[str, ArgValue], names: tuple[str, ...]) -> dict[str, ArgValue]:
    return {name: value for name, value in arguments.items() if name not in names}


def _literal(words: tuple[str, ...]) -> tuple[str, ...]:
    """Protect words from torchrun, which replaces `${local_rank}` and halves `$$` in them."""
    return tuple(word.replace("$", "$$") for word in words)
