"""What the training texts say about a classifier's words, counted before the training starts."""

import logging

from torch import nn

from firstlight.data.reviews import ReviewData
from firstlight.data.table_data import TableData
from firstlight.data.tables import texts_of
from firstlight.errors import UserError
from firstlight.networks.evidence import NgramEvidence

log = logging.getLogger(__name__)


def count_evidence(network: nn.Module, data: TableData) -> None:
    """Count, where the network has model.evidence. A resumed run counts again: what it learns from is the same.

    Raises UserError for classes without an order, of which no mean can be taken.
    """
    evidence = getattr(network, "evidence", None)
    if not isinstance(evidence, NgramEvidence):
        return
    assert isinstance(data, ReviewData)
    if data.num_classes > 2 and not data.has_ordered_classes:
        raise UserError(
            f"model.evidence=true takes the mean of classes, and the {data.num_classes} of data.labels=classes have no "
            "order; set model.evidence=false"
        )
    texts = texts_of(data.table, data.rows("train"))
    evidence.count(texts.token_ids, texts.padding_mask, texts.targets)
    pairs = int((evidence.pair_texts > 0).sum())
    log.info("model.evidence: %d words and %d pairs in %d texts", evidence.vocab_size, pairs, len(texts.targets))
