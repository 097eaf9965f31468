import type { Chance } from '../harness/random.ts'
import { type Caller, mismatch, type Stage } from './caller.ts'
import { parsed } from './judge.ts'
import { auditFaults } from './model/audit.ts'
import { messagesOf, queueOf } from './model/mail.ts'
import { listOf, type Question } from './model/reads.ts'
import { differences } from './model/unknown.ts'
import { type GlobalThing, nouns, type Project, projectOnWire, type View, type World } from './model/world.ts'
import { plainly } from './spoken.ts'

/** At the end of a sequence: everything that the service holds of this world, against the model. */
export async function compareAll(stage: Stage, caller: Caller, world: World, chance: Chance): Promise<void> {
  for (const plan of world.plans) await compareGlobal(stage, caller, 'plans', plan)
  for (const user of world.users) await compareGlobal(stage, caller, 'users', user)
  for (const project of world.projects) {
    const params = { project_id: project.id }
    const view = projectOnWire(world, project)
    await compareOne(stage, caller, 'projects.show', params, { view, version: project.version })
    for (const noun of nouns.filter((one) => stage.document.has(`${one}.list`))) {
      const question = listOf(project, noun)
      const limit = 1 + chance.below(Math.max(2, project.things[noun].length))
      const list = await listed(stage, caller, { ...question, query: { limit } })
      mismatch(differences(project.things[noun].map((thing) => thing.view).reverse(), list, noun))
      for (const { id, version, view } of project.things[noun].slice(-3)) {
        await compareOne(stage, caller, `${noun}.show`, { ...params, id }, { view, version })
      }
    }
    await compareMail(stage, caller, project)
    await compareAudit(stage, caller, project, chance)
  }
}

async function compareMail(stage: Stage, caller: Caller, project: Project): Promise<void> {
  for (const question of [queueOf(project), messagesOf(project)]) {
    const { operation, params, expected } = question
    if (!expected || !stage.document.has(operation)) continue
    if ('view' in expected) await compareOne(stage, caller, operation, params, expected)
    else mismatch(differences(expected.list, await listed(stage, caller, question), operation))
  }
}

/** The whole chain, one row of it, and what is found of one operation and of one thing. */
async function compareAudit(stage: Stage, caller: Caller, project: Project, chance: Chance): Promise<void> {
  const { id, acts } = project
  const rows = await auditRows(stage, caller, { project_id: id, limit: 1 + chance.below(200) })
  mismatch(auditFaults(rows, acts, { projectId: id, actor: stage.actor }))
  const row = chance.pick(rows)
  const show = stage.document.operation('audit.show')
  const answer = await caller.send(show, plainly(show, stage.token(), { params: { id: Number(row['id']) } }))
  mismatch(differences(row, parsed(answer), 'audit.show'))
  const { operation, type, id: of } = chance.pick(acts)
  const found = await auditRows(stage, caller, { project_id: id, operation, resource: `${type}:${of}` })
  const wanted = rows.filter(
    (one) =>
      one['operation'] === operation && one['resource_type'] === type && one['resource_id'] === String(of),
  )
  mismatch(differences(wanted, found, 'the audit of one thing'))
}

async function compareGlobal(
  stage: Stage,
  caller: Caller,
  noun: 'plans' | 'users',
  thing: GlobalThing,
): Promise<void> {
  await compareOne(stage, caller, `${noun}.show`, { id: thing.id }, thing)
  if (thing.acts.length === 0) return
  const rows = await auditRows(stage, caller, { project_id: 0, resource: `${thing.type}:${thing.id}` })
  mismatch(auditFaults(rows, thing.acts, { projectId: null, actor: stage.actor }))
}

async function compareOne(
  stage: Stage,
  caller: Caller,
  id: string,
  params: Question['params'],
  { view, version }: { view: View; version: number | null },
): Promise<void> {
  const operation = stage.document.operation(id)
  const answer = await caller.send(operation, plainly(operation, stage.token(), { params }))
  const found = { status: answer.status, etag: answer.headers.get('etag'), view: parsed(answer) }
  mismatch(differences({ status: 200, etag: etagOf({ version }), view }, found, id))
}

export const etagOf = ({ version }: { version: number | null }): string | undefined =>
  version === null ? undefined : `"${version}"`

const auditRows = (stage: Stage, caller: Caller, query: Record<string, string | number>): Promise<View[]> =>
  listed(stage, caller, { operation: 'audit.list', params: {}, query: { limit: 200, ...query } })

/** All pages of a list, each no longer than was asked for. */
export async function listed(
  stage: Stage,
  caller: Caller,
  { operation: id, params, query = {} }: Omit<Question, 'expected'>,
): Promise<View[]> {
  const operation = stage.document.operation(id)
  const limit = Number(query['limit'] ?? 50)
  const items: View[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const meaning = { params, query: cursor === undefined ? query : { ...query, cursor } }
    const answer = await caller.send(operation, plainly(operation, stage.token(), meaning))
    if (answer.status !== 200) mismatch([`a page of ${id} is ${answer.status} and not 200: ${answer.text}`])
    const page = parsed(answer) as { data: View[]; next_cursor: string | null }
    if (page.data.length > limit) mismatch([`a page of ${id} has ${page.data.length} items and not ${limit}`])
    items.push(...page.data)
    cursor = page.next_cursor
  }
  return items
}
