import type { Config } from '../config/config.ts'
import type { BatchedKeyLookup } from '../core/control/api-keys/batched-key-lookup.ts'
import { Acceptance, type Accepts } from '../core/mail/messages/acceptance.ts'
import type { SendingRules } from '../core/mail/messages/sending-checks.ts'
import { type Cell, Cells, cellIn } from '../platform/db/cells.ts'
import type { Database, UnscopedDb } from '../platform/db/db.ts'
import { ReplicaAge } from '../platform/db/replica-age.ts'
import type { Logger } from '../platform/telemetry/log.ts'
import { Gauge } from '../platform/telemetry/metrics.ts'

/**
 * Opens the mail databases, and stops acceptance and claims in a cell whose control replica is too old
 * (platform/db/replica-age.ts). Inbound mail, reports and webhooks continue.
 */
export type Replicas = ReadonlyMap<Cell, ReplicaAge>

export interface OpenCells {
  cells: Cells
  home: Cell | undefined
  /** The cells' databases, excluding the control database. */
  opened: Database[]
  replicas: Map<Cell, ReplicaAge>
}

export function openCells(
  config: Config,
  control: Database,
  open: (url: string) => Database,
  log: Logger,
): OpenCells {
  const opened: Database[] = []
  const replicas = new Map<Cell, ReplicaAge>()
  const maxAgeSeconds = config.controlReplicaMaxAgeSeconds
  const [first, ...others] = config.cells.map(({ name, shards, url }) => {
    const database = url === undefined ? control : open(url)
    const cell = cellIn(database, { name, shards })
    if (database !== control) {
      opened.push(database)
      replicas.set(cell, new ReplicaAge(cell.mail, { cell: name, maxAgeSeconds, log }))
    }
    return cell
  })
  const cells = new Cells(first ? [first, ...others] : [cellIn(control, { name: 'mail' })])
  return {
    cells,
    home: first ? cells.all.find(({ name }) => name === config.cell) : cells.all[0],
    opened,
    replicas,
  }
}

/**
 * A stale replica may not show that an API key was revoked, so in that case keys are looked up in the
 * control database.
 */
export const keysIn = (
  home: Cell | undefined,
  replicas: Replicas,
  control: UnscopedDb,
): ConstructorParameters<typeof BatchedKeyLookup>[0] => {
  const replica = home && replicas.get(home)
  return home && replica
    ? async () => ((await replica.isStale()) ? control : home.mail)
    : (home?.mail ?? control)
}

const replicaAge = new Gauge(
  'postern_control_replica_age_seconds',
  'Age of the replica of control in this cell; in processes outside of cells, age of the oldest replica in any cell.',
  {},
)

/** Sets the replica age gauge. An unknown age counts as infinite. */
export async function setReplicaAge(replicas: Replicas, home: Cell | undefined): Promise<void> {
  const shown = [...replicas].filter(([cell]) => home === undefined || cell === home)
  const ages = await Promise.all(
    shown.map(async ([, replica]) => {
      await replica.isStale()
      return replica.seconds ?? Number.POSITIVE_INFINITY
    }),
  )
  replicaAge.set({}, ages.length === 0 ? undefined : Math.max(...ages))
}

/**
 * Each cell has its own acceptance, because one batch is one transaction in one database. A cell whose
 * control replica is too old accepts no mail: the replica may not show that a project was locked.
 */
export function acceptanceOf(
  cells: Cells,
  replicas: Replicas,
  { providers, byteLimits }: SendingRules,
): Accepts {
  const byCell = new Map(
    cells.all.map((cell): [Cell, Accepts] => {
      const acceptance = new Acceptance(cell.mail, [...providers], byteLimits)
      const replica = replicas.get(cell)
      if (!replica) return [cell, acceptance]
      return [
        cell,
        {
          async accept(request, way) {
            await replica.requireFresh()
            return acceptance.accept(request, way)
          },
        },
      ]
    }),
  )
  return {
    accept: (request, way) =>
      (byCell.get(cells.of(request.sender.projectId)) as Accepts).accept(request, way),
  }
}

/** Whether a cell's dispatcher can claim mail. */
export function mayClaimIn(home: Cell | undefined, replicas: Replicas): { mayClaim?: () => boolean } {
  const replica = home && replicas.get(home)
  return replica ? { mayClaim: () => !replica.isStaleNow } : {}
}
