"""A cluster for all tests of this folder, and a sweep that nothing disturbs, to compare with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests_support import Scripts, some_names

STEPS = 500


@pytest.fixture(scope="session")
def slurm() -> Iterator["Slurm"]:  # noqa: F821
    from running_cluster import started
    from slurm_cluster import MISSING

    if MISSING:
        pytest.skip(f"{', '.join(MISSING)} are not installed: apt-get install slurm-wlm munge")
    with started("slurm") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ray() -> Iterator["RayCluster"]:  # noqa: F821
    from ray_cluster import IS_MISSING
    from running_cluster import started

    if IS_MISSING:
        pytest.skip("Ray is not installed: pip install -c constraints.txt -e '.[ray]'")
    with started("ray") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "names.txt"
    path.write_text(some_names(2000))
    return path


@pytest.fixture(scope="session")
def sweep(names: Path) -> list[str]:
    """Return the overrides of a sweep over seeds. Each job trains for some seconds, and saves its state often."""
    return [
        *("-m", "task=names", f"data.path={names}", "model=tiny", "threads=1", "sweep.name=stories"),
        *(
            f"trainer.max_steps={STEPS}",
            "epochs=1000",
            "trainer.val_check_interval=50",
            "trainer.check_val_every_n_epoch=null",
        ),
    ]


@pytest.fixture(scope="session")
def quiet(sweep: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep of twelve jobs that ran one after another on this machine."""
    folder = tmp_path_factory.mktemp("quiet")
    done = Scripts(folder).run("train", *sweep, "seed=" + ",".join(map(str, range(1, 13))))
    assert done.returncode == 0, done.stderr
    return folder / "logs" / "sweeps" / "stories"
