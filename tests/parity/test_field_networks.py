"""The networks of conf/experiment/field have the logits of the published ones, with the same weights in float64.

GPT-2, BERT and Llama are those of Hugging Face's transformers, and the network of Vaswani et al. (2017) is
`torch.nn.Transformer` between a scaled embedding, a sinusoid and the transposed embedding. The weights of ours are
exported; tests/export/test_published.py reads the weights of transformers. A test imports transformers itself, because
that takes 3 s of processor time, which every worker of pytest would need.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.testing import assert_close

from composed import composed
from firstlight.export.folder import write_huggingface
from firstlight.lit.networks import plain
from firstlight.networks import Block, EncoderDecoder
from stand_ins import random_ids
from untrained_runs import randomized, untrained_run

VOCABULARY, LENGTH = 61, 17
EXACT = {"atol": 1e-10, "rtol": 1e-10}


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    """Make all weights and tables of positions in float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def options(experiment: str) -> Any:
    """Return the checked options of the network of an experiment."""
    return OmegaConf.to_object(composed(f"experiment=field/{experiment}").model)


@pytest.mark.parametrize(
    ("experiment", "kind"),
    [("gpt2", "generator"), ("llama", "generator"), ("bert", "masked"), ("transformer_2017", "translator")],
)
def test_the_networks_have_their_logits_and_settings_in_transformers(experiment, kind, tmp_path: Path) -> None:
    """The last id of BERT is [MASK], which ours does not score. Llama's norms and rotations are in float32."""
    import transformers

    config = options(experiment)
    run = untrained_run(tmp_path, kind, **{name: plain(value) for name, value in vars(config).items()})
    write_huggingface(run, tmp_path)
    exported = json.loads((tmp_path / "config.json").read_text())
    model_type = getattr(transformers, exported["architectures"][0])
    theirs = model_type.from_pretrained(tmp_path, dtype=torch.float64).eval()
    size = run.tokenizer.vocab_size
    token_ids = random_ids(2, LENGTH, vocab_size=size)
    mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [LENGTH - 6]])
    with torch.no_grad():
        if kind == "translator":
            ours = run.network(token_ids, token_ids, mask)
            found = theirs(token_ids, attention_mask=mask.long(), decoder_input_ids=token_ids).logits
        elif kind == "masked":
            token_ids[:, 3] = run.network.mask_id
            ours, found = run.network(token_ids, mask), theirs(token_ids, attention_mask=mask.long()).logits[..., :size]
        else:
            ours, found = run.network(token_ids), theirs(token_ids).logits
        assert_close(found, ours, **(EXACT if experiment != "llama" else {"atol": 1e-5, "rtol": 1e-5}))
    published = model_type.config_class().to_dict()
    other = {name for name, value in exported.items() if isinstance(value, str | float) and value != published[name]}
    assert experiment == "transformer_2017" or other <= {"dtype", "rms_norm_eps"}  # the others are sizes


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch warns that it does not use its fast path
def test_the_network_of_2017_has_the_logits_of_torchs_transformer() -> None:
    """The projections of torch's attention have biases, which the paper does not have. They are zero here."""
    config, random = options("transformer_2017"), torch.Generator().manual_seed(1)
    ours: Any = randomized(EncoderDecoder(config, VOCABULARY, VOCABULARY))
    layer = {"d_model": config.dim, "nhead": config.num_heads, "dim_feedforward": 4 * config.dim, "batch_first": True}
    theirs = nn.Transformer(
        **layer,
        custom_encoder=nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), config.num_layers),
        custom_decoder=nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), config.resolved_num_decoder_layers),
    ).eval()
    for block, other in zip(ours.encoder, theirs.encoder.layers, strict=True):
        to_torch(block, other, {"self_attention": other.self_attn}, ("self_attention", "feed_forward"))
    for block, other in zip(ours.decoder, theirs.decoder.layers, strict=True):
        attentions = {"self_attention": other.self_attn, "cross_attention": other.multihead_attn}
        to_torch(block, other, attentions, ("self_attention", "cross_attention", "feed_forward"))
    source_ids, token_ids = (torch.randint(0, VOCABULARY, (2, length), generator=random) for length in (LENGTH, 11))
    source_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [LENGTH - 6]])

    def embedded(ids: Tensor) -> Tensor:
        """Return √dim times the embeddings, plus the sinusoid of the paper's formula."""
        angles = torch.arange(ids.shape[1])[:, None] / 10_000 ** (2 * torch.arange(config.dim // 2) / config.dim)
        waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
        return ours.embedding.weight[ids] * math.sqrt(config.dim) + waves

    with torch.no_grad():
        hidden = theirs(
            embedded(source_ids),
            embedded(token_ids),
            tgt_mask=torch.ones(11, 11, dtype=torch.bool).triu(1),
            src_key_padding_mask=~source_mask,
            memory_key_padding_mask=~source_mask,
        )
        assert_close(ours(source_ids, token_ids, source_mask), hidden @ ours.embedding.weight.T, **EXACT)


@torch.no_grad()
def to_torch(block: Block, theirs: nn.Module, attentions: dict[str, nn.Module], norms: tuple[str, ...]) -> None:
    """Copy the weights of our block to torch's layer, whose biases of attention are zero at first."""
    for name, attention in attentions.items():
        own: Any = getattr(block, name)
        attention.in_proj_weight.copy_(torch.cat((own.query.weight, own.key.weight, own.value.weight)))
        attention.out_proj.weight.copy_(own.output.weight)
        assert not attention.in_proj_bias.any()
        assert not attention.out_proj.bias.any()
    for number, name in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(getattr(block, f"{name}_norm").state_dict())
    theirs.linear1.load_state_dict(block.feed_forward.expand.state_dict())
    theirs.linear2.load_state_dict(block.feed_forward.contract.state_dict())
