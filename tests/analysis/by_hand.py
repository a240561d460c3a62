"""Attention and losses written out again, without taps or edits: what the analyses are compared with."""

from contextlib import contextmanager

import torch


@contextmanager
def attention_of(module, *, pattern=lambda x: x, heads=lambda x: x, scores=lambda x: x):
    """Let one attention module compute its output step by step, with functions of what is in between."""

    def forward(query, key, value, *, mask=None, order=None, tap=None, cache=None):
        n, d_k = module.n_heads, module.w_q.out_features // module.n_heads
        q, k, v = (
            torch.stack(w(given).split(d_k, dim=-1), dim=1)
            for w, given in ((module.w_q, query), (module.w_k, key), (module.w_v, value))
        )
        raw = scores(torch.einsum("bhqd,bhkd->bhqk", q, k) / d_k**0.5)
        allowed = torch.ones_like(raw, dtype=torch.bool) if mask is None else mask.expand(raw.shape)
        weights = raw.masked_fill(~allowed, -1e30).softmax(dim=-1)
        each = heads(torch.einsum("bhqk,bhkd->bhqd", pattern(weights), v))
        return module.w_o(torch.cat([each[:, i] for i in range(n)], dim=-1))

    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def log_probabilities(model, trace):
    """Return the log-probability of every token at each row, (row, vocab) float64; one text in a pass of its own."""
    ids = trace.meta["ids"]
    with torch.no_grad():
        given = [torch.tensor([ids[side]]) for side in ("src", "tgt") if ids.get(side)]
        return model.module(*given)[0].double().log_softmax(dim=-1)


def of_next(model, trace):
    """Return the log-probability of what each row predicts, (row,) float64."""
    logs = log_probabilities(model, trace)
    return logs[torch.arange(len(logs)), torch.tensor(trace.meta["ids"]["next"])].numpy()


def module_at(model, path):
    """The attention module at a path such as "decoder.0.cross_attn"."""
    part, layer, kind = path.split(".")
    return getattr(getattr(model.module, part).layers[int(layer)], kind)
