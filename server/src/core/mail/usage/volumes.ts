import Type, { type Static } from 'typebox'
import type { Cells } from '../../../platform/db/cells.ts'
import type { Db, ReadTx } from '../../../platform/db/db.ts'
import { readCells } from '../../../platform/db/read-cells.ts'
import { projectNames } from '../../control/projects/projects.ts'
import { volumeOf } from '../../control/reputation/score.ts'
import { disableSeqScan } from '../../shared/bounded-scan.ts'
import { nullable } from '../../shared/wire.ts'
import { sumDays, sumHours, type Volume } from './volumes.sql.ts'

/** The volume and the rates of several projects, from all cells: the figures of a page of the list of projects. */
const count = Type.Integer({ minimum: 0 })
const rate = (kind: string) =>
  nullable(
    Type.Number({
      minimum: 0,
      description: `${kind} recipients, in percent of those that were sent to or have a result. Null if there were none.`,
    }),
  )

export const ProjectVolume = Type.Object(
  {
    project_id: Type.Integer(),
    sent: { ...count, description: 'Recipients handed over to the MTA or to Amazon SES.' },
    ...{ delivered: count, bounced: count, failed: count, complained: count },
    bounce_rate: rate('Bounced'),
    complaint_rate: rate('Complained'),
  },
  { title: 'ProjectVolume', additionalProperties: false },
)

export const volumeRanges = ['24h', '7d', '30d'] as const
export type VolumeRange = (typeof volumeRanges)[number]

/** 200 projects have at most 57,600 buckets in 24 hours, and 6,000 days in 30 days. */
const sums: Record<VolumeRange, (tx: ReadTx, ids: readonly number[]) => ReturnType<typeof sumDays>> = {
  '24h': (tx, ids) => sumHours(tx, ids, 24),
  '7d': (tx, ids) => sumDays(tx, ids, 7),
  '30d': (tx, ids) => sumDays(tx, ids, 30),
}

const cellTimeoutMs = 3_000

export interface Volumes {
  data: Static<typeof ProjectVolume>[]
  unreachable_cells: string[]
}

/** In the order of the ids, without projects that do not exist. Reads only the cells of these projects. */
export async function readVolumes(
  { db, cells }: { db: Db; cells: Cells },
  projectIds: readonly number[],
  range: VolumeRange,
): Promise<Volumes> {
  const names = await db.read((tx) => projectNames(tx, projectIds))
  const idsOf = Map.groupBy(names.keys(), cells.of)
  const { answers, unreachable } = await readCells({ all: [...idsOf.keys()] }, cellTimeoutMs, (tx, cell) =>
    sumIn(tx, idsOf.get(cell) ?? [], range),
  )
  const byId = new Map(answers.flat().map((row) => [row.project_id, row]))
  return {
    data: projectIds.flatMap((id) => {
      const found = byId.get(id)
      return found === undefined ? [] : [volumeView(found)]
    }),
    unreachable_cells: unreachable,
  }
}

export async function sumIn(tx: ReadTx, projectIds: readonly number[], range: VolumeRange) {
  await disableSeqScan(tx)
  return sums[range](tx, projectIds)
}

function volumeView({
  project_id,
  ...volume
}: Volume & { project_id: number }): Static<typeof ProjectVolume> {
  const total = volumeOf(volume)
  const rateOf = (counted: number) => (total === 0 ? null : (100 * counted) / total)
  return {
    project_id,
    ...volume,
    bounce_rate: rateOf(volume.bounced),
    complaint_rate: rateOf(volume.complained),
  }
}
