"""The figures that only a classifier has: what each needs, and what to look for in it. Imports nothing heavy."""

from firstlight.kinds.kind import Drawing, drawing

FIGURES = "firstlight.kinds.classifier.figures"
DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "confusion_matrix",
        FIGURES,
        "classifier",
        "Which class is taken for which, on the validation split. Look beside the diagonal: stars are confused with "
        "their neighbours.",
    ),
    drawing(
        "probability_per_star",
        FIGURES,
        "classifier stars",
        "How the probability of “positive” is distributed for each true number of stars, on the validation split. "
        "Reviews with 3 stars are shown to a binary model too, which never trained on them: they should lie between.",
    ),
    drawing(
        "predicted_per_class",
        FIGURES,
        "classifier",
        "What is predicted for each true class, on the validation split. Wide outlined bars are good; the middle stars "
        "are the hard ones.",
    ),
    drawing(
        "calibration",
        FIGURES,
        "classifier",
        "Whether the run is as sure as it is right, on the validation split. Below the dashed line it is surer than it "
        "should be. The expected calibration error is the mean length of the orange distances, weighted by the bars.",
    ),
    drawing(
        "mistakes",
        FIGURES,
        "classifier",
        "The validation texts of which the run was surest and wrong. Some labels are wrong, some texts are ironic, "
        "some were cut before the verdict: read them before you change the model.",
    ),
    drawing(
        "attributions",
        FIGURES,
        "classifier",
        "What each word adds to the log-odds of the predicted class, compared with an unknown word in its place: blue "
        "speaks for it, red against it. Look for words that should not matter.",
    ),
)
