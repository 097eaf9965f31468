import type { Customer } from '../demo/customer.ts'
import type { DemoEndpoint } from '../demo/endpoint.ts'
import type { Sender } from '../demo/sender.ts'

export interface Ready {
  url: string
  /** The administrator's. */
  email: string
  sender: Sender
  customer: Customer
  endpoint: DemoEndpoint
  /** The port for SMTP. */
  submission: number
  /** The URLs of the viewer. */
  mail: string
  webhooks: string
  /** Whether the documentation is being built. */
  isStale: boolean
  /** The folder with all state; undefined if the database is given. */
  stored: string | undefined
}

export function welcome(credentials: string, ready: Ready): string {
  const { url, email, customer, endpoint, submission, mail, webhooks, isStale, stored } = ready
  const { secret, domain } = ready.sender
  return `
${credentials}

Postern is ready.

  console     ${url}/console
              Sign in as ${email} with the password above. Run \`npm run -s dev code\` in a second terminal to get
              the six-digit code. Each code works once; a new one is available within 30 seconds.
  app         ${url}/app
              The customers' app. Sign in as ${customer.email} with the password ${customer.password}
  docs        ${url}/docs/${isStale ? ' (being built in the background; a line below appears when it is ready)' : ''}
  try it      curl -s '${url}/v1/admin/projects?limit=2' -H "Authorization: Bearer $(npm run -s dev token)"
  first mail  curl -s ${url}/v1/messages -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' \\
                -d '{"from": "Me <me@${domain}>", "to": ["you@example.com"], "subject": "Hello", "text": "It works."}'
              A local mail server stores all sent messages and prints a line below for each.
  sent mail   ${mail}
  webhooks    ${webhooks}
              A local receiver gets the events of the customer's project and verifies their signatures. The first mail
              causes three events. To send a test event:
              curl -s -X POST '${url}/v1/admin/projects/${endpoint.projectId}/endpoints/${endpoint.id}/test' -H "Authorization: Bearer $(npm run -s dev token)"
  SMTP        swaks --server 127.0.0.1:${submission} --tls --auth PLAIN --auth-user postern --auth-password ${secret} \\
                --from me@${domain} --to you@example.com
  commands    npm run dev -- audit verify, or any other postern command

Ctrl-C stops it. ${stored === undefined ? 'Your changes remain in the database.' : `Your changes are stored under ${stored}/; remove it to start over.`}
`
}
