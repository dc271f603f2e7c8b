import pytest

pytest.register_assert_rewrite("tests.typedmcp_extensions.tasks.suite")
