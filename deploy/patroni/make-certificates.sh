#!/bin/sh
# Creates the certificates that etcd, Patroni and HAProxy use to authenticate each other:
#   deploy/patroni/make-certificates.sh <folder> pg1=10.0.0.11 pg2=10.0.0.12 pg3=10.0.0.13
# Creates a certificate authority (ca.pem, and ca.key, which must not be copied to any machine), a folder with ca.pem,
# node.pem and node.key for each machine, and a folder `haproxy`. Existing files are not overwritten. To renew a
# certificate, delete the machine's folder and run the script again.
set -eu
umask 077
folder=$1
shift
mkdir -p "$folder"
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1"; }
if [ ! -e "$folder/ca.key" ]; then
  key "$folder/ca.key"
  openssl req -x509 -new -key "$folder/ca.key" -days 3650 -subj '/CN=Postern database cluster' -out "$folder/ca.pem"
fi
# Arguments: the machine's name, the extended key usage, and the subject alternative names.
certify() {
  if [ -e "$folder/$1/node.pem" ]; then
    echo "kept  $1"
    return
  fi
  mkdir -p "$folder/$1"
  key "$folder/$1/node.key"
  { echo "extendedKeyUsage=$2"; if [ -n "$3" ]; then echo "subjectAltName=$3"; fi; } >"$folder/$1/extensions"
  openssl req -new -key "$folder/$1/node.key" -subj "/CN=$1" |
    openssl x509 -req -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -CAcreateserial -days 825 \
      -extfile "$folder/$1/extensions" -out "$folder/$1/node.pem" 2>/dev/null
  rm "$folder/$1/extensions"
  cp "$folder/ca.pem" "$folder/$1/ca.pem"
  # HAProxy reads the certificate and the key from one file.
  if [ "$1" = haproxy ]; then cat "$folder/$1/node.pem" "$folder/$1/node.key" >"$folder/$1/haproxy.pem"; fi
  echo "wrote $1"
}
for machine in "$@"; do
  certify "${machine%%=*}" serverAuth,clientAuth "IP:${machine#*=},IP:127.0.0.1"
done
certify haproxy clientAuth ''
