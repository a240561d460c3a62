#!/bin/sh
# The tests need Chromium and a font with Chinese characters: install Debian's packages where that is possible.
set -eu

packages=""
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
  packages="chromium"
# Without fontconfig, Chromium finds no fonts either.
{ command -v fc-list >/dev/null && [ -n "$(fc-list :lang=zh-cn family)" ]; } || packages="$packages fonts-noto-cjk"
[ -n "$packages" ] || exit 0

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"
if command -v apt-get >/dev/null && $as_root true 2>/dev/null; then
  echo "Installing for the browser tests: $packages"
  $as_root apt-get update -qq &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null &&
    exit 0
fi
echo "The browser tests need Chromium and a Chinese font; install them and run make test again (Debian: apt-get install $packages)." >&2
exit 1
