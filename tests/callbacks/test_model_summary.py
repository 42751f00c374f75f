import pytest
from torch import nn

from firstlight.callbacks.model_summary import ModelSummary
from firstlight.networks.size import num_parameters


def test_the_line_has_the_number_of_the_record_and_what_it_is_made_of() -> None:
    module = nn.ModuleDict({"trained": nn.Linear(7, 5), "frozen": nn.Linear(10, 6).requires_grad_(False)})
    assert ModelSummary.size(module, 1013) == (
        "Parameters: 1,053, 40 trained, 1,013 counted from the training texts; 66 that are not trained are left out"
    )
    assert ModelSummary.size(module["trained"]) == "Parameters: 40, all of them trained"


@pytest.mark.parametrize("max_depth", [0, 1])
def test_the_line_stands_below_the_table(bench, capsys, max_depth: int) -> None:
    data = bench.data()
    module = bench.module(data)
    bench.fit(ModelSummary(max_depth), data=data, module=module, max_steps=1)
    line = f"Parameters: {num_parameters(module, trained_only=True):,}, all of them trained"
    assert (line in capsys.readouterr().out.splitlines()) is bool(max_depth)
