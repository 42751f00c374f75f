"""A Ray of two nodes of one core on this machine, in a temporary folder."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from slurm_cluster import free_ports

IS_MISSING = importlib.util.find_spec("ray") is None
ATTEMPTS = 4  # a node gives up if the machine is busy while it starts


class RayCluster:
    """A running cluster. Each node is a process group, which can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.nodes = folder, dict[str, subprocess.Popen[bytes]]()
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.environment = os.environ | {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}

    def start(self) -> None:
        port = self.address.rpartition(":")[2]
        self.start_node("head", "--head", f"--port={port}", f"--temp-dir={self.folder}", "--include-dashboard=false")
        self.start_node("second", f"--address={self.address}")

    def start_node(self, name: str, *options: str) -> None:
        program = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats")
        shared = ("--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=80000000")
        for _ in range(ATTEMPTS):
            log = (self.folder / f"{name}.log").open("ab")
            self.nodes[name] = subprocess.Popen(
                [*program, *shared, *options], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
            end = time.monotonic() + 90
            while time.monotonic() < end and self.nodes[name].poll() is None:
                if len(self.alive()) == len(self.nodes):
                    return
                time.sleep(0.5)
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

    def kill_node(self, name: str) -> None:
        """Kill all processes of a node at once, as a loss of power does."""
        with suppress(ProcessLookupError):
            os.killpg(self.nodes[name].pid, signal.SIGKILL)
        self.nodes.pop(name).wait()

    def stop(self) -> None:
        for name in list(self.nodes):
            self.kill_node(name)
