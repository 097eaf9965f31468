import { errorCodes } from '../platform/errors.ts'
import { statusOf } from '../platform/http/problem.ts'

/** Conventions that apply to all operations: the description at the top of the OpenAPI document. */
export const conventions = `Postern sends email for many projects. This is the reference for its HTTP API: sign-in, the customer API for a single
project, and the administrative API for all of the installation's projects, plans and users.

## Authentication

Requests to \`/v1/admin\` require an access token: \`Authorization: Bearer <token>\`. Tokens are issued for a session by
\`POST /v1/auth/token\`, or by an OpenID Connect provider configured by the operator. A token identifies the user.
Permissions are checked on every request: if an administrator is demoted or disabled, their next request is rejected.
Project API keys are not accepted.

A request without a valid token returns 401. A request from a user who is not an administrator returns 403, whether or
not the resource exists.

An administrator's rights (\`full\`, \`support\`, \`billing\` or \`auditor\`) determine what the administrator can do. All of
them can read everything. The extension \`x-rights\` of an operation lists the rights that allow it, and
\`x-rights-fields\` lists the fields that limited rights can change. A request that the rights do not allow returns 403
\`insufficient_rights\`.

All other operations under \`/v1\`, except \`/v1/auth\`, are for customers. Project members use an access token, and
applications use a project API key, which is also sent as a bearer token. A member's role determines what the member can
do (\`insufficient_role\`); the extension \`x-roles\` of an operation lists the roles that allow it. An API key's scopes
determine what the key can do (\`insufficient_scope\`); the extension \`x-scopes\` lists the scope that an operation needs. A request for a project that you are not a member of returns 404.

Only \`/v1/auth\` uses a cookie, which identifies the session.

## Requests

- Request bodies are JSON, sent with \`Content-Type: application/json\`. An operation whose body is
  optional also accepts a request without a body. Administrative DELETE requests have a body, for the \`reason\`.
  Types are strict (\`"1"\` is not \`1\`), and unknown fields and query parameters are rejected.
- Identifiers in paths are plain decimal numbers.
- Timestamps are RFC 3339 in UTC with milliseconds, such as \`2026-11-14T09:30:00.000Z\`. Only audit log exports use
  microseconds, because the hashes cover them.
- Responses always contain every field. A field without a value is \`null\`.

## Errors

Every error response has a body with exactly two fields: \`error\`, a machine-readable code whose meaning never changes,
and \`message\`, a human-readable sentence that explains the problem and how to fix it.

| status | \`error\` |
|---|---|
${codesByStatus()}

Responses with status 429, 503 or 409 (\`request_in_progress\`) can have a \`Retry-After\` header, in seconds. If a path does
not support the method, the response is 405, with the supported methods in the \`Allow\` header. Every operation can return
413 (the body is larger than 64 KiB, unless the operation has a larger limit), 415 (the body is not JSON in UTF-8, or is compressed)
and 503 (try again later). These statuses are not listed for each operation.

Every response has an \`X-Request-Id\`, which identifies the request in the server log and in the audit log. Responses to
authenticated requests have \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` (in seconds), which describe
the caller's per-minute limit as counted by the process that handled the request.

## Versions

A response that contains a single configurable resource has an \`ETag\`, which changes only when the resource's configuration changes.
Send the \`ETag\` as \`If-Match\` with a mutation: if the resource has changed since, the response is 412 \`stale_resource\`.
Without \`If-Match\`, the mutation is always applied. A mutation that changes no field returns 200 and does not change the
version; editing a domain always counts as a change.

## Idempotency

Every mutation outside \`/v1/auth\` (POST, PATCH, PUT and DELETE, but not the POST operations that only read) accepts an
\`Idempotency-Key\` of your choice: 1 to 255 visible ASCII characters without spaces. The service stores the key for
24 hours, per caller and operation. Repeating a request with the same key returns the first response, with the header
\`Idempotent-Replayed: true\`, and has no further effect. A different request with the same key returns 422 \`idempotency_key_reused\`. While the first request is still in
progress, the response is 409 \`request_in_progress\`. Only successful responses are stored. A secret is returned only
once: a repeated request returns 409 \`secret_already_revealed\` and the \`Location\` of the created resource. A POST that
only reads, because its input is long, has no \`Idempotency-Key\`, preview or reason.

## Preview

Every administrative mutation accepts \`?dry_run=true\`. The operation then runs in a transaction that is rolled back, and
the response is 200 with a \`Preview\`: the changes field by field, their effects, and warnings. Nothing is stored or sent,
and no secret is revealed. For operations that return 200 on success, the extension \`x-dry-run-response\` documents the
preview response.

## Reasons

Every administrative mutation accepts a \`reason\`, which is stored permanently in the audit log. A reason is required for
deletions and rotations, for editing a user, for creating or editing a policy, for locking or unlocking a project, for changing its reputation or its
owner, for overriding its plan or subscription, and for exceeding a customer's limit. If it is missing, the response is
422 \`reason_required\` (or \`limit_exceeded\`).

## Pagination

Lists accept \`limit\` (1 to 200, default 50) and \`cursor\`, and return \`data\` and \`next_cursor\`. Send \`next_cursor\` as
\`cursor\` to get the next page; \`next_cursor\` is \`null\` on the last page. A filtered list scans a limited number of rows
per page. If matches are rare, a page that is not the last can be short or empty: continue until \`next_cursor\` is \`null\`.
A cursor is valid only with the \`sort\` that it was returned for.
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

/** In the order of the reference. A tag is the first part of an operation id. */
const ownTags: Tag[] = [
  {
    name: 'auth',
    'x-displayName': 'Authentication',
    description:
      'Signing in with an email address, a password and, if set up, a second factor starts a session (a cookie). Access tokens are issued for the session.',
  },
  {
    name: 'overview',
    'x-displayName': 'Overview',
    description: 'The state of the installation.',
  },
  {
    name: 'search',
    'x-displayName': 'Search',
    description: 'Search for projects, domains, addresses and users.',
  },
  {
    name: 'trace',
    'x-displayName': 'Trace',
    description: 'Finds the message that a report, a header or another text refers to.',
  },
  {
    name: 'projects',
    'x-displayName': 'Projects',
    description: "The installation's tenants. Every other customer resource belongs to a project.",
  },
  {
    name: 'plans',
    'x-displayName': 'Plans',
    description: 'Limits and prices for projects.',
  },
  {
    name: 'policies',
    'x-displayName': 'Policies',
    description: 'Rules that record unusual sending of a project, or start an intervention.',
  },
  {
    name: 'firings',
    'x-displayName': 'Firings',
    description: 'The times at which policies fired for projects.',
  },
  {
    name: 'bulk',
    'x-displayName': 'Bulk actions',
    description: 'One operation on many projects.',
  },
  {
    name: 'domains',
    'x-displayName': 'Domains',
    description: "A project's mail domains, and the DNS records that verify and protect them.",
  },
  {
    name: 'endpoints',
    'x-displayName': 'Endpoints',
    description: "HTTPS receivers for a project's events and inbound mail.",
  },
  {
    name: 'delivery-attempts',
    'x-displayName': 'Delivery attempts',
    description: 'Attempts to deliver events to endpoints, with the payloads that were sent.',
  },
  {
    name: 'routing',
    'x-displayName': 'Routing',
    description: 'Rules for inbound mail, by address or, as a catch-all, by domain.',
  },
  {
    name: 'members',
    'x-displayName': 'Members',
    description: "A project's members and their roles.",
  },
  {
    name: 'invitations',
    'x-displayName': 'Invitations',
    description: 'Invitations to projects.',
  },
  {
    name: 'api-keys',
    'x-displayName': 'API keys',
    description: "Credentials for a project's applications.",
  },
  {
    name: 'messages',
    'x-displayName': 'Messages',
    description: "A project's messages, with their recipients and events.",
  },
  {
    name: 'queue',
    'x-displayName': 'Queue',
    description: "A project's queue of outgoing mail.",
  },
  {
    name: 'discards',
    'x-displayName': 'Discards',
    description: "The discards of a project's queued mail.",
  },
  {
    name: 'interventions',
    'x-displayName': 'Interventions',
    description: 'Warnings, paces, holds and locks of a project.',
  },
  {
    name: 'notices',
    'x-displayName': 'Notices',
    description: 'Interventions in a project, as its members see them, and appeals.',
  },
  {
    name: 'reversals',
    'x-displayName': 'Reversals',
    description: 'Temporary overrides, and the values that are restored when they expire.',
  },
  {
    name: 'evidence',
    'x-displayName': 'Evidence',
    description: 'Signed files about a project, which anyone can verify with the public key.',
  },
  {
    name: 'sending',
    'x-displayName': 'Sending',
    description: 'Explains why a project can or cannot send.',
  },
  {
    name: 'usage',
    'x-displayName': 'Usage',
    description: "A project's usage and limits.",
  },
  {
    name: 'mailbox-providers',
    'x-displayName': 'Mailbox providers',
    description: "Delivery figures by operator of the recipients' mailboxes, such as Gmail.",
  },
  {
    name: 'reputation',
    'x-displayName': 'Reputation',
    description: "How a project's score is computed.",
  },
  {
    name: 'suppressions',
    'x-displayName': 'Suppressions',
    description: 'Addresses to which a project cannot send.',
  },
  {
    name: 'platform-suppressions',
    'x-displayName': 'Platform-wide suppressions',
    description: 'Addresses to which no project can send.',
  },
  {
    name: 'notes',
    'x-displayName': 'Notes',
    description: "Administrators' notes about a project. Its members do not see them.",
  },
  {
    name: 'activity',
    'x-displayName': 'Activity',
    description: 'Changes made by members and API keys.',
  },
  {
    name: 'users',
    'x-displayName': 'Users',
    description: 'User accounts and their roles in the service.',
  },
  {
    name: 'audit',
    'x-displayName': 'Audit',
    description:
      'Who changed what and why: one entry for every administrative change, in tamper-evident hash chains.',
  },
  {
    name: 'denials',
    'x-displayName': 'Denials',
    description: 'Denied requests from signed-in users.',
  },
  {
    name: 'installation',
    'x-displayName': 'Installation',
    description: "The operator's name, logo and links.",
  },
  {
    name: 'health',
    'x-displayName': 'Health',
    description: 'Health checks for load balancers and process supervisors.',
  },
]

/** Customer operations use the same nouns and come after the administrative operations. */
export const tags: Tag[] = [
  ...ownTags,
  ...ownTags.map((tag) => ({
    ...tag,
    name: `customer.${tag.name}`,
    'x-displayName': `${tag['x-displayName']} (customers)`,
  })),
]
