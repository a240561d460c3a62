"""Put a trained checkpoint into the package, with its curve and the Trace that the first page opens on.

python scripts/bundle.py runs/en-zh
"""

import shutil
import sys
from pathlib import Path

import visformer as vf
from visformer.app.session.examples import EXAMPLES
from visformer.model.checkpoints import FOLDER
from visformer.system.checksums import write_sums


def bundle(run: Path, name: str = "en-zh") -> None:
    """Copy ``run``'s checkpoint to the bundled model ``name``; its model card is written by hand and stays."""
    target = FOLDER / name
    target.mkdir(exist_ok=True)
    for file in (
        run / "checkpoint" / "model.safetensors",
        run / "checkpoint" / "tokenizer.json",
        run / "curve.csv",
    ):
        shutil.copyfile(file, target / file.name)  # contents only: the weights are for everybody to read
    vf.load(name).trace(EXAMPLES[0]).save(target / "example.safetensors")
    write_sums(target)


if __name__ == "__main__":
    bundle(Path(sys.argv[1]))
