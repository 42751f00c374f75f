"""Catalog of the figures of `explore`, with their requirements and captions. Imports no heavy library.

Each kind of network adds its own figures. The function `NAME(subject)` draws the figure NAME.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from firstlight.choices import nearest
from firstlight.errors import UserError
from firstlight.kind.kind import Drawing, Kind
from firstlight.kind.registry import KINDS, kind_of_saved

DATA, NETWORK, TRAINING = (f"firstlight.lab.explore.{name}" for name in ("data", "network", "training"))
OF_DATA = (
    Drawing(
        "lengths",
        "Histograms of the lengths of the training texts in tokens and in characters (x axes), where the last bar "
        "includes the longest 1%. Orange texts are cut because they are longer than the context; if there are many, "
        "try a larger context_length.",
        "reviews",
        DATA,
    ),
    Drawing(
        "pair_lengths",
        "Histograms of the lengths of the source and target sentences of the training pairs, in tokens (x axes). "
        "Orange pairs do not fit the context: they are an error in training, or are left out by "
        "data.skip_too_long=true.",
        "pairs",
        DATA,
    ),
    Drawing(
        "labels",
        "Number of rows (x axis) with each label (y axis), for each split. Look for rare classes, because accuracy "
        "hides the mistakes on them; data.balance gives them more weight.",
        "labels",
        DATA,
    ),
    Drawing(
        "statistics",
        "Statistics of the complete text: characters, lines, passages and words (post 2). Most distinct words are "
        "rare, so there is little text from which to learn each of them; characters and subwords occur often.",
        "characters",
        DATA,
    ),
    Drawing(
        "characters",
        "Share of each character in the training text, on a logarithmic y axis. The characters at the end are so rare "
        "that their vectors are not reliable.",
        "characters",
        DATA,
    ),
    Drawing(
        "passages",
        "Histogram of the lengths of the passages of the training text, or of its lines, such as names (x axis). If a "
        "passage is longer than the context, the network cannot see its beginning, such as the name of the speaker.",
        "characters",
        DATA,
    ),
    Drawing(
        "vocabulary",
        "Share of the training text (y axis) that is covered by the most frequent words, against their number "
        "(logarithmic x axis). The curve becomes flat, because each further per cent needs more words than the last.",
        "words",
        DATA,
    ),
    Drawing(
        "word_vectors",
        "Words of the training texts in the first two principal components of their co-occurrence counts: how often "
        "each word is next to each other word (a figure of post 3). Near words are used in the same places. Positive "
        "and negative words are often near each other, because only the labels can tell them apart.",
        "reviews",
        DATA,
    ),
)
OF_RUNS = (
    Drawing(
        "attention",
        "Attention weights of every head, with one row of heat maps for each block; queries are on the y axis, keys on "
        "the x axis. A diagonal is a head that attends to neighbouring tokens, a vertical line a head that attends to "
        "one token, and an even colour a head that attends to all tokens equally.",
        "attention one_text",
        NETWORK,
    ),
    Drawing(
        "attention_head",
        "Attention weights of one head, with queries on the y axis and keys on the x axis; --block and --head choose "
        "it, and by default it is the head of the last block with the lowest entropy. Each row shows which tokens one "
        "token attends to.",
        "attention one_text",
        NETWORK,
    ),
    Drawing(
        "attention_recent",
        "Share of the attention on the last four tokens, including the query itself (y axis), for each head (x axis). "
        "A head far above the dashed line attends mostly to near tokens, and a shorter context may be nearly as good.",
        "attention looks_back one_text",
        NETWORK,
    ),
    Drawing(
        "position_similarity",
        "Cosine similarity of all pairs of positions (both axes) for the position encodings that a network of this "
        "size can have. Near positions should be similar; in a learned table, only trained positions are.",
        "attention",
        NETWORK,
    ),
    Drawing(
        "position_waves",
        "The position encoding as a heat map (coordinates against positions), and some coordinates as curves. In a "
        "sinusoid, low coordinates differ between neighbouring positions, and high ones between distant positions.",
        "attention encoded",
        NETWORK,
    ),
    Drawing(
        "embeddings",
        "Vectors of the most frequent tokens in two dimensions, by PCA, which preserves distances, and by t-SNE, which "
        "preserves neighbours. Look for groups of one colour; in t-SNE, the distances between groups have no meaning.",
        "embedding",
        NETWORK,
    ),
    Drawing(
        "norms",
        "Norms of the weights of each layer, and of the gradient of the loss on some validation data (logarithmic x "
        "axes), with the input on top. If the gradients become much smaller towards the input, the first layers learn "
        "slowly.",
        "run",
        NETWORK,
    ),
    Drawing(
        "curves",
        "Metrics (y axes) over the training steps (x axes). A line of 20 values or more is pale, with its running "
        "mean in bold. If the training loss falls while the validation loss rises, the run overfits. Training "
        "values are means over steps with dropout; with callbacks=training_evaluation they are those of the complete "
        "training split without dropout.",
        "run",
        TRAINING,
    ),
    Drawing(
        "comparison",
        "Metrics (y axes) of two runs over the training steps (x axes): dashed lines are training, solid lines are "
        "validation. Without dropout, a run overfits earlier (a figure of post 1).",
        "run compare",
        TRAINING,
    ),
)


def drawings(kinds: Mapping[str, Kind] = KINDS) -> list[Drawing]:
    """Return all figures: those of data, those of each kind of network, and those of every run."""
    of_kinds = (
        replace(each, needs=f"{kind.name} {each.needs}", module=f"{kind.package}.figures")
        for kind in kinds.values()
        for each in kind.figures
    )
    return [*OF_DATA, *of_kinds, *OF_RUNS]


def form_of(data: Mapping[str, Any]) -> str:
    """Return the form of the data that the options of `data` describe: `reviews`, `pairs`, or `characters` for text.

    Each form has its own figures, which do not depend on the kind of network.
    """
    return "reviews" if "text_column" in data else "pairs" if "source_column" in data else "characters"


def traits_of(config: dict[str, Any], *, is_run: bool) -> frozenset[str]:
    """Return the traits of a resolved config, as used by Drawing.needs.

    The traits of a run are: run, the name of its kind, attention, looks_back (causal attention), embedding, encoded
    (positions have an encoding), and one_text (it reads one text or pair at a time, not several answers). The traits of
    its data are: reviews, labels, stars, characters, pairs and words.
    """
    model, data = config["model"], config["data"]
    traits = {form_of(data)}
    if "characters" not in traits or data["preparation"] != "lines":
        traits.add("words")
    if "labels" in data:
        traits.add("labels")
    if data.get("labels") in ("binary", "stars"):
        traits.add("stars")
    if not is_run:
        return frozenset(traits)
    kind = kind_of_saved(model)
    architecture = "own" if model.get("_target_") else model.get("architecture", "transformer")
    traits |= {"run", kind.name}
    if architecture == "transformer":
        traits.add("attention")
        if kind.model.has_causal_attention or model["causal"]:
            traits.add("looks_back")
        if model["positions"] in ("learned", "sinusoidal", "rotary"):
            traits.add("encoded")
    if data.get("choice_columns") is None:
        traits.add("one_text")
    if architecture != "logistic":
        traits.add("embedding")
    return frozenset(traits)


def check_names(names: list[str]) -> None:
    """Raise UserError if a figure does not exist."""
    known = [each.name for each in drawings()]
    for name in names:
        if name not in known:
            meant = nearest(name, known)
            hint = f"did you mean {meant}? Choose" if meant else "choose"
            raise UserError(f"--figures {name}: the figure does not exist; {hint} from {', '.join(known)}")


def choose(names: list[str], traits: frozenset[str], what: str) -> list[Drawing]:
    """Return the figures of the given names, or all figures that fit. Raises UserError for one that does not fit.

    what: name of the run or task, for the error.
    """
    fitting = [each for each in drawings() if traits.issuperset(each.needs.split())]
    known = {each.name: each for each in fitting}
    for name in names:
        if name == "comparison" and "compare" not in traits and "run" in traits:
            raise UserError("--figures comparison requires a second run; name it by --compare")
        if name not in known:
            raise UserError(f"--figures {name} does not apply to {what}; choose from {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else fitting
