import { importManual, lockAndCountManual } from '../../core/mail/suppressions/suppressions.ts'
import { ImportedCsv, ImportReport, importBodyBytes } from '../../core/shared/address-import.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { requireCap } from '../limits.ts'
import { customerOperation, unchanged } from '../operation.ts'

export const importSuppressionsOperation = customerOperation({
  id: 'suppressions.import',
  kind: 'command',
  runsIn: 'mail',
  path: '/projects/:project_id/suppressions/import',
  pathOfKey: '/suppressions/import',
  summary: 'Import suppressions',
  description:
    'Suppresses the addresses of a CSV file, for example those of your previous provider. If the first line is a header, the column `address` (or `email`) is used and all others are ignored. The reason of every address is `manual`, so that you can delete it. Invalid lines are reported and do not affect the others. Importing the file again adds nothing. Returns `limit_exceeded`, and adds nothing, if `max_suppressions` would be exceeded.',
  params: NoParams,
  body: { csv: ImportedCsv },
  bodyLimitBytes: importBodyBytes,
  refusals: ['limit_exceeded'],
  example: { csv: 'address\nsomeone@example.com\nother@example.com' },
  means: 'The result for each line.',
  answer: ImportReport,
  async run({ tx, projectId, deps: { caps }, body }) {
    const report = await importManual(tx, projectId, body.csv)
    const { lines, ...counts } = report
    if (report.added > 0) {
      const count = await lockAndCountManual(tx, projectId, caps.max_suppressions + 1)
      requireCap(caps, 'max_suppressions', count, 'Split the file, or ask the operator to raise the limit.')
    }
    return {
      answer: report,
      activity:
        report.added === 0 ? unchanged : { resource: 'suppression', id: null, before: null, after: counts },
      version: null,
    }
  },
})
