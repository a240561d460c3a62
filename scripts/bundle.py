"""Copy a trained checkpoint into the package, with its curve, its moments, and the Trace and head of the first page.

python -m scripts.bundle runs/en-zh
"""

import json
import shutil
import sys
from pathlib import Path

from safetensors import safe_open

import visformer as vf
from scripts.choose_heads import start
from visformer.app.session.examples import EXAMPLES
from visformer.model.checkpoints import FOLDER
from visformer.model.moments import pack
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
    bundle_moments(run / "moments", target / "moments")
    model = vf.load(name)
    model.trace(EXAMPLES[0]).save(target / "example.safetensors")
    (target / "start.json").write_text(json.dumps(start(model)) + "\n", encoding="utf-8")
    write_sums(target)


def bundle_moments(moments: Path, target: Path) -> None:
    """Pack the weights of each moment into ``target``, and write which steps they are from into ``moments.json``."""
    shutil.rmtree(target, ignore_errors=True)  # of another training
    target.mkdir()
    told = []
    for path in sorted(moments.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            about = {key: json.loads(file.metadata()[key]) for key in ("seed", "step", "tokens")}
        (target / path.with_suffix(".z").name).write_bytes(pack(weights))
        told.append({"file": path.with_suffix(".z").name, **about})
    (target / "moments.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    bundle(Path(sys.argv[1]))
