import { Chance } from '../harness/random.ts'
import { nextIntent } from './acts.ts'
import { Caller, Found, mismatch, type Stage } from './caller.ts'
import { compareAll, etagOf, listed } from './compare.ts'
import { seedOf, weighted } from './draw.ts'
import type { Answer } from './http.ts'
import { parsed } from './judge.ts'
import {
  type Intent,
  kindOf,
  type Manner,
  type Memory,
  needsReasonAlways,
  verdictOn,
} from './model/intent.ts'
import { firstMail, messagesOf, newMessage } from './model/mail.ts'
import { createPlan, type planConfiguration } from './model/plans.ts'
import { createProject } from './model/projects.ts'
import { ask, listOf, type Question } from './model/reads.ts'
import { settle } from './model/settle.ts'
import { differences, Unknown } from './model/unknown.ts'
import type { Noun, Project, View, World } from './model/world.ts'
import { nearMiss } from './near-misses.ts'
import { type Meaning, plainly, variously } from './spoken.ts'
import { badReason, plainText, reasonText } from './texts.ts'

/**
 * A sequence of requests in a world of its own (its users, plans and projects), each against what the model says of
 * it. Each step has its own chance, so that a sequence can be had again from its seed, and also without some of its
 * steps: that is how a failure is made short.
 */
export interface SequenceOptions {
  seed: number
  steps: number
  /** Steps that are left out are not tried. */
  keeps?: (step: number) => boolean
}

export interface Failure {
  found: Found
  /** The step at which it came out; the comparison at the end is one more than the last. */
  step: number
  trail: string
}

export async function runSequence(
  stage: Stage,
  caller: Caller,
  { seed, steps, keeps = () => true }: SequenceOptions,
): Promise<Failure | undefined> {
  caller.forget()
  const play = new Play(stage, caller, seed)
  let step = -1
  try {
    await play.begin()
    for (step = 0; step < steps; step++) {
      if (keeps(step)) await play.step(new Chance(seedOf(seed, step)))
    }
    await compareAll(stage, caller, play.world, new Chance(seedOf(seed, -1)))
    return undefined
  } catch (error) {
    if (!(error instanceof Found)) throw error
    return { found: error, step, trail: caller.trail() }
  }
}

let worlds = 0

class Play {
  readonly world: World
  readonly #stage: Stage
  readonly #caller: Caller
  readonly #seed: number
  readonly #memory: Memory = new Map()
  #keys = 0

  constructor(stage: Stage, caller: Caller, seed: number) {
    this.#stage = stage
    this.#caller = caller
    this.#seed = seed
    // Not from the seed: the same sequence may run again beside what it left behind.
    this.world = { users: [], plans: [], projects: [], mark: `w${++worlds}x${process.pid}` }
  }

  /** Four people, two plans and two projects; the second plan is narrow. */
  async begin(): Promise<void> {
    const chance = new Chance(seedOf(this.#seed, -2))
    const { world } = this
    await this.#stage.makeUsers(world.mark, 4)
    const question = { operation: 'users.list', params: {}, query: { q: world.mark } }
    for (const view of (await listed(this.#stage, this.#caller, question)).reverse()) {
      world.users.push({ type: 'user', id: Number(view['id']), version: 1, view, acts: [] })
    }
    await this.#perform(chance, createPlan(world, chance, planNamed(plainText(chance), 5)), plainManner)
    await this.#perform(chance, createPlan(world, chance, planNamed(plainText(chance), 1)), plainManner)
    for (const n of [0, 1]) {
      const [user, plan] = [world.users[n], world.plans[n]]
      const body = { name: plainText(chance), user_id: user?.id ?? 0, plan_id: plan?.id ?? 0 }
      await this.#perform(chance, createProject(world, chance, body), plainManner)
    }
    for (const project of world.projects) await this.#sendMail(project)
  }

  async #sendMail(project: Project): Promise<void> {
    project.mail = firstMail(`${project.id}.${this.world.mark}`)
    const { messages } = project.mail
    await this.#stage.makeMail(project.id, project.mail)
    const list = await listed(this.#stage, this.#caller, messagesOf(project))
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
      [10, () => this.#ask(chance)],
      [2, () => this.#twins(chance)],
    ])()
  }

  async #act(chance: Chance): Promise<void> {
    const intent = nextIntent(this.#stage.document, this.world, chance)
    if (intent) await this.#perform(chance, intent, this.#manner(chance, intent))
  }

  async #repeat(chance: Chance): Promise<void> {
    const kept = [...this.#memory]
    if (kept.length === 0) return
    const [key, { intent, reason }] = chance.pick(kept)
    const manner = {
      ...this.#manner(chance, intent),
      reason,
      key: key.split(' ')[1],
      isDryRun: chance.happens(0.1),
    }
    await this.#perform(chance, intent, manner)
  }

  #manner(chance: Chance, { operation, target }: Intent): Manner {
    const wants =
      needsReasonAlways(operation) || /^(?:projects\.edit|members\.create|domains\.create)$/.test(operation)
    const reason = chance.happens(wants ? 0.9 : 0.3) ? reasonText(chance) : undefined
    // A key of another operation is a new one here.
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

  async #perform(chance: Chance, intent: Intent, manner: Manner): Promise<void> {
    const { document, token } = this.#stage
    const verdict = verdictOn(intent, manner, this.#memory)
    const operation = document.operation(intent.operation)
    const request = variously(chance, operation, token(), meaningOf(chance, intent, manner))
    const answer = await this.#caller.send(operation, request)
    mismatch(settle(intent, manner, verdict, answer, this.#memory))
    if (verdict.kind === 'done') await this.#learn()
  }

  /** The same request twice at once: it acts once, and who comes second hears of the first. */
  async #twins(chance: Chance): Promise<void> {
    const { document, token } = this.#stage
    const manner = { ...plainManner, key: this.#newKey() }
    const intent = this.#acceptable(chance)
    if (!intent) return
    const operation = document.operation(intent.operation)
    const verdict = verdictOn(intent, manner, this.#memory)
    const request = plainly(operation, token(), meaningOf(chance, intent, manner))
    const second = new Caller(this.#stage)
    const answers = await Promise.all([this.#caller, second].map((caller) => caller.send(operation, request)))
    second.close()
    const isFirst = ({ status, headers }: Answer) => status < 300 && !headers.has('idempotent-replayed')
    const [first, other] = answers.sort((one, two) => Number(isFirst(two)) - Number(isFirst(one)))
    if (!first || !other) return
    mismatch(settle(intent, manner, verdict, first, this.#memory))
    const error = (parsed(other) as { error?: string } | undefined)?.error
    if (error !== 'request_in_progress') {
      mismatch(settle(intent, manner, verdictOn(intent, manner, this.#memory), other, this.#memory))
    }
    await this.#learn()
  }

  /** An owner comes with a project, a transfer moves people, a rename routes: what became of them is to be learnt. */
  async #learn(): Promise<void> {
    for (const project of this.world.projects) {
      for (const noun of ['members', 'routing'] as const) {
        if (project.things[noun].some(({ view }) => hasUnknown(view))) await this.#learnAll(project, noun)
      }
    }
  }

  async #learnAll(project: Project, noun: Noun): Promise<void> {
    const things = project.things[noun]
    const list = await listed(this.#stage, this.#caller, { ...listOf(project, noun), query: { limit: 200 } })
    mismatch(differences(things.map(({ view }) => view).reverse(), list))
    list.reverse().forEach((view, n) => {
      Object.assign(things[n] ?? {}, { id: Number(view['id']), view })
    })
  }

  async #ask(chance: Chance): Promise<void> {
    const question = ask(this.#stage.document, this.world, chance)
    if (question) await this.#pose(chance, question)
  }

  async #pose(chance: Chance, question: Question): Promise<void> {
    const { document, token } = this.#stage
    const operation = document.operation(question.operation)
    const { expected } = question
    if (expected && 'list' in expected) {
      const limit = Math.max(1, Math.ceil(expected.list.length / (1 + chance.below(3))))
      const query = { ...question.query, ...(chance.happens(0.5) ? { limit: Math.min(limit, 200) } : {}) }
      return mismatch(
        differences(expected.list, await listed(this.#stage, this.#caller, { ...question, query })),
      )
    }
    const request = variously(chance, operation, token(), question)
    const answer = await this.#caller.send(
      operation,
      chance.happens(0.05) ? { ...request, method: 'HEAD' } : request,
    )
    const { status, headers, text } = answer
    if (!expected) return mismatch(differences(404, status, 'the status'))
    mismatch([
      ...differences({ status: 200, etag: etagOf(expected) }, { status, etag: headers.get('etag') }),
      ...(text === '' ? [] : differences(expected.view, parsed(answer))),
    ])
  }

  async #miss(chance: Chance): Promise<void> {
    const base = chance.happens(0.2) ? this.#question(chance) : this.#accepted(chance)
    if (!base) return
    const operation = this.#stage.document.operation(base.operation)
    const miss = nearMiss(chance, operation, this.#stage.token(), base.meaning)
    if (!miss) return
    const answer = await this.#caller.send(miss.isNowhere ? undefined : operation, miss.request)
    const error = (parsed(answer) as { error?: string } | undefined)?.error
    const found = `${answer.status} ${error}`
    mismatch(
      miss.allowed.includes(found)
        ? []
        : [`${miss.about}: the answer is ${found} and not ${miss.allowed.join(' or ')}`],
    )
  }

  /** Something that would be carried out if it were not sent wrong. */
  #accepted(chance: Chance): { operation: string; meaning: Meaning } | undefined {
    const intent = this.#acceptable(chance)
    if (!intent) return undefined
    const { operation, params, body } = intent
    return { operation, meaning: { params, body: { ...body, reason: plainManner.reason } } }
  }

  #acceptable(chance: Chance): Intent | undefined {
    for (let tries = 0; tries < 5; tries++) {
      const intent = nextIntent(this.#stage.document, this.world, chance)
      if (intent && verdictOn(intent, plainManner, this.#memory).kind === 'done') return intent
    }
    return undefined
  }

  #question(chance: Chance): { operation: string; meaning: Meaning } | undefined {
    const question = ask(this.#stage.document, this.world, chance)
    return question?.expected && { operation: question.operation, meaning: { params: question.params } }
  }
}

const plainManner = {
  reason: 'Asked for',
  ifMatch: undefined,
  key: undefined,
  isDryRun: false,
} satisfies Manner

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

const isEmptyKind = (operation: string): boolean =>
  ['rotate', 'delete', 'command'].includes(kindOf(operation))

function meaningOf(chance: Chance, { operation, params, body }: Intent, manner: Manner): Meaning {
  const { reason, ifMatch, key, isDryRun } = manner
  const isEmpty = reason === undefined && (isEmptyKind(operation) || operation === 'endpoints.test')
  return {
    params,
    query: isDryRun ? { dry_run: true } : chance.happens(0.03) ? { dry_run: false } : {},
    headers: [
      ...(ifMatch ? [['if-match', ifMatch.text] as const] : []),
      ...(key === undefined ? [] : [['idempotency-key', key] as const]),
    ],
    // What takes nothing but a reason may come without a body at all.
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
