"""Training of a classifier with binary cross entropy for two classes, otherwise with cross entropy."""

import math
from typing import Any

from torch import Tensor, nn

from firstlight.choices import require
from firstlight.classifier.data import ReviewData
from firstlight.classifier.prediction import outputs_of_texts
from firstlight.classifier.run import ClassifierRun
from firstlight.data.tables import ReviewBatch, review_batch
from firstlight.errors import UserError
from firstlight.lit.losses import GroupTerms, LossFunction, classification_loss, disagreement, probabilities
from firstlight.lit.optimizers import OptimizerFactory
from firstlight.lit.schedules import ScheduleFactory
from firstlight.lit.training import Measured, Training
from firstlight.networks.config import check_share


class Classification(Training):
    """A LightningModule that trains a classifier.

    The loss is the binary cross entropy of one logit for two classes, otherwise the cross entropy of one logit per
    class. A batch is a `firstlight.data.ReviewBatch`, or a pair of tensors: token ids (batch, length), padded with 0,
    and targets (batch,). `Classification.for_data(data)` builds the module for a data module. For multiple choice
    (`ReviewData(choice_columns=…)`), token ids are (batch, choices, length), and the loss is the cross entropy of one
    logit for each answer.

    Args:
        network: Maps token ids (batch, length), a padding mask, True where a token is real, and the features of
            `ReviewData(target_encoding=True)`, if there are any, to logits (batch, classes), or to (batch, 1) for two
            classes.
        optimizer: A function from the parameters to an optimizer. None uses AdamW with a learning rate of 1e-3.
        schedule: A function from the optimizer and the number of steps to a scheduler that is stepped after every
            step, such as `firstlight.lit.cosine`. None uses a short warm-up and a cosine.
        loss: A function that the training minimizes in place of the cross entropy, as in `Training`.
        class_weights: The weight of each class in the training loss, (classes,).
        label_smoothing: The share of every target that is spread evenly over all classes, at least 0 and below 1.
        ordinal_smoothing: How strongly neighboring classes share a target, for ordered classes such as stars, as in
            `classification_loss`; at least 0.
        r_drop: The weight of the divergence between two passes with different dropout (R-Drop, Liang et al. 2021). 0
            makes one pass.
        text_loss_weight: The weight of predicting the next token of each text, which is added to the training loss
            (Radford et al. 2018: 0.5); for a causal network.
        group_prior: Whether log P(class | group) is added to the logits in the training loss (logit adjustment, Menon
            et al. 2021), so that the network does not learn the classes from the groups.
        groups: The groups of `ReviewData(group_column=…)`, which `for_data` sets.

    Raises:
        ValueError: If a smoothing or a weight is out of range, or if the network cannot predict the next token.

    Source: the post on a review classifier in Julia (May 2022).

    Example:
        >>> import lightning as L
        >>> import torch
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary", context_length=20)
        >>> module = Classification.for_data(data, dim=8, num_heads=2, num_layers=1)
        >>> L.Trainer(max_epochs=2).fit(module, datamodule=data)
        >>> module(torch.tensor([[5, 2, 7]])).shape  # one logit for two classes
        torch.Size([1, 1])
    """

    kind = "classifier"
    config_type = ClassifierRun.config_type
    data_type = ReviewData
    metadata_checks = ClassifierRun.metadata_checks

    def __init__(
        self,
        network: nn.Module,
        optimizer: OptimizerFactory | None = None,
        schedule: ScheduleFactory | None = None,
        *,
        loss: LossFunction | None = None,
        class_weights: Tensor | None = None,
        label_smoothing: float = 0.0,
        ordinal_smoothing: float = 0.0,
        r_drop: float = 0.0,
        text_loss_weight: float = 0.0,
        group_prior: bool = False,
        groups: GroupTerms | None = None,
    ) -> None:
        check_share("label_smoothing", label_smoothing)
        weights = {"ordinal_smoothing": ordinal_smoothing, "r_drop": r_drop, "text_loss_weight": text_loss_weight}
        for name, value in weights.items():
            require(0 <= value < math.inf, f"{name}={value} must be a finite number, 0 or above")
        if text_loss_weight and not getattr(network, "predicts_text", False):
            problem = f"module.text_loss_weight={text_loss_weight} requires a causal network without features"
            raise UserError(f"{problem}; set model.causal=true, model.convolution=null and data.target_encoding=false")
        if group_prior and groups is None:
            raise UserError("module.group_prior=true requires data.group_column; set it to the column of the groups")
        super().__init__(network, optimizer, schedule, loss=loss)
        self.class_weights: Tensor | None
        self.label_smoothing, self.ordinal_smoothing, self.r_drop = label_smoothing, ordinal_smoothing, r_drop
        self.text_loss_weight = text_loss_weight
        self.register_buffer("class_weights", class_weights, persistent=False)
        self.group_numbers: Tensor | None
        self.group_log_priors: Tensor | None
        self.group_weights: Tensor | None
        numbers, log_priors, weights_of_groups = groups or (None, None, None)
        self.register_buffer("group_numbers", numbers, persistent=False)
        self.register_buffer("group_log_priors", log_priors if group_prior else None, persistent=False)
        self.register_buffer("group_weights", weights_of_groups, persistent=False)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None, features: Tensor | None = None) -> Tensor:
        """Return the logits, (batch, outputs).

        Args:
            token_ids: (batch, length), int.
            padding_mask: (batch, length), bool, True where a token is real. None means that all are real.
            features: (batch, length, features), float, the features of a `ReviewBatch`. None if there are none.
        """
        return self.network(token_ids, padding_mask, *(() if features is None else (features,)))

    def training_step(self, batch: ReviewBatch) -> dict[str, Tensor]:
        """Return the `loss` and the `logits`, (batch, outputs), of one batch."""
        batch = review_batch(batch)
        if self.text_loss_weight:
            network: Any = self.network  # which predicts text
            logits, text_loss = network.with_text_loss(batch.token_ids, batch.padding_mask)
        else:
            logits = self.network(*batch.inputs)
        loss = self._training_loss(logits, batch)
        if self.r_drop:
            again = self.network(*batch.inputs)
            loss = (loss + self._training_loss(again, batch)) / 2 + self.r_drop * disagreement(logits, again)
        if self.text_loss_weight:
            loss = loss + self.text_loss_weight * text_loss
        return {"loss": loss, "logits": logits.detach()}

    @staticmethod
    def target_logits(network: nn.Module, batch: ReviewBatch) -> Tensor:
        return network(*batch.inputs)

    def _training_loss(self, logits: Tensor, batch: ReviewBatch) -> Tensor:
        weights, adjusted = None, logits
        if self.group_numbers is not None:
            groups = self.group_numbers[batch.rows]
            weights = None if self.group_weights is None else self.group_weights[groups]
            if self.group_log_priors is not None:
                priors = self.group_log_priors[groups]
                adjusted = logits + (priors if logits.shape[1] > 1 else priors[:, 1:] - priors[:, :1])
        smoothing = (self.label_smoothing, self.ordinal_smoothing)
        loss = classification_loss(adjusted, batch.targets, self.class_weights, *smoothing, self.loss, weights)
        return self.distilled(loss, logits, batch)

    def measure(self, batch: ReviewBatch) -> Measured:
        """Return the `loss`, the `probabilities`, (texts, classes), `targets` and `rows`, (texts,), of one batch."""
        logits, targets, rows = outputs_of_texts(self.network, review_batch(batch))
        loss = classification_loss(logits, targets)
        outputs = {"loss": loss, "probabilities": probabilities(logits), "targets": targets, "rows": rows}
        return Measured(outputs, len(targets))
