"""The libraries that the processes of the tests have imported before the fork server is forked (processes.py).

These are only libraries. A command imports the modules of firstlight itself, so that their state (the time of the
start, the schemas registered with Hydra) is the same as in a new process.
"""

import atexit
import gc
import os

import datasets  # noqa: F401
import hydra  # noqa: F401
import lightning.pytorch  # noqa: F401
import rich.live  # noqa: F401
import sacrebleu  # noqa: F401
import scipy.sparse.linalg  # noqa: F401
import sklearn.feature_extraction.text
import sklearn.linear_model  # noqa: F401
import tokenizers  # noqa: F401
import torch.nn.attention.flex_attention
import torch.utils.tensorboard  # noqa: F401
import torchmetrics  # noqa: F401
import tyro  # noqa: F401
from joblib.externals.loky.backend.context import set_start_method
from matplotlib.layout_engine import ConstrainedLayoutEngine
from wandb.sdk.data_types._private import MEDIA_TMP
from wandb.sdk.launch.inputs import internal  # noqa: F401

from composed_once import composed_once

USED = composed_once()  # a context ends when nothing refers to it


def prepare() -> None:
    """Let the fork server and its processes do less, as the tests' own process does."""
    atexit.unregister(MEDIA_TMP.cleanup)  # else the first process would remove the folder, which all of them use
    MEDIA_TMP._finalizer.detach()
    set_start_method("fork")  # by default, joblib starts new processes, and each imports the libraries again
    USED.__enter__()
    ConstrainedLayoutEngine.execute = lambda *_: None
    os.fsync = lambda _: None
    gc.enable()
    gc.freeze()  # a garbage collection in a forked process would copy all memory pages
