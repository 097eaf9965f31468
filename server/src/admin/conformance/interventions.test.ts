import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endExpired } from '../../core/control/interventions/expiry.ts'
import { endDrained } from '../../core/control/interventions/gradual-release.ts'
import { revertDue } from '../../core/control/reversals/due.ts'
import type { UnscopedDb } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import {
  InterventionModel,
  type ModelExpiry,
  type ModelField,
  type ModelIntervention,
  modelFields,
} from '../../testing/expectations/intervention-model.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { Killed, killedAt, type Point, points } from '../../testing/harness/killed-db.ts'
import { Chance, seed } from '../../testing/harness/random.ts'
import { isMutation, type Mutation } from '../operation.ts'
import { perform } from '../pipeline.ts'
import { adminOperations } from '../routes.ts'

/**
 * Random sequences of interventions, edits, gradual releases, temporary overrides, hours that pass, and workers that end what has expired,
 * with kills at every point before, in and after a transaction. After every step, the whole state is compared with a model.
 * `npm run prove:interventions` runs 100,000 steps.
 */
const steps = Number(process.env['POSTERN_TEST_STEPS'] ?? 1000)
const stepsPerSequence = 50

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const db = openDatabase(database, { poolSize: 4 }).as('admin')
const { context } = api

const kills = new Map<string, number>()
const onKill = (name: string) => kills.set(name, (kills.get(name) ?? 0) + 1)

const operations = new Map<string, Mutation>(
  adminOperations.filter(isMutation).map((operation) => [operation.id, operation]),
)

/** Performs a request, perhaps with a kill. Returns the error code, if any. */
async function request(
  via: UnscopedDb,
  id: string,
  params: Record<string, unknown>,
  body: object,
): Promise<string | undefined> {
  const { cells, vault, domains, endpoints, orders, config } = context
  const deps = {
    ...{ db: via, mailDbFor: (projectId: number) => cells.of(projectId).admin, vault, domains, endpoints },
    ...{ endpointCommands: orders, caps: config, audit: { keys: new Map(), checkpointFile: undefined } },
  }
  const operation = operations.get(id) ?? assert.fail(id)
  try {
    await perform(
      operation,
      {
        actor: { kind: 'person', id: admin.userId, email: admin.email, ip: null, userAgent: null },
        ...{ requestId: `step-${++requests}`, params, body: { ...body, reason: 'A step of the test' } },
        ...{ ifMatch: undefined, idempotencyKey: undefined, isDryRun: false },
      },
      deps as unknown as Parameters<typeof perform>[2],
    )
    return undefined
  } catch (error) {
    if (error instanceof PosternError) return error.code
    throw error
  }
}

let requests = 0

interface StoredState {
  is_locked: boolean
  values: Record<ModelField, unknown>
  restriction: string | null
  interventions: [number, string, number | null, string | null, string | null][] | null
  reversals: [number, string, unknown, unknown, string][] | null
  audit: string[] | null
  events: string[] | null
}

async function storedState(projectId: number): Promise<StoredState> {
  const [row] = await database.query<StoredState>(
    `select projects.is_locked,
            json_build_object('allow_service_mta', allow_service_mta, 'admin_subscription_status', admin_subscription_status,
              'reputation_score', stats.score_offset) as values,
            (select concat_ws(' ', kind, pace_per_hour) from control.queue_restrictions where project_id = $1) as restriction,
            (select json_agg(json_build_array(id, kind, pace_per_hour, ended_by, expires_at) order by id)
               from control.interventions where project_id = $1) as interventions,
            (select json_agg(json_build_array(id, field, original, override, expires_at) order by field)
               from control.reversals where project_id = $1) as reversals,
            (select json_agg(concat_ws(' ', operation, resource_type,
                       (select string_agg(entry ->> 'resource', ' ' order by place)
                          from jsonb_array_elements(related) with ordinality as related (entry, place))) order by seq)
               from control.audit where chain = $1 and operation <> 'projects.create') as audit,
            (select json_agg(concat_ws(' ', payload ->> 'type', payload -> 'data' ->> 'kind') order by id) from control.outbox
              where project_id = $1 and topic = 'event') as events
       from control.projects as projects join control.project_stats as stats on stats.project_id = projects.id
      where projects.id = $1`,
    [projectId],
  )
  return row ?? assert.fail(`project ${projectId} does not exist`)
}

class Sequence {
  readonly model = new InterventionModel()
  readonly projectId: number
  readonly #chance: Chance
  /** The ids of the model's interventions, in their order, and of its reversals. */
  #ids: number[] = []
  #reversalIds = new Map<string, number>()
  #expiries = 0

  constructor(projectId: number, chance: Chance) {
    this.projectId = projectId
    this.#chance = chance
  }

  /** Half an hour off the full hour, and different from every other. */
  #expiry(): ModelExpiry {
    const hours = this.#chance.below(6)
    const at = Date.now() + hours * 3_600_000 + 1_800_000 + ++this.#expiries * 1000
    return { at, hours }
  }

  async step(): Promise<void> {
    const chance = this.#chance
    const act = chance.pick([
      ...Array<() => Promise<void>>(3).fill(() => this.#create()),
      ...Array<() => Promise<void>>(2).fill(() => this.#edit()),
      ...Array<() => Promise<void>>(2).fill(() => this.#end()),
      ...Array<() => Promise<void>>(4).fill(() => this.#editProject()),
      () => this.#act('queue.hold', {}, {}, () => this.model.hold()),
      () => this.#act('queue.release', {}, {}, () => this.model.release()),
      ...Array<() => Promise<void>>(2).fill(() => this.#releaseGradually()),
      () => this.#accept(),
      () => this.#handOver(),
      () => this.#drain(),
      () => this.#deleteReversal(),
      ...Array<() => Promise<void>>(2).fill(() => this.#pass()),
      ...Array<() => Promise<void>>(3).fill(() => this.#work()),
    ])
    await act()
    await this.#compare()
  }

  async #act(id: string, params: object, body: object, apply: () => string | undefined): Promise<void> {
    const point = this.#chance.happens(0.12) ? nextPoint('request') : undefined
    const via = point ? killedAt(db, point, 0, () => onKill(`request ${point}`)) : db
    const send = request(via, id, { project_id: this.projectId, ...params }, body)
    const outcome = await send.catch((error: unknown) => {
      if (error instanceof Killed) return error
      throw error
    })
    // Without a commit, the request has done nothing.
    if (outcome instanceof Killed && point !== 'after transaction') return
    const expected = apply()
    if (!(outcome instanceof Killed)) assert.equal(outcome, expected, `${id} ${JSON.stringify(body)}`)
  }

  #config(kind: string): { pace: number | null; expiry: ModelExpiry | null } {
    const pace = kind === 'pace' ? 1 + this.#chance.below(1000) : null
    return { pace, expiry: this.#chance.happens(0.5) ? this.#expiry() : null }
  }

  async #create(): Promise<void> {
    const kind = this.#chance.pick(['warn', 'pace', 'hold', 'lock'])
    const { pace, expiry } = this.#config(kind)
    const body = { kind, pace_per_hour: pace, expires_at: textOf(expiry) }
    await this.#act('interventions.create', {}, body, () => this.model.create(kind, pace, expiry))
  }

  #someIntervention(): { id: number; which: ModelIntervention } | undefined {
    const { interventions } = this.model
    if (interventions.length === 0) return undefined
    // The newest are more often in force.
    const n = Math.max(0, interventions.length - 1 - this.#chance.below(6))
    return { id: this.#ids[n] ?? assert.fail(), which: interventions[n] ?? assert.fail() }
  }

  async #edit(): Promise<void> {
    const chosen = this.#someIntervention()
    if (!chosen) return
    const { id, which } = chosen
    const isSame = this.#chance.happens(0.2)
    const { pace, expiry } = isSame ? which : this.#config(which.kind)
    const body = { pace_per_hour: pace, public_note: null, expires_at: textOf(expiry) }
    await this.#act('interventions.edit', { id }, body, () => this.model.edit(which, pace, expiry))
  }

  async #end(): Promise<void> {
    const chosen = this.#someIntervention()
    if (!chosen) return
    const { id, which } = chosen
    await this.#act('interventions.end', { id }, {}, () => this.model.end(which))
  }

  async #editProject(): Promise<void> {
    const chance = this.#chance
    const expiry = chance.happens(0.5) ? this.#expiry() : null
    const isLocked = chance.happens(0.4) ? chance.happens(0.5) : undefined
    const field = isLocked === undefined || chance.happens(0.3) ? chance.pick(modelFields) : undefined
    const value =
      field === 'allow_service_mta'
        ? chance.happens(0.5)
        : field === 'reputation_score'
          ? 0 - chance.below(4)
          : chance.pick([null, 'active', 'paused'])
    const body = {
      ...(isLocked !== undefined && { is_locked: isLocked }),
      // The computed score of a new project is 100, and the model's value is the offset.
      ...(field && { [field]: field === 'reputation_score' ? 100 + Number(value) : value }),
      ...(expiry && { expires_at: textOf(expiry) }),
    }
    const change = { ...(isLocked !== undefined && { isLocked }), ...(field && { field, value }) }
    await this.#act('projects.edit', {}, body, () => this.model.editProject(change, expiry))
  }

  async #releaseGradually(): Promise<void> {
    const perMinute = 1 + this.#chance.below(20)
    await this.#act('queue.release', {}, { per_minute: perMinute }, () =>
      this.model.releaseGradually(perMinute * 60),
    )
  }

  async #accept(): Promise<void> {
    await database.query(
      `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
       values (postern.uuid7(postern.now()), 0, $1, 1, 'service', 'someone@example.net')`,
      [this.projectId],
    )
    this.model.hasMail = true
  }

  async #handOver(): Promise<void> {
    await database.query('delete from mail.dispatch where project_id = $1', [this.projectId])
    this.model.handOver()
  }

  async #drain(): Promise<void> {
    await endDrained(db, context.cells.mailOf)
    this.model.drain()
  }

  async #deleteReversal(): Promise<void> {
    const [field] = [...this.model.reversals.keys()]
    if (!field) return
    const id = this.#reversalIds.get(field) ?? assert.fail()
    await this.#act('reversals.delete', { id }, {}, () => {
      this.model.deleteReversal(field)
      return undefined
    })
  }

  async #pass(): Promise<void> {
    const hours = 1 + this.#chance.below(4)
    for (const table of ['interventions', 'reversals']) {
      await database.query(
        `update control.${table} set expires_at = expires_at - $2 * interval '1 hour'
          where project_id = $1 ${table === 'interventions' ? 'and ended_at is null' : ''}`,
        [this.projectId, hours],
      )
    }
    this.model.pass(hours)
  }

  /** A worker ends what has expired, and may be killed after some of it. */
  async #work(): Promise<void> {
    const point = this.#chance.happens(0.6) ? nextPoint('worker') : undefined
    const isRead = point?.endsWith('read')
    const n = this.#chance.below(2)
    const via = point ? killedAt(db, point, n, () => onKill(`worker ${point}`)) : db
    const { due } = this.model
    const inForceDue = this.model.inForce().filter(({ expiry }) => expiry !== null && expiry.hours < 0).length
    try {
      await endExpired(via)
      await revertDue(via)
      this.model.expire(due)
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      // The first read is that of the interventions, the second that of the reversals.
      if (isRead) this.model.expire(n === 0 ? 0 : inForceDue)
      else this.model.expire(point === 'after transaction' ? n + 1 : n)
    }
  }

  /** Leaves nothing due: workers serve all projects, and the next sequence counts what they do. */
  async finish(): Promise<void> {
    await endExpired(db)
    await revertDue(db)
    this.model.expire(this.model.due)
    await this.#drain()
    await this.#compare()
  }

  async #compare(): Promise<void> {
    const stored = await storedState(this.projectId)
    const { model } = this
    this.#ids = (stored.interventions ?? []).map(([id]) => id)
    this.#reversalIds = new Map((stored.reversals ?? []).map(([id, field]) => [field, id]))
    const time = (text: string | null) => text && new Date(text).toISOString()
    assert.deepEqual(
      {
        isLocked: stored.is_locked,
        values: stored.values,
        restriction: stored.restriction,
        interventions: (stored.interventions ?? []).map(([, kind, pace, endedBy, at]) => [
          ...[kind, pace, endedBy, endedBy === null ? time(at) : null],
        ]),
        reversals: (stored.reversals ?? []).map(([, field, original, override, at]) => [
          ...[field, original, override, time(at)],
        ]),
        audit: stored.audit ?? [],
        events: stored.events ?? [],
      },
      {
        isLocked: model.isLocked,
        values: model.values,
        restriction: model.restriction,
        interventions: model.interventions.map(({ kind, pace, endedBy, expiry }) => [
          ...[kind, pace, endedBy, endedBy === null ? textOf(expiry) : null],
        ]),
        reversals: [...model.reversals]
          .map(([field, { original, override, expiry }]) => [field, original, override, textOf(expiry)])
          .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)),
        audit: model.audit,
        events: model.events,
      },
    )
  }
}

const textOf = (expiry: ModelExpiry | null): string | null => expiry && new Date(expiry.at).toISOString()

/** A request reads nothing outside its transaction. */
const pointsOf = { request: points.slice(2), worker: points }
type Victim = keyof typeof pointsOf

/** The point at which the fewest were killed, because some points are reached only if something is due. */
function nextPoint(victim: Victim): Point {
  const killed = (point: Point) => kills.get(`${victim} ${point}`) ?? 0
  return pointsOf[victim].reduce((least, point) => (killed(point) < killed(least) ? point : least))
}

const leastKills = (): number =>
  Math.min(
    ...(['request', 'worker'] as const).flatMap((victim) =>
      pointsOf[victim].map((point) => kills.get(`${victim} ${point}`) ?? 0),
    ),
  )

test(`interventions and temporary overrides agree with a model in ${steps} steps (seed ${seed})`, async () => {
  let make = fixtures(database, admin)
  // A short run may need a few more sequences until every point was reached three times.
  for (let done = 0; done < steps || leastKills() < 3; done += stepsPerSequence) {
    assert.ok(done < 10 * steps, `a point was not reached: ${JSON.stringify([...kills])}`)
    const chance = new Chance(seed + done)
    // An access token expires after ten minutes, which a long run exceeds.
    if (done % 5_000 === 0) make = fixtures(database, await signedIn(api))
    const { id } = await make.makeProject()
    const sequence = new Sequence(id, chance)
    for (let n = 0; n < stepsPerSequence; n++) {
      try {
        await sequence.step()
      } catch (error) {
        throw new Error(`step ${n} of the sequence with seed ${seed + done}`, { cause: error })
      }
    }
    await sequence.finish()
  }
})
