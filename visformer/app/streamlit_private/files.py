"""Files in the server's memory: uploads, which stay as long as a session, and downloads, until any session ends.

A visitor loses: the server, whose memory another visitor fills with files that nobody will read again; and the own
file, in place of which Streamlit may hand out another visitor's that is alike in parts.
"""

import secrets
import time
from hashlib import blake2b
from typing import Any

from streamlit import runtime
from streamlit.runtime import memory_media_file_storage
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from visformer.system import limits


def keep_few_uploads() -> None:
    """From now on in this process, keep the latest uploads of a session, and of all of them no more than a budget."""
    manager: Any = MemoryUploadedFileManager
    add = MemoryUploadedFileManager.add_file

    def add_and_forget(files: MemoryUploadedFileManager, session_id: str, file: UploadedFileRec) -> None:
        add(files, session_id, file)
        own = [*files.file_storage[session_id]]
        for file_id in own[: -limits.UPLOADS]:
            files.remove_file(session_id, file_id)
        for session in [*files.file_storage]:  # the one that uploaded first goes first
            if files._total_bytes > limits.UPLOAD_BYTES:
                files.remove_session_files(session)

    manager.add_file = add_and_forget


def keep_few_downloads() -> None:
    """From now on in this process, keep files up to a budget, and tell them apart by all of their bytes.

    Streamlit compares three parts of a file of 1 MB or more. The key makes an address unknown to all but its visitor.
    """
    module: Any = memory_media_file_storage
    storage: Any = MemoryMediaFileStorage
    add, key = MemoryMediaFileStorage.load_and_get_id, secrets.token_bytes(32)

    def name(data: bytes, mimetype: str, filename: str | None = None) -> str:
        digest = blake2b(repr((mimetype, filename)).encode(), key=key, digest_size=16)
        digest.update(data)
        return digest.hexdigest()

    def add_and_forget(files: MemoryMediaFileStorage, *given: Any, **named: Any) -> str:
        added = add(files, *given, **named)
        kept = files._files_by_id
        while sum(file.content_size for file in kept.values()) > limits.MADE_BYTES and len(kept) > 1:
            del kept[max(kept.keys() - {added}, key=lambda other: kept[other].content_size)]
        return added

    module._calculate_file_id = name
    storage.load_and_get_id = add_and_forget


_FETCHED = 10.0  # seconds that a browser has at least to fetch a file that was made for it
_freed = 0.0


def forget_downloads() -> None:
    """Free the files that were made for sessions a while ago; Streamlit does when a session ends."""
    global _freed
    if runtime.exists() and time.monotonic() - _freed > _FETCHED:
        _freed = time.monotonic()
        runtime.get_instance().media_file_mgr.remove_orphaned_files()  # frees what it marked the last time
