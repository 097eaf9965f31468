import type { PosternError } from '../errors.ts'

/** The checks of a parsed body, in order. */
export type BodyCheck = 'values' | 'text' | 'schema'

/**
 * A body that a worker thread parsed and checked, with its converted content. In the server, the body fails
 * the check that failed in the thread and passes all others, so errors are reported in the same order as
 * for other bodies.
 */
export class CheckedBody {
  readonly #content: unknown
  readonly #fault: { check: BodyCheck; error: PosternError } | undefined

  constructor(outcome: { content: unknown } | { fault: { check: BodyCheck; error: PosternError } }) {
    this.#content = 'content' in outcome ? outcome.content : undefined
    this.#fault = 'fault' in outcome ? outcome.fault : undefined
  }

  /** Undefined if a check failed. */
  get content(): unknown {
    return this.#content
  }

  /** Throws this check's error, if any. */
  refuse(check: 'values' | 'text'): void {
    if (this.#fault?.check === check) throw this.#fault.error
  }

  /** The return value of a Fastify validator. */
  get schemaOutcome(): true | { error: PosternError } {
    return this.#fault?.check === 'schema' ? { error: this.#fault.error } : true
  }
}
