"""A step's own version of a folder: the same promises for an overlay and for a mirror."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from views import overlays_work

from jupyterlab_convect.runner import landlock, overlay
from jupyterlab_convect.runner.layers import FileKey, Layer, Made
from jupyterlab_convect.runner.mirror_view import LARGE, MirrorView
from jupyterlab_convect.runner.overlay_view import OverlayView
from jupyterlab_convect.runner.view import certain, inside, keep_made
from jupyterlab_convect.runner.view import open_view as open_any
from jupyterlab_convect.runner.view_spec import Outside, View, ViewSpec
from jupyterlab_convect.runs.snapshots import Snapshots

NOBODY = 65534


def let_others_in(folder: Path) -> None:
    for path in (folder, *folder.parents):
        if not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "项目 a:b,c"
    for folder in ("nb", "data", "empty"):
        (root / folder).mkdir(parents=True)
    (root / "data" / "x.csv").write_text("7")
    (root / "data" / "old.txt").write_text("old")
    (root / "nb" / "helper.py").write_text("x = 1\n")
    (root / "nb" / "link").symlink_to("../data/x.csv")
    return root


Open = Callable[..., View]


@pytest.fixture(params=["overlay", "mirror"])
def open_view(request: pytest.FixtureRequest, tmp_path: Path, project: Path) -> Open:
    """Makes views of the project, each with a private layer of its own."""
    if request.param == "overlay" and not overlays_work(project):
        pytest.skip("This system allows no overlays.")
    count = iter(range(100))

    def make(*layers: Layer, **how: Any) -> View:
        spec = ViewSpec(project, layers, is_open=True, **how)
        kind = OverlayView if request.param == "overlay" else MirrorView
        return kind(spec, tmp_path / f"private-{next(count)}")

    return make


def in_child(view: View, work: Callable[[Path], Any]) -> Any:
    """Work in the project's `nb` folder, as a step would."""

    def act() -> Any:
        folder = view.path(view.spec.root / "nb")  # type: ignore[attr-defined]
        here = Path.cwd()
        os.chdir(folder)
        try:
            return work(folder)
        finally:
            os.chdir(here)

    return inside(view, act)


def made_by(view: View, into: Path) -> dict[str, str]:
    return {each.path: each.change for each in keep_made(view, into)}


def test_what_a_step_writes_is_known_and_touches_nothing(
    open_view: Open, project: Path, tmp_path: Path
) -> None:
    def work(_: Path) -> str:
        Path("new.txt").write_text("new")
        Path("../data/x.csv").write_text("8")
        Path("../data/old.txt").unlink()
        return Path("helper.py").read_text() + Path("link").read_text()

    view = open_view()
    assert in_child(view, work) == "x = 1\n8"
    assert made_by(view, tmp_path / "made") == {
        "nb/new.txt": "created",
        "data/x.csv": "changed",
        "data/old.txt": "deleted",
    }
    assert (tmp_path / "made/data/x.csv").read_text() == "8"
    assert (project / "data/x.csv").read_text() == "7"
    assert (project / "data/old.txt").exists()
    assert not (project / "nb/new.txt").exists()


def test_reading_touching_and_rewriting_the_same_makes_nothing(
    open_view: Open, tmp_path: Path
) -> None:
    def work(_: Path) -> None:
        Path("helper.py").touch()
        Path("../data/x.csv").write_text("7")

    view = open_view()
    in_child(view, work)
    assert made_by(view, tmp_path / "made") == {}


def test_a_folder_that_is_replaced_hides_what_was_in_it(
    open_view: Open, project: Path, tmp_path: Path
) -> None:
    def replace(_: Path) -> None:
        shutil.rmtree("../data")
        Path("../data").mkdir()
        Path("../data/only").write_text("1")

    view = open_view()
    in_child(view, replace)
    made = keep_made(view, tmp_path / "made")
    layer = Layer(tmp_path / "made", tuple(each.path for each in made if each.change == "deleted"))
    after = open_view(layer)
    assert in_child(after, lambda _: sorted(os.listdir("../data"))) == ["only"]  # noqa: PTH208
    assert sorted(path.name for path in (project / "data").iterdir()) == ["old.txt", "x.csv"]


def test_a_folder_that_somebody_else_moves_there_meanwhile_was_deleted_by_nobody(
    project: Path, tmp_path: Path
) -> None:
    if not overlays_work(project):
        pytest.skip("This system allows no overlays.")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("not of the step")
    view = OverlayView(ViewSpec(project, is_open=True), tmp_path / "private")

    def make(_: Path) -> None:
        Path("../new").mkdir()
        Path("../new/mine").write_text("1")

    in_child(view, make)
    # As older kernels mark every folder that is made, whether it replaces one or not.
    os.setxattr(tmp_path / "private/upper/new", overlay.OPAQUE, b"y")
    elsewhere.rename(project / "new")
    assert made_by(view, tmp_path / "made") == {"new/mine": "created"}


def test_layers_hand_files_from_step_to_step(open_view: Open, tmp_path: Path) -> None:
    first = open_view()
    in_child(first, lambda _: Path("model").write_text("1"))
    keep_made(first, tmp_path / "one")

    def improve(_: Path) -> None:
        Path("model").write_text(Path("model").read_text() + "2")
        Path("../empty/made").mkdir()

    second = open_view(Layer(tmp_path / "one"))
    in_child(second, improve)
    keep_made(second, tmp_path / "two")
    third = open_view(Layer(tmp_path / "two"), Layer(tmp_path / "one"))
    assert in_child(third, lambda _: Path("model").read_text()) == "12"
    assert in_child(third, lambda _: Path("../empty/made").is_dir())


def test_more_layers_than_a_mount_can_name(open_view: Open, tmp_path: Path) -> None:
    layers = []
    for number in range(60):
        folder = tmp_path / f"layer-{number}"
        folder.mkdir()
        (folder / f"f{number}").write_text(str(number))
        (folder / "same").write_text(str(number))
        layers.append(Layer(folder, ("data/x.csv",) if number == 50 else ()))
    view = open_view(*layers)

    def look(_: Path) -> list[Any]:
        names = os.listdir("..")  # noqa: PTH208
        return [len(names), Path("../same").read_text(), Path("../data/x.csv").exists()]

    assert in_child(view, look) == [64, "0", False]


def test_a_large_file_is_never_copied_to_be_read(
    open_view: Open, project: Path, tmp_path: Path
) -> None:
    with (project / "data/large.bin").open("wb") as file:
        file.truncate(LARGE * 5000)  # takes no room itself, but a copy would
    view = open_view()
    size = in_child(view, lambda _: Path("../data/large.bin").stat().st_size)
    assert size == LARGE * 5000
    assert made_by(view, tmp_path / "made") == {}


@pytest.mark.skipif(landlock.version() < 1, reason="The kernel has no Landlock.")
def test_a_mirror_lets_nobody_write_through_to_the_project(project: Path, tmp_path: Path) -> None:
    large = project / "data/large.bin"
    large.write_bytes(bytes(LARGE + 1))
    view = MirrorView(ViewSpec(project, is_open=True), tmp_path / "private")

    def attempts() -> list[str]:
        view.enter()
        refused = []
        for path in (view.path(large), project / "data/x.csv", project / "new"):
            try:
                with path.open("ab") as file:
                    file.write(b"!")
            except PermissionError:
                refused.append(path.name)
        view.path(project / "new").write_text("mine")
        (tmp_path / "private/elsewhere").write_text("allowed")
        return refused

    assert _in_fork(attempts) == ["large.bin", "x.csv", "new"]
    assert large.stat().st_size == LARGE + 1
    assert (project / "data/x.csv").read_text() == "7"


def test_a_folder_too_large_to_mirror_is_worked_in_itself(project: Path, tmp_path: Path) -> None:
    spec = ViewSpec(project, is_open=True, scratch=(tmp_path / "private",), most_files=5)
    view = open_any(spec, overlays=False)
    assert view.kind == "turns"
    assert view.path(project / "nb") == project / "nb"
    assert not (tmp_path / "private").exists()


def test_a_mirror_is_used_again_as_it_was(project: Path, tmp_path: Path) -> None:
    """Whatever the step before did to it, and however the project differs now."""
    base = _recorded(project, tmp_path / "views")
    tree = base.folder
    (tmp_path / "over/data").mkdir(parents=True)
    (tmp_path / "over/data/x.csv").write_text("8")

    def spoil(_: Path) -> str:
        seen = Path("../data/x.csv").read_text()
        Path("helper.py").write_text("spoilt")
        Path("../data/old.txt").unlink()
        Path("new").mkdir()
        Path("new/file").write_text("n")
        return seen

    first = MirrorView(ViewSpec(project, (Layer(tmp_path / "over"), base)), tmp_path / "one")
    assert in_child(first, spoil) == "8"
    first.close()
    (spare,) = (tmp_path / "views/tree.spares").iterdir()
    second = MirrorView(ViewSpec(project, (base,)), tmp_path / "two")
    assert not spare.exists()
    mirror = tmp_path / "two/mirror"
    assert {p.relative_to(mirror) for p in mirror.rglob("*")} == {
        p.relative_to(tree) for p in tree.rglob("*")
    }
    assert (mirror / "nb/helper.py").read_text() == "x = 1\n"
    assert (mirror / "data/x.csv").read_text() == "7"
    assert made_by(second, tmp_path / "made") == {}


def test_a_mirror_of_which_something_was_lost_is_not_used_again(
    project: Path, tmp_path: Path
) -> None:
    """As a cleaner of temporary files does: the step would seem to have deleted it."""
    base = _recorded(project, tmp_path / "views")
    MirrorView(ViewSpec(project, (base,)), tmp_path / "one").close()
    (spare,) = (tmp_path / "views/tree.spares").iterdir()
    (spare / "mirror/data/old.txt").unlink()
    view = MirrorView(ViewSpec(project, (base,)), tmp_path / "two")
    assert in_child(view, lambda _: Path("../data/old.txt").read_text()) == "old"
    assert made_by(view, tmp_path / "made") == {}


def test_a_mirror_that_is_gone_with_its_run_is_not_made_again(
    project: Path, tmp_path: Path
) -> None:
    """A run can be deleted as soon as it has ended, and its views are closed after that."""
    base = _recorded(project, tmp_path / "views")
    view = MirrorView(ViewSpec(project, (base,)), tmp_path / "run/view")
    (tmp_path / "run").rename(tmp_path / "deleted")
    view.close()
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can become somebody else.")
def test_a_folder_that_a_step_closes_is_not_deleted(project: Path, tmp_path: Path) -> None:
    let_others_in(tmp_path)
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)

    def as_nobody() -> dict[str, str]:
        become_nobody()
        view = MirrorView(ViewSpec(project, is_open=True), tmp_path / "theirs/private")
        in_child(view, lambda _: Path("../data").chmod(0))
        return made_by(view, tmp_path / "theirs/made")

    assert _in_fork(as_nobody) == {}


def _recorded(project: Path, views: Path) -> Layer:
    """A project as it was at submit."""
    tree, lists = views / "tree", views / "tree.json"
    shutil.copytree(project, tree, symlinks=True)
    lists.write_text(json.dumps({"linked": {}, "missing": {}}))
    return Layer(tree, (), lists)


def test_live_folders_are_shared_and_private_ones_leave_nothing(
    open_view: Open, project: Path, tmp_path: Path
) -> None:
    (project / "runs").mkdir()
    (project / ".git").mkdir()
    (project / ".git/HEAD").write_text("main")
    view = open_view(live=("runs",), private=(".git",))
    if view.kind == "mirror":
        pytest.skip("A mirror links to both.")

    def work(_: Path) -> str:
        Path("../runs/seen").write_text("by all")
        Path("../.git/HEAD").write_text("moved")
        return Path("../.git/HEAD").read_text()

    assert in_child(view, work) == "moved"
    assert (project / "runs/seen").read_text() == "by all"
    assert (project / ".git/HEAD").read_text() == "main"
    assert made_by(view, tmp_path / "made") == {}


def test_a_change_of_what_was_not_copied_is_noticed(project: Path, tmp_path: Path) -> None:
    path = project / "data/x.csv"
    lists = tmp_path / "lists.json"
    lists.write_text(json.dumps({"linked": {"data/x.csv": FileKey.of(path.stat())}, "missing": {}}))
    spec = ViewSpec(project, (Layer(project, (), lists),))
    assert spec.changed_meanwhile() == []
    path.write_text("another")
    assert spec.changed_meanwhile() == ["data/x.csv"]
    (tmp_path / "above/data").mkdir(parents=True)
    (tmp_path / "above/data/x.csv").write_text("made by an earlier step")
    covered = ViewSpec(project, (Layer(tmp_path / "above"), *spec.layers))
    assert covered.changed_meanwhile() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can become somebody else.")
def test_an_ordinary_user_has_views_too(project: Path, tmp_path: Path) -> None:
    let_others_in(tmp_path)
    for path in (project, *project.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    (project / "data/x.csv").chmod(0o444)
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)

    def as_nobody() -> Any:
        become_nobody()
        spec = ViewSpec(project, is_open=True, scratch=(tmp_path / "theirs/instead",))
        view = OverlayView(spec, tmp_path / "theirs/private")
        if certain(view, project) is not view:
            return "no namespaces"

        def work(_: Path) -> list[Any]:
            Path("new").write_text("n")
            try:
                Path("../data/x.csv").write_text("8")
            except PermissionError:
                return [os.getuid(), "read-only stays read-only"]
            return []

        answer = in_child(view, work)
        return [*answer, made_by(view, tmp_path / "theirs/made")]

    answer = _in_fork(as_nobody)
    if answer == "no namespaces":
        pytest.skip("This system gives ordinary users no namespaces.")
    assert answer == [NOBODY, "read-only stays read-only", {"nb/new": "created"}]
    assert not (project / "nb/new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can become somebody else.")
@pytest.mark.parametrize("kind", [OverlayView, MirrorView])
def test_in_a_folder_that_an_ordinary_user_cannot_write_a_step_can(
    project: Path, tmp_path: Path, kind: type[OverlayView | MirrorView]
) -> None:
    let_others_in(tmp_path)
    for path in (project, *project.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)

    def as_nobody() -> Any:
        become_nobody()
        spec = ViewSpec(project, is_open=True, scratch=(tmp_path / "theirs/instead",))
        view = kind(spec, tmp_path / "theirs/private")
        view.make_folder(project / "nb")
        if certain(view, project / "nb") is not view:
            return "no namespaces"

        def work(_: Path) -> str:
            Path("new").write_text("n")
            Path("../beside").write_text("b")
            return Path("link").read_text()

        return [in_child(view, work), made_by(view, tmp_path / "theirs/made")]

    answer = _in_fork(as_nobody)
    if answer == "no namespaces":
        pytest.skip("This system gives ordinary users no namespaces.")
    assert answer == ["7", {"nb/new": "created", "beside": "created"}]
    assert not (project / "nb/new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can become somebody else.")
def test_an_ordinary_user_has_views_of_what_lies_outside_too(project: Path, tmp_path: Path) -> None:
    let_others_in(tmp_path)
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / ".cache").mkdir(parents=True)
    project = project.rename(home / "p")
    for folder in (home / "data", elsewhere):
        folder.mkdir()
        (folder / "x").write_text("old")
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "file").write_text("old")
    (project / "nb/file").symlink_to(alone / "file")
    (project / "nb/out").symlink_to(elsewhere)
    (home / ".local").mkdir()
    for path in (home, elsewhere, alone / "file", *home.rglob("*"), *elsewhere.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def as_nobody() -> Any:
        become_nobody()
        outside = (
            Outside("~", home, is_link=False),
            Outside("nb/out", elsewhere),
            Outside("nb/file", alone / "file"),
        )
        spec = ViewSpec(project, is_open=True, scratch=(home / "i",), outside=outside)
        view = OverlayView(spec, home / ".local/private")
        if certain(view, project) is not view:
            return "no namespaces"

        def work(_: Path) -> str | None:
            for path in ("out/x", "../../data/x", "../../.cache/x", "../new"):
                Path(path).write_text("mine")
            try:
                Path("file").write_text("mine")
            except OSError as error:
                return error.strerror
            return None

        assert in_child(view, work) == "Read-only file system"
        return made_by(view, home / ".local/made")

    answer = _in_fork(as_nobody)
    if answer == "no namespaces":
        pytest.skip("This system gives ordinary users no namespaces.")
    assert answer == {"new": "created", "~/data/x": "changed", "nb/out/x": "changed"}
    assert (elsewhere / "x").read_text() == (home / "data/x").read_text() == "old"
    assert (home / ".cache/x").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can mount.")
def test_a_project_on_another_disk(open_view: Open, project: Path, tmp_path: Path) -> None:
    """From which nothing can be linked, as from a network."""
    shutil.move(project, tmp_path / "aside")
    project.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", project], check=False).returncode:
        pytest.skip("Mounts are not allowed here.")
    try:
        shutil.copytree(tmp_path / "aside", project, symlinks=True, dirs_exist_ok=True)
        snapshots = Snapshots(tmp_path / "runs")
        taken = snapshots.take(project, ["nb/helper.py"])
        layers, _ = snapshots.layers(taken)
        (project / "nb/helper.py").write_text("edited")

        def work(_: Path) -> str:
            Path("../data/x.csv").write_text("8")
            return Path("helper.py").read_text()

        view = open_view(*layers)
        assert in_child(view, work) == "x = 1\n"
        assert made_by(view, tmp_path / "made") == {"data/x.csv": "changed"}
        assert (project / "data/x.csv").read_text() == "7"
    finally:
        subprocess.run(["umount", project], check=True)


def test_what_was_made_survives_its_record() -> None:
    made = Made("a/b", "created", 3, "sha256:00", 0o100640)
    assert made.to_json() == {
        "path": "a/b",
        "change": "created",
        "size": 3,
        "digest": "sha256:00",
        "mode": 0o640,
    }


def _in_fork(work: Callable[[], Any]) -> Any:
    """The result of work that changes what its process may do."""

    class Elsewhere(View):
        kind = "test"

        def path(self, path: Path) -> Path:
            return path

        def enter(self) -> None:
            pass

        def changes(self) -> Any:
            return iter(())

        def take(self, path: str, target: Path) -> None:
            return None

        def close(self) -> None:
            pass

    return inside(Elsewhere(), work)
