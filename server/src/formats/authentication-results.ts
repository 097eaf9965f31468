/** Sender authentication results: RFC 7208 (SPF), 6376 (DKIM), 9989 (DMARC), 8617 (ARC). */
export interface Authentication {
  spf: { result: string; domain: string | null }
  dkim: { result: string; domain: string | null; selector: string | null }[]
  dmarc: { result: string; domain: string | null; policy: string | null }
  arc: { result: string }
}

/**
 * Whether the envelope sender is authenticated: SPF passes, or the domain has signed the message. Bounces are
 * returned only to an authenticated sender, because the address could otherwise be forged.
 */
export function confirmsSender({ spf, dkim }: Authentication, sender: string): boolean {
  const domain = sender.slice(sender.lastIndexOf('@') + 1).toLowerCase()
  const isOf = (name: string | null) => name !== null && name.toLowerCase() === domain
  return (
    (spf.result === 'pass' && isOf(spf.domain)) ||
    dkim.some(({ result, domain: name }) => result === 'pass' && isOf(name))
  )
}

/**
 * Whether a message can be forwarded. `refused`: it fails DMARC (RFC 9989) and the policy of the domain in
 * From is reject or quarantine, or it has no From or several From domains, for which DMARC is undefined.
 * `unknown`: a required DNS lookup failed.
 */
export function forwardVerdict({ spf, dkim, dmarc }: Authentication): 'allowed' | 'refused' | 'unknown' {
  if (dmarc.result === 'temperror') return 'unknown'
  if (dmarc.result === 'none' && dmarc.domain === null) return 'refused'
  const isEnforced = dmarc.policy === 'reject' || dmarc.policy === 'quarantine'
  if (dmarc.result !== 'fail' || !isEnforced) return 'allowed'
  const couldPass = spf.result === 'temperror' || dkim.some(({ result }) => result === 'temperror')
  return couldPass ? 'unknown' : 'refused'
}
