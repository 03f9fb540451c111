"""The reading model in PyTorch: an encoder with three heads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoModel

from chapterverse.reading.encoding import EncodedPair

#: Sequences are padded to a multiple of this, and pairs of similar length are computed together.
_LENGTH_STEP, _GROUPS = 8, 3


class Readings(NamedTuple):
    """The heads' logits of a batch of pairs.

    Attributes:
        relevance: does the passage answer the question; shape (pairs,).
        support: does the passage support the claim; shape (pairs,).
        parts: which part answers, the mean over its tokens; one tensor a pair, one value a part.
    """

    relevance: Tensor
    support: Tensor
    parts: list[Tensor]


class Reader(nn.Module):
    """Args: the folder of the base weights."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(base, add_pooling_layer=False, attention_probs_dropout_prob=0.0)
        size = self.encoder.config.hidden_size
        self.relevance, self.support, self.part = (nn.Linear(size, 1) for _ in range(3))
        # The table of words is half of all weights. It stays as it is, so that the base encoder shares it.
        for weights in self.encoder.embeddings.parameters():
            weights.requires_grad = False

    def forward(self, pairs: Sequence[EncodedPair]) -> Readings:
        """Read pairs of like length together, which saves half of the padding."""
        order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].ids))
        size = -(-len(order) // _GROUPS)
        relevance, support, parts = {}, {}, {}
        for group in (order[i : i + size] for i in range(0, len(order), size)):
            states = self.encoder(**_batch([pairs[i] for i in group])).last_hidden_state
            first = states[:, 0]
            values = self.relevance(first)[:, 0], self.support(first)[:, 0], self.part(states)[..., 0]
            for row, i in enumerate(group):
                relevance[i], support[i] = values[0][row], values[1][row]
                parts[i] = _means(values[2][row], pairs[i].parts)
        places = range(len(pairs))
        return Readings(
            torch.stack([relevance[i] for i in places]),
            torch.stack([support[i] for i in places]),
            [parts[i] for i in places],
        )


def _batch(pairs: Sequence[EncodedPair]) -> dict[str, Tensor]:
    length = -(-max(len(p.ids) for p in pairs) // _LENGTH_STEP) * _LENGTH_STEP
    ids, mask, types = (torch.zeros(len(pairs), length, dtype=torch.long) for _ in range(3))
    for row, pair in enumerate(pairs):
        n = len(pair.ids)
        ids[row, :n] = torch.tensor(pair.ids)
        mask[row, :n] = 1
        types[row, pair.question_tokens : n] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def _means(values: Tensor, parts: Sequence[int]) -> Tensor:
    """Return the mean of the tokens' values of each part."""
    places = torch.tensor(parts)
    count = int(places.max()) + 1
    if count <= 0:
        return values.new_zeros(0)
    seen = places >= 0
    sums = values.new_zeros(count).index_add(0, places[seen], values[: len(parts)][seen])
    return sums / torch.bincount(places[seen], minlength=count).clamp(min=1)
