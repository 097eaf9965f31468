# An independent receiver of Standard Webhooks: reads a secret and then any number of deliveries, each as id, timestamp,
# signature and body (base64), one per line. Prints whether each signature is valid.
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256_base64);
use MIME::Base64 qw(decode_base64);

my ($secret, @lines) = map { s/\n\z//r } <STDIN>;
my $key = decode_base64($secret =~ s/^whsec_//r);
while (my ($id, $timestamp, $signature, $body) = splice @lines, 0, 4) {
    my $digest = hmac_sha256_base64("$id.$timestamp." . decode_base64($body), $key);
    # Digest::SHA omits the padding.
    $digest .= '=' x (-length($digest) % 4);
    print $signature eq "v1,$digest" ? "right\n" : "wrong\n";
}
