"""An EC2 on this machine: the real API over the loopback, with faults on demand.

    with Emulator() as ec2:
        ec2.faults.add(Fault("lose-reply", action="RunInstances"))
        subprocess.run(command, env={**os.environ, **ec2.environ})
        print(ec2.inventory())

Each emulator has an account of its own: nothing is shared, and nothing outlives it.
"""

from __future__ import annotations

from paceline.rehearsal.emulator.calls import Call, CallLog
from paceline.rehearsal.emulator.conditions import Conditions
from paceline.rehearsal.emulator.emulator import Emulator
from paceline.rehearsal.emulator.faults import Fault, Faults, throttling
from paceline.rehearsal.emulator.inventory import Inventory

__all__ = [
    "Call",
    "CallLog",
    "Conditions",
    "Emulator",
    "Fault",
    "Faults",
    "Inventory",
    "throttling",
]
