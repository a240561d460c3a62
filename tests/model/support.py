"""Small models with random weights, biases and norms, and helpers that record and edit tapped tensors."""

import torch

from visformer.model import taps
from visformer.model.config import TransformerConfig
from visformer.model.transformer import Transformer

VOCAB = 23
SIZES = {
    "src_vocab": VOCAB,
    "tgt_vocab": 19,
    "d_model": 12,
    "n_heads": 3,
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
    "d_ff": 20,
}


def randomise(module, *, seed=0, std=0.4):
    """Randomise every parameter: if all gains were 1 and all biases 0, exchanging two would change nothing."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            mean = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0  # a LayerNorm's gain
            parameter.copy_(mean + std * noise)
    return module


def build(*, seed=0, std=0.4, dtype=torch.float32, **changes):
    """Return a small Transformer in eval mode."""
    model = Transformer(TransformerConfig(**{**SIZES, **changes}))
    return randomise(model, seed=seed, std=std).to(dtype).eval()


def ids(batch, length, *, vocab=19, seed=0):
    """Return token ids without padding, (batch, length)."""
    return torch.randint(1, vocab, (batch, length), generator=torch.Generator().manual_seed(seed))


def run(model, *args):
    """Return the logits of a forward pass without gradients."""
    with torch.no_grad():
        return model(*args)


def record(model, *args):
    """Return the logits of a forward pass, and its tapped tensors by name, each of which is tapped once."""
    tapped = {}

    def visit(name, tensor):
        assert name not in tapped
        tapped[name] = tensor.clone()
        return tensor

    with taps.session(visit):
        logits = run(model, *args)
    return logits, tapped


def edit(model, changes, *args):
    """Return logits and tapped tensors of a pass in which ``changes[name](tensor)`` replaces the named tensors."""
    tapped = {}

    def visit(name, tensor):
        tapped[name] = changes[name](tensor) if name in changes else tensor
        return tapped[name]

    with taps.session(visit):
        logits = run(model, *args)
    return logits, tapped


def count_parameters(model):
    """Count trainable parameters, shared matrices once."""
    return sum(p.numel() for p in model.parameters())
