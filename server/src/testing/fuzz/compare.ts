import type { Chance } from '../harness/random.ts'
import { type Caller, type FuzzContext, mismatch } from './caller.ts'
import { parsed } from './check-response.ts'
import { encodePlain } from './encode.ts'
import { auditFaults } from './model/audit.ts'
import { messagesOf, queueOf } from './model/mail.ts'
import { type ExpectedRead, listOf } from './model/reads.ts'
import { differences } from './model/unknown.ts'
import {
  type GlobalResource,
  idOf,
  nouns,
  type Project,
  projectOnWire,
  type View,
  type World,
} from './model/world.ts'

/** Compares all of this sequence's state with the model, at the end of the sequence. */
export async function compareAll(
  context: FuzzContext,
  caller: Caller,
  world: World,
  chance: Chance,
): Promise<void> {
  for (const plan of world.plans) await compareGlobal(context, caller, 'plans', plan)
  for (const user of world.users) await compareGlobal(context, caller, 'users', user)
  for (const project of world.projects) {
    const params = { project_id: project.id }
    const view = projectOnWire(world, project)
    await compareOne(context, caller, 'projects.show', params, { view, version: project.version })
    for (const noun of nouns.filter((one) => context.document.has(`${one}.list`))) {
      const read = listOf(project, noun)
      const limit = 1 + chance.below(Math.max(2, project.resources[noun].length))
      const list = await listed(context, caller, { ...read, query: { limit } })
      mismatch(differences(project.resources[noun].map((resource) => resource.view).reverse(), list, noun))
      for (const { id, version, view } of project.resources[noun].slice(-3)) {
        await compareOne(context, caller, `${noun}.show`, { ...params, id }, { view, version })
      }
    }
    await compareMail(context, caller, project)
    await compareAudit(context, caller, project, chance)
  }
}

async function compareMail(context: FuzzContext, caller: Caller, project: Project): Promise<void> {
  for (const read of [queueOf(project), messagesOf(project)]) {
    const { operation, params, expected } = read
    if (!expected || !context.document.has(operation)) continue
    if ('view' in expected) await compareOne(context, caller, operation, params, expected)
    else mismatch(differences(expected.list, await listed(context, caller, read), operation))
  }
}

/** Compares the whole chain, one row of it, and the rows of one operation on one resource. */
async function compareAudit(
  context: FuzzContext,
  caller: Caller,
  project: Project,
  chance: Chance,
): Promise<void> {
  const { id, acts } = project
  const rows = await auditRows(context, caller, { project_id: id, limit: 1 + chance.below(200) })
  mismatch(auditFaults(rows, acts, { projectId: id, actor: context.actor }))
  const row = chance.pick(rows)
  const show = context.document.operation('audit.show')
  const response = await caller.send(
    show,
    encodePlain(show, context.token(), { params: { id: Number(row['id']) } }),
  )
  mismatch(differences(row, parsed(response), 'audit.show'))
  const act = chance.pick(acts)
  const { operation, type } = act
  const of = idOf(act)
  const found = await auditRows(context, caller, { project_id: id, operation, resource: `${type}:${of}` })
  const wanted = rows.filter(
    (one) =>
      one['operation'] === operation && one['resource_type'] === type && one['resource_id'] === String(of),
  )
  mismatch(differences(wanted, found, 'audit rows of one resource'))
}

async function compareGlobal(
  context: FuzzContext,
  caller: Caller,
  noun: 'plans' | 'users',
  resource: GlobalResource,
): Promise<void> {
  await compareOne(context, caller, `${noun}.show`, { id: resource.id }, resource)
  if (resource.acts.length === 0) return
  const rows = await auditRows(context, caller, {
    project_id: 0,
    resource: `${resource.type}:${resource.id}`,
  })
  mismatch(auditFaults(rows, resource.acts, { projectId: null, actor: context.actor }))
}

async function compareOne(
  context: FuzzContext,
  caller: Caller,
  id: string,
  params: ExpectedRead['params'],
  { view, version }: { view: View; version: number | null },
): Promise<void> {
  const operation = context.document.operation(id)
  const response = await caller.send(operation, encodePlain(operation, context.token(), { params }))
  const found = { status: response.status, etag: response.headers.get('etag'), view: parsed(response) }
  mismatch(differences({ status: 200, etag: etagOf({ version }), view }, found, id))
}

export const etagOf = ({ version }: { version: number | null }): string | undefined =>
  version === null ? undefined : `"${version}"`

const auditRows = (
  context: FuzzContext,
  caller: Caller,
  query: Record<string, string | number>,
): Promise<View[]> =>
  listed(context, caller, { operation: 'audit.list', params: {}, query: { limit: 200, ...query } })

/** Reads all pages of a list. Fails if a page exceeds its limit. */
export async function listed(
  context: FuzzContext,
  caller: Caller,
  { operation: id, params, query = {} }: Omit<ExpectedRead, 'expected'>,
): Promise<View[]> {
  const operation = context.document.operation(id)
  const limit = Number(query['limit'] ?? 50)
  const items: View[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const content = { params, query: cursor === undefined ? query : { ...query, cursor } }
    const response = await caller.send(operation, encodePlain(operation, context.token(), content))
    if (response.status !== 200)
      mismatch([`page of ${id}: expected 200, got ${response.status}: ${response.text}`])
    const page = parsed(response) as { data: View[]; next_cursor: string | null }
    if (page.data.length > limit)
      mismatch([`page of ${id}: expected at most ${limit} items, got ${page.data.length}`])
    items.push(...page.data)
    cursor = page.next_cursor
  }
  return items
}
