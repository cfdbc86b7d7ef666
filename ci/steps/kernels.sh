#!/usr/bin/env bash
# Judges the kernels without a GPU: machine code for every target against its
# budgets, then every route run and compared with float64.
set -euo pipefail

dot4fa isa --all
dot4fa isa --run
