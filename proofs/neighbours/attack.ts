import { setTimeout as sleep } from 'node:timers/promises'
import type { PartOptions } from '../../bench/postern.ts'
import type { Stage, Tenant } from './stage.ts'

/**
 * An attack by one tenant on others. proofs/README.md lists the criteria.
 *
 *   prepare → (alone → beside: run, check) × rounds
 */
export interface Attack {
  /** The number of the finding in docs/security.md. */
  id: string
  name: string
  /** The description in the table. */
  title: string
  /** Options for the API process during this attack. */
  api?: PartOptions
  /** Whether the API, the worker and the intake share one process (`postern all`) and its main thread. */
  isTogether?: boolean
  /** Shows which cap blocks the attack, and uses SQL to create objects in excess of the cap. */
  prepare(attacker: Attacker): Promise<void>
  /** Runs until `over` is aborted. Resolves when every request has received a response. */
  run(attacker: Attacker, over: AbortSignal): Promise<void>
  /** Called after `run`, when the worker has stopped. Adds to the attacker's faults. */
  check(attacker: Attacker): Promise<void>
}

/** A response; status 0 means that there was none. */
export interface Answer {
  status: number
  error: string
  body: unknown
}

export interface AskOptions {
  method?: 'GET' | 'POST' | 'PATCH'
  body?: object
  /** Used instead of the attacker's API key. */
  bearer?: string
  headers?: Record<string, string>
}

/** The attacking tenant, and the responses it got. */
export class Attacker {
  readonly stage: Stage
  readonly tenant: Tenant
  /** Number of responses by status and error. */
  readonly answers = new Map<string, number>()
  /** Describes each rejection by a cap. */
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

  /** At least one such response is required; otherwise the run proves nothing. */
  requireAnswer(key: string): void {
    if ((this.answers.get(key) ?? 0) === 0)
      this.faults.push(`no request of the attack got the response ${key}`)
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

/** Repeats a request in this many concurrent loops. */
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
