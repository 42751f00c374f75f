"""Figures of classifiers, with their requirements and captions. Imports no heavy library."""

from firstlight.kinds.kind import Drawing, drawing

FIGURES = "firstlight.kinds.classifier.figures"
DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "confusion_matrix",
        FIGURES,
        "classifier",
        "Confusion matrix of the validation split, as counts and as percentages: rows are true classes, columns are "
        "predicted classes. Correct predictions are on the diagonal, and confused classes are the "
        "large numbers elsewhere.",
    ),
    drawing(
        "probability_per_star",
        FIGURES,
        "classifier stars",
        "Histograms of the predicted probability of a positive review (x axis) for each true number of stars, on the "
        "validation split. A binary model is not trained on reviews with 3 stars, and their probabilities should be "
        "between those of the other reviews.",
    ),
    drawing(
        "predicted_per_class",
        FIGURES,
        "classifier",
        "Shares of the predicted classes (x axis) for each true class (y axis), on the validation split. Outlined bars "
        "are correct predictions and should be wide; the other bars show with which classes a class is confused.",
    ),
    drawing(
        "calibration",
        FIGURES,
        "classifier",
        "Accuracy against confidence, and the number of predictions in each bin, on the validation split. Below the "
        "dashed line, the run is overconfident; the expected calibration error is the mean length of the orange lines, "
        "weighted by the number of predictions.",
    ),
    drawing(
        "mistakes",
        FIGURES,
        "classifier",
        "The validation texts with the most confident wrong predictions. Read them before you change the model: some "
        "have a wrong label, some are ironic, and some are cut before the verdict.",
    ),
    drawing(
        "attributions",
        FIGURES,
        "classifier one_text",
        "Contribution of each word to the log-odds of the predicted class, compared with an unknown word in its place: "
        "blue supports the class, red contradicts it. Look for words that should not matter.",
    ),
)
