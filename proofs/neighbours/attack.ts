import { setTimeout as sleep } from 'node:timers/promises'
import type { PartOptions } from '../../bench/postern.ts'
import type { Stage, Tenant } from './stage.ts'

/**
 * What one tenant does to harm another. proofs/README.md lists the criteria.
 *
 *   prepare → (alone → beside: run, check), so many rounds
 */
export interface Attack {
  /** Of the finding that it repeats, as docs/security.md has it. */
  id: string
  name: string
  /** For the table. */
  title: string
  /** Of the API's process, while this attack is tried. */
  api?: PartOptions
  /** The API, the worker and the intake are one process (`postern all`), so that one main thread does everything. */
  isTogether?: boolean
  /** Shows which cap refuses the attack, and makes by SQL what is to be there all the same. */
  prepare(attacker: Attacker): Promise<void>
  /** Until `over` is aborted. Resolves when every request was answered. */
  run(attacker: Attacker, over: AbortSignal): Promise<void>
  /** After `run`, when the worker has stopped. What is wrong goes to the attacker's faults. */
  check(attacker: Attacker): Promise<void>
}

/** Status 0: there was no answer. */
export interface Answer {
  status: number
  error: string
  body: unknown
}

export interface AskOptions {
  method?: 'GET' | 'POST' | 'PATCH'
  body?: object
  /** Instead of the attacker's API key. */
  bearer?: string
  headers?: Record<string, string>
}

/** The tenant that attacks, with what it was answered. */
export class Attacker {
  readonly stage: Stage
  readonly tenant: Tenant
  /** How often each answer came, by status and error. */
  readonly answers = new Map<string, number>()
  /** What was refused by which cap. */
  readonly refusals: string[] = []
  readonly faults: string[] = []

  constructor(stage: Stage, tenant: Tenant) {
    this.stage = stage
    this.tenant = tenant
  }

  /** `path` is the part after /v1. */
  async ask(path: string, { method = 'POST', body, bearer, headers }: AskOptions = {}): Promise<Answer> {
    const answer = await this.#fetch(path, {
      method,
      headers: {
        authorization: `Bearer ${bearer ?? this.tenant.secret}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    this.note(answer)
    return answer
  }

  note({ status, error }: Pick<Answer, 'status' | 'error'>): void {
    const key = `${status} ${error}`.trim()
    this.answers.set(key, (this.answers.get(key) ?? 0) + 1)
  }

  /** Without any such answer nothing was proved. */
  requireAnswer(key: string): void {
    if ((this.answers.get(key) ?? 0) === 0) this.faults.push(`no request of the attack was answered ${key}`)
  }

  async #fetch(path: string, init: RequestInit): Promise<Answer> {
    try {
      const response = await fetch(`${this.stage.postern.url}/v1${path}`, init)
      const body: unknown = await response.json()
      const { error = '' } = body as { error?: string }
      return { status: response.status, error, body }
    } catch (error) {
      return { status: 0, error: (error as Error).message, body: undefined }
    }
  }
}

/** So many at once, each again and again. */
export async function repeat(
  atOnce: number,
  over: AbortSignal,
  request: () => Promise<unknown>,
  pauseMs = 0,
): Promise<void> {
  const loop = async (): Promise<void> => {
    while (!over.aborted) {
      await request()
      await sleep(pauseMs)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, loop))
}

export const untilOver = (over: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (over.aborted) resolve()
    else over.addEventListener('abort', () => resolve(), { once: true })
  })
