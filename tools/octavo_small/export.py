"""Writes octavo-small as one ONNX file with weights of 8 bits.

    python -m octavo_small.export STUDENT.safetensors… OUT.onnx [--exact]

The graph is that of the embedding model (tools/make_embedding_model.py), with two kinds of pieces and three heads.
Several students become one: the mean of their weights.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from make_embedding_model import EPSILON, LAYERS, SUMS, Graph, record_sums
from onnx import TensorProto, helper
from safetensors.numpy import load_file

PIECES = 384


class SmallGraph(Graph):
    """Bert with six layers, then the judgement, the rank and the span."""

    def make(self) -> onnx.ModelProto:
        hidden = self._embed("pieces")
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
        axis = self._constant(np.array([1]))
        first = self._operate(
            "Squeeze", [self._operate("Gather", [hidden, self._constant(np.array([0]))], axis=1), axis]
        )
        whole = self._operate("Concat", [first, self._operate("ReduceMean", [hidden, axis], keepdims=0)], axis=1)
        self._head(whole, "judge", "judgement")
        self._head(whole, "rank", "rank")
        self._head(hidden, "span", "span")
        number, size = TensorProto.FLOAT, [1, "length"]
        graph = helper.make_graph(
            self._nodes,
            "octavo-small",
            [helper.make_tensor_value_info(name, TensorProto.INT64, size) for name in ("pieces", "kinds")],
            [
                helper.make_tensor_value_info("judgement", number, [1, 3]),
                helper.make_tensor_value_info("rank", number, [1, 1]),
                helper.make_tensor_value_info("span", number, [*size, 2]),
            ],
            self._constants,
        )
        versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=10, producer_name="octavo")

    def _embed(self, pieces: str) -> str:
        places = self._constant(self._weights["embeddings.position_embeddings.weight"][:PIECES])
        zero = self._constant(np.array([0]))
        used = self._operate("Slice", [places, zero, self._operate("Shape", [pieces], start=1, end=2), zero])
        kinds = self._constant(self._weights["embeddings.token_type_embeddings.weight"])
        total = self._operate("Add", [self._words(pieces), self._operate("Gather", [kinds, "kinds"])])
        total = self._operate("Add", [total, used])
        return self._operate("LayerNormalization", [total, *self._norm("embeddings.LayerNorm")], epsilon=EPSILON)

    def _head(self, values: str, name: str, output: str) -> None:
        product = self._operate("MatMul", [values, self._constant(self._weights[f"{name}.weight"].T)])
        self._operate("Add", [product, self._constant(self._weights[f"{name}.bias"])], output=output)


def main(*students: Path, out: Path, exact: bool) -> None:
    files = [load_file(student) for student in students]
    weights = {
        name.removeprefix("trunk."): np.mean([file[name].astype(np.float32) for file in files], axis=0)
        for name in files[0]
    }
    content = SmallGraph(weights, exact=exact).make().SerializeToString(deterministic=True)
    out.write_bytes(content)
    if (out.parent / SUMS).exists():
        record_sums(out.parent, {out.name: content})
    print(out.name, out.stat().st_size)


if __name__ == "__main__":
    paths = [Path(argument) for argument in sys.argv[1:] if argument != "--exact"]
    main(*paths[:-1], out=paths[-1], exact="--exact" in sys.argv)
