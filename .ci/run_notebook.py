"""Runs docs/tutorial.ipynb and writes it anew, with what its cells print: .venv-training/bin/python .ci/run_notebook.py

tests/training/test_tutorial.py runs it the same way, and compares what the cells print with what the file says.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"


def read() -> nbformat.NotebookNode:
    """The notebook with the outputs that it is committed with."""
    return nbformat.read(NOTEBOOK, as_version=4)


def run() -> nbformat.NotebookNode:
    """The notebook with its outputs, run in docs/; raises nbclient's CellExecutionError if a cell fails."""
    notebook = read()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    variables = os.environ | {
        "PATH": path,
        "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
    }
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(NOTEBOOK.parent), env=variables)
    for cell in notebook.cells:
        if "outputs" in cell:  # what is said once, while kernels are compiled, is not of the cell
            cell.outputs = [one for one in cell.outputs if not one.get("text", "").startswith("maskmill: compiling")]
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        if "text/html" in output.get("data", ()):
            del output["data"]["text/plain"]  # the same, in more words
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    return notebook


if __name__ == "__main__":
    nbformat.write(run(), NOTEBOOK)
