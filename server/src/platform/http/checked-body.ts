import type { PosternError } from '../errors.ts'

/** The checks of a parsed body, in their order. */
export type BodyCheck = 'values' | 'text' | 'schema'

/**
 * A body that was parsed and checked in a thread, and what was made of it there. It passes the checks of the server, but for
 * the one that refused it in the thread: so its refusals come in the same order as those of any other body.
 */
export class CheckedBody {
  readonly #content: unknown
  readonly #fault: { check: BodyCheck; error: PosternError } | undefined

  constructor(outcome: { content: unknown } | { fault: { check: BodyCheck; error: PosternError } }) {
    this.#content = 'content' in outcome ? outcome.content : undefined
    this.#fault = 'fault' in outcome ? outcome.fault : undefined
  }

  /** Of a body that passed all of them. */
  get content(): unknown {
    return this.#content
  }

  /** Throws what this check found. */
  refuse(check: 'values' | 'text'): void {
    if (this.#fault?.check === check) throw this.#fault.error
  }

  /** As a validator tells it. */
  get schemaOutcome(): true | { error: PosternError } {
    return this.#fault?.check === 'schema' ? { error: this.#fault.error } : true
  }
}
