"""Copy a trained checkpoint into the package, with its training curve and the Trace that the first page opens with.

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
    """Copy ``run``'s checkpoint to the bundled model ``name``; the model card is written by hand and not changed."""
    target = FOLDER / name
    target.mkdir(exist_ok=True)
    for file in (
        run / "checkpoint" / "model.safetensors",
        run / "checkpoint" / "tokenizer.json",
        run / "curve.csv",
    ):
        shutil.copyfile(file, target / file.name)  # not the permissions: everybody may read the weights
    vf.load(name).trace(EXAMPLES[0]).save(target / "example.safetensors")
    write_sums(target)


if __name__ == "__main__":
    bundle(Path(sys.argv[1]))
