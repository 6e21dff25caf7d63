"""A project as it was at submit, whatever happens to it afterwards."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runner.layers import find
from jupyterlab_convect.runs import scan
from jupyterlab_convect.runs import snapshots as module
from jupyterlab_convect.runs.content_store import UNUSED
from jupyterlab_convect.runs.project import project_root
from jupyterlab_convect.runs.snapshots import Snapshot, Snapshots


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "train.py").write_text("1")
    (root / "data/small.csv").write_text("s")
    (root / "data/large.bin").write_bytes(b"l" * (module.SMALL + 1))
    (root / "latest").symlink_to("data/small.csv")
    return root


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path / "runs")


def seen(snapshots: Snapshots, snapshot: Snapshot, path: str) -> str | None:
    layers, is_open = snapshots.layers(snapshot)
    assert not is_open
    found = find(layers, path)
    return None if found is None else found.read_text()[:10]


def test_what_was_there_stays_and_what_comes_is_not_seen(
    snapshots: Snapshots, project: Path
) -> None:
    taken = snapshots.take(project, ["train.py"])
    layers, _ = snapshots.layers(taken)
    (project / "train.py").write_text("2")
    (project / "data/small.csv").unlink()
    (project / "new.py").write_text("n")
    replacement = project / "draft"
    replacement.write_bytes(b"other")
    replacement.replace(project / "data/large.bin")
    assert seen(snapshots, taken, "train.py") == "1"
    assert seen(snapshots, taken, "data/small.csv") == "s"
    assert seen(snapshots, taken, "data/large.bin") == "l" * 10
    assert seen(snapshots, taken, "new.py") is None
    assert find(layers, "latest") is not None


def test_an_unchanged_project_is_recorded_once(snapshots: Snapshots, project: Path) -> None:
    settled = time.time_ns() - 10**9
    for path in project.rglob("*"):
        os.utime(path, ns=(settled, settled), follow_symlinks=False)
    first = snapshots.take(project, ["train.py"])
    snapshots.layers(first)
    assert snapshots.take(project, ["train.py"]) is first
    another_process = Snapshots(snapshots.runs)
    assert another_process.take(project, ["train.py"]).digest == first.digest


def test_each_version_is_seen_by_its_own(snapshots: Snapshots, project: Path) -> None:
    versions = []
    for number in range(5):
        (project / "train.py").write_text(f"version {number}")
        if number == 3:
            (project / "data/small.csv").unlink()
        versions.append(snapshots.take(project, ["train.py"]))
        snapshots.layers(versions[-1])
    again = Snapshots(snapshots.runs)
    for number, snapshot in enumerate(versions):
        read = again.read(snapshot.digest)
        assert seen(again, read, "train.py") == f"version {number}"
        assert seen(again, read, "data/small.csv") == ("s" if number < 3 else None)


def test_many_changes_make_a_new_tree(
    snapshots: Snapshots, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DELTA", 3)
    snapshots.layers(snapshots.take(project, []))
    for number in range(10):
        (project / f"f{number}").write_text(str(number))
    taken = snapshots.take(project, [])
    assert len(snapshots.layers(taken)[0]) == 1
    assert seen(snapshots, taken, "f9") == "9"


def test_a_tree_that_is_lost_is_made_again(snapshots: Snapshots, project: Path) -> None:
    taken = snapshots.take(project, ["train.py"])
    snapshots.layers(taken)
    (project / "train.py").write_text("2")
    module.shutil.rmtree(snapshots.runs / "views")
    assert seen(Snapshots(snapshots.runs), taken, "train.py") == "1"


def test_a_folder_with_too_many_files_is_seen_as_it_is_but_for_its_sources(
    snapshots: Snapshots, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MOST_NAMES", 3)
    taken = snapshots.take(project, ["train.py"])
    assert list(taken.files) == ["train.py"]
    (project / "train.py").write_text("2")
    layers, is_open = snapshots.layers(taken)
    assert is_open
    found = find(layers, "train.py")
    assert found is not None
    assert found.read_text() == "1"


def test_of_a_large_folder_each_run_sees_the_files_that_others_have_named(
    snapshots: Snapshots, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MOST_NAMES", 3)
    (project / "code").mkdir()
    (project / "code/helper.py").write_text("before")
    first = snapshots.take(project, ["train.py", "code/a.py"])
    snapshots.layers(first)
    (project / "code/helper.py").write_text("after")
    layers, is_open = snapshots.layers(first)
    helper = find(layers, "code/helper.py")
    assert is_open
    assert helper is not None
    assert helper.read_text() == "before", "it lies beside a source"
    (project / "other.py").write_text("o")
    layers, is_open = snapshots.layers(snapshots.take(project, ["other.py"]))
    assert is_open
    assert [layer.deleted for layer in layers] == [()]
    assert find(layers, "train.py") is None, "it is that of the project itself"


def test_sources_are_kept_whatever_their_size(snapshots: Snapshots, project: Path) -> None:
    (project / "huge.ipynb").write_bytes(b"x" * (module.SMALL * 2))
    taken = snapshots.take(project, ["huge.ipynb"])
    digest = taken.digest_at("huge.ipynb")
    assert digest is not None
    assert snapshots.has(digest)
    assert taken.digest_at("data/large.bin") is None


def test_environments_and_the_runs_themselves_are_not_recorded(
    snapshots: Snapshots, project: Path
) -> None:
    for folder in (".venv/lib", "node_modules/x", "venv", ".git", "__pycache__"):
        (project / folder).mkdir(parents=True)
        (project / folder / "file").write_text("x")
    (project / "venv/pyvenv.cfg").write_text("")
    taken = snapshots.take(project, [])
    assert set(taken.live) == {".venv", "node_modules", "venv"}
    assert taken.private == (".git",)
    assert not [path for path in taken.files if path.startswith((".venv", "node_modules", ".git"))]


def test_temporary_files_below_a_project_are_everybodys(
    snapshots: Snapshots, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the runner meets its kernel, which sees the view, and the runner does not."""
    (project / "scratch/tmp").mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(project / "scratch/tmp"))
    assert snapshots.take(project, ["train.py"]).live == ("scratch/tmp",)


def test_a_snapshot_that_is_gone_is_said_in_a_sentence(snapshots: Snapshots) -> None:
    with pytest.raises(ConvectError, match="no longer exist"):
        snapshots.read("sha256:" + "0" * 64)


def long_ago(runs: Path, seconds: float = 2 * UNUSED) -> None:
    """Have the objects and trees below a folder be of two days ago."""
    then = time.time() - seconds
    for path in [*runs.glob("objects/??/*"), *runs.glob("views/*/*")]:
        os.utime(path, (then, then))


def document(tmp_path: Path, *named: str) -> Path:
    """Something that names digests, as `run.json` does, and is damaged."""
    path = tmp_path / "run.json"
    path.write_text("".join(f'{{"snapshot": "{digest}",' for digest in named))
    return path


def objects(snapshots: Snapshots) -> set[str]:
    return {path.parent.name + path.name for path in snapshots.objects.glob("??/*")}


def test_cleaning_keeps_what_runs_name(snapshots: Snapshots, project: Path, tmp_path: Path) -> None:
    old = snapshots.take(project, ["train.py"])
    (project / "train.py").write_text("2")
    new = snapshots.take(project, ["train.py"])
    snapshots.layers(new)
    everything = objects(snapshots)
    snapshots.clean([], [])
    assert objects(snapshots) == everything, "a run may be about to name them"
    long_ago(snapshots.runs)
    snapshots.clean([document(tmp_path, new.digest)], [])
    another_process = Snapshots(snapshots.runs)
    assert seen(another_process, another_process.read(new.digest), "train.py") == "2"
    assert another_process.read(new.digest).files.keys() == old.files.keys()
    with pytest.raises(ConvectError):
        another_process.read(old.digest)
    long_ago(snapshots.runs)
    snapshots.clean([], [])
    assert not objects(snapshots)


def test_what_was_taken_lately_is_not_cleaned_away(snapshots: Snapshots, project: Path) -> None:
    snapshots.take(project, ["train.py"])
    long_ago(snapshots.runs)
    again = snapshots.take(project, ["train.py"])
    Snapshots(snapshots.runs).clean([], [])
    assert seen(Snapshots(snapshots.runs), again, "train.py") == "1"


def test_nothing_is_cleaned_away_when_a_run_cannot_be_read(
    snapshots: Snapshots, project: Path, tmp_path: Path
) -> None:
    taken = snapshots.take(project, ["train.py"])
    long_ago(snapshots.runs)
    (tmp_path / "damaged").mkdir()
    with pytest.raises(OSError, match="Not a regular file"):
        snapshots.clean([tmp_path / "damaged"], [])
    assert snapshots.has(taken.digest)


def test_trees_are_cleaned_away_unless_a_run_goes_on(snapshots: Snapshots, project: Path) -> None:
    taken = snapshots.take(project, ["train.py"])
    layers, _ = snapshots.layers(taken)
    tree = layers[0].folder
    long_ago(snapshots.runs)
    snapshots.clean([], [taken.digest])
    assert tree.is_dir()
    Snapshots(snapshots.runs).clean([], [])
    assert not tree.exists()
    assert not layers[0].linked or not layers[0].linked.exists()


def test_the_room_of_a_deleted_file_is_given_back(
    snapshots: Snapshots, project: Path, tmp_path: Path
) -> None:
    taken = snapshots.take(project, ["train.py"])
    layers, _ = snapshots.layers(taken)
    tree = layers[0].folder
    long_ago(snapshots.runs, 2 * module.JUST_USED)
    named = document(tmp_path, taken.digest)
    snapshots.clean([named], [])
    assert tree.is_dir()
    (project / "data/large.bin").unlink()
    snapshots.clean([named], [])
    assert not tree.exists()
    (project / "data/large.bin").write_bytes(b"again" * module.SMALL)
    assert seen(snapshots, snapshots.take(project, ["train.py"]), "data/large.bin") == "againagain"


@pytest.mark.parametrize(
    ("folders", "root", "expected"),
    [
        (["p/nb"], "p", "p"),  # the root, for `../data`
        (["p/nb", "p/other/deep"], ".", "."),
        (["p/nb"], "p/nb", "p"),  # one level up, for `../data`
        (["marked/a/b"], ".", "marked/a"),  # the nearest with a marker
    ],
)
def test_where_a_project_begins(
    tmp_path: Path, folders: list[str], root: str, expected: str
) -> None:
    (tmp_path / "marked/a/b").mkdir(parents=True)
    (tmp_path / "marked/a/pyproject.toml").touch()
    found = project_root([tmp_path / each for each in folders], tmp_path / root, Path("/nowhere"))
    assert found == tmp_path / expected


def test_a_home_folder_is_a_project_only_for_what_lies_in_it() -> None:
    home = Path("/home/ana")
    assert project_root([home / "work/p/nb"], home, home) == home / "work"
    assert project_root([home / "work/p/nb"], home / "work/p", home) == home / "work/p"
    assert project_root([home / "work"], home / "work", home) == home / "work"
    assert project_root([home], home, home) == home
    assert project_root([Path("/data/x")], Path("/data/x"), home) == Path("/data/x")


def test_names_of_any_bytes(snapshots: Snapshots, project: Path) -> None:
    name = os.fsdecode(b"odd \xff\n:,name")
    (project / name).write_text("odd")
    taken = snapshots.take(project, [])
    assert seen(snapshots, taken, name) == "odd"
    assert snapshots.read(taken.digest).files.keys() == taken.files.keys()


def test_a_write_that_leaves_no_trace_in_the_times_is_seen(
    snapshots: Snapshots, project: Path
) -> None:
    """Two writes within one tick of the clock give a file the same size, time and inode."""
    path = project / "train.py"
    now = time.time_ns()
    path.write_text("a")
    os.utime(path, ns=(now, now))
    first = snapshots.take(project, ["train.py"])
    path.write_text("b")
    os.utime(path, ns=(now, now))
    second = snapshots.take(project, ["train.py"])
    assert seen(snapshots, first, "train.py") == "a"
    assert seen(snapshots, second, "train.py") == "b"


def test_a_large_source_is_kept_also_when_the_project_is_known(
    snapshots: Snapshots, project: Path
) -> None:
    settled = time.time_ns() - 10**9
    for path in project.rglob("*"):
        os.utime(path, ns=(settled, settled), follow_symlinks=False)
    snapshots.take(project, ["train.py"])
    assert snapshots.take(project, ["data/large.bin"]).digest_at("data/large.bin") is not None


class Hesitant(dict[str, Snapshot]):
    """Lets another thread go on before it forgets something."""

    def __delitem__(self, key: str) -> None:
        time.sleep(0.001)
        super().__delitem__(key)


def test_many_who_read_at_once_disturb_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    snapshots = Snapshots(tmp_path / "runs")
    taken = []
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        taken.append(snapshots.take(folder, []).digest)
    snapshots._read = Hesitant()
    with ThreadPoolExecutor(8) as pool:
        read = pool.map(lambda count: snapshots.read(taken[count % 6]).digest, range(300))
        assert list(read) == taken * 50
