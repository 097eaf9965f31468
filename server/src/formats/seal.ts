import { sealMessage } from 'mailauth'
import type { MailAuthentication } from './authentication.ts'
import type { DkimKey } from './sign.ts'

/**
 * Prepends an ARC set (RFC 8617): the authentication results of the inbound message, sealed by the domain
 * that received it. A receiver that trusts that domain can accept the message even though SPF fails after
 * forwarding.
 *
 * A broken or unknown chain is not sealed (§5.1.2: a seal would only state that it is broken). No DKIM
 * signature is added: its domain would not align with From, so it would not help DMARC, and the domain would
 * vouch for other people's content.
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
