"""Files in the server's memory: few uploads of a session, and of all files no more than may be kept."""

from types import SimpleNamespace

import pytest
from streamlit import runtime
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from visformer.app.serving import server  # noqa: F401  it sets the limits when it is imported
from visformer.app.streamlit_private import files
from visformer.errors import BudgetError
from visformer.system import limits
from visformer.system.cache import Cache


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    """What is kept: nothing at first."""
    kept = Cache(lambda: limits.KEPT_BYTES)
    monkeypatch.setattr(files, "CACHE", kept)
    return kept


def uploaded(*sent):
    """Return the names kept after uploads of 1 kB, (session, name), by session."""
    manager = MemoryUploadedFileManager("/upload")
    for session, name in sent:
        manager.add_file(session, UploadedFileRec(name, name, "text/plain", b"x" * 1000))
    return {session: [*names] for session, names in manager.file_storage.items()}


def test_a_session_keeps_its_latest_uploads_and_leaves_those_of_others_alone():
    names = [f"{i}" for i in range(300)]
    sent = [("other", "b"), *(("mine", name) for name in names)]
    assert uploaded(*sent) == {"other": ["b"], "mine": names[-limits.UPLOADS :]}


def test_all_sessions_together_keep_no_more_than_the_limit(kept):
    kept.most = lambda: 2_500
    left = uploaded(*((name, name) for name in "abcde"))
    assert {name: names for name, names in left.items() if names} == {"d": ["d"], "e": ["e"]}


def test_what_a_session_sent_is_counted_until_it_leaves(kept):
    files = MemoryUploadedFileManager("/upload")
    for data in (b"x", b"x" * 900, b"x" * 500):
        files.add_file("mine", UploadedFileRec("same", "same", "text/plain", data))
        assert kept.nbytes == len(data)
    files.add_file("mine", UploadedFileRec("b", "b", "text/plain", b"x" * 70))
    files.remove_file("mine", "same")
    assert (kept.nbytes, [*files.file_storage["mine"]]) == (70, ["b"])
    files.remove_session_files("mine")
    assert (kept.nbytes, files._total_bytes, "mine" in files.file_storage) == (0, 0, False)


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


def test_all_files_together_are_no_more_than_the_limit_and_the_latest_stays(kept):
    kept.most = lambda: 100
    small, large = b"s" * 10, b"l" * 80
    assert generated(large, small, b"m" * 30)[0] == [small, b"m" * 30]
    uploads = MemoryUploadedFileManager("/upload")
    uploads.add_file("mine", UploadedFileRec("a", "a", "text/plain", b"x" * 60))
    assert generated(large)[0] == [large]
    assert uploads.get_files("mine", ["a"]) == []


def test_a_file_that_does_not_fit_is_refused_and_not_kept(kept):
    kept.most = lambda: 100
    files = MemoryMediaFileStorage("/media")
    with pytest.raises(BudgetError, match="takes 500 B of memory, and 100 B of 100 B are free"):
        files.load_and_get_id(b"x" * 500, "text/html", MediaFileKind.DOWNLOADABLE, "a.html")
    assert files._files_by_id == {}


def test_a_file_that_streamlit_deletes_is_counted_no_more(kept):
    files = MemoryMediaFileStorage("/media")
    name = files.load_and_get_id(b"x" * 50, "text/html", MediaFileKind.DOWNLOADABLE, "a.html")
    assert kept.nbytes == 50
    for _ in range(2):
        files.delete_file(name)
    assert (kept.nbytes, files._files_by_id) == (0, {})


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
