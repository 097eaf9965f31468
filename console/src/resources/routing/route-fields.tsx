import { Radio, Select, Stack, Switch, TextInput } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { Endpoint, Route } from '../../api/operations.gen.ts'
import { AddressField } from '../../components/address-field.tsx'
import { type ChosenDomain, DomainSelect } from '../domains/domain-select.tsx'

/** The form. The address is kept without its domain; the domain is a separate field. */
export interface RouteForm {
  domain: ChosenDomain | null
  match: Route['match']
  local: string
  action: Route['action']
  endpoint_id: number | null
  forward_to: string
  is_active: boolean
}

/** The complete configuration. Fields that do not apply are null. */
export function routeBodyOf(form: RouteForm) {
  const { domain, match, action, is_active } = form
  const address = match === 'address' ? form.local.trim() : null
  const endpoint_id = action === 'endpoint' ? form.endpoint_id : null
  const forward_to = action === 'forward' ? form.forward_to.trim() : null
  const isIncomplete = address === '' || forward_to === '' || (action === 'endpoint' && endpoint_id === null)
  if (!domain || isIncomplete) return undefined
  return {
    domain_id: domain.id,
    match,
    address: address === null ? null : `${address}@${domain.name}`,
    action,
    endpoint_id,
    forward_to,
    is_active,
  }
}

export const newRoute = (domains: readonly ChosenDomain[]): RouteForm => ({
  // A single domain is preselected.
  domain: domains.length === 1 ? (domains[0] ?? null) : null,
  match: 'address',
  local: '',
  action: 'endpoint',
  endpoint_id: null,
  forward_to: '',
  is_active: true,
})

export const routeFormOf = (route: Route, nameOf: (domainId: number) => string): RouteForm => ({
  domain: { id: route.domain_id, name: partsOf(route.address)[1] ?? nameOf(route.domain_id) },
  match: route.match,
  local: partsOf(route.address)[0] ?? '',
  action: route.action,
  endpoint_id: route.endpoint_id,
  forward_to: route.forward_to ?? '',
  is_active: route.is_active,
})

/** The local part and the domain. Addresses of routes contain one @. */
const partsOf = (address: string | null): string[] => address?.split('@') ?? []

/** The address that a route matches. */
export const labelOf = ({ address, domain_id }: Route, nameOf: (domainId: number) => string): string =>
  address ?? `all other mail to ${nameOf(domain_id)}`

const actions: Record<Route['action'], string> = {
  endpoint: 'Deliver to an endpoint',
  forward: 'Forward to an address',
  reject: 'Reject',
  drop: 'Accept and discard',
}

export function RouteFields({
  domains,
  endpoints,
  form,
  set,
}: {
  /** All domains and endpoints of the project. */
  domains: UseQueryResult<ChosenDomain[]>
  endpoints: UseQueryResult<Endpoint[]>
  form: RouteForm
  set: (part: Partial<RouteForm>) => void
}) {
  return (
    <>
      <DomainSelect
        domains={domains}
        placeholder="Choose a domain"
        value={form.domain}
        onChange={(domain) => domain && set({ domain })}
        allowDeselect={false}
        required
        data-autofocus
      />
      <Radio.Group
        label="Matches"
        value={form.match}
        onChange={(match) => set({ match: match as Route['match'] })}
      >
        <Stack gap="xs" mt={4}>
          <Radio value="address" label="One address" />
          <Radio value="catch_all" label="All other addresses in the domain (catch-all)" />
        </Stack>
      </Radio.Group>
      {form.match === 'address' && (
        <AddressField
          label="Address"
          domain={form.domain?.name ?? '…'}
          local={form.local}
          onChange={(local) => set({ local })}
        />
      )}
      <Select
        label="Action"
        value={form.action}
        onChange={(action) => set({ action: (action ?? form.action) as Route['action'] })}
        data={Object.entries(actions).map(([value, label]) => ({ value, label }))}
        allowDeselect={false}
      />
      {form.action === 'endpoint' && (
        <EndpointSelect
          endpoints={endpoints}
          value={form.endpoint_id}
          onChange={(endpoint_id) => set({ endpoint_id })}
        />
      )}
      {form.action === 'forward' && (
        <TextInput
          label="Forward to"
          placeholder="ada@example.com"
          value={form.forward_to}
          onChange={(event) => set({ forward_to: event.currentTarget.value })}
          maxLength={254}
          autoComplete="off"
          spellCheck={false}
          required
        />
      )}
      <Switch
        label="Active"
        checked={form.is_active}
        onChange={(event) => set({ is_active: event.currentTarget.checked })}
      />
    </>
  )
}

function EndpointSelect({
  endpoints,
  value,
  onChange,
}: {
  endpoints: UseQueryResult<Endpoint[]>
  value: number | null
  onChange: (id: number | null) => void
}) {
  return (
    <Select
      label="Endpoint"
      placeholder="Choose an endpoint"
      value={value === null ? null : String(value)}
      onChange={(chosen) => onChange(chosen === null ? null : Number(chosen))}
      data={(endpoints.data ?? []).map(({ id, name, is_active }) => ({
        value: String(id),
        label: is_active ? name : `${name} (inactive)`,
      }))}
      nothingFoundMessage="No matching endpoints"
      error={endpoints.error?.message}
      allowDeselect={false}
      searchable
      required
    />
  )
}
