import type { Config } from '../config/config.ts'
import type { BatchedKeyLookup } from '../core/control/api-keys/batched-key-lookup.ts'
import type { ByteLimits } from '../core/control/caps/caps.ts'
import { Acceptance, type Accepts } from '../core/mail/messages/acceptance.ts'
import { type Cell, Cells, cellIn } from '../platform/db/cells.ts'
import type { Database, UnscopedDb } from '../platform/db/db.ts'
import { ReplicaAge } from '../platform/db/replica-age.ts'
import type { Logger } from '../platform/telemetry/log.ts'
import { metrics } from '../platform/telemetry/metrics.ts'
import type { ProviderName } from '../providers/sending-identities.ts'

/**
 * The databases of mail, and what stops where a cell's copy of control is too old (platform/db/replica-age.ts): acceptance and
 * claims. Inbound mail, reports and webhooks go on.
 */
export type Copies = ReadonlyMap<Cell, ReplicaAge>

export interface OpenCells {
  cells: Cells
  home: Cell | undefined
  /** Those that are not control's. */
  opened: Database[]
  copies: Map<Cell, ReplicaAge>
}

export function openCells(
  config: Config,
  control: Database,
  open: (url: string) => Database,
  log: Logger,
): OpenCells {
  const opened: Database[] = []
  const copies = new Map<Cell, ReplicaAge>()
  const maxAgeSeconds = config.controlCopyMaxAgeSeconds
  const [first, ...others] = config.cells.map(({ name, shards, url }) => {
    const database = url === undefined ? control : open(url)
    const cell = cellIn(database, { name, shards })
    if (database !== control) {
      opened.push(database)
      copies.set(cell, new ReplicaAge(cell.mail, { cell: name, maxAgeSeconds, log }))
    }
    return cell
  })
  const cells = new Cells(first ? [first, ...others] : [cellIn(control, { name: 'mail' })])
  return {
    cells,
    home: first ? cells.all.find(({ name }) => name === config.cell) : cells.all[0],
    opened,
    copies,
  }
}

/** A copy of control that is too old may lack that a key was revoked; control itself knows. */
export const keysIn = (
  home: Cell | undefined,
  copies: Copies,
  control: UnscopedDb,
): ConstructorParameters<typeof BatchedKeyLookup>[0] => {
  const copy = home && copies.get(home)
  return home && copy ? async () => ((await copy.isStale()) ? control : home.mail) : (home?.mail ?? control)
}

/** Where it is not known, it is infinite. */
export async function showCopyAge(copies: Copies, home: Cell | undefined): Promise<void> {
  const shown = [...copies].filter(([cell]) => home === undefined || cell === home)
  const ages = await Promise.all(
    shown.map(async ([, copy]) => {
      await copy.isStale()
      return copy.seconds ?? Number.POSITIVE_INFINITY
    }),
  )
  metrics.controlCopyAge.set({}, ages.length === 0 ? undefined : Math.max(...ages))
}

/**
 * Mail of different cells is never in one group: it is not in one transaction. A cell whose copy of control is too old
 * accepts none, because it may not know that the project was locked.
 */
export function acceptanceOf(
  cells: Cells,
  copies: Copies,
  providers: readonly ProviderName[],
  byteLimits: ByteLimits,
): Accepts {
  const byCell = new Map(
    cells.all.map((cell): [Cell, Accepts] => {
      const acceptance = new Acceptance(cell.mail, providers, byteLimits)
      const copy = copies.get(cell)
      if (!copy) return [cell, acceptance]
      return [
        cell,
        {
          async accept(submission, way) {
            await copy.requireFresh()
            return acceptance.accept(submission, way)
          },
        },
      ]
    }),
  )
  return {
    accept: (submission, way) =>
      (byCell.get(cells.of(submission.sender.projectId)) as Accepts).accept(submission, way),
  }
}

/** For the dispatcher of a cell. */
export function mayClaimIn(home: Cell | undefined, copies: Copies): { mayClaim?: () => boolean } {
  const copy = home && copies.get(home)
  return copy ? { mayClaim: () => !copy.isStaleNow } : {}
}
