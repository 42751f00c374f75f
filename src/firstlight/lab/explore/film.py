"""The film of a training: its attention, embedding and samples at each checkpoint that was kept."""

import textwrap
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from firstlight.figures import plot_training_frame
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.load import load
from firstlight.kind.subject import Subject
from firstlight.lab.explore.interventions import read

MOST_FRAMES, MOST_TOKENS, ANSWERS, SAMPLE_TOKENS = 24, 60, 5, 160
LINES, COLUMNS = 10, 48  # of the sample


def film(subject: Subject) -> dict[int, Drawn]:
    """Return one figure for each kept checkpoint, by its step. Raises NothingToDrawError with fewer than two."""
    kept = [*subject.run.folder.kept_checkpoints.items()]
    if len(kept) < 2:
        raise NothingToDrawError("the run kept no checkpoints; train with callbacks.checkpoint.keep_every=100")
    chosen = [kept[i] for i in np.unique(np.linspace(0, len(kept) - 1, MOST_FRAMES).astype(int))]
    text, notes = subject.chosen_text()
    text = text if subject.text is not None else subject.run.beginning(text)
    runs = {step: load(str(path)) for step, path in chosen}
    last = _vectors(runs[chosen[-1][0]])
    center = last.mean(axis=0)
    axes = np.linalg.svd(last - center, full_matrices=False)[2][:2]
    points = {step: (_vectors(run) - center) @ axes.T for step, run in runs.items()}
    limit = 1.1 * max(float(np.abs(each).max()) for each in points.values())
    names = subject.run.tokens().names[:MOST_TOKENS]
    frames = {}
    for step, run in runs.items():
        weights = subject.of_text(text, run.attention).maps[-1].weights
        title = f"Step {step:,} of {chosen[-1][0]:,}"
        figure = plot_training_frame(weights, points[step], names, sample(run, text), title=title, limit=limit)
        frames[step] = Drawn(figure, notes)
    return frames


def _vectors(run: Any) -> NDArray[np.float64]:
    """Return the vectors of the most frequent tokens: (tokens, dim)."""
    return np.asarray(run.vectors()["embedding"].detach().double().numpy()[run.tokens().ids[:MOST_TOKENS]])


@torch.no_grad()
def sample(run: Any, text: str) -> str:
    """Return what a run writes, or the most probable answers to a text with their probabilities, in several lines."""
    if hasattr(run, "generate_many"):
        count = 1 if run.separator_id is None else LINES  # texts, or short documents such as names
        written = run.generate_many(text.strip()[:1], count, tokens=SAMPLE_TOKENS, seed=0)
        lines = [line for part in "\n".join(written).splitlines() for line in textwrap.wrap(part, COLUMNS)]
    elif hasattr(run, "translate"):
        lines = textwrap.wrap(f"{text} → {run.translate(text)}", COLUMNS)
    else:
        reading = read(run, text)
        shares, answers = reading.logits(run.network(*reading.inputs))[0].softmax(dim=0).sort(descending=True)
        best = zip(shares[:ANSWERS].tolist(), answers.tolist(), strict=False)
        lines = [*textwrap.wrap(text, COLUMNS), "", *(f"{share:.3f}  {reading.name(answer)}" for share, answer in best)]
    return "\n".join(lines[:LINES])
