"""Files in the server's memory: uploads, which stay as long as a session, and downloads, until any session ends.

A visitor loses: the server, whose memory another visitor fills with files that nobody will read again; and their own
file, in place of which Streamlit may serve another visitor's that is equal in parts.
"""

import secrets
import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Any

from streamlit import runtime
from streamlit.runtime import memory_media_file_storage
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from visformer.system import limits
from visformer.system.cache import CACHE


def keep_few_uploads(on_end: Callable[[str], object]) -> None:
    """Make Streamlit keep only the latest uploads of each session, and all of them as far as memory allows.

    Args:
        on_end: called with the id of a session that has ended, for what else was kept for it.
    """
    manager: Any = MemoryUploadedFileManager
    add, remove, remove_all = manager.add_file, manager.remove_file, manager.remove_session_files

    def add_and_count(files: MemoryUploadedFileManager, session_id: str, file: UploadedFileRec) -> None:
        files.remove_file(session_id, file.file_id)  # a browser may send it again, larger
        add(files, session_id, file)
        key, gone = (files, session_id, file.file_id), partial(remove, files, session_id, file.file_id)
        CACHE.put(key, file.file_id, len(file.data), gone)
        for file_id in [*files.file_storage[session_id]][: -limits.UPLOADS]:
            files.remove_file(session_id, file_id)

    def remove_session(files: MemoryUploadedFileManager, session_id: str) -> None:
        for file_id in [*files.file_storage.get(session_id, ())]:
            files.remove_file(session_id, file_id)
        remove_all(files, session_id)
        on_end(session_id)

    manager.add_file, manager.remove_session_files = add_and_count, remove_session
    manager.remove_file = lambda files, session_id, file_id: CACHE.drop((files, session_id, file_id))


def keep_few_downloads() -> None:
    """Make Streamlit keep files as far as memory allows, and tell them apart by all of their bytes.

    It compares only three parts of a file of 1 MB or more. The key makes addresses impossible to guess.
    """
    module: Any = memory_media_file_storage
    storage: Any = MemoryMediaFileStorage
    add, delete, key = storage.load_and_get_id, storage.delete_file, secrets.token_bytes(32)

    def name(data: bytes, mimetype: str, filename: str | None = None) -> str:
        digest = blake2b(repr((mimetype, filename)).encode(), key=key, digest_size=16)
        digest.update(data)
        return digest.hexdigest()

    def add_and_count(files: MemoryMediaFileStorage, *given: Any, **named: Any) -> Any:
        added = add(files, *given, **named)
        CACHE.put((files, added), added, files._files_by_id[added].content_size, partial(delete, files, added))
        return added

    module._calculate_file_id = name
    storage.load_and_get_id = add_and_count
    storage.delete_file = lambda files, added: CACHE.drop((files, added))


_FETCHED = 10.0  # seconds that a browser has, at least, to fetch a generated file
_freed = 0.0


def forget_downloads() -> None:
    """Free the files that were generated a while ago; Streamlit does so only when a session ends."""
    global _freed
    if runtime.exists() and time.monotonic() - _freed > _FETCHED:
        _freed = time.monotonic()
        runtime.get_instance().media_file_mgr.remove_orphaned_files()  # frees what it marked the last time
