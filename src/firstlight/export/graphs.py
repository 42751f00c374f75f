"""The computation of a trained network as a file: of torch.export, or of ONNX. Neither needs firstlight to run it."""

import io
import logging
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from firstlight.errors import UserError, reason
from firstlight.export.folder import OF_CONFIG, card, library, record_of, write_generation, write_json, write_tokenizers
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.networks.attention import MultiHeadAttention, watching
from firstlight.networks.cache import KeyValueCache, LayerCache
from firstlight.runs.folder import EXPORTED_CONFIG
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID
from firstlight.text.tokenizers import PAD_ID

LENGTH = 7  # tokens of the example with which a network is traced, or fewer if the context is shorter
PAST = 2  # earlier tokens in the example
ANY_BATCH = torch.export.Dim("batch_size", min=1)  # transformers.js reads this name
CACHE, NEW_CACHE = "past_key_values", "present"  # the beginnings of names of inputs and outputs


class Graph(NamedTuple):
    """A computation to export: the name of its file, a function of tensors, and its examples by the inputs' names.

    The first axis of each input is the batch, and the axis before the vectors of a memory or a cache the length.
    """

    name: str
    compute: Callable[..., Any]
    examples: dict[str, Tensor]
    outputs: list[str]
    network: Any


class Traced(nn.Module):
    """A module that calls a function. It skips the hooks of the network, which check values."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.compute, self.network = graph.compute, graph.network

    def forward(self, *inputs: Tensor) -> Any:
        """Return the output of the function, or the outputs."""
        return self.compute(*inputs)


class GrowingLayer(LayerCache):
    """A cache of one block that is not changed in place. keys, values: (batch, heads, length, head_dim)."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__(capacity=0)
        self.pairs, self.length = torch.cat((keys, values), dim=1), keys.shape[2]

    def append(self, new: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all tokens."""
        self.pairs = torch.cat((self.pairs, new), dim=2)
        keys, values = self.pairs.chunk(2, dim=1)
        return keys, values


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
            for attention in graph.network.modules():
                if isinstance(attention, MultiHeadAttention) and attention.relative is not None:
                    # ONNX has no fused attention with a bias of this layout; watched, it is computed in steps
                    opened.enter_context(watching(attention, lambda _, value: value))
            program = exported(graph, run)
            names: Any = {"input_names": [*graph.examples], "output_names": graph.outputs}
            try:
                found: Any = torch.onnx.export(program, dynamo=True, verbose=False, **names)
            except Exception as error:
                raise UserError(f"{run.path}: ONNX does not have this network ({reason(error)[:300]})") from error
        for node in found.model.graph:
            node.metadata_props.clear()  # the traces have paths of this machine, and are half of the file
        path = path.parent / "onnx" / f"{path.name}.onnx"  # where transformers.js looks for it
        path.parent.mkdir(exist_ok=True)
        proto = found.model_proto
        batch = proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param  # the name of ANY_BATCH is lost
        for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if batch and dim.dim_param == batch:
                    dim.dim_param = ANY_BATCH.__name__
        path.write_bytes(proto.SerializeToString())

    return _write(run, folder, write, has_cache=True)


def _write(run: Run, folder: Path, write: Callable[[Path, Graph], None], *, has_cache: bool = False) -> list[str]:
    described = {}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporters warn of their own plans
        for graph in graphs_of(run, has_cache=has_cache):
            write(folder / graph.name, graph)
            described[graph.name] = {"inputs": [*graph.examples], "outputs": graph.outputs}
    facts: dict[str, Any] = {key: run.metadata[key] for key in ("class_names", "separator_id") if key in run.metadata}
    facts |= {key: run.config[key] for key in OF_CONFIG if key != "data"} | {"record": record_of(run)}
    options = of_transformers_js(run)
    write_json(folder / EXPORTED_CONFIG, {"kind": run.kind, "graphs": described, **options, **facts})
    write_generation(folder, options, run, num_beams=1)
    (folder / "README.md").write_text(card(run, "firstlight"), encoding="utf-8")
    return write_tokenizers(run, folder)


def of_transformers_js(run: Run) -> dict[str, Any]:
    """Return the options that transformers.js reads: a type of model with the same inputs and outputs, and sizes."""
    config = KINDS[run.kind].get("module").config_type(**run.config["model"])
    found: dict[str, Any] = {"transformers.js_config": {"dtype": "fp32"}}
    names = run.metadata.get("class_names", ())
    if run.kind == "generator":
        ids = {f"{each}_token_id": run.metadata["separator_id"] for each in ("bos", "eos")}
        return found | {"model_type": "gpt2", "n_layer": config.num_layers * config.num_loops} | ids
    if run.kind == "translator":
        ids = {"pad_token_id": PAD_ID, "decoder_start_token_id": BEGIN_ID, "eos_token_id": END_ID}
        heads = {f"{side}_attention_heads": config.num_heads for side in ("encoder", "decoder")}
        sizes = {"decoder_layers": config.resolved_num_decoder_layers, **heads}
        return found | {"model_type": "marian", "is_encoder_decoder": True, **sizes, **ids}
    return found | {"model_type": "bert", "pad_token_id": PAD_ID, "id2label": dict(enumerate(names))}


def graphs_of(run: Run, *, has_cache: bool = False) -> list[Graph]:
    """Return the computations of a run: one, or for a translator those of the encoder and of the decoder.

    has_cache: whether those that write token by token have the keys and values of earlier tokens as inputs.
    """
    network, longest = run.network, run.config["context_length"]
    has_cache = has_cache and longest >= 2 * PAST and not run.config["model"].get("_target_")
    ids = torch.ones(2, max(min(LENGTH, longest - PAST), 1), dtype=torch.int64)
    examples = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if run.kind == "translator":

        def encode(ids: Tensor, mask: Tensor) -> Tensor:
            return network.encode(ids, mask.bool())

        def decode(ids: Tensor, memory: Tensor, mask: Tensor, cache: Any = None) -> Tensor:
            return network.decode(ids, memory, mask.bool(), None, cache)

        memory = {"encoder_hidden_states": encode(ids, ids), "encoder_attention_mask": examples["attention_mask"]}
        decoder = Graph("decoder_model_merged", decode, {"input_ids": ids, **memory}, ["logits"], network)
        encoder = Graph("encoder_model", encode, examples, ["last_hidden_state"], network)
        return [encoder, _with_cache(decoder, "decoder.") if has_cache else decoder]
    if run.kind == "generator":
        generator = Graph("model", network.forward, {"input_ids": ids}, ["logits"], network)
        has_cache = has_cache and network.is_causal and not run.config["model"].get("causal_convolution")
        return [_with_cache(generator) if has_cache else generator]
    if run.metadata.get("target_encoding"):
        raise UserError(f"{run.path}: data.target_encoding=true cannot be exported as a graph; use --to safetensors")
    if num_choices := getattr(getattr(run, "choices", None), "num_choices", 0):
        examples = {name: each[:, None].expand(-1, num_choices, -1).clone() for name, each in examples.items()}

    def score(ids: Tensor, mask: Tensor) -> Tensor:
        logits = network.forward(ids, mask.bool())  # without its hooks, which check values
        return torch.cat((torch.zeros_like(logits), logits), dim=-1) if logits.shape[-1] == 1 else logits

    return [Graph("model", score, examples, ["logits"], network)]


def _with_cache(graph: Graph, part: str = "") -> Graph:
    """Return a computation that reads and returns the keys and values of each block. part: of their names."""
    blocks = graph.network.new_cache().layers
    attention = next(each for each in reversed([*graph.network.modules()]) if isinstance(each, MultiHeadAttention))
    empty = torch.zeros(2, attention.num_key_value_heads, PAST, attention.head_dim)
    names = [f"{number}.{part}{kind}" for number in range(len(blocks)) for kind in ("key", "value")]

    def compute(*inputs: Tensor) -> tuple[Tensor, ...]:
        cache, past = KeyValueCache(0, 0), inputs[-len(names) :]
        layers = [GrowingLayer(*past[i : i + 2]) for i in range(0, len(past), 2)]
        cache.layers = [*layers]
        logits = graph.compute(*inputs[: -len(names)], cache)
        return logits, *(each for layer in layers for each in layer.pairs.chunk(2, dim=1))

    examples = graph.examples | {f"{CACHE}.{name}": empty.clone() for name in names}  # each another input
    return graph._replace(
        compute=compute, examples=examples, outputs=[*graph.outputs, *(f"{NEW_CACHE}.{name}" for name in names)]
    )


def exported(graph: Graph, run: Run) -> Any:
    """Return the program of a computation, for any number of texts and any length up to the context.

    Raises UserError for a network that torch.export cannot trace.
    """
    longest, has_cache = run.config["context_length"], len(graph.outputs) > 1
    dim = torch.export.Dim
    past = dim("past_length", min=1, max=longest - PAST)  # ONNX reads an empty past, too
    lengths = {side: dim(f"{side}_length", min=1, max=longest) for side in ("token", "source")}
    if has_cache:
        lengths["token"] = dim("token_length", min=2, max=longest - PAST)
    shapes = []
    for name, example in graph.examples.items():
        axis = example.ndim - 1 if example.dtype is torch.int64 else example.ndim - 2
        side = "source" if name.startswith("encoder_") else "token"
        shapes.append({0: ANY_BATCH, axis: past if name.startswith(CACHE) else lengths[side]})
    try:
        if has_cache:
            graph.network.context_length = sys.maxsize  # a check of the sum of two lengths cannot be traced
        program = torch.export.export(Traced(graph), tuple(graph.examples.values()), dynamic_shapes=(tuple(shapes),))
    except Exception as error:
        raise UserError(f"{run.path}: torch.export cannot trace the network ({reason(error)[:300]})") from error
    finally:
        graph.network.context_length = longest
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            node.meta.pop("stack_trace", None)  # it has paths of this machine
    return program
