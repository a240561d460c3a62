import json
import zlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from scripts.bundle import bundle_moments
from visformer.model.checkpoints import FOLDER, load_checkpoint
from visformer.model.moments import STEP, pack, unpack
from visformer.model.transformer import load_state
from visformer.system.checksums import damaged, write_sums
from visformer.training.data import Pair, batches, to_examples
from visformer.training.supplement import read_rows

SUPPLEMENT = Path(__file__).resolve().parents[2] / "supplement"


def test_a_matrix_comes_back_within_half_a_step_of_its_row_in_five_bits_and_a_half():
    torch.manual_seed(0)
    matrix = torch.randn(200, 300) * torch.logspace(-3, 1, 200)[:, None]
    packed = pack({"matrix": matrix, "vector": torch.tensor([1.0, 1 / 3])})
    back = unpack(packed)
    step = STEP * matrix.square().mean(dim=1, keepdim=True).sqrt()
    assert ((back["matrix"] - matrix).abs() / step).max() < 0.5 + 0.05  # the step itself is float16
    assert back["matrix"].dtype == torch.float32
    assert torch.equal(back["vector"], torch.tensor([1.0, 1 / 3]).half().float())
    assert len(packed) * 8 / matrix.numel() < 5.5


def test_a_row_of_zeros_stays_one():
    assert not unpack(pack({"m": torch.zeros(2, 3)}))["m"].any()


def test_the_bundled_translator_predicts_the_same_after_packing():
    """At most 0.005 nats a token from what the unrounded weights predict, teacher-forced in both directions."""
    model, tokenizer = load_checkpoint(FOLDER / "en-zh")
    pairs = [Pair(*row) for row in read_rows(SUPPLEMENT / "everyday.tsv", columns=2)[::50]]
    ((src, tgt),) = batches(to_examples(tokenizer, pairs), tokens=100_000, seed=None)
    with torch.inference_mode():
        before = model(src, tgt[:, :-1]).log_softmax(dim=-1)[tgt[:, 1:] != 0]  # (token, vocab)
        load_state(model, unpack(pack(dict(model.named_parameters()))))
        after = model(src, tgt[:, :-1]).log_softmax(dim=-1)[tgt[:, 1:] != 0]
    divergence = (before.exp() * (before - after)).sum(dim=-1).mean().item()
    assert 0 < divergence < 0.005


def test_moments_are_bundled_with_their_checksums(tmp_path):
    run, target = tmp_path / "run", tmp_path / "en-zh" / "moments"
    run.mkdir()
    target.parent.mkdir()
    for step in (3, 8):
        told = {"config": "{}", "seed": "1", "step": str(step), "tokens": str(step * 100)}
        save_file({"w": torch.full((2, 4), float(step))}, run / f"step-{step:07d}.safetensors", metadata=told)
    bundle_moments(run, target)
    first, second = json.loads((target / "moments.json").read_text(encoding="utf-8"))
    assert (first["step"], second["tokens"], second["seed"]) == (3, 800, 1)
    assert unpack((target / second["file"]).read_bytes())["w"].mean().item() == pytest.approx(8, rel=0.06)
    write_sums(target.parent)
    assert list(damaged(target.parent)) == []
    (target / first["file"]).write_bytes(zlib.compress(b""))
    assert [path for path, _ in damaged(target.parent)] == [target / first["file"]]
