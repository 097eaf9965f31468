import { Alert, Select, Stack, Text } from '@mantine/core'
import type { ComponentProps } from 'react'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Domain } from '../../../api/operations.gen.ts'
import { useAll } from '../../../api/queries.ts'
import { type Choice, RouteChoice } from '../../../resources/domains/address-routes.tsx'
import { providers } from '../../../resources/domains/identity.tsx'
import { DomainNameField, dnsNameOf } from '../../../resources/domains/name-field.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'
import { PublishRecords } from './use-domain.tsx'

const pathOf = ({ project_id, id }: Domain) => ({ project_id, id })

const baseOf = (loaded: Answer<Domain>) => ({
  loaded,
  refetch: () => callForVersion('customer.domains.show', { path: pathOf(loaded.data) }),
})

export const nameAdvice =
  'A subdomain such as mail.example.com keeps its reputation separate from your website’s domain.'

export const createDomain = (
  projectId: number,
  done: (made: Domain) => void,
): Act<'customer.domains.create', undefined, { name: string }> => ({
  operation: 'customer.domains.create',
  path: { project_id: projectId },
  title: 'Add a domain',
  button: 'Add domain',
  success: 'Domain added',
  base: nothing,
  form: () => ({ name: '' }),
  fields: ({ form, set }) => (
    <DomainNameField value={form.name} onChange={(name) => set({ name })} description={nameAdvice} />
  ),
  body: ({ name }) => (name.trim() === '' ? undefined : { name: name.trim() }),
  done,
})

interface RenameForm extends Choice {
  name: string
}

export const renameDomain = (loaded: Answer<Domain>): Act<'customer.domains.edit', Domain, RenameForm> => ({
  operation: 'customer.domains.edit',
  path: pathOf(loaded.data),
  title: `Rename ${loaded.data.name}`,
  button: 'Rename and re-verify',
  success: 'Domain renamed',
  isDangerous: true,
  base: baseOf(loaded),
  form: ({ name }) => ({ name, isKeeping: true, locals: {} }),
  consequences: (
    <Alert color="red" variant="light" title="Renaming stops mail">
      <Text size="sm" c="var(--mantine-color-text)">
        The domain gets new DNS records and cannot send until they are published and verified. Mail from{' '}
        {loaded.data.name} is rejected from then on. To keep sending meanwhile, add the new name as another
        domain and delete this one later.
      </Text>
    </Alert>
  ),
  fields: ({ form, set, loaded: domain }) => {
    const newName = dnsNameOf(form.name)
    return (
      <>
        <DomainNameField label="New name" value={form.name} onChange={(name) => set({ name })} />
        {newName !== '' && newName !== domain.name && (
          <RenameRoutes domain={domain} newName={newName} choice={form} set={set} />
        )}
      </>
    )
  },
  body: ({ name: typed, isKeeping, locals }, domain) => {
    const name = dnsNameOf(typed)
    if (name === '' || name === domain.name) return undefined
    return isKeeping
      ? { name, preserve_local_parts: true }
      : {
          name,
          route_replacements: Object.entries(locals).map(([id, local]) => ({
            route_id: Number(id),
            address: `${local}@${name}`,
          })),
        }
  },
  result: (domain) => <PublishRecords domain={domain} />,
})

function RenameRoutes(props: Omit<ComponentProps<typeof RouteChoice>, 'routes'>) {
  const routes = useAll('customer.routing.list', { project_id: props.domain.project_id })
  return <RouteChoice {...props} routes={routes} />
}

type Provider = Domain['mta_provider']

export const changeProvider = (
  loaded: Answer<Domain>,
  choices: Provider[],
): Act<'customer.domains.edit', Domain, { mta_provider: Provider }> => ({
  operation: 'customer.domains.edit',
  path: pathOf(loaded.data),
  title: `Change the provider of ${loaded.data.name}`,
  button: 'Change provider and re-verify',
  success: 'Provider changed',
  isDangerous: true,
  base: baseOf(loaded),
  form: ({ mta_provider }) => ({
    mta_provider: choices.find((provider) => provider !== mta_provider) ?? mta_provider,
  }),
  consequences: (
    <Alert color="red" variant="light" title="Changing the provider stops mail">
      <Text size="sm" c="var(--mantine-color-text)">
        The domain gets new DNS records and cannot send until they are published and verified. Messages that
        are already accepted are still sent by the current provider: leave its records published until then.
        Routes stay as they are. To keep sending meanwhile, add another domain, such as a subdomain.
      </Text>
    </Alert>
  ),
  fields: ({ form, set }) => (
    <Select
      label="Provider"
      description="The system that delivers the mail of this domain."
      value={form.mta_provider}
      onChange={(chosen) => set({ mta_provider: (chosen ?? form.mta_provider) as Provider })}
      data={choices.map((value) => ({ value, label: providers[value] }))}
      allowDeselect={false}
    />
  ),
  body: ({ mta_provider }, domain) => (mta_provider === domain.mta_provider ? undefined : { mta_provider }),
  result: (domain) => <PublishRecords domain={domain} />,
})

export const rotateDomainKey = (loaded: Answer<Domain>): Act<'customer.domains.rotate', Domain, object> => ({
  operation: 'customer.domains.rotate',
  path: pathOf(loaded.data),
  title: `Rotate the DKIM key of ${loaded.data.name}`,
  button: 'Rotate DKIM key',
  success: 'DKIM key rotated',
  base: baseOf(loaded),
  consequences: (
    <Stack gap="xs">
      <Text>
        The domain gets a second DKIM key and a DNS record for it. Sending does not stop: mail is signed with
        the current key until the new record is found, and with the new key from then on.
      </Text>
      <Text>Leave the current record published for a week after that, for mail that is on its way.</Text>
    </Stack>
  ),
  ...nothingToFillIn,
  result: ({ resource }) => <PublishRecords domain={resource} />,
})

export const deleteDomain = (
  loaded: Answer<Domain>,
  done: () => void,
): Act<'customer.domains.delete', Domain, object> => ({
  operation: 'customer.domains.delete',
  path: pathOf(loaded.data),
  title: `Delete ${loaded.data.name}`,
  button: 'Delete domain',
  success: 'Domain deleted',
  isDangerous: true,
  base: baseOf(loaded),
  consequences: `Mail from ${loaded.data.name} is rejected from then on, and mail for it is no longer received. Delete its routes and the API keys that are bound to it first.`,
  ...nothingToFillIn,
  done,
})
