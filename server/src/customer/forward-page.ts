import {
  confirmationPath,
  confirmForward,
  findConfirmation,
} from '../core/control/routes/forward-confirmations.ts'
import type { CustomerDb } from '../platform/db/db.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'

/**
 * The page that the link in a confirmation message opens. GET shows a button and changes nothing, because mail scanners open
 * links. POST confirms. The token is the only credential; the page reads no cookie, so cross-site request forgery is not
 * possible.
 */
export interface ForwardPageDeps {
  customer: CustomerDb
  addressLimit: RateLimit
}

/** No project has this id. The functions called find the project by the token. */
const noProject = 0

const headers = {
  'content-security-policy':
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'content-type': 'text/html; charset=utf-8',
}

export function forwardPageRoutes(app: HttpServer, { customer, addressLimit }: ForwardPageDeps): void {
  const db = customer.forProject(noProject)
  // Not in the OpenAPI document: the page is for browsers.
  const options = { schema: { hide: true } }
  type Tokened = { Params: { token: string } }
  void app.register((own, _options, done) => {
    // The form has no fields, so its body is discarded.
    own.addContentTypeParser('application/x-www-form-urlencoded', { bodyLimit }, (_request, body, parsed) => {
      body.resume()
      parsed(null, undefined)
    })
    own.get<Tokened>(`${confirmationPath}/:token`, options, async ({ params, ip }, reply) => {
      await addressLimit(networkOf(ip))
      const found = await db.read((tx) => findConfirmation(tx, params.token))
      return reply
        .code(found ? 200 : 404)
        .headers(headers)
        .send(found ? question(found) : invalidLink)
    })
    own.post<Tokened>(`${confirmationPath}/:token`, options, async ({ params, ip }, reply) => {
      await addressLimit(networkOf(ip))
      const isConfirmed = await db.transaction((tx) => confirmForward(tx, params.token))
      return reply
        .code(isConfirmed ? 200 : 404)
        .headers(headers)
        .send(isConfirmed ? confirmedPage : invalidLink)
    })
    done()
  })
}

const bodyLimit = 1024

const page = (title: string, ...lines: string[]): string =>
  [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">',
    `<title>${title}</title></head><body><h1>${title}</h1>`,
    ...lines,
    '</body></html>\n',
  ].join('\n')

const question = ({ address, domain_names }: { address: string; domain_names: string[] }): string =>
  page(
    'Receive forwarded mail?',
    `<p>Mail for addresses at these domains will be forwarded to <b>${escaped(address)}</b>:</p>`,
    `<ul>${domain_names.map((name) => `<li>${escaped(name)}</li>`).join('')}</ul>`,
    '<form method="post"><button type="submit">Yes, forward it to me</button></form>',
    '<p>If you do not want this, close the page.</p>',
  )

const confirmedPage = page(
  'Confirmed',
  '<p>Mail will be forwarded to you.</p>',
  '<p>To stop it, contact the owner of these domains.</p>',
)

const invalidLink = page(
  'This link is not valid',
  '<p>The link has already been used, was replaced by a newer link, or has expired. Ask the owner of the domains to send a new one.</p>',
)

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? '')
