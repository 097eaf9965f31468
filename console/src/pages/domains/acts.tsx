import { Select, TextInput } from '@mantine/core'
import { type Answer, callForVersion } from '../../api/client.ts'
import type { Domain, Project } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn } from '../../components/act/act.ts'
import { type Choice, RouteChoice } from './address-routes.tsx'
import { RecordsToPublish } from './dns-records.tsx'

const pathOf = ({ project_id, id }: Domain) => ({ project_id, id })

const baseOf = (seen: Answer<Domain>) => ({
  seen,
  look: () => callForVersion('domains.show', { path: pathOf(seen.data) }),
  // Records and checks follow from these.
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
  base: nothing,
  form: () => ({ name: '', mta_provider: project.allow_service_mta ? 'service' : 'ses' }),
  steps: [
    {
      title: 'Domain',
      fields: ({ form, set }) => (
        <>
          <NameField value={form.name} onChange={(name) => set({ name })} />
          <ProviderSelect value={form.mta_provider} onChange={(mta_provider) => set({ mta_provider })} />
        </>
      ),
    },
  ],
  body: ({ name, mta_provider }) => (name === '' ? undefined : { name, mta_provider }),
  result: (domain) => <RecordsToPublish domain={domain} />,
  done,
})

interface DomainForm extends Choice {
  name: string
  mta_provider: Provider
}

export const editDomain = (seen: Answer<Domain>): Act<'domains.edit', Domain, DomainForm> => ({
  operation: 'domains.edit',
  path: pathOf(seen.data),
  title: `Edit ${seen.data.name}`,
  button: 'Save and register anew',
  base: baseOf(seen),
  form: ({ name, mta_provider }) => ({ name, mta_provider, isKeeping: true, locals: {} }),
  steps: [
    {
      title: 'Name and provider',
      fields: ({ form, set }) => (
        <>
          <NameField value={form.name} onChange={(name) => set({ name })} />
          <ProviderSelect value={form.mta_provider} onChange={(mta_provider) => set({ mta_provider })} />
        </>
      ),
    },
    {
      title: 'Address routes',
      fields: ({ form, set, seen: domain }) => (
        <RouteChoice domain={domain} newName={nameIn(form)} choice={form} set={set} />
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
  result: (domain) => <RecordsToPublish domain={domain} />,
})

/** As it will stand in DNS, where it can be read as a name at all; the server says what is wrong with others. */
function nameIn({ name }: { name: string }): string {
  const written = name.trim().replace(/\.$/, '')
  return /[/\\@:?#%\s]/.test(written) ? written : (URL.parse(`http://${written}`)?.hostname ?? written)
}

const routesOf = ({ isKeeping, locals }: Choice, name: string) =>
  isKeeping
    ? { preserve_local_parts: true }
    : {
        route_replacements: Object.entries(locals).map(([id, local]) => ({
          route_id: Number(id),
          address: `${local}@${name}`,
        })),
      }

/** For an identity that was lost with its provider. An edit that changes nothing else. */
export const registerDomain = (seen: Answer<Domain>): Act<'domains.edit', Domain, object> => ({
  operation: 'domains.edit',
  path: pathOf(seen.data),
  title: `Register ${seen.data.name} anew`,
  button: 'Register anew',
  isDangerous: true,
  base: baseOf(seen),
  form: () => ({}),
  body: (_, { mta_provider }) => ({ mta_provider }),
  result: (domain) => <RecordsToPublish domain={domain} />,
})

export const verifyDomain = ({ data }: Answer<Domain>): Act<'domains.verify', undefined, object> => ({
  operation: 'domains.verify',
  path: pathOf(data),
  title: `Look at the records of ${data.name}`,
  button: 'Look now',
  base: nothing,
  ...nothingToFillIn,
})

export const rotateDomainKey = (seen: Answer<Domain>): Act<'domains.rotate', Domain, object> => ({
  operation: 'domains.rotate',
  path: pathOf(seen.data),
  title: `Rotate the DKIM key of ${seen.data.name}`,
  button: 'Rotate key',
  isDangerous: true,
  base: baseOf(seen),
  ...nothingToFillIn,
  result: ({ resource }) => <RecordsToPublish domain={resource} />,
})

export const deleteDomain = (
  seen: Answer<Domain>,
  done: () => void,
): Act<'domains.delete', Domain, object> => ({
  operation: 'domains.delete',
  path: pathOf(seen.data),
  title: `Delete ${seen.data.name}`,
  button: 'Delete domain',
  isDangerous: true,
  base: baseOf(seen),
  ...nothingToFillIn,
  done,
})

function NameField({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  return (
    <TextInput
      label="Name"
      placeholder="mail.example.com"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      maxLength={253}
      autoComplete="off"
      spellCheck={false}
      required
      data-autofocus
    />
  )
}

export const providers: Record<Provider, string> = { service: 'Our own MTAs', ses: 'Amazon SES' }

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
