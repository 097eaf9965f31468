#!/bin/sh
# Creates the secrets for compose.yaml in the folder `secrets`. Existing files are not overwritten. The files are
# world-readable, because the containers run as different users; only the owner can access the folder.
set -eu
folder=$(dirname "$0")/secrets
mkdir -p -m 700 "$folder"
chmod 700 "$folder"
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
keep() {
  if [ -e "$folder/$1" ]; then echo "kept  $1"; else
    printf '%s\n' "$2" >"$folder/$1"
    chmod 644 "$folder/$1"
    echo "wrote $1"
  fi
}
keep superuser-password "$(random)"
keep database-owner-url "postgres://postgres:$(cat "$folder/superuser-password")@postgres/postern"
keep database-url "postgres://postern:$(random)@postgres/postern"
keep auth-secrets "1:$(random)"
keep master-keys "1:$(random)"
keep signer-database-url "postgres://postern_signer:$(random)@postgres/postern"
# For Ed25519, the last 32 octets of the DER encoding are the raw private or public key (RFC 8410).
pair=$(openssl genpkey -algorithm ed25519)
half() { printf '%s\n' "$pair" | openssl pkey "$@" -outform DER | tail -c 32 | od -An -v -tx1 | tr -d ' \n'; }
if [ ! -e "$folder/signer-key" ]; then rm -f "$folder/audit-public-keys"; fi
keep signer-key "signer-1:$(half)"
keep audit-public-keys "signer-1:$(half -pubout)"
