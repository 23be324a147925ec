"""The network the other scripts run in does what it says."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))
import lab  # noqa: E402
import test_lab  # noqa: E402

lab.skip_or_run(test_lab.main)
