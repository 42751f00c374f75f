"""Every figure of `explore.py`: its name, what it needs and what to look for. Imports nothing heavy.

The figure NAME is drawn by the function `NAME(subject)` of the module that the catalog gives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from firstlight.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from firstlight.runs.exploration.subject import Subject


class NothingToDrawError(UserError):
    """What a figure is about is not there, such as the data of a run that was trained elsewhere."""


class Drawn(NamedTuple):
    """A figure, and what there is to say of this one: that a text was cut, or chosen."""

    figure: "Figure"
    notes: list[str] = []  # noqa: RUF012  (never changed)


@dataclass(frozen=True)
class Drawing:
    """A figure as typed after --figures. needs: the traits that a run or task must have; see `traits_of`."""

    name: str
    module: str
    needs: frozenset[str]
    caption: str

    def draw(self, subject: "Subject") -> Drawn:
        """Compute and draw it. Raises NothingToDrawError."""
        function: Callable[[Subject], Drawn] = getattr(
            import_module(f"firstlight.runs.exploration.{self.module}"), self.name
        )
        return function(subject)


def _drawing(name: str, module: str, needs: str, caption: str) -> Drawing:
    return Drawing(name, module, frozenset(needs.split()), caption)


DRAWINGS = (
    _drawing(
        "lengths",
        "data",
        "reviews",
        "How long the training texts are, in words as the tokenizer finds them and in characters. Orange is what the "
        "context cuts: with much of it, try a larger context_length. The longest hundredth stands in the last bar.",
    ),
    _drawing(
        "pair_lengths",
        "data",
        "pairs",
        "How many tokens the sentences of the training pairs have, on either side. What does not fit the context ends "
        "a training with an error, or is left out (data.skip_too_long).",
    ),
    _drawing(
        "labels",
        "data",
        "reviews",
        "How many rows of each split have each label. Look for classes that are rare: accuracy hides what happens to "
        "them, and data.balance is for them.",
    ),
    _drawing(
        "characters",
        "data",
        "characters",
        "How often each character of the training text is met; each step up the scale is ten times as often. The rare "
        "ones at the end have been seen too little for their vectors to mean much.",
    ),
    _drawing(
        "passages",
        "data",
        "characters",
        "How long the passages of the training text are (of names, the names). A context shorter than a passage never "
        "sees who speaks.",
    ),
    _drawing(
        "vocabulary",
        "data",
        "words",
        "The share of the training text that is known to a vocabulary of the most frequent words, against its size. "
        "Language has a long tail: each further per cent costs more words than the one before.",
    ),
    _drawing(
        "confusion_matrix",
        "classifier",
        "classifier",
        "Which class is taken for which, on the validation split. Look beside the diagonal: stars are confused with "
        "their neighbours.",
    ),
    _drawing(
        "probability_per_star",
        "classifier",
        "classifier stars",
        "How the probability of “positive” is distributed for each true number of stars, on the validation split. "
        "Reviews with 3 stars are shown to a binary model too, which never trained on them: they should lie between.",
    ),
    _drawing(
        "predicted_per_class",
        "classifier",
        "classifier",
        "What is predicted for each true class, on the validation split. Wide outlined bars are good; the middle stars "
        "are the hard ones.",
    ),
    _drawing(
        "calibration",
        "classifier",
        "classifier",
        "Whether the run is as sure as it is right, on the validation split. Below the dashed line it is surer than it "
        "should be. The expected calibration error is the mean length of the orange distances, weighted by the bars.",
    ),
    _drawing(
        "mistakes",
        "classifier",
        "classifier",
        "The validation texts of which the run was surest and wrong. Some labels are wrong, some texts are ironic, "
        "some were cut before the verdict: read them before you change the model.",
    ),
    _drawing(
        "attributions",
        "classifier",
        "classifier",
        "What each word adds to the log-odds of the predicted class, compared with an unknown word in its place: blue "
        "speaks for it, red against it. Look for words that should not matter.",
    ),
    _drawing(
        "next_token",
        "generator",
        "generator",
        "What the run expects after the prompt. One long bar: it is sure; many of like length: it knows that anything "
        "may follow.",
    ),
    _drawing(
        "loss_per_position",
        "generator",
        "generator",
        "The loss on the validation text by how many tokens were seen. Where the curve is flat, more context brings "
        "nothing more.",
    ),
    _drawing(
        "surprise",
        "generator",
        "generator",
        "The darker a character, the less the run expected it. Words begin dark and end light; names are dark the "
        "first time and lighter the next, if the context still holds them.",
    ),
    _drawing(
        "attention",
        "network",
        "attention",
        "What every head of every block looks at: a row for each token that looks, a column for each that is looked "
        "at. Diagonals look at neighbours, columns at one token; an even blue is a head that looks at everything.",
    ),
    _drawing(
        "attention_head",
        "network",
        "attention",
        "One head with its tokens (--block and --head choose it; else the most decided one of the last block). Read a "
        "row: what does this token look at?",
    ),
    _drawing(
        "cross_attention",
        "network",
        "translator",
        "What the last block of the decoder looks at in the source while it writes each token of its own translation. "
        "A good translator follows the order of the source where both languages have the same.",
    ),
    _drawing(
        "attention_recent",
        "network",
        "attention looks_back",
        "The share of each head's attention that goes to the last four tokens, itself among them. Far above the dashed "
        "line, a head looks at the nearest alone, and a shorter context does nearly as well.",
    ),
    _drawing(
        "position_similarity",
        "network",
        "attention",
        "The cosine similarity between positions, in the encodings that a network of these sizes may have. Near "
        "positions should be alike; a learned table shows it only as far as it was trained.",
    ),
    _drawing(
        "position_waves",
        "network",
        "attention encoded",
        "The position encoding as a heat map, and some coordinates as waves. The sinusoid's low coordinates tell "
        "neighbours apart, its high ones tell near from far.",
    ),
    _drawing(
        "embeddings",
        "network",
        "embedding",
        "The vectors of the most frequent tokens in a plane: by PCA, which keeps distances as well as a plane can, and "
        "by t-SNE, which keeps neighbours. Look for groups of one colour. In t-SNE, distances between groups mean "
        "nothing.",
    ),
    _drawing(
        "norms",
        "network",
        "run",
        "The norms of every layer's weights, and of the gradient of the loss on some validation data. A gradient that "
        "shrinks from the output up to the input has trouble to get through.",
    ),
    _drawing(
        "curves",
        "training",
        "run",
        "The training's curves; pale: every measurement, bold: their running mean. Training goes on falling while "
        "validation rises: the run learns its data by heart. Training is measured with dropout, validation without.",
    ),
    _drawing(
        "comparison",
        "training",
        "run compare",
        "Two runs side by side: dashed is training, solid is validation. Without dropout training gets ahead of "
        "validation sooner (post 1's figure).",
    ),
)
NAMES = tuple(drawing.name for drawing in DRAWINGS)


def traits_of(config: dict[str, Any], *, is_run: bool) -> frozenset[str]:
    """What a resolved config is about, in the words of Drawing.needs.

    run, classifier, generator, translator; attention, looks_back, embedding, encoded (positions are); reviews, stars,
    characters, pairs, words.
    """
    model, data = config["model"], config["data"]
    traits = {"reviews"} if "labels" in data else {"pairs"} if "source_column" in data else {"characters"}
    if "characters" not in traits or data["preparation"] != "lines":
        traits.add("words")
    if data.get("labels") in ("binary", "stars"):
        traits.add("stars")
    if not is_run:
        return frozenset(traits)
    kind = "classifier" if "pooling" in model else "translator" if "num_decoder_layers" in model else "generator"
    architecture = "own" if model.get("_target_") else model.get("architecture", "transformer")
    traits |= {"run", kind}
    if architecture == "transformer":
        traits.add("attention")
        if kind == "translator" or model["causal"]:
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
    fitting = [drawing for drawing in DRAWINGS if drawing.needs <= traits]
    known = {drawing.name: drawing for drawing in fitting}
    for name in names:
        if name == "comparison" and "compare" not in traits and "run" in traits:
            raise UserError("--figures comparison needs a second run; name it by --compare")
        if name not in known:
            raise UserError(f"--figures {name} does not fit {what}; these do: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else fitting
