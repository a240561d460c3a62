#!/bin/sh
# tests/deploy needs nginx. Debian's package is unpacked into the environment; installing it would start a server.
set -eu

into="${1:-.venv}/nginx"
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || [ -x "$into/usr/sbin/nginx" ] && exit 0

if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
  mkdir -p "$into"
  cd "$into"
  echo "Unpacking nginx for the tests into $into"
  apt-get download -qq nginx && dpkg-deb -x nginx_*.deb . && usr/sbin/nginx -v && exit 0
fi
echo "The tests of several replicas need nginx; install it and run make test again (Debian: apt-get install nginx)." >&2
exit 1
