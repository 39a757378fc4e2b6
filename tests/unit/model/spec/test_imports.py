"""What reading a spec costs."""

from __future__ import annotations

import subprocess
import sys

ALLOWED = {"pydantic", "pydantic_core", "ruamel", "annotated_types", "typing_extensions"}
ALLOWED |= {"typing_inspection", "paceline"}
ALLOWED |= {"cython_runtime"}  # comes with the C extension that some versions of ruamel bring


def test_reading_a_spec_imports_pydantic_and_yaml_only() -> None:
    """No other package of a third party is imported with the spec."""
    code = (
        "import sys; before = set(sys.modules); import paceline.model.spec as spec; "
        "spec.load_spec(None); "
        "print(*sorted({n.partition('.')[0] for n in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    foreign = set(done.stdout.split()) - ALLOWED - set(sys.stdlib_module_names)
    assert {name for name in foreign if not name.startswith("_")} == set()
