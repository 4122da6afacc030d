"""Files and folders are written whole or not at all, and nothing is replaced that is not ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tinyattn import files
from tinyattn.errors import ArgumentError
from tinyattn.files import write_folder_whole, write_whole

BOOK = {"index.html": "one\n", "zh/index.html": "一\n"}


def inside(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and path.name != "contents.json"
    }


def test_a_folder_is_written_and_replaced_as_a_whole(tmp_path: Path) -> None:
    site = tmp_path / "new" / "site"
    write_folder_whole(site, BOOK, "book")
    assert inside(site) == BOOK
    write_folder_whole(site, {"index.html": "two\n"}, "book")
    assert inside(site) == {"index.html": "two\n"}  # the Chinese page of before is gone
    assert [path.name for path in site.parent.iterdir()] == ["site"]  # nothing is left beside it


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    write_folder_whole(tmp_path / "site", BOOK, "book")
    assert inside(tmp_path / "site") == BOOK


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="is there already, and is no book"):
        write_folder_whole(tmp_path, BOOK, "book")
    assert inside(tmp_path) == {"notes.txt": "mine"}


@pytest.mark.parametrize("text", ["{", "[]", '{"kind": "parcel", "files": []}', '{"files": []}', '{"kind": "book"}'])
def test_a_list_that_is_not_ours_makes_no_book(text: str, tmp_path: Path) -> None:
    (tmp_path / "contents.json").write_text(text)
    with pytest.raises(ArgumentError, match="is no book"):
        write_folder_whole(tmp_path, BOOK, "book")


def test_a_book_with_a_file_of_the_readers_is_refused(tmp_path: Path) -> None:
    write_folder_whole(tmp_path / "site", BOOK, "book")
    (tmp_path / "site" / "zh" / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match=r"zh/notes\.txt, which did not come from it"):
        write_folder_whole(tmp_path / "site", {}, "book")
    assert inside(tmp_path / "site") == {**BOOK, "zh/notes.txt": "mine"}


def test_a_file_at_the_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("mine")
    with pytest.raises(ArgumentError, match="is a file"):
        write_folder_whole(tmp_path / "site", BOOK, "book")
    assert (tmp_path / "site").read_text() == "mine"


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("fails_at", ["write", "rename"])
def test_what_fails_in_the_middle_changes_nothing(
    old: bool, fails_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    if old:
        write_folder_whole(site, BOOK, "book")
    rename = os.rename

    def no_room(path: object, content: object) -> None:
        raise OSError(28, "No space left on device")

    def refuse(source: str, target: str) -> None:
        if source.endswith("new"):
            raise OSError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(*((files, "write_whole", no_room) if fails_at == "write" else (os, "rename", refuse)))
    with pytest.raises(OSError, match=r"No space|Permission"):
        write_folder_whole(site, {"index.html": "two\n"}, "book")
    assert ([path.name for path in tmp_path.iterdir()], inside(site) if old else {}) == (
        ["site"] if old else [],
        BOOK if old else {},
    )


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    write_folder_whole(tmp_path / "link", BOOK, "book")
    assert (tmp_path / "link").is_symlink() and inside(tmp_path / "real") == BOOK


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.txt"
    write_whole(target, "old")

    def refuse(source: str, target: str) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="Permission"):
        write_whole(target, "new")
    assert target.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_missing_folder_is_named_as_it_was_asked_for(tmp_path) -> None:
    with pytest.raises(FileNotFoundError) as refused:
        write_whole(tmp_path / "none" / "a.txt", "a")
    assert refused.value.filename == str(tmp_path / "none")
