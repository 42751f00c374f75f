"""Exported computations have the outputs of the network, for other numbers and lengths of texts than the example."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from firstlight.errors import UserError
from firstlight.export.graphs import Graph, graphs_of, write_onnx, write_torch_export
from untrained_runs import untrained_run

NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "classifier": ("classifier", {"convolution": 3, "pooling": "mean"}),
    "classifier with relative positions": ("classifier", {"positions": "relative", "pooling": "last"}),
    "classifier in the manner of Llama": (
        "classifier",
        {"positions": "rotary", "norm": "pre", "norm_kind": "rms", "activation": "swiglu", "num_key_value_heads": 1},
    ),
    "multiple choice": (
        "classifier",
        {"pooling": "max", "facts": {"choices": True, "data": {"choice_columns": ["a", "b"]}}},
    ),
    "both orders": ("classifier", {"pooling": "attention", "facts": {"both_orders": True}}),
    "generator": ("generator", {"positions": "learned", "num_loops": 2}),
    "generator with relative positions": ("generator", {"positions": "relative", "causal_convolution": 2}),
    "masked": ("masked", {"head_layer": True}),
    "translator": ("translator", {}),
}
SIZES = [(1, 1), (3, 12), (2, 5)]  # texts, and their length; the context has 12


def inputs_of(graph: Graph, num_texts: int, length: int) -> list[Tensor]:
    """Return inputs of another size than the examples. Half of the text is in the cache, if there is one."""
    found = []
    past = length // 2 if len(graph.outputs) > 1 else 0
    for name, example in graph.examples.items():
        shape = (num_texts, *example.shape[1:-1], length - past if name == "input_ids" else length)
        if name.endswith("mask"):
            found.append((torch.arange(length) < torch.randint(1, length + 1, (*shape[:-1], 1))).long())
        elif example.dtype is torch.int64:
            found.append(torch.randint(2, 20, shape))
        else:
            places = past if name.startswith("past") else length
            found.append(torch.randn(num_texts, *example.shape[1:-2], places, example.shape[-1]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_a_program_of_torch_has_equal_outputs(name: str, tmp_path: Path) -> None:
    kind, options = NETWORKS[name]
    run = untrained_run(tmp_path, kind, **options)
    write_torch_export(run, tmp_path)
    for graph in graphs_of(run):
        program = torch.export.load(tmp_path / f"{graph.name}.pt2").module()
        for size in SIZES:
            inputs = inputs_of(graph, *size)
            torch.testing.assert_close(program(*inputs), graph.compute(*inputs), atol=1e-6, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_onnxruntime_has_equal_outputs(name: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime computes the files")
    pytest.importorskip("onnxscript", reason="torch.onnx writes the files with onnxscript")
    kind, options = NETWORKS[name]
    run = untrained_run(tmp_path, kind, **options)
    write_onnx(run, tmp_path)
    described = json.loads((tmp_path / "config.json").read_text())["graphs"]
    for graph in graphs_of(run, has_cache=True):
        content = (tmp_path / f"onnx/{graph.name}.onnx").read_bytes()
        assert str(Path(__file__).parents[2]).encode() not in content, "a path of this machine"
        session = onnxruntime.InferenceSession(content)
        assert [each.name for each in session.get_inputs()] == described[graph.name]["inputs"]
        for size in SIZES:
            inputs = inputs_of(graph, *size)
            named = {each: values.numpy() for each, values in zip(graph.examples, inputs, strict=True)}
            found, expected = session.run(None, named), graph.compute(*inputs)
            for each, other in zip(found, expected if len(found) > 1 else [expected], strict=True):
                torch.testing.assert_close(torch.from_numpy(each), other, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["generator", "generator with relative positions", "translator"])
@torch.no_grad()
def test_a_text_has_the_same_logits_token_by_token_from_an_empty_cache(name: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime computes the files")
    kind, options = NETWORKS[name]
    run = untrained_run(tmp_path, kind, **options | ({"causal_convolution": None} if kind == "generator" else {}))
    write_onnx(run, tmp_path)
    graph, whole = (graphs_of(run, has_cache=each)[-1] for each in (True, False))
    session = onnxruntime.InferenceSession(tmp_path / f"onnx/{graph.name}.onnx")
    ids, *others = inputs_of(whole, 2, 12)
    cache = [np.zeros((2, 2, 0, 4), np.float32) for name in graph.examples if name.startswith("past")]
    found = []
    for begin, end in [(0, 5), *((i, i + 1) for i in range(5, 12))]:
        inputs = [ids[:, begin:end].numpy(), *(each.numpy() for each in others), *cache]
        logits, *cache = session.run(None, dict(zip(graph.examples, inputs, strict=True)))
        found.append(torch.from_numpy(logits))
    torch.testing.assert_close(torch.cat(found, dim=1), whole.compute(ids, *others), atol=1e-4, rtol=1e-4)


@pytest.mark.slow
def test_a_program_of_torch_needs_no_firstlight(tmp_path: Path) -> None:
    run = untrained_run(tmp_path, "classifier")
    write_torch_export(run, tmp_path)
    code = (
        "import sys; sys.modules['firstlight'] = None; import torch;"
        "print(torch.export.load('model.pt2').module()(torch.tensor([[5, 4]]), torch.tensor([[1, 1]]))[0, 1].item())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(run.network(torch.tensor([[5, 4]])).item(), abs=1e-6)


def test_onnx_without_its_libraries_is_refused_with_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"this export requires onnx: pip install .*export"):
        write_onnx(untrained_run(tmp_path, "masked"), tmp_path)
    assert not list(tmp_path.iterdir())
