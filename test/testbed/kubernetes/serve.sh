#!/bin/sh
# Says which pod it is, to whoever asks over HTTP; ends at once when asked to.
mkdir -p /tmp/www/health
hostname > /tmp/www/index.html
echo ok > /tmp/www/health/index.html
trap 'kill $server; exit 0' TERM INT
echo "serving at ${PORT:-8080}"
httpd -f -p "${PORT:-8080}" -h /tmp/www &
server=$!
wait $server
