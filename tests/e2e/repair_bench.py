"""The measurement of what repair costs still runs: tiny sizes."""
import os
import sys

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "repair", "run")
BIN = os.environ["DDF_BIN"]
os.execv(sys.executable, [sys.executable, RUN, "--quick", "--bin", BIN])
