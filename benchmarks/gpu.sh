#!/usr/bin/env bash
# Measures this project and its peers on the machine's GPU: under 10 minutes, tables to out/bench.
# Needs the gpu extra (pip install -e '.[gpu]'); PYTHON names another interpreter than .venv's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}

"$python" - <<'CHECK' || { echo "gpu.sh: TensorFlow sees no GPU; pip install -e '.[gpu]'" >&2; exit 1; }
import tensorflow as tf
raise SystemExit(not tf.config.list_physical_devices("GPU"))
CHECK
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
exec "$python" -m benchmarks.run train roofline attention_cost eval --quick --output-dir out/bench
