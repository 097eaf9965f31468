import { lockProject } from '../../core/control/projects/projects.ts'
import { beforeImporting, readLineReason } from '../../core/mail/suppressions/suppressions.ts'
import {
  ImportedCsv,
  ImportReport,
  importBodyBytes,
  importReport,
  readImport,
} from '../../core/shared/address-import.ts'
import { countText } from '../../core/shared/counts.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { addedBeyond, publishAdded, queuedMailStays } from './adding.ts'

export const importSuppressionsOperation = adminOperation({
  id: 'suppressions.import',
  kind: 'enqueue',
  path: '/admin/projects/:project_id/suppressions/import',
  summary: 'Import suppressions into a project',
  description:
    'Suppresses the addresses of a CSV file, within seconds. The second column can contain `bounce`, `complaint` or `manual`; without it, the reason is `manual`. If the first line is a header, the columns `address` (or `email`) and `reason` are used and all others ignored. Invalid lines are reported and do not affect the others. Importing the file again adds nothing. A dry run returns the report without adding anything. The audit log has one entry for the import.',
  params: ProjectParams,
  body: { csv: ImportedCsv },
  bodyLimitBytes: importBodyBytes,
  refusals: ['limit_exceeded'],
  example: {
    csv: 'address,reason\nsomeone@example.com,complaint\nother@example.com,bounce',
    reason: 'Suppressions of the previous provider, ticket 4711',
  },
  answer: ImportReport,
  hasVersion: false,
  async preload(mail, { project_id }, { csv }, { max_suppressions }) {
    const file = readImport(csv, readLineReason)
    return 'refusal' in file ? file : beforeImporting(mail, project_id, file, max_suppressions)
  },
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, params: { project_id }, caps, preloaded }) {
    if ('refusal' in preloaded) throw preloaded.refusal
    const { report, added } = importReport(preloaded.file, preloaded.listed)
    await publishAdded(tx, project_id, added)
    const limitException = addedBeyond(caps, preloaded, added)
    const { lines, ...counts } = report
    const addresses = added.map(({ address }) => address)
    return {
      audit:
        added.length === 0
          ? unchanged
          : {
              projectId: project_id,
              change: {
                resource: 'suppression',
                id: project_id,
                before: null,
                after: { ...counts, addresses },
              },
              limitException,
            },
      views: { before: null, after: counts },
      report,
      effects:
        added.length === 0
          ? []
          : [
              `Addresses to which the project can no longer send: ${countText(added.length)}.`,
              queuedMailStays,
            ],
      warnings: limitWarnings(limitException),
      answer: report,
      version: null,
    }
  },
})
