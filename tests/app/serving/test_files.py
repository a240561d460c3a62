"""Files in the server's memory: few uploads of a session, and of all of them no more than a budget."""

from types import SimpleNamespace

from streamlit import runtime
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from visformer.app.serving import server  # noqa: F401  few are kept once it is imported
from visformer.app.streamlit_private import files
from visformer.system import limits


def uploaded(*sent):
    """What is kept after these uploads, (session, name): the names by session."""
    kept = MemoryUploadedFileManager("/upload")
    for session, name in sent:
        kept.add_file(session, UploadedFileRec(name, name, "text/plain", b"x" * 1000))
    return {session: [*names] for session, names in kept.file_storage.items()}


def test_a_session_keeps_its_latest_uploads():
    names = [f"{i}" for i in range(300)]
    assert uploaded(*(("mine", name) for name in names)) == {"mine": names[-limits.UPLOADS :]}


def test_a_second_upload_takes_nothing_from_another_session():
    assert uploaded(("mine", "a"), ("other", "b"), ("mine", "c")) == {"mine": ["a", "c"], "other": ["b"]}


def test_all_sessions_together_keep_no_more_than_the_limit(monkeypatch):
    monkeypatch.setattr(limits, "UPLOAD_BYTES", 2_500)
    assert uploaded(*((name, name) for name in "abcde")) == {"d": ["d"], "e": ["e"]}


def made(*contents):
    """What is kept after these files were made, and the names that they got."""
    kept = MemoryMediaFileStorage("/media")
    names = [kept.load_and_get_id(each, "text/html", MediaFileKind.DOWNLOADABLE, "a.html") for each in contents]
    return [file.content for file in kept._files_by_id.values()], names


def test_files_that_differ_anywhere_are_different_files():
    """Streamlit compares the first, middle and last 64 kB: a lesson with other words would be handed out instead."""
    mine, other = bytearray(3_000_000), bytearray(3_000_000)
    other[500_000] = 1
    kept, names = made(bytes(mine), bytes(other), bytes(mine))
    assert kept == [mine, other]
    assert names[0] == names[2] != names[1]


def test_all_made_files_together_are_no_more_than_the_limit_and_the_latest_stays(monkeypatch):
    monkeypatch.setattr(limits, "MADE_BYTES", 100)
    small, large = b"s" * 10, b"l" * 80
    assert made(small, large, b"m" * 30)[0] == [small, b"m" * 30]
    assert made(small, b"x" * 500)[0] == [b"x" * 500]


def test_downloads_are_freed_but_not_before_a_browser_had_time(monkeypatch):
    freed = []

    manager = SimpleNamespace(remove_orphaned_files=lambda: freed.append(1))
    monkeypatch.setattr(runtime, "exists", lambda: True)
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(media_file_mgr=manager))
    monkeypatch.setattr(files, "_freed", 0.0)
    for now in (100, 101, 109, 111, 130):
        monkeypatch.setattr(files.time, "monotonic", lambda now=now: now)
        files.forget_downloads()
    assert len(freed) == 3
