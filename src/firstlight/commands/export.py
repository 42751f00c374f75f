"""`export`: a trained run as a folder that other software reads."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from firstlight.command_options import RunOptions, parse
from firstlight.errors import UserError, is_disk_full
from firstlight.files.atomic import new_folder
from firstlight.kind.load import opened
from firstlight.terminal_text import note, say

WRITERS = {
    "safetensors": "folder:write_safetensors",
    "huggingface": "folder:write_huggingface",
    "torch-export": "graphs:write_torch_export",
    "onnx": "graphs:write_onnx",
}


@dataclass(kw_only=True)
class ExportOptions(RunOptions):
    """Write a trained run as a folder that other software reads.

    safetensors: the weights, the options and the vocabulary, which firstlight.load reads, too. huggingface: the network
    as a model of transformers, if its settings allow it, and the tokenizer. torch-export, onnx: the computation of the
    network, which PyTorch or onnxruntime can run without firstlight, and the tokenizer.

    Args:
        to: The format.
        output: The folder to write; it must not exist.
    """

    to: Literal["safetensors", "huggingface", "torch-export", "onnx"]
    output: Path


def main() -> None:
    """Parse the command line and export."""
    options = parse(ExportOptions, "export")
    if options.output.exists():
        raise UserError(f"--output {options.output} exists already; name a new folder")
    if not options.output.absolute().parent.is_dir():
        raise UserError(f"--output {options.output}: {options.output.parent} is not a folder; create it first")
    run = opened("export", options)
    module, _, name = WRITERS[options.to].partition(":")
    try:
        with new_folder(options.output) as folder:
            for each in getattr(import_module(f"firstlight.export.{module}"), name)(run, folder):
                note(each)
    except OSError as error:
        if not is_disk_full(error):
            raise
        remedy = "free some space, or name a place on another disk"
        raise UserError(f"--output {options.output}: {error}; {remedy}") from error
    say(f"wrote {options.output}")
