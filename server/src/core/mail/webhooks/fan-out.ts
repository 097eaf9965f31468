import type { UnscopedDb } from '../../../platform/db/db.ts'
import { fanOutNext, findProjects, type ProjectKey, tryLockProject } from './fan-out.sql.ts'

// Inserts one delivery for each event and subscribed endpoint. This runs in separate transactions from those
// that write the events, so a project with many endpoints delays only its own webhooks.
//
// Projects are served round-robin. Each step is one transaction with a bounded number of rows. A step that
// fails does not affect other projects.

export const fanOutLimits = { events: 100, endpoints: 50 }
const projectsAtOnce = 50

export class FanOut {
  readonly #db: UnscopedDb
  readonly #onError: (error: unknown, projectId: number) => void
  /** The project that was served last. */
  #last: ProjectKey | undefined

  constructor(db: UnscopedDb, onError: (error: unknown, projectId: number) => void) {
    this.#db = db
    this.#onError = onError
  }

  /** Runs one step for each of the next projects. Returns the number of events processed. */
  async step(): Promise<number> {
    const projects = await this.#nextProjects()
    this.#last = projects.at(-1)
    let events = 0
    for (const project of projects) {
      try {
        events += await this.#db.transaction(async (tx) =>
          (await tryLockProject(tx, project)) ? fanOutNext(tx, project, fanOutLimits) : 0,
        )
      } catch (error) {
        this.#onError(error, project.project_id)
      }
    }
    return events
  }

  async #nextProjects(): Promise<ProjectKey[]> {
    const after = this.#last
    const next = await this.#db.readOne((tx) => findProjects(tx, after, projectsAtOnce))
    if (next.length > 0 || after === undefined) return next
    return this.#db.readOne((tx) => findProjects(tx, undefined, projectsAtOnce))
  }
}
