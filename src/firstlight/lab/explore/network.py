"""Figures of the parts of a network: attention, positions and embeddings."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from firstlight import figures
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.run import Run
from firstlight.kind.subject import Subject
from firstlight.networks.config import WAVE_LENGTH_BASE
from firstlight.networks.positions import LearnedPositions, RotaryPositions, sinusoid

NEIGHBORS = 30  # t-SNE's perplexity


def attention(subject: Subject) -> Drawn:
    """Return the figure of the attention weights of all heads of all blocks; of a single block with the tokens."""
    _, notes = subject.chosen_text()
    found = subject.attention
    if len(found.maps) == 1:
        return attention_heads(subject)
    maps = {part.name: part.weights for part in found.maps}
    figure = figures.plot_attention_grid(maps, title=subject.run.attention_title)
    return Drawn(figure, [*notes, *found.notes])


def attention_heads(subject: Subject) -> Drawn:
    """Return the figure of the attention weights of the heads of the last block, with the tokens."""
    _, notes = subject.chosen_text()
    found = subject.attention
    part = found.maps[-1]
    figure = figures.plot_attention_heads(part.weights, part.queries, part.keys, f"Attention weights of {part.name}")
    return Drawn(figure, [*notes, *found.notes])


def position_similarity(subject: Subject) -> Drawn:
    """Return the figure of the similarity of learned, sinusoidal and rotary positions."""
    model = subject.config["model"]
    own, length, dim = model["positions"], subject.context_length, int(model["dim"])
    head_dim = model["head_dim"] or dim // model["num_heads"]
    mine = {own: " (this run)"}
    notes = []
    panels = {f"learned (this run){side}": table for side, table in _learned(subject.run).items()}
    places = model["first_position"] + model["position_scale"] * torch.arange(length)
    panels[f"sinusoidal{mine.get('sinusoidal', '')}"] = sinusoid(places, dim).numpy()
    if head_dim % 2 == 0:
        rotary = RotaryPositions(length, 1, head_dim, model["position_scale"], float(model["rotary_base"]))
        turned = rotary(torch.ones(1, length, head_dim))
        panels[f"rotary{mine.get('rotary', '')}"] = turned[0].numpy()
        notes.append("rotary: a vector of ones is rotated to each position, and the rotated vectors are compared")
    return Drawn(figures.plot_position_similarity(panels), notes)


def position_waves(subject: Subject) -> Drawn:
    """Return the figure of the run's position encoding: its table, or the sinusoid of its rotations."""
    model = subject.config["model"]
    learned = _learned(subject.run)
    if learned:
        side, table = next(iter(learned.items()))
        return Drawn(figures.plot_position_waves(table, title=f"Learned positions{side}"))
    is_rotary = model["positions"] == "rotary"
    width = (model["head_dim"] or model["dim"] // model["num_heads"]) if is_rotary else model["dim"]
    first = 0 if is_rotary else model["first_position"]
    places = first + model["position_scale"] * torch.arange(subject.context_length)
    title = "Sines and cosines of the rotary positions" if is_rotary else "Sinusoidal position encoding"
    base = float(model["rotary_base"]) if is_rotary else WAVE_LENGTH_BASE
    return Drawn(figures.plot_position_waves(sinusoid(places, int(width), base).numpy(), title=title))


def embeddings(subject: Subject) -> Drawn:
    """Return the figure of the embedding by PCA and t-SNE, and of the output head if it has its own weights."""
    from sklearn.decomposition import PCA  # slow to import
    from sklearn.manifold import TSNE

    chosen, names, groups, group_names, notes = subject.run.tokens()
    if len(chosen) < 4:
        raise NothingToDrawError(f"the vocabulary has {len(chosen)} tokens, and the figure requires at least 4")
    if subject.config["model"].get("tie_embeddings"):
        notes = [*notes, "the embedding and the output head have the same weights (model.tie_embeddings=true)"]
    panels: dict[str, NDArray[np.float64]] = {}
    axis_labels: dict[str, tuple[str, str]] = {}
    for name, weight in subject.run.vectors().items():
        vectors = weight.detach().numpy()[chosen]
        components = PCA(2)
        panels[f"{name}, PCA"] = components.fit_transform(vectors)
        first, second = components.explained_variance_ratio_
        axis_labels[f"{name}, PCA"] = (f"1st component ({first:.0%} of variance)", f"2nd component ({second:.0%})")
        neighbors = TSNE(2, perplexity=min(NEIGHBORS, (len(vectors) - 1) / 3), init="pca", random_state=0)
        panels[f"{name}, t-SNE"] = neighbors.fit_transform(vectors)
        axis_labels[f"{name}, t-SNE"] = ("t-SNE, first axis (no unit)", "t-SNE, second axis (no unit)")
    num_tokens = subject.run.network.embedding.num_embeddings
    title = f"Vectors of {len(chosen)} of {num_tokens:,} tokens, {vectors.shape[1]} dimensions"
    figure = figures.plot_embeddings(panels, names, groups, group_names, axis_labels=axis_labels, title=title)
    return Drawn(figure, notes)


def _learned(run: Run) -> dict[str, NDArray[np.float32]]:
    """Return the learned tables of a run, (positions, dim) each, by side if there are two."""
    network: Any = run.network
    sides = {"source_positions": ", source", "positions": ", target"}
    found = {
        sides[name]: getattr(network, name).table.weight.detach().numpy()
        for name in sides
        if isinstance(getattr(network, name, None), LearnedPositions)
    }
    return found if len(found) > 1 else dict(zip([""], found.values(), strict=False))
