"""Writes the trained model as the files of the distribution `chapterverse-reading`.

    python training/export.py BASE OUT/round2.pt FOLDER

The table of words is stored once, for both encoders: `words.npy` holds a row of 8-bit integers for each word, and
`scales.npy` what one of them counts. `vectors.onnx` is the base encoder, whose mean state is a text's vector;
`reader.onnx` is the trained one with its three heads. Weights have 7 bits: products of 8-bit integers are added in
pairs in 16 bits on processors without VNNI, and would overflow there. So all processors compute the same.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from examples import read_vocabulary
from onnxruntime.quantization import QuantType, quantize_dynamic
from reader import Reader
from torch import Tensor, nn

_OPSET = 17


class _Encoder(nn.Module):
    """An encoder that gets the rows of the word table instead of numbers of tokens."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def states(self, words: Tensor, types: Tensor) -> Tensor:
        states: Tensor = self.encoder(inputs_embeds=words, token_type_ids=types).last_hidden_state
        return states


class _Vectors(_Encoder):
    def forward(self, words: Tensor, types: Tensor) -> Tensor:
        return nn.functional.normalize(self.states(words, types).mean(1), dim=-1)


class _Reader(_Encoder):
    def __init__(self, reader: Reader) -> None:
        super().__init__(reader.encoder)
        self.reader = reader

    def forward(self, words: Tensor, types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states = self.states(words, types)
        first, reader = states[:, 0], self.reader
        return reader.relevance(first)[:, 0], reader.support(first)[:, 0], reader.part(states)[..., 0]


def _write(model: nn.Module, outputs: list[str], path: Path) -> None:
    words, types = torch.rand(1, 24, model.encoder.config.hidden_size), torch.zeros(1, 24, dtype=torch.long)
    exact = path.with_suffix(".exact.onnx")
    torch.onnx.export(
        model.eval(),
        (words, types),
        str(exact),
        input_names=["words", "types"],
        output_names=outputs,
        dynamic_axes={name: {1: "tokens"} for name in ("words", "types", *(o for o in outputs if o == "parts"))},
        opset_version=_OPSET,
        dynamo=False,
    )
    quantize_dynamic(exact, path, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    exact.unlink()


def _write_words(table: np.ndarray[Any, np.dtype[np.float32]], folder: Path) -> None:
    scales = np.abs(table).max(axis=1, keepdims=True).clip(min=1e-9) / 127
    np.save(folder / "words.npy", np.round(table / scales).astype(np.int8))
    np.save(folder / "scales.npy", scales.astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    base, trained = Reader(args.base), Reader(args.base)
    trained.load_state_dict(torch.load(args.weights, weights_only=True))
    (args.folder / "vocabulary.txt").write_text("\n".join(read_vocabulary(args.base)), "utf-8")
    _write_words(base.encoder.embeddings.word_embeddings.weight.detach().numpy(), args.folder)
    _write(_Vectors(base.encoder), ["vector"], args.folder / "vectors.onnx")
    _write(_Reader(trained), ["relevance", "support", "parts"], args.folder / "reader.onnx")
    for path in sorted(args.folder.iterdir()):
        print(f"{path.name:16} {path.stat().st_size / 1e6:6.1f} MB  {hashlib.sha256(path.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
