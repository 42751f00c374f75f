import pytest
import torch
from torch import Tensor, nn

from firstlight.decoding.bare import bare
from firstlight.networks.config import Activation, EncoderDecoderConfig, GeneratorConfig, Norm, NormKind, Positions
from firstlight.networks.encoder_decoder import EncoderDecoder
from firstlight.networks.generator import Generator

VOCABULARY, CONTEXT = 29, 17


def make_generator(**options: object) -> Generator:
    torch.manual_seed(0)
    sizes = {"dim": 7, "num_heads": 3, "head_dim": 10, "num_layers": 2, "context_length": CONTEXT, "dropout": 0.3}
    return Generator(GeneratorConfig(**(sizes | options)), VOCABULARY).eval()


def random_texts(*shape: int) -> Tensor:
    return torch.randint(0, VOCABULARY, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("positions", Positions)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": Norm.pre, "norm_kind": NormKind.rms, "final_norm": True, "activation": Activation.swiglu},
        {"norm": Norm.none, "residual": False, "attention_bias": True, "tie_embeddings": True},
        {"norm_affine": False, "output_projection": False, "head_dim": 2, "dim": 6},
        {"num_loops": 3, "causal_convolution": 5},
    ],
)
def test_a_bare_network_gives_the_very_same_logits(options: dict[str, object], positions: Positions) -> None:
    generator, token_ids = make_generator(positions=positions, **options), random_texts(3, 13)
    assert torch.equal(bare(generator)(token_ids), generator(token_ids))


def test_a_bare_translator_gives_the_very_same_logits() -> None:
    torch.manual_seed(0)
    network = EncoderDecoder(EncoderDecoderConfig(dim=12, num_heads=3, context_length=CONTEXT), 23, VOCABULARY).eval()
    source_ids, token_ids = random_texts(3, 11) % 23, random_texts(3, 7)
    assert torch.equal(bare(network)(source_ids, token_ids), network(source_ids, token_ids))


def test_a_bare_network_has_the_tensors_of_the_network_itself() -> None:
    generator, token_ids = make_generator(), random_texts(3, 13)
    reading = bare(generator)
    before = reading(token_ids)
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter.mul_(1.5)
    assert torch.equal(reading(token_ids), generator(token_ids))
    assert not torch.equal(reading(token_ids), before)


def test_the_network_itself_is_left_as_it_is() -> None:
    generator = make_generator()
    kinds, names = [type(module) for module in generator.modules()], list(generator.state_dict())
    bare(generator)(random_texts(3, 13))
    assert [type(module) for module in generator.modules()] == kinds
    assert list(generator.state_dict()) == names
    assert list(vars(make_generator())) == list(vars(generator))


def test_a_network_in_training_keeps_its_dropout() -> None:
    generator, token_ids = make_generator().train(), random_texts(3, 13)
    logits = []
    for network in (generator, bare(generator)):
        torch.manual_seed(3)
        logits.append(network(token_ids))
    assert torch.equal(*logits)
    assert not torch.equal(logits[0], generator.eval()(token_ids))


@pytest.mark.parametrize("register", [nn.Module.register_forward_hook, nn.Module.register_forward_pre_hook])
def test_a_network_with_hooks_in_its_modules_is_left_as_it_is(register: object) -> None:
    generator, calls = make_generator(), []
    register(generator.blocks[1], lambda *_: calls.append(1))
    bare(generator)(random_texts(3, 13))
    assert bare(generator) is generator
    assert calls == [1]


@pytest.mark.parametrize("register", [nn.Module.register_forward_hook, nn.Module.register_forward_pre_hook])
def test_a_bare_network_runs_the_hooks_of_the_network_itself(register: object) -> None:
    generator, calls = make_generator(), []
    register(generator, lambda *_: calls.append(1))
    assert bare(generator) is not generator
    bare(generator)(random_texts(3, 13))
    assert calls == [1]


def test_a_bare_network_is_of_the_class_of_the_network() -> None:
    assert isinstance(bare(make_generator()), Generator)
