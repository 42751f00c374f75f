"""A Slurm of three nodes on this machine, in a temporary folder, without systemd, control groups or a database."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
NODES = ("n1", "n2", "n3")
CONFIGURATION = """\
ClusterName=firstlight
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=20
KillWait=30
MinJobAge=600
SchedulerParameters=sched_interval=2,bf_interval=5
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1 RealMemory=2000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1 RealMemory=2000 State=UNKNOWN
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={third} CPUs=2 Gres=gpu:1 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=closed Nodes=n1,n2 MaxTime=INFINITE State=DOWN
PartitionName=shared Nodes=n3 MaxTime=INFINITE State=UP
"""


class Slurm:
    """A running cluster. Its partition `urgent` preempts the jobs of `main`, and `closed` is down.

    `shared` has a node of two cores, where Slurm counts a GPU, which is no device.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.configuration = folder, folder / "slurm.conf"
        self.environment = os.environ | {"SLURM_CONF": str(self.configuration)}

    def start(self) -> None:
        for name in ("run", "state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        (self.folder / "run").chmod(0o711)  # munged requires it
        key = self.folder / "run" / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        port, first, second, third = free_ports(4)
        host = subprocess.check_output(["hostname", "-s"], text=True).strip()
        user = subprocess.check_output(["id", "-un"], text=True).strip()
        self.configuration.write_text(
            CONFIGURATION.format(
                folder=self.folder, host=host, user=user, port=port, first=first, second=second, third=third
            )
        )
        (self.folder / "gres.conf").write_text("NodeName=n3 Name=gpu File=/dev/null\n")
        run = self.folder / "run"
        self.daemon(
            *("munged", "--force", f"--key-file={key}", f"--socket={run}/munge.socket", f"--pid-file={run}/munged.pid"),
            *(f"--log-file={self.folder}/munged.log", f"--seed-file={run}/munge.seed"),
        )
        self.daemon("slurmctld", "-f", str(self.configuration), "-c")
        for node in NODES:
            self.start_node(node)
        self.wait_until(lambda: set(self("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"})

    def stop(self) -> None:
        with suppress(subprocess.CalledProcessError):
            self("scancel", "--me", "--full")
        for name in (*(f"slurmd-{node}" for node in NODES), "slurmctld", "munged"):
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int((self.folder / "run" / f"{name}.pid").read_text()), signal.SIGTERM)

    def daemon(self, *command: str) -> None:
        subprocess.run(command, check=True, env=self.environment, stdout=subprocess.DEVNULL, start_new_session=True)

    def start_node(self, name: str) -> None:
        self.daemon("slurmd", "-f", str(self.configuration), "-N", name)

    def kill_node(self, name: str) -> None:
        """Kill all processes of a node at once, as a loss of power does."""
        daemon = int((self.folder / "run" / f"slurmd-{name}.pid").read_text())
        for process in (daemon, *self.processes_of(name)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def lose_node_of(self, task: str) -> str:
        """Kill the node that runs a task, and wait until Slurm counts it as lost. Return its name."""
        node = self("squeue", "-h", "-r", "-j", task, "-o", "%N").strip()
        self.kill_node(node)
        self.wait_until(lambda: self("sinfo", "-h", "-n", node, "-o", "%T").strip().startswith("down"), 120)
        return node

    def processes_of(self, node: str) -> Iterator[int]:
        """Yield the processes of the jobs of a node, and for each job the process of Slurm that watches it."""
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"SLURMD_NODENAME={node}\0" in (folder / "environ").read_text(errors="replace"):
                    parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                    if "slurmstepd" in Path(f"/proc/{parent}/cmdline").read_text():
                        yield parent
                    yield int(folder.name)

    def __call__(self, *command: str) -> str:
        return subprocess.run(command, check=True, env=self.environment, capture_output=True, text=True).stdout

    def tasks(self) -> dict[str, str]:
        """Return the state of each task by `<array>_<task>`."""
        lines = self("squeue", "-h", "-r", "-t", "all", "-o", "%F_%K %T").splitlines()
        return dict(line.split() for line in lines)

    def run_again_at_once(self, task: str) -> None:
        """Spare a task the two minutes that Slurm lets it wait after it was requeued."""
        self.wait_until(lambda: self.tasks().get(task) == "PENDING")
        self.start_if_pending(task)

    def start_if_pending(self, task: str) -> None:
        with suppress(subprocess.CalledProcessError):  # it runs already
            self("scontrol", "update", f"JobId={task}", "StartTime=now")

    def wait_until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"{self('squeue', '-r', '-t', 'all')}\n{self('sinfo')}"
            time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    """Return some free ports of this machine."""
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]
