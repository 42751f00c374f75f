"""A Ray of two nodes of one core on this machine, in a temporary folder. The second tells Ray that it has a GPU."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slurm_cluster import free_ports

IS_MISSING = importlib.util.find_spec("ray") is None
CAN_MOUNT = sys.platform == "linux" and os.geteuid() == 0
ATTEMPTS = 4  # a node gives up if the machine is busy while it starts


class RayCluster:
    """A running cluster. Each node is a process group, which can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.nodes = folder, dict[str, subprocess.Popen[bytes]]()
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        of_ray = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
        of_jobs = {"OMP_NUM_THREADS": "3", "CUDA_VISIBLE_DEVICES": "0"}  # which a job replaces by its share
        self.environment = os.environ | of_ray | of_jobs

    def start(self) -> None:
        port = self.address.rpartition(":")[2]
        self.start_node(
            "head", "--head", "--num-gpus=0", f"--port={port}", f"--temp-dir={self.folder}", "--include-dashboard=false"
        )
        self.start_second()

    def start_second(self) -> None:
        self.start_node("second", f"--address={self.address}", "--num-gpus=1")

    def start_node(self, name: str, *options: str) -> None:
        own_mounts = ("unshare", "--mount") if CAN_MOUNT else ()
        program = (
            *own_mounts,
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            "--block",
            "--disable-usage-stats",
        )
        shared = ("--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=80000000")
        others = set(self.alive()) if self.nodes else set()  # which may have a node that was just killed
        for _ in range(ATTEMPTS):
            log = (self.folder / f"{name}.log").open("ab")
            self.nodes[name] = subprocess.Popen(
                [*program, *shared, *options], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
            end = time.monotonic() + 90
            while time.monotonic() < end and self.nodes[name].poll() is None:
                if set(self.alive()) - others:
                    return
                time.sleep(1)
            self.kill_node(name)
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def alive(self) -> list[str]:
        """Return the identities of the nodes that the cluster counts as alive."""
        code = (
            "import ray; ray.init(address='" + self.address + "', log_to_driver=False, configure_logging=False);"
            "print(*[n['NodeID'] for n in ray.nodes() if n['Alive']])"
        )
        done = subprocess.run([sys.executable, "-c", code], env=self.environment, capture_output=True, text=True)
        return done.stdout.split() if done.returncode == 0 else []

    @contextmanager
    def mounted(self, name: str, path: Path, *what: str) -> Iterator[None]:
        """Mount something over a path as a node sees it. what: the arguments of `mount` before the path."""
        inside = ("nsenter", f"--target={self.nodes[name].pid}", "--mount")
        subprocess.run([*inside, "mount", *what, str(path)], check=True)
        try:
            yield
        finally:
            subprocess.run([*inside, "umount", str(path)], check=True)

    def kill_node(self, name: str) -> None:
        """Kill all processes of a node at once, as a loss of power does."""
        with suppress(ProcessLookupError):
            os.killpg(self.nodes[name].pid, signal.SIGKILL)
        self.nodes.pop(name).wait()

    def stop(self) -> None:
        for name in list(self.nodes):
            self.kill_node(name)
