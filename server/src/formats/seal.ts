import { sealMessage } from 'mailauth'
import type { MailAuthentication } from './authentication.ts'
import type { DkimKey } from './sign.ts'

/**
 * The mail with one more ARC set before it (RFC 8617): what was found when it came in, under the name of the domain that
 * it came to. Whoever gets it and trusts that domain need not hold it against the mail that SPF no longer fits.
 *
 * A chain that is broken, or of which nobody knows, is not sealed (§5.1.2 would say no more than that it is broken).
 * There is no DKIM signature of ours: its domain would not be that of From, so it would help nothing with DMARC, and the
 * domain would answer for what strangers write.
 */
export async function sealMime(
  mime: Buffer,
  key: DkimKey,
  { authentication, results }: MailAuthentication,
): Promise<Buffer> {
  const { result } = authentication.arc
  if (result !== 'none' && result !== 'pass') return mime
  const seal = await sealMessage(mime, {
    signingDomain: key.domain,
    selector: key.selector,
    privateKey: key.privateKey,
    cv: result,
    authResults: results,
  })
  return Buffer.concat([seal, mime])
}
