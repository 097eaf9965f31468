import ipaddr from 'ipaddr.js'
import { PosternError } from '../../platform/errors.ts'

/**
 * The address of an endpoint as it is stored: normalised as the WHATWG URL Standard says, so that what is
 * looked at here is what is connected to later (`0x7f.1` is 127.0.0.1, `ⓔxample.com` is example.com).
 *
 * A name that is public today may point into the operator's network tomorrow. Where it leads is therefore
 * vetted again at the moment of sending, on the address that is connected to (planned).
 */
export function endpointUrl(text: string): string {
  if (text.length > maxLength) throw refused(`must be at most ${maxLength} characters long; shorten it`)
  // A parser drops line breaks and turns backslashes; nobody means either.
  if (/[\p{Cc}\s\\]/u.test(text)) throw refused('must not contain white space or backslashes; encode them')
  if (!/^https:\/\/[^/]/i.test(text)) {
    throw refused('must be a full address that begins with https://, such as https://example.com/hook')
  }
  const url = URL.parse(text)
  if (!url) throw refused('is not a well-formed address; write it like https://example.com/hook')
  if (url.username !== '' || url.password !== '') {
    throw refused('must not contain a user name or password; the signature proves who sends')
  }
  if (text.includes('#')) throw refused('must not have a fragment; remove the # and what follows')
  requirePublicHost(url.hostname)
  if (url.href.length > maxLength) {
    throw refused(`must be at most ${maxLength} characters long when encoded; shorten it`)
  }
  return url.href
}

const maxLength = 2048
const maxHostLength = 253

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
// RFC 6761 §6.3, RFC 6762 §3, and the name that ICANN keeps for private use.
const privateNames = /(?:^|\.)(?:localhost|local|internal)$/
// IANA has given out global addresses from this network alone.
const globalV6 = ipaddr.IPv6.parseCIDR('2000::/3')

function requirePublicHost(host: string): void {
  const address = host.startsWith('[') ? host.slice(1, -1) : host
  if (ipaddr.isValid(address)) {
    if (!isGlobal(ipaddr.parse(address))) {
      throw refused(
        'must not lead to a private or special address; use one that is reachable from the internet',
      )
    }
    return
  }
  const labels = host.split('.')
  const isName = host.length <= maxHostLength && labels.every((part) => label.test(part))
  if (!isName || labels.length < 2 || privateNames.test(host)) {
    throw refused('must name a public host; use a DNS name with a dot in it, such as hooks.example.com')
  }
}

const isGlobal = (address: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
  address.range() === 'unicast' && (address instanceof ipaddr.IPv4 || address.match(globalV6))

const refused = (why: string): PosternError => new PosternError('validation_failed', `"url" ${why}.`)
