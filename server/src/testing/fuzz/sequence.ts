import { Chance } from '../harness/random.ts'
import { nextIntent } from './acts.ts'
import { Caller, type FuzzContext, mismatch, ViolationError } from './caller.ts'
import { parsed } from './check-response.ts'
import { compareAll, etagOf, listed } from './compare.ts'
import { seedOf, weighted } from './draw.ts'
import { encodePlain, encodeVaried, type RequestContent } from './encode.ts'
import type { HttpResponse } from './http.ts'
import { applyResponse } from './model/apply-response.ts'
import {
  type Intent,
  kindOf,
  type Memory,
  needsReasonAlways,
  predict,
  type RequestOptions,
} from './model/intent.ts'
import { firstMail, messagesOf, newMessage } from './model/mail.ts'
import { createPlan, type planConfiguration } from './model/plans.ts'
import { createProject } from './model/projects.ts'
import { type ExpectedRead, listOf, nextRead } from './model/reads.ts'
import { differences, Unknown } from './model/unknown.ts'
import type { Noun, Project, View, World } from './model/world.ts'
import { nearMiss } from './near-misses.ts'
import { badReason, plainText, reasonText } from './texts.ts'

/**
 * A sequence of requests with its own users, plans and projects. Each response is compared with the model's prediction.
 * Each step has its own random seed: a sequence can be repeated from its seed, and steps can be omitted to minimize a
 * failure.
 */
export interface SequenceOptions {
  seed: number
  steps: number
  /** Returns false for steps to omit. */
  includes?: (step: number) => boolean
}

export interface Failure {
  found: ViolationError
  /** The number of the failing step. The final comparison counts as the step after the last one. */
  step: number
  trail: string
}

export async function runSequence(
  context: FuzzContext,
  caller: Caller,
  { seed, steps, includes = () => true }: SequenceOptions,
): Promise<Failure | undefined> {
  caller.forget()
  const runner = new SequenceRunner(context, caller, seed)
  let step = -1
  try {
    await runner.begin()
    for (step = 0; step < steps; step++) {
      if (includes(step)) await runner.step(new Chance(seedOf(seed, step)))
    }
    await compareAll(context, caller, runner.world, new Chance(seedOf(seed, -1)))
    return undefined
  } catch (error) {
    if (!(error instanceof ViolationError)) throw error
    return { found: error, step, trail: caller.trail() }
  }
}

let worlds = 0

class SequenceRunner {
  readonly world: World
  readonly #context: FuzzContext
  readonly #caller: Caller
  readonly #seed: number
  readonly #memory: Memory = new Map()
  #keys = 0

  constructor(context: FuzzContext, caller: Caller, seed: number) {
    this.#context = context
    this.#caller = caller
    this.#seed = seed
    // Not derived from the seed: a repeated sequence must not collide with the data of its first run.
    this.world = { users: [], plans: [], projects: [], mark: `w${++worlds}x${process.pid}` }
  }

  /** Creates four users, two plans and two projects. The second plan has low limits. */
  async begin(): Promise<void> {
    const chance = new Chance(seedOf(this.#seed, -2))
    const { world } = this
    await this.#context.makeUsers(world.mark, 4)
    const read = { operation: 'users.list', params: {}, query: { q: world.mark } }
    for (const view of (await listed(this.#context, this.#caller, read)).reverse()) {
      world.users.push({ type: 'user', id: Number(view['id']), version: 1, view, acts: [] })
    }
    await this.#perform(chance, createPlan(world, chance, planNamed(plainText(chance), 5)), plainOptions)
    await this.#perform(chance, createPlan(world, chance, planNamed(plainText(chance), 1)), plainOptions)
    for (const n of [0, 1]) {
      const [user, plan] = [world.users[n], world.plans[n]]
      const body = { name: plainText(chance), user_id: user?.id ?? 0, plan_id: plan?.id ?? 0 }
      await this.#perform(chance, createProject(world, chance, body), plainOptions)
    }
    for (const project of world.projects) await this.#sendMail(project)
  }

  async #sendMail(project: Project): Promise<void> {
    project.mail = firstMail(`${project.id}.${this.world.mark}`)
    const { messages } = project.mail
    await this.#context.makeMail(project.id, project.mail)
    const list = await listed(this.#context, this.#caller, messagesOf(project))
    mismatch(
      differences(
        messages.map((message) => newMessage(project, message)),
        list,
      ),
    )
    list.forEach((view, n) => {
      Object.assign(messages[n] ?? {}, { view })
    })
  }

  async step(chance: Chance): Promise<void> {
    await weighted(chance, [
      [42, () => this.#act(chance)],
      [4, () => this.#repeat(chance)],
      [44, () => this.#miss(chance)],
      [10, () => this.#read(chance)],
      [2, () => this.#sendTwice(chance)],
    ])()
  }

  async #act(chance: Chance): Promise<void> {
    const intent = nextIntent(this.#context.document, this.world, chance)
    if (intent) await this.#perform(chance, intent, this.#options(chance, intent))
  }

  async #repeat(chance: Chance): Promise<void> {
    const kept = [...this.#memory]
    if (kept.length === 0) return
    const [key, { intent, reason }] = chance.pick(kept)
    const options = {
      ...this.#options(chance, intent),
      reason,
      key: key.split(' ')[1],
      isDryRun: chance.happens(0.1),
    }
    await this.#perform(chance, intent, options)
  }

  #options(chance: Chance, { operation, target }: Intent): RequestOptions {
    const wants =
      needsReasonAlways(operation) || /^(?:projects\.edit|members\.create|domains\.create)$/.test(operation)
    const reason = chance.happens(wants ? 0.9 : 0.3) ? reasonText(chance) : undefined
    // A key used for a different operation counts as new.
    const isOwn = chance.happens(0.8)
    const known = [...this.#memory.keys()].filter((key) => !isOwn || key.startsWith(`${operation} `))
    const old = known.length > 0 && chance.happens(0.15) ? chance.pick(known).split(' ')[1] : undefined
    const hasKey = chance.happens(0.35)
    return {
      reason: chance.happens(0.02) ? badReason(chance) : reason,
      ifMatch: chance.happens(0.25) ? ifMatch(chance, target?.version ?? 1) : undefined,
      key: hasKey ? (old ?? this.#newKey()) : undefined,
      isDryRun: chance.happens(0.1),
    }
  }

  #newKey = (): string => `key-${this.#keys++}-${this.world.mark}`

  async #perform(chance: Chance, intent: Intent, options: RequestOptions): Promise<void> {
    const { document, token } = this.#context
    const prediction = predict(intent, options, this.#memory)
    const operation = document.operation(intent.operation)
    const request = encodeVaried(chance, operation, token(), contentOf(chance, intent, options))
    const response = await this.#caller.send(operation, request)
    mismatch(applyResponse(intent, options, prediction, response, this.#memory))
    if (prediction.kind === 'done') await this.#learn()
  }

  /**
   * Sends the same request twice at the same time. Only one may take effect; the other is a replay or in progress.
   */
  async #sendTwice(chance: Chance): Promise<void> {
    const { document, token } = this.#context
    const options = { ...plainOptions, key: this.#newKey() }
    const intent = this.#acceptable(chance)
    if (!intent) return
    const operation = document.operation(intent.operation)
    const prediction = predict(intent, options, this.#memory)
    const request = encodePlain(operation, token(), contentOf(chance, intent, options))
    const second = new Caller(this.#context)
    const responses = await Promise.all(
      [this.#caller, second].map((caller) => caller.send(operation, request)),
    )
    second.close()
    const isFirst = ({ status, headers }: HttpResponse) => status < 300 && !headers.has('idempotent-replayed')
    const [first, other] = responses.sort((one, two) => Number(isFirst(two)) - Number(isFirst(one)))
    if (!first || !other) return
    mismatch(applyResponse(intent, options, prediction, first, this.#memory))
    const error = (parsed(other) as { error?: string } | undefined)?.error
    if (error !== 'request_in_progress') {
      mismatch(applyResponse(intent, options, predict(intent, options, this.#memory), other, this.#memory))
    }
    await this.#learn()
  }

  /**
   * Creating or transferring a project changes members, renaming a domain changes routes, and locks and holds are
   * interventions. Reads the values that the response did not contain.
   */
  async #learn(): Promise<void> {
    for (const project of this.world.projects) {
      if (hasUnknown(project.view)) await this.#learnProject(project)
      for (const noun of ['members', 'routing', 'interventions'] as const) {
        if (project.resources[noun].some(({ view }) => hasUnknown(view))) await this.#learnAll(project, noun)
      }
    }
  }

  async #learnProject(project: Project): Promise<void> {
    const { document, token } = this.#context
    const operation = document.operation('projects.show')
    const response = await this.#caller.send(
      operation,
      encodePlain(operation, token(), { params: { project_id: project.id } }),
    )
    const { plan, ...view } = parsed(response) as View
    mismatch(differences(project.view, view))
    project.view = view
  }

  async #learnAll(project: Project, noun: Noun): Promise<void> {
    const resources = project.resources[noun]
    const list = await listed(this.#context, this.#caller, {
      ...listOf(project, noun),
      query: { limit: 200 },
    })
    mismatch(differences(resources.map(({ view }) => view).reverse(), list))
    list.reverse().forEach((view, n) => {
      Object.assign(resources[n] ?? {}, { id: Number(view['id']), view })
    })
  }

  async #read(chance: Chance): Promise<void> {
    const read = nextRead(this.#context.document, this.world, chance)
    if (read) await this.#sendRead(chance, read)
  }

  async #sendRead(chance: Chance, read: ExpectedRead): Promise<void> {
    const { document, token } = this.#context
    const operation = document.operation(read.operation)
    const { expected } = read
    if (expected && 'list' in expected) {
      const limit = Math.max(1, Math.ceil(expected.list.length / (1 + chance.below(3))))
      const query = { ...read.query, ...(chance.happens(0.5) ? { limit: Math.min(limit, 200) } : {}) }
      return mismatch(
        differences(expected.list, await listed(this.#context, this.#caller, { ...read, query })),
      )
    }
    const request = encodeVaried(chance, operation, token(), read)
    const response = await this.#caller.send(
      operation,
      chance.happens(0.05) ? { ...request, method: 'HEAD' } : request,
    )
    const { status, headers, text } = response
    if (!expected) return mismatch(differences(404, status, 'the status'))
    mismatch([
      ...differences({ status: 200, etag: etagOf(expected) }, { status, etag: headers.get('etag') }),
      ...(text === '' ? [] : differences(expected.view, parsed(response))),
    ])
  }

  async #miss(chance: Chance): Promise<void> {
    const base = chance.happens(0.2) ? this.#expectedRead(chance) : this.#accepted(chance)
    if (!base) return
    const operation = this.#context.document.operation(base.operation)
    const miss = nearMiss(chance, operation, this.#context.token(), base.content)
    if (!miss) return
    const response = await this.#caller.send(miss.matchesNoOperation ? undefined : operation, miss.request)
    const error = (parsed(response) as { error?: string } | undefined)?.error
    const found = `${response.status} ${error}`
    mismatch(
      miss.allowed.includes(found)
        ? []
        : [`${miss.about}: expected ${miss.allowed.join(' or ')}, got ${found}`],
    )
  }

  /** A request that the service would accept without the injected error. */
  #accepted(chance: Chance): { operation: string; content: RequestContent } | undefined {
    const intent = this.#acceptable(chance)
    if (!intent) return undefined
    const { operation, params, body } = intent
    return { operation, content: { params, body: { ...body, reason: plainOptions.reason } } }
  }

  #acceptable(chance: Chance): Intent | undefined {
    for (let tries = 0; tries < 5; tries++) {
      const intent = nextIntent(this.#context.document, this.world, chance)
      if (intent && predict(intent, plainOptions, this.#memory).kind === 'done') return intent
    }
    return undefined
  }

  #expectedRead(chance: Chance): { operation: string; content: RequestContent } | undefined {
    const read = nextRead(this.#context.document, this.world, chance)
    return read?.expected && { operation: read.operation, content: { params: read.params } }
  }
}

const plainOptions = {
  reason: 'Asked for',
  ifMatch: undefined,
  key: undefined,
  isDryRun: false,
} satisfies RequestOptions

function ifMatch(chance: Chance, version: number): { text: string; holds: boolean } {
  return weighted(chance, [
    [5, { text: `"${version}"`, holds: true }],
    [2, { text: '*', holds: true }],
    [1, { text: `W/"${version}"`, holds: true }],
    [1, { text: `"x", , "${version}" ,W/"y"`, holds: true }],
    [2, { text: `"${version + 1}"`, holds: false }],
    [1, { text: `"${version - 1}", "0"`, holds: false }],
    [1, { text: `"0${version}"`, holds: false }],
    [1, { text: '""', holds: false }],
  ])
}

/** Whether the reason is the operation's only field. */
const hasNoFields = (operation: string): boolean =>
  operation === 'endpoints.test' ||
  (['rotate', 'delete', 'command'].includes(kindOf(operation)) && operation !== 'queue.release')

function contentOf(
  chance: Chance,
  { operation, params, body }: Intent,
  options: RequestOptions,
): RequestContent {
  const { reason, ifMatch, key, isDryRun } = options
  const isEmpty = reason === undefined && hasNoFields(operation)
  return {
    params,
    query: isDryRun ? { dry_run: true } : chance.happens(0.03) ? { dry_run: false } : {},
    headers: [
      ...(ifMatch ? [['if-match', ifMatch.text] as const] : []),
      ...(key === undefined ? [] : [['idempotency-key', key] as const]),
    ],
    // Without fields, the body is optional.
    body:
      isEmpty && chance.happens(0.3) ? undefined : { ...body, ...(reason === undefined ? {} : { reason }) },
  }
}

const hasUnknown = (view: View): boolean => Object.values(view).some((value) => value instanceof Unknown)

const planNamed = (name: string, max_users: number): ReturnType<typeof planConfiguration> => ({
  name,
  description: '',
  support_level: 'email',
  max_domains: max_users,
  max_users,
  max_mails_per_day: 100,
  max_mails_per_month: 1000,
  billing_product_id: null,
  price: 10,
  is_active: true,
})
