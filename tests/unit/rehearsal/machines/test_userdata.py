"""User data, as a machine's boot carries it out."""

from __future__ import annotations

import base64
import gzip

from paceline.rehearsal.machines.userdata import read_user_data, script_of


def _encoded(text: str | bytes) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def test_the_keys_of_a_cloud_config() -> None:
    """Host keys, files and commands are taken; what is not carried out is named."""
    text = (
        "#cloud-config\n"
        "ssh_keys: {ed25519_private: a, ed25519_public: b}\n"
        "ssh_pwauth: false\n"
        "write_files:\n"
        "  - {path: /a, content: hello, permissions: '0755'}\n"
        f"  - {{path: /b, encoding: b64, content: {_encoded('there')}}}\n"
        "runcmd:\n  - [touch, 'a file']\n  - echo $HOME > /x\n"
        "packages: [git]\n"
    )
    found = read_user_data(_encoded(text))
    assert found["ssh_keys"] == {"ed25519_private": "a", "ed25519_public": "b"}
    contents = [base64.b64decode(entry["content"]) for entry in found["write_files"]]
    assert contents == [b"hello", b"there"]
    assert found["write_files"][0]["permissions"] == "0755"
    assert found["runcmd"] == "#!/bin/sh\ntouch 'a file'\necho $HOME > /x\n"
    assert found["notes"] == ["not carried out here: packages"]
    assert "bootcmd" not in found


def test_scripts_nothing_and_packed_data() -> None:
    """A script is a script, nothing is nothing, and gzip is unpacked."""
    assert read_user_data(_encoded("#!/bin/sh\ntrue\n")) == {"script": "#!/bin/sh\ntrue\n"}
    assert read_user_data("") == {}
    packed = gzip.compress(b"#cloud-config\nruncmd: [a]\n")
    assert read_user_data(_encoded(packed))["runcmd"] == "#!/bin/sh\na\n"


def test_what_cannot_be_read_is_a_note() -> None:
    """A machine boots whatever its user data is; the console says what was wrong."""
    for text in ("hello", "#cloud-config\n{", "#cloud-config\n- a\n", "#cloud-config\nruncmd: 3\n"):
        assert read_user_data(_encoded(text))["notes"]


def test_a_command_is_quoted_word_by_word() -> None:
    """Words of a list never become syntax of the shell."""
    assert script_of([["echo", "$(rm -rf /)", 1]]) == "#!/bin/sh\necho '$(rm -rf /)' 1\n"
