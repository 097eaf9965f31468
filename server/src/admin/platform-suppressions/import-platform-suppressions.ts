import {
  importPlatformSuppressions,
  readLineReason,
} from '../../core/control/platform-suppressions/platform-suppressions.ts'
import { ImportedCsv, ImportReport, importBodyBytes, readImport } from '../../core/shared/address-import.ts'
import { countText } from '../../core/shared/counts.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { platformChange, queuedMailStays } from './consequences.ts'

export const importPlatformSuppressionsOperation = adminOperation({
  id: 'platform-suppressions.import',
  kind: 'command',
  path: '/admin/suppressions/import',
  summary: 'Import addresses to suppress for all projects',
  description:
    'Suppresses the addresses of a CSV file for all projects. The second column can contain a reason for the address; without it, the `reason` of the request is stored. If the first line is a header, the columns `address` (or `email`) and `reason` are used and all others ignored. Invalid lines are reported and do not affect the others. Importing the file again adds nothing. A dry run returns the report without adding anything. The audit log has one entry for the import.',
  params: NoParams,
  body: { csv: ImportedCsv },
  bodyLimitBytes: importBodyBytes,
  refusals: ['limit_exceeded'],
  example: {
    csv: 'someone@example.com\nother@example.com,"Wrote to us, ticket 4712"',
    reason: 'List of the legal department, ticket 4711',
  },
  answer: ImportReport,
  hasVersion: false,
  target: async () => null,
  async run({ tx, caps, body, reason }) {
    const file = readImport(body.csv, readLineReason)
    if ('refusal' in file) throw file.refusal
    const { report, added } = await importPlatformSuppressions(tx, caps, file, reason ?? '')
    const { lines, ...counts } = report
    return {
      audit:
        added.length === 0
          ? unchanged
          : { projectId: null, change: platformChange(null, { ...counts, addresses: added }) },
      views: { before: null, after: counts },
      report,
      effects:
        added.length === 0
          ? []
          : [`Addresses to which no project can send any more: ${countText(added.length)}.`, queuedMailStays],
      warnings: [],
      answer: report,
      version: null,
    }
  },
})
