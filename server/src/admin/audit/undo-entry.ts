import { isDeepStrictEqual } from 'node:util'
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { type AuditEntryView, type AuditRow, auditView, findAudit } from '../../core/control/audit/audit.ts'
import { listInForce } from '../../core/control/interventions/interventions.ts'
import type { ProjectRow } from '../../core/control/projects/projects.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, type MutationResult, unchanged } from '../operation.ts'
import { irreversible, type ReversibleEdit, reversibleEdits } from './undo-table.ts'

type Entry = Static<typeof AuditEntryView>
type Fields = Record<string, unknown>

const Undone = Type.Object(
  {
    resource_type: Type.String(),
    resource_id: Type.String(),
    project_id: Type.Union([Type.Integer(), Type.Null()]),
    version: Type.Integer({ description: 'The new version of the resource.' }),
  },
  { title: 'Undone', additionalProperties: false },
)

export const undoEntryOperation = adminOperation({
  id: 'audit.undo',
  kind: 'command',
  path: '/admin/audit/:id/undo',
  summary: 'Undo a change',
  description:
    'Edits the resource again, so that the fields that the entry changed return to their previous values. Other fields stay as they are. Edits of projects (except transfers, and edits that replaced a temporary override), plans, endpoints, routes, API keys and members can be undone; any other entry is rejected with `not_reversible`, whose message says what to do instead. If one of the fields has changed since, the request is rejected with `changed_since`. The rules of the edit apply, so its errors can also occur.',
  params: ItemParams,
  body: {},
  refusals: [
    'not_reversible',
    'changed_since',
    'already_exists',
    'validation_failed',
    'plan_inactive',
    'last_owner',
  ],
  example: { reason: 'Locked by mistake, ticket 4711' },
  answer: Undone,
  hasVersion: false,
  target: (tx, { id }) => findAudit(tx, id),
  async run(call) {
    const { tx, target: row } = call
    const entry = auditView(row)
    const reversible = reversibleOf(entry)
    requireNoOverrideBefore(entry)
    const fields = changedFields(entry, row)
    const { edit, recordOf } = reversible
    const params = { project_id: entry.project_id, id: Number(entry.resource_id) }
    const target = await edit.target(tx, params, undefined).catch(rethrowDeleted)
    const current = plain(recordOf(target))
    requireUnchanged(fields, current, entry)
    if (fields.includes('is_locked')) await requireSameLocks(tx, entry)
    const body = bodyOf(reversible, { fields, current, entry, target })
    requireValid(reversible, body)
    const edited = await edit.run({ ...call, params, body, target, preloaded: undefined })
    return resultOf(entry, edited, fields)
  },
})

function reversibleOf({ operation, resource_type, before, after }: Entry): ReversibleEdit {
  const found = reversibleEdits.find(
    ({ edit, resource }) =>
      (operation === edit.id || operation === 'audit.undo') && resource === resource_type,
  )
  if (found && before && after) return found
  throw notReversible(irreversible[operation] ?? 'It changed no configuration.')
}

const notReversible = (why: string) =>
  new PosternError('not_reversible', `This entry cannot be undone. ${why}`)

/** The previous value of a temporary override would become permanent. */
function requireNoOverrideBefore({ related }: Entry): void {
  const replaced = related.find(({ resource, before }) => resource === 'reversal' && before !== null)
  if (replaced === undefined) return
  const { field } = replaced.before as { field: string }
  throw notReversible(
    `It replaced a temporary override of "${field}", whose expiry cannot be restored. Edit the project instead.`,
  )
}

/** The score follows the mail. An administrator changes only the offset. */
const isComputed = (field: string) => field === 'reputation_score'

function changedFields({ before, after, resource_type }: Entry, row: AuditRow): string[] {
  const fields = Object.keys(after as Fields).filter(
    (field) => !isComputed(field) && !isDeepStrictEqual((before as Fields)[field], (after as Fields)[field]),
  )
  if (resource_type === 'project' && fields.includes('user_id')) {
    throw notReversible('It transferred the project. Edit the owner of the project instead.')
  }
  // The row has the digest of an erased address, and the entry has null.
  const isErased = (stored: Fields, shown: Fields, field: string) =>
    stored[field] !== null && shown[field] === null
  const hasErased = (part: 'before' | 'after', shown: Fields) =>
    fields.some((field) => isErased(row[part] as Fields, shown, field))
  if (hasErased('before', before as Fields) || hasErased('after', after as Fields)) {
    throw notReversible('It contains an address that was erased.')
  }
  return fields
}

/** As the audit log stores it: times as text. */
const plain = (record: object): Fields => JSON.parse(JSON.stringify(record)) as Fields

function rethrowDeleted(error: unknown): never {
  if (!(error instanceof PosternError && error.code === 'not_found')) throw error
  throw new PosternError('changed_since', 'The resource was deleted since then.')
}

function requireUnchanged(fields: readonly string[], current: Fields, { after }: Entry): void {
  const changed = fields.filter((field) => !isDeepStrictEqual(current[field], (after as Fields)[field]))
  if (changed.length === 0) return
  const names = changed.map((field) => `"${field}"`).join(', ')
  throw new PosternError('changed_since', `Changed again since then: ${names}. Edit the resource instead.`)
}

/** The undo of a lock ends all locks, so there must be no other. */
async function requireSameLocks(tx: ReadTx, { project_id, related }: Entry): Promise<void> {
  const known = related.filter(({ resource }) => resource === 'intervention').map(({ id }) => Number(id))
  const locks = (await listInForce(tx, project_id ?? 0)).filter(({ kind }) => kind === 'lock')
  if (locks.every(({ id }) => known.includes(id))) return
  throw new PosternError(
    'changed_since',
    'Another lock was started since then. End the locks of the project one by one instead.',
  )
}

interface Undoing {
  fields: readonly string[]
  current: Fields
  entry: Entry
  target: unknown
}

/** The request body of the edit. */
function bodyOf({ edit }: ReversibleEdit, { fields, current, entry, target }: Undoing): Fields {
  const names = edit.isCompleteConfiguration ? Object.keys(edit.body) : fields
  const body = Object.fromEntries(
    names.map((name) => [name, fields.includes(name) ? (entry.before as Fields)[name] : current[name]]),
  )
  const { score_offset, ...rest } = body
  if (score_offset === undefined) return rest
  return { ...rest, reputation_score: (target as ProjectRow).computed_score + Number(score_offset) }
}

/** The entry may be older than a rule that now applies. A restored score may exceed its range: the offset counts. */
function requireValid({ edit }: ReversibleEdit, { reputation_score: _, ...body }: Fields): void {
  if (Value.Check(Type.Partial(Type.Object(edit.body)), body)) return
  throw notReversible('Its previous values are no longer valid. Edit the resource instead.')
}

/** The result of the edit, recorded as the undo of the entry. */
function resultOf(
  { id, resource_type, resource_id, project_id, before }: Entry,
  edited: MutationResult<unknown>,
  fields: readonly string[],
): MutationResult<Static<typeof Undone>> {
  const { audit, warnings, version } = edited
  const isLocking = fields.includes('is_locked') && (before as Fields)['is_locked'] === true
  const undone = { resource: 'audit_entry', id, before: null, after: null }
  return {
    ...edited,
    audit: audit === unchanged ? unchanged : { ...audit, related: [...(audit.related ?? []), undone] },
    warnings: async () => [
      ...(typeof warnings === 'function' ? await warnings() : warnings),
      ...(isLocking
        ? ['The project is locked again without an expiry. The previous locks are not restored.']
        : []),
    ],
    answer: { resource_type, resource_id, project_id, version: version ?? 0 },
    version: null,
  }
}
