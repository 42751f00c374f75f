"""A Slurm or a Ray on this machine, for the tests and for benchmarks/launchers.py."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ray_cluster import RayCluster
from slurm_cluster import Slurm

CLUSTERS = {"slurm": Slurm, "ray": RayCluster}


@contextmanager
def started(name: str) -> Iterator[Slurm | RayCluster]:
    """Start a cluster in a temporary folder, whose name is short because sockets need that, and end it."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # munged of Slurm requires it
        cluster = CLUSTERS[name](Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
