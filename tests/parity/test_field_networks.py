"""The networks of conf/experiment/field have the logits of the published ones, with the same weights in float64.

GPT-2, BERT and Llama are those of Hugging Face's transformers, and the network of Vaswani et al. (2017) is
`torch.nn.Transformer` between a scaled embedding, a sinusoid and the transposed embedding. The tests import the models
themselves, because an import takes 3 s of processor time, which every worker of pytest would need.
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
from firstlight.generator.network import Generator
from firstlight.lit.networks import plain
from firstlight.masked.network import MaskedLanguageModel
from firstlight.networks.block import Block
from firstlight.translator.network import EncoderDecoder
from untrained_runs import untrained_run

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


def randomized(module: nn.Module) -> nn.Module:
    """Return the module with random weights, for evaluation. Biases and norms are random too, so that each matters."""
    torch.manual_seed(0)
    for name, parameter in module.named_parameters():
        nn.init.normal_(parameter, mean=1.0 if "norm" in name.lower() or "ln_" in name else 0.0, std=0.1)
    return module.eval()


def random_ids(seed: int = 1, vocab_size: int = VOCABULARY) -> Tensor:
    return torch.randint(0, vocab_size, (2, LENGTH), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def copy_weights(network: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy the weights by their names in `network`, all of which must be given."""
    assert network.load_state_dict(weights, strict=True) == ([], [])


def linear(name: str, layer: nn.Module, *, is_transposed: bool = False) -> dict[str, Tensor]:
    """Return the weight and the bias of a layer by the name of ours. is_transposed: the weight is (inputs, outputs)."""
    weights = {f"{name}.weight": layer.weight.T if is_transposed else layer.weight}
    return weights if getattr(layer, "bias", None) is None else weights | {f"{name}.bias": layer.bias}


PARTS = (
    *("self_attention.query", "self_attention.key", "self_attention.value", "self_attention.output"),
    *("self_attention_norm", "feed_forward.expand", "feed_forward.contract", "feed_forward_norm", "feed_forward.gate"),
)


def parts_of_block(prefix: str, *layers: nn.Module, is_transposed: bool = False) -> dict[str, Tensor]:
    """Return the weights of a block by our names. layers: in the order of PARTS; the gate may be missing."""
    found = {}
    for name, layer in zip(PARTS, layers, strict=False):
        found |= linear(
            f"{prefix}.{name}", layer, is_transposed=is_transposed and not isinstance(layer, nn.Linear | nn.LayerNorm)
        )
    return found


# --- GPT-2 ---


def test_the_network_of_gpt2_has_its_logits() -> None:
    from transformers.models.gpt2.configuration_gpt2 import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

    config = options("gpt2")
    theirs = randomized(
        GPT2LMHeadModel(
            GPT2Config(
                vocab_size=VOCABULARY,
                n_positions=config.context_length,
                n_embd=config.dim,
                n_layer=config.num_layers,
                n_head=config.num_heads,
                bos_token_id=None,
                eos_token_id=None,
            )
        )
    )
    ours = Generator(config, VOCABULARY).eval()
    assert ours.blocks[0].self_attention.dropout == theirs.config.attn_pdrop

    gpt = theirs.transformer
    weights = dict.fromkeys(("embedding.weight", "head.weight"), gpt.wte.weight)
    weights |= {"positions.table.weight": gpt.wpe.weight} | linear("final_norm", gpt.ln_f)
    for number, block in enumerate(gpt.h):
        joined = block.attn.c_attn
        qkv = [nn.Linear(config.dim, config.dim) for _ in range(3)]
        for layer, weight, bias in zip(qkv, joined.weight.T.chunk(3), joined.bias.chunk(3), strict=True):
            layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
        parts = [block.attn.c_proj, block.ln_1, block.mlp.c_fc, block.mlp.c_proj, block.ln_2]
        weights |= parts_of_block(f"blocks.{number}", *qkv, *parts, is_transposed=True)
    copy_weights(ours, weights)
    with torch.no_grad():
        assert_close(ours(random_ids()), theirs(random_ids()).logits, **EXACT)


# --- BERT ---


@pytest.mark.parametrize("with_padding", [False, True], ids=["no padding", "padding"])
def test_the_network_of_bert_has_its_logits(with_padding: bool) -> None:
    """The vector of the first segment is added to the positions. The last id is [MASK], which ours does not score."""
    from transformers.models.bert.configuration_bert import BertConfig
    from transformers.models.bert.modeling_bert import BertForMaskedLM

    config = options("bert")
    theirs = randomized(
        BertForMaskedLM(
            BertConfig(
                vocab_size=VOCABULARY + 1,
                hidden_size=config.dim,
                num_hidden_layers=config.num_layers,
                num_attention_heads=config.num_heads,
                intermediate_size=4 * config.dim,
                max_position_embeddings=config.context_length,
            )
        )
    )
    ours = MaskedLanguageModel(config, VOCABULARY).eval()
    assert ours.blocks[0].self_attention.dropout == theirs.config.attention_probs_dropout_prob

    words, head = theirs.bert.embeddings, theirs.cls.predictions
    weights = {
        "embedding.weight": words.word_embeddings.weight[:-1],
        "mask_vector": words.word_embeddings.weight[-1],
        "positions.table.weight": words.position_embeddings.weight + words.token_type_embeddings.weight[0],
        "head.weight": head.decoder.weight[:-1],
        "head.bias": head.decoder.bias[:-1],
    }
    weights |= linear("embedding_norm", words.LayerNorm)
    weights |= linear("head_layer.linear", head.transform.dense)
    weights |= linear("head_layer.norm", head.transform.LayerNorm)
    for number, block in enumerate(theirs.bert.encoder.layer):
        attention = block.attention
        weights |= parts_of_block(
            f"blocks.{number}",
            *(attention.self.query, attention.self.key, attention.self.value, attention.output.dense),
            *(attention.output.LayerNorm, block.intermediate.dense, block.output.dense, block.output.LayerNorm),
        )
    copy_weights(ours, weights)
    token_ids = random_ids(vocab_size=VOCABULARY + 1)
    token_ids[:, 3] = ours.mask_id
    padding_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [LENGTH - 6 if with_padding else LENGTH]])
    with torch.no_grad():
        expected = theirs(token_ids, attention_mask=padding_mask.long()).logits[..., :VOCABULARY]
        assert_close(ours(token_ids, padding_mask), expected, **EXACT)


# --- Llama ---


def test_the_network_of_llama_has_its_logits_with_and_without_a_cache() -> None:
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaForCausalLM

    config = options("llama")
    assert config.num_key_value_heads < config.num_heads
    theirs = randomized(
        LlamaForCausalLM(
            LlamaConfig(
                vocab_size=VOCABULARY,
                hidden_size=config.dim,
                num_hidden_layers=config.num_layers,
                num_attention_heads=config.num_heads,
                num_key_value_heads=config.num_key_value_heads,
                intermediate_size=config.resolved_feed_forward_dim,
                max_position_embeddings=config.context_length,
                rms_norm_eps=config.norm_eps,
                rope_parameters={"rope_type": "default", "rope_theta": config.rotary_base},
            )
        )
    )
    ours = Generator(config, VOCABULARY).eval()
    weights = {"embedding.weight": theirs.model.embed_tokens.weight}
    weights |= linear("head", theirs.lm_head) | linear("final_norm", theirs.model.norm)
    for number, block in enumerate(theirs.model.layers):
        attention, mlp = block.self_attn, block.mlp
        weights |= parts_of_block(
            f"blocks.{number}",
            *(attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj, block.input_layernorm),
            *(mlp.up_proj, mlp.down_proj, block.post_attention_layernorm, mlp.gate_proj),
        )
    copy_weights(ours, weights)
    token_ids = random_ids()
    with torch.no_grad():
        logits = ours(token_ids)
        assert_close(logits, theirs(token_ids).logits, atol=1e-5, rtol=1e-5)  # its norms and rotations are in float32
        cache = ours.new_cache()
        pieces = [ours(piece, cache) for piece in token_ids.split([7, 1, 1, 5, 1, 1, 1], dim=1)]
        assert_close(torch.cat(pieces, dim=1), logits, **EXACT)
        assert cache.layers[0].pairs.shape[1] == 2 * config.num_key_value_heads


# --- the transformer of 2017 ---


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch warns that it does not use its fast path
def test_the_network_of_2017_has_the_logits_of_torchs_transformer() -> None:
    """The projections of torch's attention have biases, which the paper does not have. They are zero here."""
    config, random = options("transformer_2017"), torch.Generator().manual_seed(1)
    ours = randomized(EncoderDecoder(config, VOCABULARY, VOCABULARY))
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


# --- exported ---


@pytest.mark.parametrize("experiment", ["gpt2", "llama", "bert", "transformer_2017"])
def test_the_exported_networks_have_their_logits_in_transformers(experiment: str, tmp_path: Path) -> None:
    import transformers

    config, kind = (
        options(experiment),
        {"bert": "masked", "transformer_2017": "translator"}.get(experiment, "generator"),
    )
    run = untrained_run(tmp_path, kind, **{name: plain(value) for name, value in vars(config).items()})
    write_huggingface(run, tmp_path)
    name = json.loads((tmp_path / "config.json").read_text())["architectures"][0]
    theirs = getattr(transformers, name).from_pretrained(tmp_path, dtype=torch.float64).eval()
    size = run.tokenizer.vocab_size
    token_ids = random_ids(vocab_size=size)
    with torch.no_grad():
        if kind == "translator":
            ours, found = run.network(token_ids, token_ids), theirs(token_ids, decoder_input_ids=token_ids).logits
        else:
            ours, found = run.network(token_ids), theirs(token_ids).logits[..., :size]
        assert_close(found, ours, **(EXACT if experiment != "llama" else {"atol": 1e-5, "rtol": 1e-5}))
