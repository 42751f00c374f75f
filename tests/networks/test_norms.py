import pytest
import torch
from torch.testing import assert_close

from firstlight.networks import Classifier, ClassifierConfig, EncoderDecoder, EncoderDecoderConfig, TransformerConfig
from firstlight.networks.layers import NormOverWords, build_norm
from firstlight.networks.variants import Norm, NormKind


@pytest.mark.parametrize("kind", NormKind)
def test_norm_eps_is_added_to_the_variance(kind: NormKind) -> None:
    """The vectors are constant along both axes but for their sign, so mean square and variance are exactly 9."""
    hidden = 3.0 * torch.tensor([[[1.0, -1.0], [-1.0, 1.0]]])
    norm = build_norm(TransformerConfig(dim=2, num_heads=1, norm_kind=kind, norm_eps=7.0))
    assert_close(norm(hidden), hidden / 4)


def test_without_norm_eps_the_norms_are_torchs() -> None:
    hidden = 1e-3 * torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0))
    for kind, theirs in ((NormKind.layer, torch.nn.LayerNorm(7)), (NormKind.rms, torch.nn.RMSNorm(7))):
        assert torch.equal(build_norm(TransformerConfig(dim=7, num_heads=1, norm_kind=kind))(hidden), theirs(hidden))


def test_a_norm_over_words_by_hand() -> None:
    """Each coordinate has the mean 0 and the deviation 1 over the real words of a text (post 5)."""
    norm = NormOverWords(2, eps=0.0, elementwise_affine=True)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([10.0, 1.0]))
        norm.bias.copy_(torch.tensor([0.0, 5.0]))
    hidden = torch.tensor([[[1.0, 7.0], [3.0, 9.0], [100.0, 100.0]]])
    real = torch.tensor([[True, True, False]])
    assert_close(norm(hidden, real)[:, :2], torch.tensor([[[-10.0, 4.0], [10.0, 6.0]]]))


def test_a_norm_over_words_has_no_nan_in_an_empty_text() -> None:
    norm = NormOverWords(3, eps=1e-5, elementwise_affine=False)
    hidden = torch.randn(2, 5, 3, requires_grad=True)
    output = norm(hidden, torch.zeros(2, 5, dtype=torch.bool))
    output.sum().backward()
    assert output.isfinite().all()
    assert hidden.grad.isfinite().all()


@pytest.mark.parametrize("norm", [Norm.pre, Norm.post])
def test_padding_does_not_change_a_classifier_with_norms_over_words(norm: Norm) -> None:
    torch.manual_seed(0)
    config = ClassifierConfig(
        dim=6, num_heads=2, num_layers=2, norm=norm, norm_kind="over_words", final_norm=True, embedding_norm=True
    )
    network = Classifier(config, vocab_size=11, num_outputs=3).eval().double()
    token_ids = torch.tensor([[3, 5, 2, 7]])
    padded = torch.tensor([[3, 5, 2, 7, 0, 9]])
    mask = torch.tensor([[True] * 4 + [False] * 2])
    assert_close(network(padded, mask), network(token_ids))


def test_only_the_encoder_of_a_translator_has_norms_over_words() -> None:
    torch.manual_seed(0)
    config = EncoderDecoderConfig(dim=6, num_heads=2, norm_kind="over_words", final_norm=True, embedding_norm=True)
    network = EncoderDecoder(config, 11, 13).eval().double()
    of_encoder = [*network.encoder.modules(), network.encoder_norm, network.source_norm]
    others = set(network.modules()) - set(of_encoder)
    assert sum(isinstance(each, NormOverWords) for each in of_encoder) == 2 + 2
    assert not any(isinstance(each, NormOverWords) for each in others)
    source_ids, token_ids = torch.tensor([[3, 5, 2, 7, 0]]), torch.tensor([[1, 4, 6]])
    source_mask = torch.tensor([[True] * 4 + [False]])
    logits = network(source_ids, token_ids, source_mask)
    assert_close(network(source_ids[:, :4], token_ids), logits)
    assert_close(network(source_ids, token_ids[:, :2], source_mask), logits[:, :2])
