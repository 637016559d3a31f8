"""The network of octavo-small and of its teacher: one trunk with three heads, and texts as batches of word pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import torch
from octavo_small.weights import unpack
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAIR_PIECES, PASSAGE_PIECES = 160, 320
_QUANTIZED_MAX = 63  # as the exported model rounds its matrices


class Network(nn.Module):
    """Judges a pair of texts, ranks a passage for a question, and finds the span of the answer."""

    def __init__(self, kind: str, weights: Path, saved: Path | None = None) -> None:
        super().__init__()
        self.kind = kind
        config = json.loads((weights / kind / "config.json").read_text())
        if kind == "minilm":
            self.trunk: nn.Module = BertModel(BertConfig(**config), add_pooling_layer=False)
        else:
            self.trunk = MPNetModel(MPNetConfig(**config), add_pooling_layer=False)
        size = config["hidden_size"]
        self.dropout = nn.Dropout(0.1)
        self.judge, self.rank, self.span = nn.Linear(2 * size, 3), nn.Linear(2 * size, 1), nn.Linear(size, 2)
        if saved is not None:
            self.load_state_dict({name: values.float() for name, values in load_file(saved).items()})
            return
        start = {name: torch.from_numpy(values) for name, values in unpack(weights / kind / "weights.npz").items()}
        result = self.trunk.load_state_dict(start, strict=False)
        print(kind, "missing", result.missing_keys[:3], "unexpected", result.unexpected_keys[:3], flush=True)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits of the judgement, of the rank, and of each piece as start and end of the answer."""
        extra = {"token_type_ids": types} if self.kind == "minilm" else {}
        hidden = self.trunk(input_ids=ids, attention_mask=mask, **extra).last_hidden_state
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        whole = self.dropout(torch.cat([hidden[:, 0], (hidden * weight).sum(1) / weight.sum(1)], -1))
        spans = self.span(self.dropout(hidden)).float().masked_fill(mask.unsqueeze(-1) == 0, -1e4)
        return self.judge(whole).float(), self.rank(whole).float()[:, 0], spans

    def save(self, path: Path) -> None:
        save_file({name: v.detach().half().contiguous().cpu() for name, v in self.state_dict().items()}, path)


class RoundedWeights:
    """Rounds the matrices of the trunk as the exported model does while a step is computed."""

    def __init__(self, network: Network) -> None:
        self._weights = [m.weight for m in network.trunk.modules() if isinstance(m, nn.Linear)]
        self._kept: list[Tensor] = []

    def __enter__(self) -> None:
        with torch.no_grad():
            self._kept = [weight.detach().clone() for weight in self._weights]
            for weight in self._weights:
                scale = weight.abs().amax(1, keepdim=True) / _QUANTIZED_MAX
                weight.copy_(torch.round(weight / scale) * scale)

    def __exit__(self, *_: object) -> None:
        with torch.no_grad():
            torch._foreach_copy_(self._weights, self._kept)


class Texts:
    """Pairs of texts as word pieces on the device."""

    def __init__(self, kind: str, weights: Path, pairs: list[tuple[str, str]], most: int, strategy: str) -> None:
        tokenizer = Tokenizer.from_file(str(weights / kind / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(most, strategy=strategy)
        ids = np.full((len(pairs), most), 0 if kind == "minilm" else 1, np.int32)
        self.lengths, self.second = np.zeros(len(pairs), np.int32), np.zeros(len(pairs), np.int32)
        self.offsets: list[np.ndarray] = []
        for start in range(0, len(pairs), 20_000):
            for row, encoding in enumerate(tokenizer.encode_batch(pairs[start : start + 20_000]), start):
                ids[row, : len(encoding.ids)] = encoding.ids
                self.lengths[row] = len(encoding.ids)
                sequence = encoding.sequence_ids
                self.second[row] = sequence.index(1) if 1 in sequence else len(encoding.ids)
                if strategy == "only_second":
                    self.offsets.append(np.array(encoding.offsets, np.int32))
        self._ids = torch.from_numpy(ids).to(DEVICE)
        self._lengths, self._second = (torch.from_numpy(v).to(DEVICE) for v in (self.lengths, self.second))

    def batch(self, rows: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        most = min(self._ids.shape[1], -(-int(self.lengths[rows].max()) // 8) * 8)
        chosen = torch.as_tensor(rows, device=DEVICE)
        places = torch.arange(most, device=DEVICE)[None]
        mask = places < self._lengths[chosen, None]
        return self._ids[chosen, :most].long(), mask.long(), ((places >= self._second[chosen, None]) & mask).long()


def batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return random batches of rows of about the same length."""
    order = rng.permutation(len(lengths))
    found: list[np.ndarray] = []
    for start in range(0, len(order), size * 40):
        part = order[start : start + size * 40]
        part = part[np.argsort(lengths[part], kind="stable")]
        found += [part[i : i + size] for i in range(0, len(part), size)]
    rng.shuffle(found)  # pyright: ignore[reportArgumentType]
    return found


def half_precision() -> AbstractContextManager[None]:
    return torch.autocast(DEVICE, dtype=torch.bfloat16)


def in_order(texts: Texts, size: int) -> Iterator[np.ndarray]:
    order = np.argsort(texts.lengths, kind="stable")
    return (order[i : i + size] for i in range(0, len(order), size))
