"""Gradient x input and masking, compared with captum."""

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, Occlusion

from tests.analysis.models import model_of, texts_of
from tests.analysis.test_gradients import ids_of
from visformer.analysis import gradient_x_input, masking
from visformer.model.masks import causal_mask


def test_gradient_x_input_of_the_translator():
    model, (source, target) = model_of("en-zh"), texts_of("en-zh")
    module, ids = model.module, ids_of(model, source, target)
    embedding, n = module.src_embedding, ids["tgt"].shape[1]
    position = embedding(ids["src"], tap=closed()) - embedding.token(ids["src"]) * embedding.scale
    y = module.tgt_embedding(ids["tgt"], tap=closed())

    def log_p(e, row):
        memory = module.encoder(e + position)
        logits = module.output(module.decoder(y, memory, self_mask=causal_mask(n)))
        return logits[:, row].log_softmax(-1)[:, ids["next"][0, row]]

    e = (embedding.token(ids["src"]) * embedding.scale).detach().requires_grad_()
    value = gradient_x_input(model, source, target)
    for row in range(n):
        theirs = InputXGradient(log_p).attribute(e, additional_forward_args=(row,))
        np.testing.assert_allclose(value[row], theirs[0].sum(-1).detach(), atol=1e-5)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_gradient_x_input_of_models_of_transformers(kind):
    model, (source, target) = model_of(kind), texts_of(kind)
    module, ids = model.module, ids_of(model, source, target)

    def log_p(e, row):
        return module(inputs_embeds=e).logits[:, row].log_softmax(-1)[:, ids["next"][0, row]]

    e = module.get_input_embeddings()(ids["tgt"]).detach().requires_grad_()
    value = gradient_x_input(model, source, target)
    for row in range(value.shape[0]):
        theirs = InputXGradient(log_p).attribute(e, additional_forward_args=(row,))
        np.testing.assert_allclose(value[row], theirs[0].sum(-1).detach(), atol=1e-4)


def test_masking_is_occlusion_of_the_attention_mask():
    model, (source, target) = model_of("bart"), texts_of("bart")
    module, ids = model.module, ids_of(model, source, target)

    def log_p(mask, row):
        logits = module(input_ids=ids["src"], attention_mask=mask, decoder_input_ids=ids["tgt"]).logits
        return logits[:, row].double().log_softmax(-1)[:, ids["next"][0, row]]

    value = masking(model, source, target)
    for row in range(value.shape[0]):
        mask = torch.ones(1, value.shape[1])
        theirs = Occlusion(log_p).attribute(mask, sliding_window_shapes=(1,), additional_forward_args=(row,))
        np.testing.assert_allclose(value[row], theirs[0].detach(), atol=1e-4)


def closed():
    """The tap of no session."""
    from visformer.model.taps import CLOSED

    return CLOSED
