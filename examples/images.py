"""Thumbnails of all pictures of a folder, eight at a time, and one sheet with all of them.

Shows: fan-out over a list with a limit, one that fails does not stop the others, progress.
Run:   rhythm run examples/images.py -i folder=photos
Test:  pytest examples/test_images.py
Pictures are PPM files, so that plain Python can read them; with Pillow, only `thumbnail` changes.
"""

from pathlib import Path

import rhythm


@rhythm.task
def paint(folder: str, count: int = 6) -> None:
    """Makes a folder with pictures, if there is none."""
    if Path(folder).is_dir():
        return
    Path(folder).mkdir(parents=True)
    for n in range(count):
        rows = bytes(v for y in range(48) for x in range(64) for v in (x * 4, y * 5, n * 40))
        (Path(folder) / f"photo{n}.ppm").write_bytes(b"P6 64 48 255\n" + rows)


@rhythm.task
def pictures_in(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).glob("*.ppm"))


@rhythm.task(retries=2, timeout="1m")
def thumbnail(picture: str, width: int) -> str:
    """Writes a small copy: every so many pixels, one. The same twice if it is run twice."""
    head, _, pixels = Path(picture).read_bytes().partition(b"\n")
    kind, w, h, most = head.split()
    if kind != b"P6" or most != b"255":
        raise rhythm.TaskFailed(f"{picture} is no picture", code="NoPicture")
    step = int(w) // width
    columns, rows = range(0, int(w), step), range(0, int(h), step)
    small = b"".join(pixels[(y * int(w) + x) * 3 :][:3] for y in rows for x in columns)
    target = Path(picture).with_suffix(".small")
    target.write_bytes(b"P6 %d %d 255\n" % (len(columns), len(rows)) + small)
    return str(target)


@rhythm.task
def sheet(folder: str, thumbnails: list[str]) -> str:
    """Puts pictures of the same size one under the other."""
    parts = [Path(name).read_bytes().partition(b"\n") for name in thumbnails]
    _, width, height, _ = parts[0][0].split()
    target = Path(folder) / "sheet.ppm.all"
    head = b"P6 %s %d 255\n" % (width, int(height) * len(parts))
    target.write_bytes(head + b"".join(pixels for _, _, pixels in parts))
    return str(target)


@rhythm.workflow
async def images(folder: str, width: int = 16) -> dict[str, str | int | list[str]]:
    await paint.run(folder)
    pictures = await pictures_in.run(folder)
    small: list[str] = []
    broken: list[str] = []
    async for done in rhythm.completed(
        [thumbnail.run(picture, width) for picture in pictures], concurrency=8
    ):
        if done["status"] == "completed":
            small.append(done["result"])
        else:
            broken.append(pictures[done["key"]])
        rhythm.progress((len(small) + len(broken)) / len(pictures))
    return {
        "sheet": await sheet.run(folder, sorted(small)),
        "thumbnails": len(small),
        "broken": broken,
    }
