"""Every figure of `explore.py`: its name, what it needs and what to look for. Imports nothing heavy.

A kind of network brings figures of its own. The figure NAME is drawn by a function `NAME(subject)`.
"""

from difflib import get_close_matches
from typing import Any

from firstlight.errors import UserError
from firstlight.kinds.data_nodes import form_of
from firstlight.kinds.kind import Drawing, drawing
from firstlight.kinds.registry import KINDS, kind_of_saved

DATA, NETWORK, TRAINING = (f"firstlight.explore.{name}" for name in ("data", "network", "training"))
OF_DATA = (
    drawing(
        "lengths",
        DATA,
        "reviews",
        "How long the training texts are, in words as the tokenizer finds them and in characters. Orange is what the "
        "context cuts: with much of it, try a larger context_length. The longest hundredth stands in the last bar.",
    ),
    drawing(
        "pair_lengths",
        DATA,
        "pairs",
        "How many tokens the sentences of the training pairs have, on either side. What does not fit the context ends "
        "a training with an error, or is left out (data.skip_too_long).",
    ),
    drawing(
        "labels",
        DATA,
        "reviews",
        "How many rows of each split have each label. Look for classes that are rare: accuracy hides what happens to "
        "them, and data.balance is for them.",
    ),
    drawing(
        "characters",
        DATA,
        "characters",
        "How often each character of the training text is met; each step up the scale is ten times as often. The rare "
        "ones at the end have been seen too little for their vectors to mean much.",
    ),
    drawing(
        "passages",
        DATA,
        "characters",
        "How long the passages of the training text are (of names, the names). A context shorter than a passage never "
        "sees who speaks.",
    ),
    drawing(
        "vocabulary",
        DATA,
        "words",
        "The share of the training text that is known to a vocabulary of the most frequent words, against its size. "
        "Language has a long tail: each further per cent costs more words than the one before.",
    ),
)
OF_RUNS = (
    drawing(
        "attention",
        NETWORK,
        "attention",
        "What every head of every block looks at: a row for each token that looks, a column for each that is looked "
        "at. Diagonals look at neighbours, columns at one token; an even blue is a head that looks at everything.",
    ),
    drawing(
        "attention_head",
        NETWORK,
        "attention",
        "One head with its tokens (--block and --head choose it; else the most decided one of the last block). Read a "
        "row: what does this token look at?",
    ),
    drawing(
        "attention_recent",
        NETWORK,
        "attention looks_back",
        "The share of each head's attention that goes to the last four tokens, itself among them. Far above the dashed "
        "line, a head looks at the nearest alone, and a shorter context does nearly as well.",
    ),
    drawing(
        "position_similarity",
        NETWORK,
        "attention",
        "The cosine similarity between positions, in the encodings that a network of these sizes may have. Near "
        "positions should be alike; a learned table shows it only as far as it was trained.",
    ),
    drawing(
        "position_waves",
        NETWORK,
        "attention encoded",
        "The position encoding as a heat map, and some coordinates as waves. The sinusoid's low coordinates tell "
        "neighbours apart, its high ones tell near from far.",
    ),
    drawing(
        "embeddings",
        NETWORK,
        "embedding",
        "The vectors of the most frequent tokens in a plane: by PCA, which keeps distances as well as a plane can, and "
        "by t-SNE, which keeps neighbours. Look for groups of one colour. In t-SNE, distances between groups mean "
        "nothing.",
    ),
    drawing(
        "norms",
        NETWORK,
        "run",
        "The norms of every layer's weights, and of the gradient of the loss on some validation data. A gradient that "
        "shrinks from the output up to the input has trouble to get through.",
    ),
    drawing(
        "curves",
        TRAINING,
        "run",
        "The training's curves; pale: every measurement, bold: their running mean. Training goes on falling while "
        "validation rises: the run learns its data by heart. Training is measured with dropout, validation without.",
    ),
    drawing(
        "comparison",
        TRAINING,
        "run compare",
        "Two runs side by side: dashed is training, solid is validation. Without dropout training gets ahead of "
        "validation sooner (post 1's figure).",
    ),
)
DRAWINGS = (*OF_DATA, *(each for kind in KINDS.values() for each in kind.drawings), *OF_RUNS)
NAMES = tuple(each.name for each in DRAWINGS)


def traits_of(config: dict[str, Any], *, is_run: bool) -> frozenset[str]:
    """What a resolved config is about, in the words of Drawing.needs.

    run, the name of its kind; attention, looks_back, embedding, encoded (positions are); reviews, stars,
    characters, pairs, words.
    """
    model, data = config["model"], config["data"]
    traits = {form_of(data)}
    if "characters" not in traits or data["preparation"] != "lines":
        traits.add("words")
    if data.get("labels") in ("binary", "stars"):
        traits.add("stars")
    if not is_run:
        return frozenset(traits)
    kind = kind_of_saved(model)
    architecture = "own" if model.get("_target_") else model.get("architecture", "transformer")
    traits |= {"run", kind.name}
    if architecture == "transformer":
        traits.add("attention")
        if kind.always_looks_back or model["causal"]:
            traits.add("looks_back")
        if model["positions"] in ("learned", "sinusoidal", "rotary"):
            traits.add("encoded")
    if architecture != "logistic":
        traits.add("embedding")
    return frozenset(traits)


def check_names(names: list[str]) -> None:
    """Raise UserError for a figure that does not exist."""
    for name in names:
        if name not in NAMES:
            near = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UserError(f"--figures {name}: there is no such figure; {hint}There are {', '.join(NAMES)}")


def choose(names: list[str], traits: frozenset[str], what: str) -> list[Drawing]:
    """The figures that were asked for, or all that fit. Raises UserError for one that does not.

    what: the run or task, for the error.
    """
    fitting = [each for each in DRAWINGS if each.needs <= traits]
    known = {each.name: each for each in fitting}
    for name in names:
        if name == "comparison" and "compare" not in traits and "run" in traits:
            raise UserError("--figures comparison needs a second run; name it by --compare")
        if name not in known:
            raise UserError(f"--figures {name} does not fit {what}; these do: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else fitting
