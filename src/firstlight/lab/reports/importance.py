"""The importance of each key of a search in a report, by PED-ANOVA. Imports Optuna, which is an extra."""

import random
import warnings
from collections.abc import Sequence
from pathlib import Path

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState, create_trial

from firstlight.lab.reports.tables import Section, Table
from firstlight.lab.reports.verdicts import LEVEL
from firstlight.runs.trials import STUDY_NAME, readable, storage_of

FEWEST_TRIALS = 20
SHUFFLES = 99


def importances(study: optuna.Study) -> tuple[dict[str, float], float]:
    """Return the importance of each key of a search, largest first, and the p-value of the largest.

    PED-ANOVA (Watanabe et al. 2023): how much the values of a key in the best quarter of the finished trials differ
    from those in all of them, as shares of 1. p: the share of random orders of the results in which some key differs as
    much.
    """
    finished = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    results, draw = [trial.value for trial in finished], random.Random(0)  # noqa: S311  (not for secrets)

    def measured(values: Sequence[float | None]) -> dict[str, float]:
        shuffled = optuna.create_study(direction=study.direction)
        for trial, value in zip(finished, values, strict=True):
            shuffled.add_trial(create_trial(params=trial.params, distributions=trial.distributions, value=value))
        evaluator = PedAnovaImportanceEvaluator(target_quantile=0.25)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return get_param_importances(shuffled, evaluator=evaluator, normalize=False)

    found = measured(results)
    others = [max(measured(draw.sample(results, len(results))).values()) for _ in range(SHUFFLES)]
    p = (1 + sum(other >= max(found.values()) for other in others)) / (SHUFFLES + 1)
    total = sum(found.values()) or 1.0
    return {key: value / total for key, value in found.items()}, p


def importance_section(path: Path, name: str) -> Section | None:
    """Return the section of a report on the keys of a search; None for several objectives. Raises UserError."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with readable(path):
        study = optuna.load_study(study_name=STUDY_NAME, storage=storage_of(path))
        count = len(study.get_trials(deepcopy=False, states=[TrialState.COMPLETE]))
        if len(study.directions) > 1:
            return None
        if count < FEWEST_TRIALS:
            few = f"{count} trials are finished, and {FEWEST_TRIALS} are required to show the importance of the keys."
            return Section(f"Search {name}", [few], [])
        shares, p = importances(study)
    first = next(iter(shares))
    most = f"{first} matters most" if p < LEVEL else f"no key matters clearly; {first} has the largest share"
    rows = [[key, f"{share:.0%}"] for key, share in shares.items()]
    text = f"In {count} finished trials, {most} (p = {p:.2g} over {SHUFFLES} random orders of the results)."
    return Section(f"Search {name}", [text], [Table("Importance of each key (PED-ANOVA)", ("key", "share"), rows)])
