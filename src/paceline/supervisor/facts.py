"""What this machine is and has, found within milliseconds and without importing anything big."""
# ruff: noqa: PTH118, PTH123, PTH208
# Those rules ask for pathlib, whose import takes longer than all of the findings.

from __future__ import annotations

import contextlib
import os
import re
import sys

from paceline.supervisor import cgroup
from paceline.supervisor.ports import free_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# What decides how fast a trainer's arithmetic can be.
_CPU_FEATURES = (
    *("avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("avx512_fp16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"),
    *("asimd", "asimddp", "asimdhp", "sve", "sve2", "i8mm", "bf16"),
)
_VARIABLES = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|DNNL|ONEDNN|NCCL|GLOO|TORCH|PYTORCH|MALLOC)_\w+"
    r"|CUDA_VISIBLE_DEVICES|LD_PRELOAD|PYTHONPATH"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY")
_TORCH_RECORD = re.compile(r"torch-([^-]+)(-.*)?\.(dist|egg)-info")
_CPUINFO_BYTES = 16 * 1024
_GPU_TIMEOUT_S = 5.0


def collect(*, ports: int = 1, folder: str = ".") -> dict[str, Any]:
    """Return the facts as plain data; None is "not known".

    `free_ports` are `ports` TCP ports that nothing listened on a moment ago; `disk_free_bytes`
    is meant where `folder` is.
    """
    model, features = _cpu()
    system = os.uname()
    free = free_ports(ports)
    return {
        "hostname": system.nodename,
        "cores": cgroup.usable_cores(),
        "cpu_model": model,
        "cpu_features": features,
        "memory_bytes": cgroup.usable_memory_bytes(),
        "disk_free_bytes": _disk_free_bytes(folder),
        "gpus": _gpus(),
        "platform": f"{_distribution()}, {system.sysname} {system.release} {system.machine}",
        "python_path": sys.executable,
        "python_version": ".".join(str(part) for part in sys.version_info[:3]),
        "torch_version": _torch_version(sys.path),
        "interface": _default_interface(),
        "free_port": free[0] if free else None,
        "free_ports": free,
        "environment": _environment(),
    }


def read(path: str, size: int = -1) -> str | None:
    """Return the text of a small file; None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(size)
    except OSError:
        return None


def _cpu() -> tuple[str | None, list[str]]:
    """Return the model and the features of the first processor."""
    # The entries of 128 processors would take longer to read than everything else.
    text = (read("/proc/cpuinfo", _CPUINFO_BYTES) or "").partition("\n\n")[0]
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        values.setdefault(name.strip().lower(), value.strip())
    flags = set((values.get("flags") or values.get("features") or "").split())
    board = (read("/proc/device-tree/model") or "").strip("\0\n ")
    model = values.get("model name") or board or None
    return model, [name for name in _CPU_FEATURES if name in flags]


def _disk_free_bytes(folder: str) -> int | None:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def _gpus() -> list[dict[str, Any]]:
    program = _on_path("nvidia-smi")
    if program is None:
        return []
    import subprocess  # noqa: PLC0415 - few hosts have what needs it

    query = ("--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    try:
        done = subprocess.run(
            (program, *query), capture_output=True, check=True, timeout=_GPU_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return list(parse_gpus(done.stdout.decode("utf-8", "replace").splitlines()))


def parse_gpus(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Read the lines of nvidia-smi: a name and a memory size in MiB each."""
    for line in lines:
        name, _, memory = line.rpartition(",")
        if name.strip():
            size = memory.strip()
            yield {"name": name.strip(), "memory_mib": int(size) if size.isdigit() else None}


def _on_path(program: str) -> str | None:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK):
            return path
    return None


def _distribution() -> str:
    text = read("/etc/os-release") or ""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return found[1] if found else "unknown distribution"


def _torch_version(search_path: Iterable[str]) -> str | None:
    """Return the version of the torch that an import would find.

    Its record beside it bears the version in its name. `importlib.metadata` reads the same, but
    its own import takes longer than all of the other facts together.
    """
    for folder in search_path:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder or "."):
                found = _TORCH_RECORD.fullmatch(name)
                if found:
                    return found[1]
    return None


def _default_interface() -> str | None:
    return default_interface(read("/proc/net/route") or "", read("/proc/net/ipv6_route") or "")


def default_interface(ipv4_routes: str, ipv6_routes: str) -> str | None:
    """Return the interface of the default route with the lowest metric, IPv4 before IPv6."""
    # Interface, destination, gateway, flags, …, metric, mask: a default goes to 0/0.
    table = [line.split() for line in ipv4_routes.splitlines()[1:]]
    routes = [
        (int(words[6]), words[0])
        for words in table
        if len(words) > 7 and words[1] == words[7] == "00000000"  # noqa: PLR2004
    ]
    if not routes:
        # Destination, its prefix length, …, metric, …, interface.
        table = [line.split() for line in ipv6_routes.splitlines()]
        routes = [
            (int(words[5], 16), words[9])
            for words in table
            if len(words) > 9 and words[1] == "00" and words[9] != "lo"  # noqa: PLR2004
        ]
    return min(routes)[1] if routes else None


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if _VARIABLES.fullmatch(name) and not _SECRET.search(name)
    }
