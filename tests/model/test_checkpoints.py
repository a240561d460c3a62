import threading
import zlib
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from scripts.bundle import divergence
from tests.support import tiny_config, tiny_tokenizer, tiny_translator
from visformer.model.checkpoints import FOLDER, STEP, load_checkpoint, pack, unpack
from visformer.model.config import GPTConfig
from visformer.model.kinds import build, initial_model
from visformer.model.transformer import load_state
from visformer.training.data import Pair, pair_batches
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


@pytest.mark.parametrize("fault", ["nothing", "cut off", "endless", "changed"])
def test_damaged_bytes_are_refused(fault):
    packed = pack({"m": torch.randn(30, 20)})
    damaged = {
        "nothing": b"",
        "cut off": packed[:-1],
        "endless": zlib.compress(bytes(10_000_000)),  # 10 kB
        "changed": packed[:-1] + bytes([packed[-1] ^ 1]),
    }
    with pytest.raises(zlib.error):
        unpack(damaged[fault])


@pytest.mark.parametrize(
    "config", [tiny_config(), tiny_config(position="learned", norm="pre"), GPTConfig(50, d_model=8, n_heads=2)], ids=str
)
def test_the_first_weights_depend_on_the_seed_alone(config):
    torch.manual_seed(2)
    expected = build(config).state_dict()
    torch.manual_seed(5)
    after = torch.rand(3)
    torch.manual_seed(5)
    other, same, another = (initial_model(config, seed).state_dict() for seed in (2, 2, 3))
    assert torch.equal(torch.rand(3), after), "torch's generator is left as it was"
    for name, weight in expected.items():
        assert torch.equal(other[name], weight)
        assert torch.equal(same[name], weight)
    assert not torch.equal(another["output.weight"], other["output.weight"])


def test_the_first_weights_are_the_same_while_another_thread_draws():
    """As where two visitors open models at once."""
    expected = initial_model(tiny_config(), seed=2).state_dict()
    is_over = threading.Event()

    def draw():
        while not is_over.is_set():
            torch.randn(100)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        found = [initial_model(tiny_config(), seed=2).state_dict() for _ in range(20)]
    finally:
        is_over.set()
        thread.join()
    assert all(torch.equal(each[name], weight) for each in found for name, weight in expected.items())


def test_the_first_weights_are_those_of_this_torch():
    """Bundled histories begin with such: it has to be noticed if another version of torch draws others."""
    model = initial_model(tiny_config(src_vocab=50, tgt_vocab=50), seed=1)
    drawn = torch.stack([model.tgt_embedding.token.weight[-1, :3], model.encoder.layers[0].ffn.w_1.weight[0, :3]])
    expected = torch.tensor([[0.3706655, -0.1555078, 0.1273054], [-0.0928037, 0.2920329, 0.1770023]])
    torch.testing.assert_close(drawn, expected, atol=1e-6, rtol=0)


def test_the_divergence_is_that_of_torch():
    models = [tiny_translator(seed=seed).module for seed in (1, 2)]
    (batch,) = pair_batches(tiny_tokenizer(), [Pair("I went to school.", "我去学校。", "en-zh")], tokens=1000)
    with torch.inference_mode():
        p, q = (model(*batch.inputs)[0].log_softmax(dim=-1) for model in models)
    expected = F.kl_div(q, p, reduction="batchmean", log_target=True).item()
    assert divergence(*models, [batch]) == pytest.approx(expected, rel=1e-5)
    assert expected > 0.1


def test_the_bundled_translator_predicts_the_same_after_packing():
    """At most 0.005 nats a token from what the unrounded weights predict, teacher-forced in both directions."""
    model, tokenizer = load_checkpoint(FOLDER / "en-zh")
    rounded = build(model.config).eval()
    load_state(rounded, unpack(pack(dict(model.named_parameters()))))
    pairs = [Pair(*row) for row in read_rows(SUPPLEMENT / "everyday.tsv", columns=2)[::60]]
    assert len(pairs) >= 50
    assert 0 < divergence(model, rounded, pair_batches(tokenizer, pairs, tokens=6000)) < 0.005
