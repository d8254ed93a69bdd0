#!/bin/bash
cd /tmp/z6 && PYTHONPATH=/tmp/z6/src:/tmp/z6 exec /work/main/.venv/bin/python "$@"
