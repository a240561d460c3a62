"""Files in the server's memory: uploads of a session, all uploads, and generated files are limited."""

from types import SimpleNamespace

from streamlit import runtime
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from visformer.app.serving import server  # noqa: F401  it sets the limits when it is imported
from visformer.app.streamlit_private import files
from visformer.system import limits


def uploaded(*sent):
    """Return the names kept after uploads of 1 kB, (session, name), by session."""
    manager = MemoryUploadedFileManager("/upload")
    for session, name in sent:
        manager.add_file(session, UploadedFileRec(name, name, "text/plain", b"x" * 1000))
    return {session: [*names] for session, names in manager.file_storage.items()}


def test_a_session_keeps_its_latest_uploads():
    names = [f"{i}" for i in range(300)]
    assert uploaded(*(("mine", name) for name in names)) == {"mine": names[-limits.UPLOADS :]}


def test_uploads_of_a_session_leave_those_of_others_alone():
    assert uploaded(("mine", "a"), ("other", "b"), ("mine", "c")) == {"mine": ["a", "c"], "other": ["b"]}


def test_all_sessions_together_keep_no_more_than_the_limit(monkeypatch):
    monkeypatch.setattr(limits, "UPLOAD_BYTES", 2_500)
    assert uploaded(*((name, name) for name in "abcde")) == {"d": ["d"], "e": ["e"]}


def generated(*contents):
    """Return the contents that are kept after these files were generated, and the name of each file."""
    storage = MemoryMediaFileStorage("/media")
    names = [storage.load_and_get_id(each, "text/html", MediaFileKind.DOWNLOADABLE, "a.html") for each in contents]
    return [file.content for file in storage._files_by_id.values()], names


def test_files_that_differ_anywhere_are_different_files():
    """Streamlit compares the first, middle and last 64 kB: a lesson with other words would be taken for the same."""
    one, other = bytearray(3_000_000), bytearray(3_000_000)
    other[500_000] = 1
    kept, names = generated(bytes(one), bytes(other), bytes(one))
    assert kept == [one, other]
    assert names[0] == names[2] != names[1]


def test_generated_files_together_keep_to_the_limit_and_the_latest_is_kept(monkeypatch):
    monkeypatch.setattr(limits, "MADE_BYTES", 100)
    small, large = b"s" * 10, b"l" * 80
    assert generated(small, large, b"m" * 30)[0] == [small, b"m" * 30]
    assert generated(small, b"x" * 500)[0] == [b"x" * 500]


def test_downloads_are_freed_once_browsers_had_ten_seconds_to_fetch_them(monkeypatch):
    freed, clock = [], SimpleNamespace(now=0)
    manager = SimpleNamespace(remove_orphaned_files=lambda: freed.append(clock.now))
    monkeypatch.setattr(runtime, "exists", lambda: True)
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(media_file_mgr=manager))
    monkeypatch.setattr(files, "_freed", 0.0)
    monkeypatch.setattr(files.time, "monotonic", lambda: clock.now)
    for seconds in (100, 101, 109, 111, 130):
        clock.now = seconds
        files.forget_downloads()
    assert freed == [100, 111, 130]
