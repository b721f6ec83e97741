#!/bin/sh
# A script runs under the image's Python; anything else (fls, python, sh) is a command of its own.
case "${1-}" in
*.py) exec python "$@" ;;
*) exec "$@" ;;
esac
