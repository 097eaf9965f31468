import { eventTypes } from '../../server/src/core/shared/events.ts'
import { patiently } from './calls.ts'

/** The demo customer's endpoint at the local webhook receiver. */
export interface DemoEndpoint {
  projectId: number
  id: number
  url: string
}

export interface DevInstallation {
  url: string
  /** The administrator's. */
  token: string
}

interface EndpointFields {
  name: string
  url: string
  events: readonly string[]
  is_active: boolean
}

/** Subscribes to all events. The secret is for the receiver's configuration, and is not displayed. */
export async function makeDemoEndpoint(
  installation: DevInstallation,
  projectId: number,
  url: string,
): Promise<{ endpoint: DemoEndpoint; secret: string }> {
  const response = await call(installation, 'POST', `/projects/${projectId}/endpoints`, {
    name: 'Local receiver',
    url,
    events: eventTypes,
    reason: 'Demo endpoint',
  })
  const { resource, secret } = (await expectOk(response)) as { resource: { id: number }; secret: string }
  return { endpoint: { projectId, id: resource.id, url }, secret }
}

/** If the receiver has another port than before. Returns undefined if the endpoint has been deleted. */
export async function moveDemoEndpoint(
  installation: DevInstallation,
  { projectId, id }: DemoEndpoint,
  url: string,
): Promise<DemoEndpoint | undefined> {
  const path = `/projects/${projectId}/endpoints/${id}`
  const found = await call(installation, 'GET', path)
  if (found.status === 404) return undefined
  const { name, events, is_active } = (await expectOk(found)) as EndpointFields
  const change = { name, url, events, is_active, reason: 'The local receiver has another port' }
  await expectOk(await call(installation, 'PATCH', path, change))
  return { projectId, id, url }
}

const call = (
  { url, token }: DevInstallation,
  method: string,
  path: string,
  body?: object,
): Promise<Response> =>
  patiently(() =>
    fetch(`${url}/v1/admin${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    }),
  )

async function expectOk(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${await response.text()}`)
  return response.json()
}
