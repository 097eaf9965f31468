import Type from 'typebox'
import { ProjectVolume, readVolumes, type VolumeRange, volumeRanges } from '../../core/mail/usage/volumes.ts'
import { oneOf, UnreachableCells } from '../../core/shared/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const maxIds = 200
const defaultRange: VolumeRange = '30d'

export const listVolumesQuery = adminQuery({
  id: 'projects.volumes',
  path: '/admin/projects/volumes',
  summary: 'Show the volume and the rates of projects',
  description:
    'The recipients that several projects have sent to, and their bounce and complaint rates, for example for a page of `projects.list`. In the order of `ids`; projects that do not exist are omitted.',
  params: NoParams,
  query: {
    ids: Type.String({
      maxLength: maxIds * 17,
      description: `Ids of up to ${maxIds} projects, separated by commas.`,
      examples: ['1,2,3'],
    }),
    range: Type.Optional(
      oneOf(volumeRanges, {
        description:
          '`24h`: the current hour and the 23 hours before it. `7d` and `30d`: the last UTC days, including today. Default: `30d`.',
      }),
    ),
  },
  answer: Type.Object(
    { data: Type.Array(ProjectVolume), unreachable_cells: UnreachableCells },
    { additionalProperties: false },
  ),
  run: async ({ db, cells, query: { ids, range } }) => ({
    answer: await readVolumes({ db, cells }, idsOf(ids), range ?? defaultRange),
  }),
})

function idsOf(text: string): number[] {
  const parts = text.split(',')
  const ids = parts.map(Number)
  const isValid = (id: number, index: number) =>
    /^(0|[1-9]\d{0,15})$/.test(parts[index] ?? '') && Number.isSafeInteger(id)
  if (ids.length > maxIds || !ids.every(isValid)) {
    throw new PosternError(
      'invalid_parameter',
      `"ids" must be the ids of up to ${maxIds} projects, separated by commas.`,
    )
  }
  return [...new Set(ids)]
}
