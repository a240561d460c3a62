"""Outputs, gradients and conversion compared with ``torch.nn.Transformer``."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.model.support import ids, randomise
from visformer.errors import ConfigError
from visformer.model.masks import causal_mask, padding_mask
from visformer.model.transformer import Transformer

BATCH, SRC, TGT, D_MODEL, HEADS = 3, 7, 5, 24, 3
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
SIZES = {
    "d_model": D_MODEL,
    "nhead": HEADS,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "dim_feedforward": 40,
    "layer_norm_eps": 1e-3,
}


@pytest.fixture(autouse=True)
def _without_fast_path():
    """The fast path of torch gives zeros at padded positions."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


def make(**changes):
    """Return a ``torch.nn.Transformer`` in eval mode with random weights, biases and norms."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="enable_nested_tensor is True")
        theirs = nn.Transformer(**{**SIZES, **changes})
    return randomise(theirs, seed=1, std=0.2).eval()


def copy(theirs, **changes):
    return Transformer.from_torch(theirs, **{"src_vocab": 11, "tgt_vocab": 13, **changes})


def inputs(dtype, padded):
    """Return embedded source and target, and which of their positions are tokens."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(BATCH, SRC, D_MODEL, generator=generator, dtype=torch.float64).to(dtype)
    y = torch.randn(BATCH, TGT, D_MODEL, generator=generator, dtype=torch.float64).to(dtype)
    src_ids, tgt_ids = ids(BATCH, SRC), ids(BATCH, TGT)
    if padded:
        src_ids[1, 4:], src_ids[2, 1:] = 0, 0
        tgt_ids[0, 3:], tgt_ids[2, 1:] = 0, 0
    return x, y, src_ids, tgt_ids


def masks_of(src_ids, tgt_ids):
    """Return torch's masks, in which True is masked."""
    keys = {"src_key_padding_mask": src_ids == 0, "memory_key_padding_mask": src_ids == 0}
    return {"tgt_mask": ~causal_mask(TGT), "tgt_key_padding_mask": tgt_ids == 0, **keys}


def compare(theirs, x, y, src_ids, tgt_ids, *, atol=1e-10):
    """Compare the outputs; tests/parity/test_formulas_model.py compares every tensor before them."""
    ours, cross = copy(theirs), padding_mask(src_ids)
    given = (x, y) if theirs.batch_first else (x.transpose(0, 1), y.transpose(0, 1))
    with torch.no_grad():
        expected = theirs(*given, **masks_of(src_ids, tgt_ids))
        memory = ours.encoder(x, mask=cross)
        out = ours.decoder(y, memory, self_mask=causal_mask(TGT) & padding_mask(tgt_ids), cross_mask=cross)
    expected = expected if theirs.batch_first else expected.transpose(0, 1)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(out, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.full)], ids=str)
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch_first", "token_first"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
def test_the_output_equals_that_of_torch(norm_first, activation, padded, batch_first, dtype):
    theirs = make(norm_first=norm_first, activation=activation, batch_first=batch_first, dtype=dtype)
    compare(theirs, *inputs(dtype, padded), atol=TOLERANCE[dtype])


def test_without_masks_the_output_equals_torch():
    theirs = make(batch_first=True, dtype=torch.float64)
    x, y, *_ = inputs(torch.float64, padded=False)
    ours = copy(theirs)
    with torch.no_grad():
        torch.testing.assert_close(ours.decoder(y, ours.encoder(x)), theirs(x, y), rtol=0, atol=1e-10)


@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
def test_gradients_equal_torch(norm_first):
    theirs = make(norm_first=norm_first, batch_first=True, dtype=torch.float64)
    x, y, src_ids, tgt_ids = inputs(torch.float64, padded=True)
    ours = copy(theirs)
    x_theirs, x_ours = x.clone().requires_grad_(), x.clone().requires_grad_()
    cross, self_mask = padding_mask(src_ids), causal_mask(TGT) & padding_mask(tgt_ids)
    out = ours.decoder(y, ours.encoder(x_ours, mask=cross), self_mask=self_mask, cross_mask=cross)
    out.square().sum().backward()
    out = theirs(x_theirs, y, **masks_of(src_ids, tgt_ids))
    out.square().sum().backward()
    torch.testing.assert_close(x_ours.grad, x_theirs.grad, rtol=1e-9, atol=1e-9)


def test_from_torch_copies_sizes_options_dtype_and_mode():
    theirs = make(dtype=torch.float64, dropout=0.25, norm_first=True, activation=F.gelu)
    ours = copy(theirs)
    config = ours.config
    assert (config.src_vocab, config.tgt_vocab) == (11, 13)
    assert (config.d_model, config.n_heads, config.d_ff) == (D_MODEL, HEADS, 40)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (2, 3)
    assert (config.norm, config.activation, config.layer_norm_eps, config.dropout) == ("pre", "gelu", 1e-3, 0.25)
    assert config.final_norm is True
    assert {p.dtype for p in ours.parameters()} == {torch.float64}
    assert not ours.training and not ours.encoder.layers[0].training
    assert copy(theirs.train()).training
    assert all(m.p == 0.25 for m in ours.modules() if isinstance(m, nn.Dropout))
    with torch.no_grad():
        logits = ours(ids(2, 4, vocab=11), ids(2, 3, vocab=13))
    assert logits.shape == (2, 3, 13) and logits.dtype == torch.float64


def test_from_torch_shares_no_storage():
    theirs = make()
    storage = {p.data_ptr() for p in theirs.parameters()}
    assert storage.isdisjoint(p.data_ptr() for p in copy(theirs).parameters())


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), F.relu, F.gelu], ids=["ReLU", "GELU", "relu", "gelu"])
def test_from_torch_takes_relu_and_gelu_as_modules_and_functions(activation):
    theirs = make(batch_first=True, dtype=torch.float64)
    for layer in [*theirs.encoder.layers, *theirs.decoder.layers]:
        layer.activation = activation
    compare(theirs, *inputs(torch.float64, padded=True))


def changed(path, value):
    """Return a Transformer with another value at a path."""
    theirs = make()
    owner, _, name = path.rpartition(".")
    setattr(theirs.get_submodule(owner), name, value)
    return theirs


class _OwnLayer(nn.TransformerEncoderLayer):
    pass


NO_GAIN = nn.LayerNorm(D_MODEL, elementwise_affine=False)
OTHER_HEADS = nn.TransformerDecoderLayer(D_MODEL, 4, 40)
UNSUPPORTED = {
    "no Transformer": (lambda: nn.Linear(2, 2), "Linear"),
    "callable": (lambda: make(activation=torch.tanh), "tanh"),
    "lambda": (lambda: make(activation=lambda h: h.relu()), "lambda"),
    "tanh gelu": (lambda: make(activation=nn.GELU(approximate="tanh")), "GELU"),
    "leaky": (lambda: make(activation=nn.LeakyReLU()), "LeakyReLU"),
    "one activation": (lambda: changed("encoder.layers.1.activation", torch.tanh), "encoder.layers.1"),
    "no bias": (lambda: make(bias=False), "bias=True"),
    "custom encoder": (lambda: make(custom_encoder=nn.Identity()), "Identity"),
    "custom decoder": (lambda: make(custom_decoder=nn.Identity()), "Identity"),
    "own layer": (lambda: changed("encoder.layers.1", _OwnLayer(D_MODEL, HEADS, 40, layer_norm_eps=1e-3)), "_OwnLayer"),
    "no encoder norm": (lambda: changed("encoder.norm", None), "encoder.norm"),
    "no decoder norm": (lambda: changed("decoder.norm", None), "decoder.norm"),
    "bare final norm": (lambda: changed("decoder.norm", NO_GAIN), "decoder.norm"),
    "heads": (lambda: changed("decoder.layers.1", OTHER_HEADS), "n_heads.*3.*4"),
    "eps": (lambda: changed("encoder.layers.1.norm2.eps", 0.5), "layer_norm_eps.*0.5"),
    "final eps": (lambda: changed("encoder.norm.eps", 0.5), "layer_norm_eps.*0.5"),
    "dropout": (lambda: changed("decoder.layers.0.dropout3.p", 0.5), "dropout.*0.5"),
    "norm place": (lambda: changed("encoder.layers.0.norm_first", True), "norm must be the same"),
    "no layers": (lambda: make(num_encoder_layers=0, num_decoder_layers=0), "no layers"),
}


@pytest.mark.parametrize(("create", "message"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_from_torch_refuses_a_module_that_it_cannot_copy(create, message):
    module = create()
    with pytest.raises(ConfigError, match=message):
        copy(module)


def test_from_torch_refuses_an_invalid_vocabulary_size():
    with pytest.raises(ConfigError, match="src_vocab=0"):
        copy(make(), src_vocab=0)
