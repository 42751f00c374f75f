"""Promises that all figures keep: unusual inputs give readable figures, and wrong inputs are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures_support import check_readable
from firstlight import figures
from firstlight.figures import Curve, style

RNG = np.random.default_rng(0)
LONG_CLASS = "a class with a very long name indeed"
TWO_RUNS = [
    Curve(f"dropout={dropout}, {name}", np.array([9, 19, 29]), np.array([3.0, 2.0, dropout]), color)
    for dropout, color in ((0.1, style.BLUE), (0.0, style.VERMILION))
    for name in ("training", "validation")
]
UNUSUAL: dict[str, Callable[[], Figure]] = {
    "a single map of attention": lambda: figures.plot_attention_grid({"block 0": np.full((1, 5, 5), 0.2)}),
    "calibration of two classes": lambda: figures.plot_calibration_curve(
        figures.calibration_bins(RNG.dirichlet([0.3, 0.3], 997), RNG.integers(2, size=997))
    ),
    "words that all score 0": lambda: figures.plot_colored_words(["a", "$good"], np.zeros(2)),
    "a word longer than a line": lambda: figures.plot_surprising_text(["y" * 400], np.zeros(1)),
    "a loss that is not finite": lambda: figures.plot_curves(
        {"loss": [Curve("a", np.arange(3), np.array([1, np.nan, 2]), "k")]}
    ),
    "four curves in two panels": lambda: figures.plot_curves({"loss (nats)": TWO_RUNS, "accuracy (share)": TWO_RUNS}),
    "one mask": lambda: figures.plot_fillings("It [MASK]", [["broke"]], np.array([[0.5]])),
    "five masks with long words": lambda: figures.plot_fillings(
        "[MASK] and " * 50, [[f"{'very' * i}long{i}" for i in range(9)]] * 5, np.full((5, 9), 1e-4)
    ),
    "a large vocabulary": lambda: figures.plot_coverage(
        {"text": 1_000_000 // np.arange(1, 70_001)}, {"text": (7000, 0.93)}
    ),
    "texts of one length": lambda: figures.plot_lengths({"words": np.full(1000, 5)}, np.ones(1000, bool)),
    "many labels": lambda: figures.plot_label_counts(RNG.integers(10**5, size=(3, 40)), list("abc"), [LONG_CLASS] * 40),
    "equal probabilities": lambda: figures.plot_next_tokens([f"piece{i}" for i in range(30)], np.full(30, 1 / 40)),
    "a certain token": lambda: figures.plot_next_tokens(["e"], np.ones(1)),
    "a long context": lambda: figures.plot_loss_per_position(RNG.random((7, 512))),
    "one part without an interval": lambda: figures.plot_contributions(["$head_1"], np.zeros(1)),
    "many parts": lambda: figures.plot_contributions(
        [f"decoder.{i}.head" for i in range(90)],
        RNG.normal(size=90),
        np.stack((np.full(90, -4), np.full(90, 4)), axis=1),
    ),
    "a grid of many tokens": lambda: figures.plot_block_grid(
        {"a": RNG.normal(size=(2, 50)), "b": np.full((2, 50), np.nan)}, WORDS[:2], ["token"] * 50, limits=(-1, 1)
    ),
    "a grid of long texts": lambda: figures.plot_block_grid(
        {"": RNG.random((3, 2))}, WORDS, ["$one", "two"], texts={"": [["very long " * 9] * 2] * 3}
    ),
    "a frame of one token": lambda: figures.plot_training_frame(
        np.ones((1, 1, 1)), np.zeros((1, 2)), ["$a"], "$", title="step 0", limit=1.0
    ),
    "a unit that is never active": lambda: figures.plot_exciting_texts({"unit 1": [(["a\n", "$b"], -np.ones(2))]}),
    "four encodings": lambda: figures.plot_position_similarity(
        {f"encoding {i} (run)": RNG.normal(size=(9, 5)) for i in range(4)}
    ),
    "positions of one coordinate": lambda: figures.plot_position_waves(RNG.normal(size=(2, 1))),
    "many positions": lambda: figures.plot_position_waves(RNG.normal(size=(128, 5))),
    "long values": lambda: figures.plot_table({"lines": "182,550", "a $name$_{": "W" * 100}, title="Statistics"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_a_figure_of_unusual_data_can_be_read(name: str) -> None:
    check_readable(UNUSUAL[name]())


def law(size: Any, tokens: Any) -> Any:
    return 1.5 + 30 / size**0.5 + 500 / tokens**0.6


WORDS = ["a", "b", "c"]
NO_INTEGERS = np.zeros(0, dtype=int)
REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("plot_attention_heads", (np.ones((2, 2, 3)), WORDS, WORDS), r"pass \(heads, queries=3, keys=3\)"),
    ("plot_attention_grid", ({},), "maps is empty; pass at least one array"),
    ("calibration_bins", (np.zeros((0, 2)), NO_INTEGERS), "probabilities has shape"),
    ("plot_surprising_text", (WORDS, np.zeros(2)), r"bits has shape \(2,\); pass \(pieces=3\)"),
    ("plot_colored_words", ([], np.zeros(0)), r"pass \(words\), with at least one value"),
    *(
        (function, (counts, WORDS), message)
        for function in ("plot_confusion_matrix", "confusion_table")
        for counts, message in (
            (np.zeros((2, 3), dtype=int), r"pass \(true_classes=3, predicted_classes=3\)"),
            (np.eye(3), "has the type float64; pass integers, not shares"),
            (-7 * np.eye(3, dtype=int), "negative value -7"),
        )
    ),
    ("plot_curves", ({},), "there are no values to plot"),
    ("plot_embeddings", ({"map": np.zeros((3, 2))}, WORDS, [0, 0], ["x"]), r"groups has .* pass \(tokens=3\)"),
    ("plot_fillings", ("[MASK]", [["a"]], np.full((2, 1), 0.1)), r"shape \(2, 1\); pass \(masks=1, words\)"),
    ("plot_coverage", ({},), "counts is empty"),
    ("plot_lengths", ({"words": np.ones(3), "characters": np.ones(2)},), "pass the same number of values for each"),
    ("plot_label_counts", (np.ones((2, 3), int), WORDS[:2], WORDS[:2]), r"shape \(2, 3\); pass \(groups=2, labels=2\)"),
    ("plot_loss_by_rate", ({},), "no losses to plot"),
    ("plot_learning_curves", ({"small": []},), "no points to plot; pass at least one"),
    ("plot_next_tokens", (WORDS, np.zeros(2)), r"probabilities has shape \(2,\); pass \(tokens=3\)"),
    ("plot_loss_per_position", (np.zeros((0, 5)),), r"pass \(windows, positions\)"),
    ("plot_contributions", (WORDS, np.ones(2)), r"values has shape \(2,\); pass \(names=3\)"),
    ("plot_contributions", (WORDS, np.ones(3), np.ones(3)), r"intervals has shape \(3,\); pass \(names=3, ends=2\)"),
    ("plot_block_grid", ({"a": np.ones((2, 3))}, WORDS, WORDS), r"shape \(2, 3\); pass \(rows=3, columns=3\)"),
    ("plot_block_grid", ({}, WORDS, WORDS), "panels is empty; pass at least one array"),
    ("plot_exciting_texts", ({"unit": [(["a"], np.ones(2))]},), "one activation for each token"),
    ("plot_position_similarity", ({},), "encodings is empty"),
    ("plot_position_waves", (np.zeros(3),), r"table has shape \(3,\)"),
    ("plot_scaling_fit", ([1, 2], [1], [1, 2], law), r"tokens has shape \(1,\); pass \(runs=2\)"),
    ("plot_probability_per_star", (np.zeros(3), np.ones(2, int)), r"stars has shape \(2,\); pass \(reviews=3\)"),
    ("plot_probability_per_star", (np.zeros(0), NO_INTEGERS), r"pass \(reviews\), with at least one value"),
    ("plot_probability_per_star", (np.array([1.5]), np.array([1])), "outside of 0 to 1; pass the sigmoid"),
    ("plot_probability_per_star", (np.array([0.5]), np.array([0])), "stars has the value 0; .* must be from 1 to 5"),
    ("plot_predicted_per_star", (np.array([3]), np.array([1]), WORDS), "predicted has the value 3; .* from 0 to 2"),
    ("plot_predicted_per_star", (np.array([0.7]), np.array([1]), WORDS), "predicted has the type float64"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_other_arrays_are_an_error_with_the_remedy(function: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(figures, function)(*arguments)


def test_a_table_without_rows_is_an_error() -> None:
    with pytest.raises(ValueError, match="rows is empty; pass at least one name and its value"):
        figures.plot_table({}, title="Statistics")
