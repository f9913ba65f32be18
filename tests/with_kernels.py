"""Runs a program with another build of the extension: `with_kernels.py PROGRAM ARGUMENTS…`.

GNN_IBP_TESTED_KERNELS names the extension's file. It must be loaded before the package looks for its own.
"""

import os
import runpy
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

NAME = "gnn_ibp._kernels"

loader = ExtensionFileLoader(NAME, os.environ["GNN_IBP_TESTED_KERNELS"])
spec = spec_from_loader(NAME, loader)
assert spec
sys.modules[NAME] = module_from_spec(spec)
loader.exec_module(sys.modules[NAME])

sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
