import { errorCodes } from '../platform/errors.ts'
import { statusOf } from '../platform/http/problem.ts'

/** What holds for every operation, told once, at the head of the OpenAPI document. */
export const conventions = `Postern sends email for many projects at once. This is its HTTP interface: how people sign in, how
customers work in their projects, and how administrators run the projects, members, domains, endpoints, routes, API
keys, plans and users of their installation.

## Who is calling

Everything under \`/v1/admin\` takes an access token: \`Authorization: Bearer <token>\`. It is drawn from a
session at \`POST /v1/auth/token\`, or issued by an OpenID Connect provider that the operator has configured,
and it says who you are. What you may do is looked up on every request: a demoted or disabled administrator is
refused at the next call. A project's API key never opens the administrative interface.

Without a valid token the response is 401, and for a user who is not an administrator 403, whatever the request is: only
administrators learn what exists.

Everything else under \`/v1\` is the customers', for the members of a project with an access token and for programs
with an API key of the project, sent as a bearer token as well. What a member may do follows from the role
(\`insufficient_role\`), what a key may do from its scopes (\`insufficient_scope\`). A project that you are not in does
not exist for you: 404.

Only \`/v1/auth\` uses a cookie, which stands for the session.

## Requests

- Bodies are JSON, sent as \`Content-Type: application/json\`; an administrator's DELETE has one as well. Types are exact
  (\`"1"\` is not \`1\`), and a field or query parameter that is not listed is refused, never ignored.
- Identifiers in paths are plain decimal numbers.
- Timestamps are RFC 3339 in UTC with milliseconds, such as \`2026-11-14T09:30:00.000Z\`. Only
  an export of the audit has microseconds, because its hashes cover them.
- What has no value is \`null\`; no field is ever left out of an answer.

## Errors

Every failure has a body of exactly two fields: \`error\`, a code for programs that never changes its meaning,
and \`message\`, a sentence for a person that says what was wrong and what to do.

| status | \`error\` |
|---|---|
${codesByStatus()}

429 and 503, and 409 \`request_in_progress\`, may come with \`Retry-After\`, in seconds. A path answers a method that it does not support with 405 and lists the supported methods in \`Allow\`. Any operation may answer 413 (the body is larger than 64 KiB, or 1 MiB for \`domains.edit\`), 415
(the body is not JSON in UTF-8, or is compressed) or 503 (try again later); these are not listed again with each operation.

Every response carries \`X-Request-Id\`, which identifies the request in the log and in the audit log. Responses to
authenticated requests carry \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` (seconds) of the caller's
limit per minute, as counted by the process that answered.

## Versions

An answer with one resource carries an \`ETag\`. It changes when the resource's configuration is changed, and
only then. Send it as \`If-Match\` with a change to be refused with 412 \`stale_resource\` if it has changed since. Without \`If-Match\` the change is made in any case. A change that changes nothing (an edit of a domain is never one) is answered with
200 and moves nothing.

## Repeating a request

Every mutation (POST, PATCH, PUT and DELETE) takes an \`Idempotency-Key\` of your choice. The service stores it for 24
hours, for you and this operation. The same request with the same key returns the first response and has no second
effect. Another request with the key gets 422 \`idempotency_key_reused\`; while the first one is still running, 409 \`request_in_progress\`. Only
successes are stored. A secret is returned once: a repeated request gets 409
\`secret_already_revealed\` and the \`Location\` of what was made.

## Preview

Every administrative mutation takes \`?dry_run=true\`. The operation then runs in a transaction that is rolled back, and
the response is 200 with a \`Preview\`: the changes field by field, their effects, and warnings. Nothing is stored or sent,
and no secret is revealed. For an operation whose success is 200, the extension \`x-dry-run-response\` documents this
response.

## Reasons

Every administrative mutation takes a \`reason\`, which is kept in the audit for ever. It is required for
deletions and rotations, for every edit of a user, for locking or unlocking a project, changing its reputation or
its owner, for overriding what a customer has bought, and for going past a customer's limit; without it, the answer is 422 \`reason_required\` (or
\`limit_exceeded\`).

## Lists

Lists take \`limit\` (1 to 200, otherwise 50) and \`cursor\`, and answer with \`data\` and \`next_cursor\`: send that
as \`cursor\` to get the next page; on the last page it is \`null\`. A list that can be narrowed looks at a bounded
number of rows for a page. Where what is asked for is rare, a page may be short, or empty, and yet not be the last: go
on until \`next_cursor\` is \`null\`. A cursor belongs to the \`sort\` under which it was given.
`

function codesByStatus(): string {
  const statuses = [...new Set(errorCodes.map((code) => statusOf[code]))].sort((one, other) => one - other)
  return statuses
    .map((status) => {
      const codes = errorCodes.filter((code) => statusOf[code] === status)
      return `| ${status} | ${codes.map((code) => `\`${code}\``).join(', ')} |`
    })
    .join('\n')
}

interface Tag {
  name: string
  'x-displayName': string
  description: string
}

/** In the order of the reference. A tag is what an operation's id begins with. */
const ownTags: Tag[] = [
  {
    name: 'auth',
    'x-displayName': 'Signing in',
    description:
      'Email, password and a second factor open a session, which is a cookie; access tokens are drawn from it.',
  },
  {
    name: 'search',
    'x-displayName': 'Search',
    description: 'From a few letters to a project, a domain, an address or a person.',
  },
  {
    name: 'projects',
    'x-displayName': 'Projects',
    description: 'What a customer owns: everything else belongs to a project.',
  },
  {
    name: 'plans',
    'x-displayName': 'Plans',
    description: 'What projects are sold: their limits and the price.',
  },
  {
    name: 'domains',
    'x-displayName': 'Domains',
    description: 'The mail domains a project sends from, and the DNS records that prove and protect them.',
  },
  {
    name: 'endpoints',
    'x-displayName': 'Endpoints',
    description: 'HTTPS receivers of a project, for events and for inbound mail.',
  },
  {
    name: 'routing',
    'x-displayName': 'Routing',
    description: 'What happens to inbound mail, by address or, as a catch-all, by domain.',
  },
  {
    name: 'members',
    'x-displayName': 'Members',
    description: 'The people of a project and their roles in it.',
  },
  {
    name: 'invitations',
    'x-displayName': 'Invitations',
    description: 'How an invited person becomes a member.',
  },
  {
    name: 'api-keys',
    'x-displayName': 'API keys',
    description: "A project's credentials for programs.",
  },
  {
    name: 'messages',
    'x-displayName': 'Messages',
    description: 'Mail that a project has sent, and what became of it.',
  },
  {
    name: 'queue',
    'x-displayName': 'Queue',
    description: 'Mail of a project that waits to be sent.',
  },
  {
    name: 'usage',
    'x-displayName': 'Usage',
    description: 'How much a project has sent, against what its plan allows.',
  },
  {
    name: 'suppressions',
    'x-displayName': 'Suppressions',
    description: 'Addresses to which a project sends nothing any more.',
  },
  {
    name: 'activity',
    'x-displayName': 'Activity',
    description: 'What members and API keys have changed in a project.',
  },
  {
    name: 'users',
    'x-displayName': 'Users',
    description: 'The people who can sign in, and their role in the service.',
  },
  {
    name: 'audit',
    'x-displayName': 'Audit',
    description:
      'Who did what and why: one row for every administrative change, in chains that show tampering.',
  },
  {
    name: 'denials',
    'x-displayName': 'Denials',
    description: 'What signed-in users tried and were refused.',
  },
  {
    name: 'health',
    'x-displayName': 'Health',
    description: 'For load balancers and supervisors.',
  },
]

/** The customers' operations are about the same nouns, and stand behind the administrators'. */
export const tags: Tag[] = [
  ...ownTags,
  ...ownTags.map((tag) => ({
    ...tag,
    name: `customer.${tag.name}`,
    'x-displayName': `${tag['x-displayName']} (customers)`,
  })),
]
