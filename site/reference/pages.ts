import { type Document, type Operation, type Response, resolve } from './document.ts'
import { exampleOf } from './example.ts'
import { callOf, curlSample, pythonSample, typescriptSample } from './samples.ts'
import { escapeHtml, fieldsOf, inline, typeOf } from './schema.ts'

/** The API reference: one page for each group of operations, customers' first, and an introduction. */
export interface ReferencePage {
  path: string
  /** The heading in the sidebar. */
  group: string
  title: string
  text: string
}

interface Listed {
  method: string
  path: string
  operation: Operation
}

interface Section {
  group: string
  folder: string
  readers: string
  /** Tags of the document. */
  has(tag: string): boolean
}

const isOfService = (tag: string): boolean => tag === 'health' || tag === 'installation'

const sections: Section[] = [
  {
    group: 'Customers',
    folder: 'customers',
    readers: 'platform developers',
    has: (tag) => tag.startsWith('customer.'),
  },
  {
    group: 'Administrators',
    folder: 'administrators',
    readers: 'operators on call, self-hosters',
    has: (tag) => !tag.startsWith('customer.') && tag !== 'auth' && !isOfService(tag),
  },
  { group: 'Service', folder: 'service', readers: 'self-hosters', has: isOfService },
  { group: 'Sign-in', folder: 'sign-in', readers: 'platform developers', has: (tag) => tag === 'auth' },
]

/** What developers need first. The other groups are in the document's order. */
const first = ['customer.messages', 'customer.domains', 'customer.endpoints', 'customer.suppressions']

export function referencePages(document: Document): ReferencePage[] {
  const groups = sections.flatMap((section) => pagesOf(document, section))
  const events = eventsPage(document)
  const [customers, others] = [groups.filter(isOfCustomers), groups.filter((page) => !isOfCustomers(page))]
  return [introduction(document, [...groups, events]), ...customers, events, ...others]
}

const isOfCustomers = ({ group }: ReferencePage): boolean => group === 'Customers'

function pagesOf(document: Document, section: Section): ReferencePage[] {
  const order = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length)
  return document.tags
    .filter(({ name }) => section.has(name) && operationsOf(document, name).length > 0)
    .toSorted((one, other) => order(one.name) - order(other.name))
    .map((tag) => {
      const title = tag['x-displayName'].replace(/ \(customers\)$/, '')
      const path = `reference/${section.folder}/${tag.name.replace(/^customer\./, '')}.md`
      const operations = operationsOf(document, tag.name)
      const shown = operations.filter((one) => !keyVariantOf(one, operations))
      const text = [
        head(title, `API reference · for ${section.readers}`),
        tag.description,
        shown.map((one) => operationText(document, one, operations)).join('\n\n'),
      ].join('\n\n')
      return { path, group: section.group, title, text }
    })
}

const head = (title: string, readers: string): string =>
  `---\noutline: 2\n---\n\n# ${title}\n\n<p class="readers">${readers}</p>`

function operationsOf({ paths }: Document, tag: string): Listed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags[0] === tag)
      .map(([method, operation]) => ({ method, path, operation })),
  )
}

/** An operation with a path for API keys is shown once, with both paths. */
const keySuffix = '-by-key'
const keyVariantOf = ({ operation: { operationId } }: Listed, among: Listed[]): Listed | undefined =>
  operationId.endsWith(keySuffix)
    ? among.find((one) => `${one.operation.operationId}${keySuffix}` === operationId)
    : undefined

function operationText(document: Document, listed: Listed, among: Listed[]): string {
  const { operation } = listed
  const byKey = among.find((one) => keyVariantOf(one, among) === listed)
  const call = byKey ?? listed
  return [
    `## ${operation.summary} {#${operation.operationId}}`,
    byKey ? `<a id="${byKey.operation.operationId}"></a>` : '',
    `<div class="paths" v-pre>${[listed, ...(byKey ? [byKey] : [])].map((one) => pathLine(one, byKey)).join('')}</div>`,
    operation.description,
    callersOf(operation),
    samples(document, call),
    parametersText(document, operation),
    bodyText(document, operation),
    responsesText(document, operation),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function pathLine(listed: Listed, byKey: Listed | undefined): string {
  const note = listed === byKey ? ' <span>with an API key, which determines the project</span>' : ''
  const method = listed.method.toUpperCase()
  return `<p class="path"><span class="method ${listed.method}">${method}</span> <code>${escapeHtml(listed.path)}</code>${note}</p>`
}

/** Who may call it, from the extensions of the document. */
function callersOf(operation: Operation): string {
  const {
    'x-roles': roles,
    'x-scopes': scopes,
    'x-rights': rights,
    'x-rights-fields': fields,
    security,
  } = operation
  const code = (values: readonly string[]): string => values.map((value) => `\`${value}\``).join(', ')
  const schemes = security.flatMap((one) => Object.keys(one))
  const callers = [
    rights ? `administrators with the rights ${code(rights)}` : '',
    roles ? `members with the role ${code(roles)}` : '',
    !rights && !roles && schemes.includes('accessToken') ? 'all signed-in users' : '',
    scopes ? `API keys with the scope ${code(scopes)}` : '',
    schemes.includes('session') ? 'users with a session' : '',
    schemes.length === 0 ? 'everyone, without authentication' : '',
  ].filter((part) => part !== '')
  const limited = Object.entries(fields ?? {}).map(
    ([right, names]) => ` Administrators with \`${right}\` can change only ${code(names)}.`,
  )
  return `**Who may call it:** ${callers.join('; ')}.${limited.join('')}`
}

function samples(document: Document, { method, path, operation }: Listed): string {
  const call = callOf(document, method, path, operation)
  return `::: code-group
\`\`\`sh [curl]
${curlSample(call)}
\`\`\`
\`\`\`ts [TypeScript]
${typescriptSample(call)}
\`\`\`
\`\`\`python [Python]
${pythonSample(call)}
\`\`\`
:::`
}

const places = { path: 'path', query: 'query', header: 'header' }

function parametersText(document: Document, operation: Operation): string {
  const { parameters = [] } = operation
  if (parameters.length === 0) return ''
  const items = parameters.map(
    ({ name, in: place, required, description, schema }) =>
      `<li><div><code class="name">${escapeHtml(name)}</code> <span class="type">${places[place]}, ${typeOf(document, schema)}</span>` +
      `${required ? '' : ' <span class="optional">optional</span>'}</div>` +
      `${description === undefined ? '' : `<p>${inline(description)}</p>`}</li>`,
  )
  return `${heading('Parameters', operation)}\n\n<ul class="fields" v-pre>${items.join('')}</ul>`
}

function bodyText(document: Document, operation: Operation): string {
  const [media] = Object.values(operation.requestBody?.content ?? {})
  if (!media) return ''
  const fields = fieldsOf(document, media.schema)
  return fields === '' ? '' : `${heading('Request body', operation)}\n\n<div v-pre>${fields}</div>`
}

/** The headings occur once for each operation, so their anchors contain its id. */
const heading = (title: string, { operationId }: Operation): string =>
  `### ${title} {#${operationId}-${title.toLowerCase().replaceAll(' ', '-')}}`

function responsesText(document: Document, operation: Operation): string {
  const entries = Object.entries(operation.responses)
  const successes = entries
    .filter(([status]) => status < '300')
    .map(([status, one]) => success(document, status, one))
  const errors = entries
    .filter(([status]) => status >= '300')
    .map(([status, { description }]) => `<tr><td>${status}</td><td>${inline(description)}</td></tr>`)
  const dryRun = operation['x-dry-run-response']
  return [
    heading('Responses', operation),
    ...successes,
    dryRun && !successes.some((text) => text.includes('dry_run'))
      ? '`?dry_run=true` returns 200 with a [preview](../index.md#preview) of the changes.'
      : '',
    errors.length === 0
      ? ''
      : `<details class="errors" v-pre><summary>Errors</summary><table tabindex="0"><thead><tr><th>status</th><th>when, and the value of <code>error</code></th></tr></thead><tbody>${errors.join('')}</tbody></table></details>`,
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function success(document: Document, status: string, { description, content = {} }: Response): string {
  const parts = Object.entries(content).map(([type, { schema, example }]) => {
    if (type !== 'application/json') return `The body is \`${type}\`.`
    const { name } = resolve(document, schema)
    const fields = fieldsOf(document, schema)
    const title = name === undefined ? 'Fields of the response' : `Fields of <code>${name}</code>`
    return [
      `\`\`\`json\n${JSON.stringify(example ?? exampleOf(document, schema), undefined, 2)}\n\`\`\``,
      fields === '' ? '' : `<details v-pre><summary>${title}</summary>${fields}</details>`,
    ].join('\n\n')
  })
  return [`**${status}** ${description}`, ...parts].join('\n\n')
}

/** The events that Postern posts to endpoints. */
function eventsPage(document: Document): ReferencePage {
  const texts = Object.entries(document.webhooks ?? {}).map(([type, { post }]) => {
    const [media] = Object.values(post.requestBody?.content ?? {})
    if (!media) return ''
    const example = media.example ?? exampleOf(document, media.schema)
    return [
      `## ${type} {#${type}}`,
      post.description,
      `\`\`\`json\n${JSON.stringify(example, undefined, 2)}\n\`\`\``,
      `<details v-pre><summary>Fields</summary>${fieldsOf(document, media.schema)}</details>`,
    ].join('\n\n')
  })
  const text = [
    head('Webhook events', 'API reference · for platform developers'),
    'Postern posts these events to the [endpoints](/reference/customers/endpoints.md) that subscribe to them. [Webhooks](/guide/webhooks.md) describes the request, its signature and the retry schedule.',
    ...texts,
  ].join('\n\n')
  return { path: 'reference/events.md', group: 'Customers', title: 'Webhook events', text }
}

function introduction({ info, paths }: Document, pages: ReferencePage[]): ReferencePage {
  const groups = [...new Set(pages.map(({ group }) => group))]
  const listOf = (group: string): string =>
    pages
      .filter((page) => page.group === group)
      .map(({ title, path }) => `[${title}](/${path})`)
      .join(', ')
  const count = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0)
  const text = [
    head('API reference', 'API reference · for platform developers, operators on call'),
    `${info.description.split('\n## ')[0]}`,
    `The reference describes ${count} operations. It is generated from the [OpenAPI document](/openapi.json){target="_self"}, from which client libraries and mock servers can also be generated.`,
    groups.map((group) => `- **${group}**: ${listOf(group)}`).join('\n'),
    `## ${info.description.split('\n## ').slice(1).join('\n## ')}`,
  ].join('\n\n')
  return { path: 'reference/index.md', group: 'API reference', title: 'Introduction', text }
}
