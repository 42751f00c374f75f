"""The computation of a trained network as a file: of torch.export, or of ONNX. Neither needs firstlight to run it."""

import io
import logging
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from firstlight.errors import UserError, reason
from firstlight.export.folder import OF_CONFIG, card, library, record_of, write_json, write_tokenizer
from firstlight.kind.run import Run
from firstlight.lit.checkpoint import EXPORTED_CONFIG, EXPORTED_SOURCE_TOKENIZER
from firstlight.networks.attention import MultiHeadAttention, watching

LENGTH = 7  # tokens of the example with which a network is traced, or fewer if the context is shorter
ANY_BATCH = torch.export.Dim("batch", min=1)


class Graph(NamedTuple):
    """A computation to export: the name of its file, a function of tensors, and its examples by the inputs' names.

    The first axis of each input is the batch, and the axis before the vectors of a memory the length. modules: those
    that the function uses.
    """

    name: str
    compute: Callable[..., Tensor]
    examples: dict[str, Tensor]
    output: str
    modules: tuple[nn.Module, ...]


class Traced(nn.Module):
    """A module that calls a function. It skips the hooks of the network, which check values."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.compute, self.parts = graph.compute, nn.ModuleList(graph.modules)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the output of the function."""
        return self.compute(*inputs)


def write_torch_export(run: Run, folder: Path) -> list[str]:
    """Write a file of torch.export for each part of the network, and the vocabulary. Return notes for the user."""

    def write(path: Path, graph: Graph) -> None:
        content = io.BytesIO()  # a file would turn a full disk into another error
        torch.export.save(exported(graph, run), content)
        path.with_suffix(".pt2").write_bytes(content.getvalue())

    return _write(run, folder, write)


def write_onnx(run: Run, folder: Path) -> list[str]:
    """Write a file of ONNX for each part of the network, and the vocabulary. Return notes for the user."""
    library("onnx")
    library("onnxscript")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns that torchvision is missing

    def write(path: Path, graph: Graph) -> None:
        with ExitStack() as opened:
            for part in graph.modules:
                for attention in part.modules():
                    if isinstance(attention, MultiHeadAttention) and attention.relative is not None:
                        # ONNX has no fused attention with a bias of this layout; watched, it is computed in steps
                        opened.enter_context(watching(attention, lambda _, value: value))
            program = exported(graph, run)
            names: Any = {"input_names": [*graph.examples], "output_names": [graph.output]}
            try:
                found: Any = torch.onnx.export(program, dynamo=True, verbose=False, **names)
            except Exception as error:
                raise UserError(f"{run.path}: ONNX does not have this network ({reason(error)[:300]})") from error
        for node in found.model.graph:
            node.metadata_props.clear()  # the traces have paths of this machine, and are half of the file
        path.with_suffix(".onnx").write_bytes(found.model_proto.SerializeToString())

    return _write(run, folder, write)


def _write(run: Run, folder: Path, write: Callable[[Path, Graph], None]) -> list[str]:
    described = {}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporters warn of their own plans
        for graph in graphs_of(run):
            write(folder / graph.name, graph)
            described[graph.name] = {"inputs": [*graph.examples], "outputs": [graph.output]}
    facts: dict[str, Any] = {key: run.metadata[key] for key in ("class_names", "separator_id") if key in run.metadata}
    options = {key: run.config[key] for key in OF_CONFIG if key != "data"}
    write_json(
        folder / EXPORTED_CONFIG, {"kind": run.kind, "graphs": described, **facts, **options, "record": record_of(run)}
    )
    (folder / "README.md").write_text(card(run, "firstlight"), encoding="utf-8")
    if source := run.metadata.get("source_tokenizer"):
        write_tokenizer(run, folder, source, name=EXPORTED_SOURCE_TOKENIZER)
    return write_tokenizer(run, folder, mask=run.kind == "masked")


def graphs_of(run: Run) -> list[Graph]:
    """Return the computations of a run: one, or for a translator those of the encoder and of the decoder."""
    network, length = run.network, min(LENGTH, run.config["context_length"])
    ids = torch.ones(2, length, dtype=torch.int64)
    mask = torch.ones(2, length, dtype=torch.bool)
    if run.kind == "translator":
        memory = network.encode(ids, mask)
        sources = {"memory": memory, "source_mask": mask}
        return [
            Graph("encoder", network.encode, {"source_ids": ids, "source_mask": mask}, "memory", (network,)),
            Graph("decoder", network.decode, {"token_ids": ids, **sources}, "logits", (network,)),
        ]
    if run.kind == "generator":
        return [Graph("model", network.forward, {"token_ids": ids}, "logits", (network,))]
    examples = {"token_ids": ids, "padding_mask": mask}
    if run.metadata.get("target_encoding"):
        raise UserError(f"{run.path}: data.target_encoding=true cannot be exported as a graph; use --to safetensors")
    if num_choices := getattr(getattr(run, "choices", None), "num_choices", 0):
        examples = {name: each[:, None].expand(-1, num_choices, -1).clone() for name, each in examples.items()}
    return [Graph("model", network.forward, examples, "logits", (network,))]


def exported(graph: Graph, run: Run) -> Any:
    """Return the program of a computation, for any number of texts and any length up to the context.

    Raises UserError for a network that torch.export cannot trace.
    """
    longest = run.config["context_length"]
    lengths = {side: torch.export.Dim(f"{side}_length", min=1, max=longest) for side in ("token", "source")}
    shapes = []
    for name, example in graph.examples.items():
        side = "token" if name in ("token_ids", "padding_mask") else "source"
        axis = 1 if name == "memory" else example.ndim - 1
        shapes.append({0: ANY_BATCH, axis: lengths[side]})
    try:
        program = torch.export.export(Traced(graph), tuple(graph.examples.values()), dynamic_shapes=(tuple(shapes),))
    except Exception as error:
        raise UserError(f"{run.path}: torch.export cannot trace the network ({reason(error)[:300]})") from error
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            node.meta.pop("stack_trace", None)  # it has paths of this machine
    return program
