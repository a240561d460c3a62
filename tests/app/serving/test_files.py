"""Files in the server's memory: few uploads of a session, and of all of them no more than a budget."""

from types import SimpleNamespace

from streamlit import runtime
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
