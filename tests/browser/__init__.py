"""Tests in a browser."""

import pytest

pytest.register_assert_rewrite("tests.browser.support")  # a check that fails there shows its values
