"""The measurement of a new version end to end still runs: tiny sizes."""
import os
import sys

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "versions", "run")
BIN = os.environ["DDF_BIN"]
if not os.path.exists(os.path.join(BIN, "ddf-workload")):
    print("SKIP: no ddf-workload (the benchmarks are not built)")
    sys.exit(77)
os.execv(sys.executable, [sys.executable, RUN, "--quick", "--bin", BIN])
