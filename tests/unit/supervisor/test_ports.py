from __future__ import annotations

import socket

import pytest

from paceline.supervisor import ports


def test_ports_are_free_and_different() -> None:
    """Each of them can be listened on, all at the same time."""
    found = ports.free_ports(5)
    assert len(set(found)) == 5
    listeners = []
    for port in found:
        listener = socket.socket()
        listener.bind(("", port))
        listeners.append(listener)
    for listener in listeners:
        listener.close()


def test_ports_keep_clear_of_outgoing_connections() -> None:
    """The range is left alone from which the system serves itself."""
    first = ports._first_outgoing_port()
    assert all(port < first for port in ports.free_ports(3)) or first < 21000


def test_a_narrow_machine_is_asked_for_any_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is left below that range, the system chooses."""
    monkeypatch.setattr(ports, "_first_outgoing_port", lambda: 1024)
    assert len(ports.free_ports(2)) == 2


def test_a_taken_port_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one port to choose from, and that taken, there is none."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "_LOWEST", port)
        monkeypatch.setattr(ports, "_FEWEST", 1)
        monkeypatch.setattr(ports, "_first_outgoing_port", lambda: port + 1)
        assert ports.free_ports(1) == []
