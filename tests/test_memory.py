import resource

import numpy as np

from visformer.memory import keep_freed_memory


def fresh_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [np.ones(2**18) for _ in range(10)]  # 2 MB each, 5120 pages together
    del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_freed_memory_is_used_again():
    kept = keep_freed_memory()
    fresh_pages()
    assert not kept or min(fresh_pages() for _ in range(5)) < 500
