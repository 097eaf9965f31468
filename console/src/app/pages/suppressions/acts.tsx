import { TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import type { Suppression } from '../../../api/operations.gen.ts'
import { ImportFields, type ImportForm } from '../../../resources/suppressions/import-fields.tsx'
import { ImportReportTable } from '../../../resources/suppressions/import-report.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

interface AddressForm {
  address: string
}

export const createSuppression = (
  projectId: number,
): Act<'customer.suppressions.create', undefined, AddressForm> => ({
  operation: 'customer.suppressions.create',
  path: { project_id: projectId },
  title: 'Suppress an address',
  button: 'Suppress address',
  success: 'Address suppressed',
  base: nothing,
  form: () => ({ address: '' }),
  fields: ({ form, set }) => (
    <TextInput
      label="Address"
      description="The project no longer sends to this address."
      value={form.address}
      onChange={(event) => set({ address: event.currentTarget.value })}
      placeholder="someone@example.com"
      maxLength={320}
      autoComplete="off"
      spellCheck={false}
      data-autofocus
    />
  ),
  body: ({ address }) => (address.trim() ? { address: address.trim() } : undefined),
})

export const importSuppressions = (
  projectId: number,
): Act<'customer.suppressions.import', undefined, ImportForm> => ({
  operation: 'customer.suppressions.import',
  path: { project_id: projectId },
  title: 'Import suppressions',
  button: 'Import',
  success: 'Addresses imported',
  base: nothing,
  form: () => ({ csv: '' }),
  fields: ({ form, set }) => (
    <ImportFields
      form={form}
      set={set}
      hint="One address per line, or a file with a header and a column “address” or “email”."
    />
  ),
  body: ({ csv }) => (csv.trim() ? { csv } : undefined),
  result: (report) => <ImportReportTable report={report} />,
})

export const deleteSuppression = (
  projectId: number,
  { address }: Suppression,
): Act<'customer.suppressions.delete', undefined, object> => ({
  operation: 'customer.suppressions.delete',
  path: { project_id: projectId, address },
  title: `Delete suppression for ${address}`,
  button: 'Delete suppression',
  success: 'Suppression deleted',
  isDangerous: true,
  base: nothing,
  consequences: 'The project can send to the address again. If that mail bounces, it is suppressed again.',
  ...nothingToFillIn,
})
