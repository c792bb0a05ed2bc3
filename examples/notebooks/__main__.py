"""Execute the notebooks and keep them, with what they show, in docs/gallery.

python -m examples.notebooks
python -m examples.notebooks --only tune_an_operator own_rule
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["NOTEBOOKS", "execute"]

HERE = Path(__file__).parent
NOTEBOOKS = (
    "tune_an_operator", "schedule_by_hand", "own_rule", "compile_a_network", "quantised_network",
    "embed_in_c",
)  # fmt: skip
"""In the order in which they are read."""


def execute(name: str, folder: Path, output: Path) -> Path:
    """Run the notebook *name* in *folder*; write it with its outputs to the folder *output*."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient

    notebook = jupytext.read(HERE / f"{name}.py")
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources)
    client.execute(env=os.environ | {"PYTHONPATH": str(HERE.parents[1])})
    for number, cell in enumerate(notebook.cells):  # what differs from run to run goes
        cell.metadata.clear()
        cell["id"] = f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    path = output / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path


def main() -> None:
    """Execute all notebooks, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NOTEBOOKS, default=NOTEBOOKS)
    parser.add_argument("--output", type=Path, default=HERE.parents[1] / "docs" / "gallery")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="ansorpy-") as folder:
        for name in given.only:
            print(f"wrote {execute(name, Path(folder), given.output)}", flush=True)


if __name__ == "__main__":
    main()
