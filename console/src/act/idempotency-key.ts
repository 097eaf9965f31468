/**
 * One key for the lifetime of a dialog: resubmitting after a lost response, even with an edited field, does not make
 * the change twice. The server stores only successful responses, so a rejected request can be corrected and sent again.
 * `crypto.randomUUID` exists only on pages served over HTTPS.
 */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
}
