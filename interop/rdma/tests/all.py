"""Runs the tests of RDMA; in the virtual machine. usage: all.py [WORD...]   (cases whose name has one of the words in it)"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import field  # noqa: E402
import reads  # noqa: E402,F401
import multicast  # noqa: E402,F401
import transfers  # noqa: E402,F401

sys.exit(1 if field.main(sys.argv[1:]) else 0)
