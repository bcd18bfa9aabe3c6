"""The pipeline on real files, with a broken one, and with a worker that dies."""

from pathlib import Path

from images import images

from rhythm.testing import Env


def test_all_pictures_are_on_the_sheet(env: Env, tmp_path: Path) -> None:
    made = env.run(images, str(tmp_path / "photos"))
    assert (made["thumbnails"], made["broken"]) == (6, [])
    assert Path(str(made["sheet"])).read_bytes().startswith(b"P6 16 72 255\n")


def test_broken_picture_is_left_out(env: Env, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    env.run(images, str(folder))
    (folder / "photo3.ppm").write_bytes(b"P5 1 1 255\n")
    made = env.run(images, str(folder))
    assert made["thumbnails"] == 5
    assert made["broken"] == [str(folder / "photo3.ppm")]


def test_worker_that_dies_on_one_picture_does_not_stop_the_others(env: Env, tmp_path: Path) -> None:
    env.task("thumbnail").crashes().runs()
    assert env.run(images, str(tmp_path / "photos"))["thumbnails"] == 6
