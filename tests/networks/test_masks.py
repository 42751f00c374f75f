import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from firstlight.networks import masks


def test_a_padding_mask_lets_every_query_attend_to_the_real_tokens_only() -> None:
    padding_mask = torch.tensor([[True, True, False], [True, False, False]])
    mask = masks.padding(padding_mask)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.dtype is torch.bool
    allowed = mask.expand(2, 7, 5, 3)  # (batch, heads, queries, keys)
    for batch in range(2):
        assert (allowed[batch] == padding_mask[batch]).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=11), st.lists(st.integers(0, 100), min_size=1, max_size=7))
def test_a_causal_mask_never_allows_the_future(queries: list[int], keys: list[int]) -> None:
    mask = masks.causal(torch.tensor(queries), torch.tensor(keys))
    assert mask.shape == (1, 1, len(queries), len(keys))
    assert mask[0, 0].tolist() == [[key <= query for key in keys] for query in queries]
