"""The imports of the process that is forked for each command that a test starts as a separate process (processes.py).

It imports only libraries. A command imports the modules of firstlight itself, so that their state (the time of the
start, the schemas registered with Hydra) is the same as in a new process.
"""

import atexit
import gc
import os
import tempfile
from pathlib import Path
from unittest.mock import patch

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

from composed_once import composed_once

OF_TESTS = os.environ["COMPOSED_ONCE"]
os.environ["WANDB_ERROR_REPORTING"] = "false"  # read by the import of W&B, which takes 1.5 s
with patch.object(tempfile, "tempdir", OF_TESTS):
    from wandb.sdk.data_types._private import MEDIA_TMP
    from wandb.sdk.launch.inputs import internal  # noqa: F401
MEDIA_TMP._finalizer.detach()  # else the first process would remove the folder, which all of them use
atexit.unregister(MEDIA_TMP.cleanup)

set_start_method("fork")  # by default, joblib starts new processes, and each imports the libraries again
USED = composed_once(Path(OF_TESTS))  # a context ends when nothing refers to it
USED.__enter__()
ConstrainedLayoutEngine.execute = lambda *_: None  # as in the tests' own process
os.fsync = lambda _: None  # as well
gc.collect()
gc.freeze()  # a garbage collection in a forked process would copy all memory pages
