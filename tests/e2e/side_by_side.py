"""The comparison with other tools still runs: tiny sizes, and what it installs it does not install here."""
import os
import sys

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "side_by_side", "run")
BIN = os.environ["DDF_BIN"]
os.execv(sys.executable, [sys.executable, RUN, "--quick", "--bin", BIN, "--output", os.path.join(BIN, "..", "side_by_side")])
