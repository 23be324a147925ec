"""The comparison of deltas still runs: tiny sizes, and what it installs or fetches it does not here."""
import os
import sys

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "delta_side_by_side", "run")
BIN = os.environ["DDF_BIN"]
os.execv(sys.executable, [sys.executable, RUN, "--quick", "--pairs", "a,f2,g,tiny,moe", "--tools", "ddf,ddf-fast,zstd,xdelta3", "--bin", BIN,
                          "--output", os.path.join(BIN, "..", "delta_side_by_side")])
