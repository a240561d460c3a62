"""Files in the server's memory: uploads, which stay as long as a session, and downloads, until any session ends.

A visitor loses: the server, whose memory another visitor fills with files that nobody will read again.
"""

import time
from typing import Any

from streamlit import runtime
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


_FETCHED = 10.0  # seconds that a browser has at least to fetch a file that was made for it
_freed = 0.0


def forget_downloads() -> None:
    """Free the files that were made for sessions a while ago; Streamlit does when a session ends."""
    global _freed
    if runtime.exists() and time.monotonic() - _freed > _FETCHED:
        _freed = time.monotonic()
        runtime.get_instance().media_file_mgr.remove_orphaned_files()  # frees what it marked the last time
