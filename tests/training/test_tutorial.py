"""docs/tutorial.ipynb runs, and its cells print what it says they print."""

import json
import re
from typing import Any

import ci_programs
import pytest

pytestmark = pytest.mark.elsewhere

run_notebook = ci_programs.load("run_notebook")


def outputs(notebook: Any) -> list[tuple[str, list[Any]]]:
    """The code of each cell with what it prints; those of cells that print other things elsewhere are left out."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [
        (
            "".join(cell["source"]),
            [
                output.get("data") or "".join(output["text"])
                for output in cell["outputs"]
                if "differs" not in cell["metadata"].get("tags", ())
            ],
        )
        for cell in cells
    ]


def test_the_tutorial_prints_what_it_says() -> None:
    said = run_notebook.read()
    assert outputs(run_notebook.run()) == outputs(said)
    assert any("the loss fell: True" in str(cell.outputs) for cell in said.cells if cell.cell_type == "code")
    assert not re.search(r"/(?:home|root|tmp|work|Users)/|0x[0-9a-f]{8}", json.dumps(said))
