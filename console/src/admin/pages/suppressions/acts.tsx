import { TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import type { PlatformSuppression, Suppression } from '../../../api/operations.gen.ts'
import { ImportFields, type ImportForm } from '../../../resources/suppressions/import-fields.tsx'
import { ImportReportTable } from '../../../resources/suppressions/import-report.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

interface AddressForm {
  address: string
}

/** Checking 10,000 lines takes a few seconds on a busy server. */
const importTimeoutMs = 60_000

const addressFields = {
  base: nothing,
  form: () => ({ address: '' }),
  steps: [
    {
      title: 'Address',
      fields: ({ form, set }: { form: AddressForm; set: (part: Partial<AddressForm>) => void }) => (
        <TextInput
          label="Address"
          value={form.address}
          onChange={(event) => set({ address: event.currentTarget.value })}
          placeholder="someone@example.com"
          maxLength={320}
          autoComplete="off"
          spellCheck={false}
          data-autofocus
        />
      ),
    },
  ],
  body: ({ address }: AddressForm) => (address.trim() ? { address: address.trim() } : undefined),
}

const importFields = (hint: string) => ({
  base: nothing,
  button: 'Import',
  success: 'Addresses imported',
  previewTimeoutMs: importTimeoutMs,
  form: () => ({ csv: '' }),
  steps: [
    {
      title: 'Addresses',
      fields: ({ form, set }: { form: ImportForm; set: (part: Partial<ImportForm>) => void }) => (
        <ImportFields form={form} set={set} hint={hint} />
      ),
    },
  ],
  body: ({ csv }: ImportForm) => (csv.trim() ? { csv } : undefined),
})

export const createSuppression = (projectId: number): Act<'suppressions.create', undefined, AddressForm> => ({
  operation: 'suppressions.create',
  path: { project_id: projectId },
  title: 'Suppress an address',
  button: 'Suppress address',
  success: 'Address suppressed',
  ...addressFields,
})

export const importSuppressions = (projectId: number): Act<'suppressions.import', undefined, ImportForm> => ({
  operation: 'suppressions.import',
  path: { project_id: projectId },
  title: 'Import suppressions',
  ...importFields(
    'One address per line. A second column can contain bounce, complaint or manual, after a comma.',
  ),
  result: (report) => <ImportReportTable report={report} />,
})

/** Also deletes suppressions caused by complaints. Customers cannot delete those. */
export const deleteSuppression = (
  projectId: number,
  { address }: Suppression,
): Act<'suppressions.delete', undefined, object> => ({
  operation: 'suppressions.delete',
  path: { project_id: projectId, address },
  title: `Delete suppression for ${address}`,
  button: 'Delete suppression',
  success: 'Suppression deleted',
  isDangerous: true,
  base: nothing,
  ...nothingToFillIn,
})

export const createPlatformSuppression: Act<'platform-suppressions.create', undefined, AddressForm> = {
  operation: 'platform-suppressions.create',
  path: {},
  title: 'Suppress an address for all projects',
  button: 'Suppress address',
  success: 'Address suppressed',
  ...addressFields,
}

export const importPlatformSuppressions: Act<'platform-suppressions.import', undefined, ImportForm> = {
  operation: 'platform-suppressions.import',
  path: {},
  title: 'Import suppressions for all projects',
  ...importFields('One address per line. A second column can contain a reason for it, after a comma.'),
  result: (report) => <ImportReportTable report={report} />,
}

export const deletePlatformSuppression = ({
  address,
}: PlatformSuppression): Act<'platform-suppressions.delete', undefined, object> => ({
  operation: 'platform-suppressions.delete',
  path: { address },
  title: `Delete ${address} from the list`,
  button: 'Delete from list',
  success: 'Address deleted from the list',
  isDangerous: true,
  base: nothing,
  ...nothingToFillIn,
})
