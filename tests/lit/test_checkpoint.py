import copy
import errno
import os
import pickle
import random
import resource
import signal
import zipfile
from pathlib import Path

import pytest
import torch

from firstlight.callbacks.checkpoint import WEIGHTS_OF_A_PROCESS, AtomicCheckpointIO
from firstlight.errors import UserError
from firstlight.lit import checkpoint, read_checkpoint
from firstlight.lit.checkpoint import METADATA, STAMP
from firstlight.lit.networks import build_network, network_of_metadata
from firstlight.networks import ClassifierConfig, GeneratorConfig
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import train_word_tokenizer
from stand_ins import Calls

RUN_METADATA = {
    "task": "stars",
    "config": {"dropout": 0.1, "tags": ["a", "b"], "resume": None},
    "class_names": ["1", "2"],
}


def content(value: float = 1.0, size: int = 37) -> dict[str, object]:
    """A small example of the content that Lightning saves."""
    return {
        "state_dict": {"network.weight": torch.full((size,), value), "network.bias": torch.arange(3)},
        "global_step": 17,
        "optimizer_states": [{"state": {0: {"step": torch.tensor(5.0)}}, "param_groups": [{"lr": 0.1}]}],
        "callbacks": {"BestAndLast": {"best_score": 0.5, "best_step": None}},
    }


@pytest.fixture
def checkpoint_io() -> AtomicCheckpointIO:
    return AtomicCheckpointIO(RUN_METADATA)


@pytest.fixture
def saved(tmp_path, checkpoint_io) -> Path:
    path = tmp_path / "checkpoints" / "last.ckpt"
    checkpoint_io.save_checkpoint(content(), path)
    return path


# --- writing and reading ---


def test_a_checkpoint_is_read_as_it_was_written(saved) -> None:
    found = read_checkpoint(saved)
    weights = found.pop("state_dict")
    expected = content()
    assert found.pop(METADATA) == STAMP | RUN_METADATA
    assert found == {name: value for name, value in expected.items() if name != "state_dict"}
    assert all(torch.equal(weights[name], weight) for name, weight in expected["state_dict"].items())
    assert [path.name for path in saved.parent.iterdir()] == ["last.ckpt"]
    assert saved.stat().st_mode & 0o777 == 0o644  # other users may read it


def test_lightning_reads_it_through_the_same_door(saved, checkpoint_io) -> None:
    for weights_only in (None, True, False):
        found = checkpoint_io.load_checkpoint(saved, weights_only=weights_only)
        assert found[METADATA]["task"] == "stars"
    assert checkpoint_io.load_checkpoint(str(saved), map_location=lambda storage, _: storage)["global_step"] == 17


def test_what_a_forked_process_hands_back_are_bare_weights(checkpoint_io, tmp_path) -> None:
    weights = {"network.weight": torch.arange(7.0), "network.bias": torch.arange(3)}
    checkpoint_io.save_checkpoint(weights, tmp_path / WEIGHTS_OF_A_PROCESS)
    with pytest.raises(UserError, match=r"temp\.ckpt"):  # which no other command uses as the checkpoint of a run
        read_checkpoint(tmp_path / WEIGHTS_OF_A_PROCESS)
    found = checkpoint_io.load_checkpoint(tmp_path / WEIGHTS_OF_A_PROCESS)
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weight) for name, weight in weights.items())
    torch.save({"network.weight": random.Random()}, tmp_path / WEIGHTS_OF_A_PROCESS)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        checkpoint_io.load_checkpoint(tmp_path / WEIGHTS_OF_A_PROCESS, weights_only=False)


def no_links(*_: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("has_links", [True, False])
def test_the_next_checkpoint_takes_the_place_of_the_last_which_is_kept(saved, checkpoint_io, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", no_links)
    (saved.parent / ".previous.ckpt-link").touch()  # the file of a killed process
    for number in (2.0, 3.0):
        checkpoint_io.save_checkpoint(content(number), saved)
        first = [
            read_checkpoint(path)["state_dict"]["network.weight"][0] for path in sorted(saved.parent.glob("*.ckpt"))
        ]
        assert first[0] == number
    assert first == [3.0, 2.0]
    (saved.parent / ".previous.ckpt-link").unlink(missing_ok=True)
    assert sorted(path.name for path in saved.parent.iterdir()) == ["last.ckpt", "previous.ckpt"]


def test_a_process_that_was_killed_after_it_kept_the_previous_checkpoint_leaves_no_link(saved, checkpoint_io) -> None:
    checkpoint_io.save_checkpoint(content(2.0), saved)
    saved.with_name("previous.ckpt").unlink(missing_ok=True)
    saved.with_name("previous.ckpt").hardlink_to(saved)
    checkpoint_io.save_checkpoint(content(3.0), saved)
    assert sorted(path.name for path in saved.parent.iterdir()) == ["last.ckpt", "previous.ckpt"]


def test_a_first_checkpoint_that_fails_leaves_no_folder(tmp_path, checkpoint_io, monkeypatch) -> None:
    monkeypatch.setattr("firstlight.files.atomic.os.fsync", no_links)
    with pytest.raises(OSError, match="not permitted"):
        checkpoint_io.save_checkpoint(content(), tmp_path / "checkpoints" / "last.ckpt")
    assert list(tmp_path.iterdir()) == []


# --- incomplete writes ---


def assert_untouched(saved: Path, before: bytes) -> None:
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


FULL, CONFUSED = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), RuntimeError("torch is confused")


@pytest.mark.parametrize("error", [FULL, CONFUSED, KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("function", ["files.atomic.os.fsync", "lit.checkpoint.torch.save"])
def test_a_full_disk_an_error_of_torch_or_ctrl_c_leaves_the_old_checkpoint_and_nothing_else(
    saved, checkpoint_io, monkeypatch, function: str, error: BaseException
) -> None:
    before = saved.read_bytes()

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(f"firstlight.{function}", fail)
    with pytest.raises(type(error)) as raised:
        checkpoint_io.save_checkpoint(content(2.0), saved)
    assert raised.value is error
    assert_untouched(saved, before)


def test_a_file_that_the_system_refuses_to_grow_is_an_error_of_the_system(saved, checkpoint_io) -> None:
    """Writes fail in the kernel."""
    before = saved.read_bytes()
    given = {"state_dict": {"weight": torch.ones(1_000_003)}}
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # without this, the process is killed
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        with pytest.raises(OSError, match="File too large") as error:
            checkpoint_io.save_checkpoint(given, saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert error.value.errno == errno.EFBIG
    assert_untouched(saved, before)


# --- damage ---


def outcome(path: Path) -> str:
    """Return the result of reading: `same`, `refused`, or the name of a wrong result."""
    try:
        found = read_checkpoint(path)
    except UserError as error:
        return "refused" if str(path) in str(error) and "\n" not in str(error) else f"unclear: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    expected = content()
    same = found["global_step"] == 17 and found[METADATA] == STAMP | RUN_METADATA
    weights = found["state_dict"]
    same = same and all(torch.equal(weights[name], weight) for name, weight in expected["state_dict"].items())
    return "same" if same else "silently different"


def test_one_flipped_bit_is_noticed_or_harmless(saved) -> None:
    """Bits are flipped at many places, and at every byte of the directory at the end, which has no checksum."""
    whole = saved.read_bytes()
    choice, outcomes = random.Random(5), {}
    directory = whole.index(b"PK\x01\x02")
    for place in [*range(0, directory, 31), *range(directory, len(whole))]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << choice.randrange(8)
        saved.write_bytes(damaged)
        outcomes.setdefault(outcome(saved), []).append(place)
    assert set(outcomes) <= {"same", "refused"}
    assert len(outcomes["refused"]) > 100


def test_weights_marked_as_a_folder_are_refused(saved) -> None:
    """Flip one bit without a checksum, after which torch does not read the data of a tensor."""
    whole = bytearray(saved.read_bytes())
    entry = whole.rindex(b"archive/data/0") - 46  # the fixed part of an entry of the directory
    assert whole[entry : entry + 4] == b"PK\x01\x02"
    whole[entry + 38] ^= 0x10
    saved.write_bytes(whole)
    with pytest.raises(UserError, match=r"is damaged in archive/data/0; use the run's other checkpoint"):
        read_checkpoint(saved)


@pytest.mark.parametrize("kind", ["compressed", "overlapping"])
def test_a_zip_bomb_is_refused_before_it_is_unpacked(saved, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED if kind == "compressed" else zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", bytes(5_000_000 if kind == "compressed" else 5_000))
        if kind == "overlapping":  # many names for the same bytes
            archive.filelist += [copy.copy(archive.filelist[0]) for _ in range(300)]
    monkeypatch.setattr(zipfile.ZipFile, "testzip", lambda _: pytest.fail("it was unpacked"))
    with pytest.raises(UserError, match="is damaged in its list of parts, which are larger than the file; use the"):
        read_checkpoint(saved)


# --- other files ---


def traps(folder: Path, sprung: Path) -> dict[str, Path]:
    """Return files in all formats of torch that run code when they are unpickled."""
    names = ("pickle", "legacy", "zip", "in_the_metadata", "compressed", "by_hand")
    made, trap = {name: folder / f"{name}.ckpt" for name in names}, Calls(os.mkdir, str(sprung))
    made["pickle"].write_bytes(pickle.dumps(trap))
    torch.save({"state_dict": trap}, made["legacy"], _use_new_zipfile_serialization=False)
    torch.save(trap, made["zip"])
    torch.save({**content(), METADATA: {**STAMP, "task": trap}}, made["in_the_metadata"])
    for name, method in (("compressed", zipfile.ZIP_DEFLATED), ("by_hand", zipfile.ZIP_STORED)):
        with zipfile.ZipFile(made[name], "w", method) as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(trap, protocol=2))
            archive.writestr("archive/version", "3\n")
            archive.writestr("archive/byteorder", "little")
    return made


@pytest.mark.parametrize("forced", [None, "1"], ids=["default", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"])
def test_a_checkpoint_that_would_run_code_is_refused_and_runs_none(tmp_path, checkpoint_io, monkeypatch, forced):
    if forced:
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", forced)
    sprung = tmp_path / "sprung"
    for path in traps(tmp_path, sprung).values():
        assert outcome(path) == "refused"
        with pytest.raises(UserError, match=r"not a checkpoint") as error:
            checkpoint_io.load_checkpoint(path, weights_only=False)
        assert not sprung.exists()
        assert "mkdir" in str(error.value) or path.stem not in ("zip", "by_hand")


@pytest.mark.parametrize(
    ("value", "named"),
    [(Path("a"), r"pathlib\.(_local\.)?PosixPath"), (Calls(bytearray, 2**62), r"not loaded \(MemoryError\)")],
)
def test_an_object_of_a_class_is_named_and_no_way_around_is_advised(value: object, named: str, tmp_path) -> None:
    """Torch allows a pickle to call bytearray, so that a small file can request more memory than any machine has."""
    path = tmp_path / "last.ckpt"
    torch.save({**content(), METADATA: {**STAMP, "name": value}}, path)
    with pytest.raises(UserError, match=named) as error:
        read_checkpoint(path)
    assert "add_safe_globals" not in str(error.value)


def test_a_pickle_that_makes_no_sense_is_refused(tmp_path, saved) -> None:
    """The checksum is correct, so that only the reader of pickles can detect the damage."""
    with zipfile.ZipFile(saved) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    choice, path = random.Random(5), tmp_path / "nonsense.ckpt"
    name = next(name for name in parts if name.endswith("data.pkl"))
    for _ in range(101):
        nonsense = bytearray(parts[name])
        nonsense[choice.randrange(10, len(nonsense))] = choice.randrange(256)
        with zipfile.ZipFile(path, "w") as archive:
            for part, data in (parts | {name: bytes(nonsense[: choice.randrange(20, len(nonsense))])}).items():
                archive.writestr(part, data)
        assert outcome(path) == "refused"


def test_the_trap_would_work(tmp_path) -> None:
    """A file of the test above runs its code if it is unpickled."""
    path = traps(tmp_path, tmp_path / "sprung")["in_the_metadata"]
    torch.load(path, weights_only=False)
    assert (tmp_path / "sprung").is_dir()


def test_what_was_saved_by_torch_alone_is_refused_with_a_word_on_what_to_name(tmp_path) -> None:
    path = tmp_path / "model.pt"
    without_weights = {METADATA: STAMP | RUN_METADATA, "global_step": 3}
    no_metadata = {METADATA: "metadata", "state_dict": {}}
    for other in ({"state_dict": {"weight": torch.ones(3)}}, [1, 2], no_metadata, without_weights):
        torch.save(other, path)
        with pytest.raises(UserError, match=r"is not a checkpoint of firstlight; name the folder of a run"):
            read_checkpoint(path)


@pytest.mark.parametrize("version", ["0.3.9", "0.3.0rc1", 3, "9" * 5000])
def test_a_checkpoint_of_this_minor_version_or_of_no_version_is_read(version: object, tmp_path) -> None:
    path = tmp_path / "last.ckpt"
    torch.save({**content(), METADATA: {**STAMP, "version": version}}, path)
    assert read_checkpoint(path)[METADATA]["version"] == version


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_read_as_it_was(saved, monkeypatch) -> None:
    check = checkpoint._damaged_part

    def replaced(file: object) -> str | None:
        found = check(file)  # type: ignore[arg-type]
        other = saved.with_name("other")
        other.write_bytes(b"damaged")
        other.replace(saved)
        return found

    monkeypatch.setattr(checkpoint, "_damaged_part", replaced)
    assert read_checkpoint(saved)["global_step"] == 17


@pytest.mark.parametrize("url", ["https://example.org/last.ckpt", "s3://bucket/last.ckpt", "file:///tmp/last.ckpt"])
def test_a_url_is_refused_before_anything_is_fetched(url: str, checkpoint_io) -> None:
    for read in (read_checkpoint, checkpoint_io.load_checkpoint):
        for path in (url, Path(url)):
            with pytest.raises(UserError, match=r"is a URL; download the run folder first"):
                read(path)


def test_a_missing_checkpoint_and_a_folder_are_named(tmp_path) -> None:
    for path, message in ((tmp_path / "none.ckpt", "No such file .*train the run first"), (tmp_path, "Is a directory")):
        with pytest.raises(UserError, match=message):
            read_checkpoint(path)


# --- the network that a checkpoint names ---

MINE = """
from pathlib import Path

from firstlight.networks import Classifier

Path("canary").touch()


class Mine(Classifier):
    pass
"""


@pytest.fixture
def named(tmp_path, monkeypatch):
    """Make metadata name a class of a module that creates ./canary when imported. Return the name of the class."""

    def name(folder: Path, module: str) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{module}.py").write_text(MINE)
        monkeypatch.syspath_prepend(folder)
        (tmp_path / "here").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "here")
        return f"{module}.Mine"

    return name


def metadata_naming(target: object, *, attention: bool = False) -> dict[str, object]:
    tokenizer = train_word_tokenizer(["it works", "it broke"], min_document_frequency=1, max_size=None)
    named = {"attention": {"_target_": target}} if attention else {"_target_": target}
    described = {**named, "dim": 4, "num_heads": 2, "context_length": 5}
    metadata = {"network": "classifier", "config": {"model": described}, "class_names": ["no", "yes"]}
    return metadata | {"tokenizer": tokenizer.to_json()}


def built(target: object, checkpoint: str = "best.ckpt", *, attention: bool = False) -> torch.nn.Module:
    """Return the network of a checkpoint that names a class."""
    return network_of_metadata(metadata_naming(target, attention=attention), ClassifierConfig, Path(checkpoint), {})


def test_a_network_of_the_project_in_the_current_folder_is_built(tmp_path, named) -> None:
    target = named(tmp_path / "here" / "src", "my_checkpoint_network")
    assert type(built(target)).__name__ == "Mine"
    assert Path("canary").exists()


@pytest.mark.parametrize("target", ["firstlight.generator.first_steps.BigramTable", "firstlight.generator.lstm.LSTM"])
def test_an_alternative_network_of_firstlight_is_built_in_every_folder(target: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    metadata = metadata_naming(target) | {"network": "generator"}
    config = GeneratorConfig(**metadata["config"]["model"])
    weights = build_network(config, tokenizer_of_json(metadata["tokenizer"]).vocab_size).state_dict()
    network = network_of_metadata(metadata, GeneratorConfig, tmp_path / "best.ckpt", weights)
    assert f"{type(network).__module__}.{type(network).__name__}" == target
    weights["embedding.weight"] = weights["embedding.weight"][:-1]
    with pytest.raises(UserError, match=r"best\.ckpt: .*embedding\.weight"):
        network_of_metadata(metadata, GeneratorConfig, tmp_path / "best.ckpt", weights)


@pytest.mark.parametrize("attention", [False, True], ids=["network", "attention"])
@pytest.mark.parametrize(
    ("folder", "checkpoint"),
    [
        ("elsewhere", "best.ckpt"),
        ("here/.venv/lib/site-packages", "best.ckpt"),
        ("here/theirs", "theirs/run/checkpoints/best.ckpt"),  # unpacked below the current folder
        ("here/theirs", "theirs/checkpoints/best.ckpt"),
        ("here/theirs", "theirs/best.ckpt"),
        ("here", "checkpoints/best.ckpt"),  # the current folder is the run's
    ],
)
def test_code_that_is_elsewhere_or_came_with_a_checkpoint_is_not_run(
    tmp_path, named, monkeypatch, folder: str, checkpoint: str, attention: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "here")
    target = named(tmp_path / folder, f"foreign_{attention}_{len(folder)}_{len(checkpoint)}")
    if folder == "here/theirs":
        target = f"theirs.{target}"
    with pytest.raises(UserError, match=r"is not in the current folder or is next to the checkpoint, so its code is"):
        built(target, checkpoint, attention=attention)
    assert not Path("canary").exists()


def test_a_checkpoint_names_no_class_of_firstlight_that_is_not_a_network() -> None:
    for target in ("firstlight.errors.UserError", "firstlight.runs.folder.RunFolder", "firstlight.commands.train.main"):
        with pytest.raises(UserError, match=r"is not a subclass of torch.nn.Module"):
            built(target)


@pytest.mark.parametrize(
    "target", ["antigravity.Net", "torch.nn.Linear", "os:system", "a b.C", "Net", "", "__main__.Net"]
)
def test_a_checkpoint_names_no_module_of_a_library(target: str, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr("firstlight.lit.networks.resolve_name", asked.append)
    with pytest.raises(UserError, match=r"is not in the current folder|is not the name of a class"):
        built(target)
    assert asked == []
