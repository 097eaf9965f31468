import { Select } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Domain, Project } from '../../../api/operations.gen.ts'
import type { Choice } from '../../../resources/domains/address-routes.tsx'
import { providers } from '../../../resources/domains/identity.tsx'
import { DomainNameField, dnsNameOf } from '../../../resources/domains/name-field.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'
import { RenameRoutes } from './rename-routes.tsx'
import { PublishRecords } from './use-domain.tsx'

const pathOf = ({ project_id, id }: Domain) => ({ project_id, id })

const baseOf = (loaded: Answer<Domain>) => ({
  loaded,
  refetch: () => callForVersion('domains.show', { path: pathOf(loaded.data) }),
  // Records and checks are derived from these.
  compare: ({ name, mta_provider, status, identity }: Domain) => ({
    name,
    mta_provider,
    status,
    identity: identity.id,
    selector: identity.selector,
  }),
})

type Provider = Domain['mta_provider']

export const createDomain = (
  project: Project,
  done: (made: Domain) => void,
): Act<'domains.create', undefined, { name: string; mta_provider: Provider }> => ({
  operation: 'domains.create',
  path: { project_id: project.id },
  title: 'New domain',
  button: 'Add domain',
  success: 'Domain added',
  base: nothing,
  form: () => ({ name: '', mta_provider: project.allow_service_mta ? 'service' : 'ses' }),
  steps: [
    {
      title: 'Domain',
      fields: ({ form, set }) => (
        <>
          <DomainNameField value={form.name} onChange={(name) => set({ name })} />
          <ProviderSelect value={form.mta_provider} onChange={(mta_provider) => set({ mta_provider })} />
        </>
      ),
    },
  ],
  body: ({ name, mta_provider }) => (name === '' ? undefined : { name, mta_provider }),
  result: (domain) => <PublishRecords domain={domain} />,
  done,
})

interface DomainForm extends Choice {
  name: string
  mta_provider: Provider
}

export const editDomain = (loaded: Answer<Domain>): Act<'domains.edit', Domain, DomainForm> => ({
  operation: 'domains.edit',
  path: pathOf(loaded.data),
  title: `Edit ${loaded.data.name}`,
  button: (form, domain) =>
    nameIn(form) === domain.name ? 'Change provider and re-verify' : 'Rename and re-verify',
  success: 'Domain saved',
  // A verified domain stops sending until its new records are verified.
  isDangerous: (_, { status }) => status === 'verified',
  isReasonRequired: (_, { status }) => status === 'verified',
  base: baseOf(loaded),
  form: ({ name, mta_provider }) => ({ name, mta_provider, isKeeping: true, locals: {} }),
  steps: [
    {
      title: 'Name and provider',
      fields: ({ form, set }) => (
        <>
          <DomainNameField value={form.name} onChange={(name) => set({ name })} />
          <ProviderSelect value={form.mta_provider} onChange={(mta_provider) => set({ mta_provider })} />
        </>
      ),
    },
    {
      title: 'Address routes',
      fields: ({ form, set, loaded: domain }) => (
        <RenameRoutes domain={domain} newName={nameIn(form)} choice={form} set={set} />
      ),
    },
  ],
  body: (form, domain) => {
    const name = nameIn(form)
    const isRenamed = name !== domain.name
    if (name === '' || (!isRenamed && form.mta_provider === domain.mta_provider)) return undefined
    return {
      ...(isRenamed && { name, ...routesOf(form, name) }),
      ...(form.mta_provider !== domain.mta_provider && { mta_provider: form.mta_provider }),
    }
  },
  result: (domain) => <PublishRecords domain={domain} />,
})

const nameIn = ({ name }: { name: string }): string => dnsNameOf(name)

const routesOf = ({ isKeeping, locals }: Choice, name: string) =>
  isKeeping
    ? { preserve_local_parts: true }
    : {
        route_replacements: Object.entries(locals).map(([id, local]) => ({
          route_id: Number(id),
          address: `${local}@${name}`,
        })),
      }

/**
 * For an identity that is missing at the provider: an edit that leaves all values unchanged registers the identity
 * again.
 */
export const registerDomain = (loaded: Answer<Domain>): Act<'domains.edit', Domain, object> => ({
  operation: 'domains.edit',
  path: pathOf(loaded.data),
  title: `Re-register ${loaded.data.name}`,
  button: 'Re-register',
  success: 'Domain re-registered',
  isDangerous: true,
  base: baseOf(loaded),
  form: () => ({}),
  body: (_, { mta_provider }) => ({ mta_provider }),
  result: (domain) => <PublishRecords domain={domain} />,
})

export const verifyDomain = ({ data }: Answer<Domain>): Act<'domains.verify', undefined, object> => ({
  operation: 'domains.verify',
  path: pathOf(data),
  title: `Check the DNS records of ${data.name}`,
  button: 'Check now',
  success: 'DNS check queued',
  base: nothing,
  ...nothingToFillIn,
})

export const rotateDomainKey = (loaded: Answer<Domain>): Act<'domains.rotate', Domain, object> => ({
  operation: 'domains.rotate',
  path: pathOf(loaded.data),
  title: `Rotate the DKIM key of ${loaded.data.name}`,
  button: 'Rotate DKIM key',
  success: 'DKIM key rotated',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
  result: ({ resource }) => <PublishRecords domain={resource} />,
})

export const deleteDomain = (
  loaded: Answer<Domain>,
  done: () => void,
): Act<'domains.delete', Domain, object> => ({
  operation: 'domains.delete',
  path: pathOf(loaded.data),
  title: `Delete ${loaded.data.name}`,
  button: 'Delete domain',
  success: 'Domain deleted',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
  done,
})

function ProviderSelect({ value, onChange }: { value: Provider; onChange: (provider: Provider) => void }) {
  return (
    <Select
      label="Provider"
      value={value}
      onChange={(chosen) => onChange((chosen ?? value) as Provider)}
      data={Object.entries(providers).map(([name, label]) => ({ value: name, label }))}
      allowDeselect={false}
    />
  )
}
