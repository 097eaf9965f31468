import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { writeCertificate } from '../../server/src/testing/peers/certificate.ts'
import { type DevWebhooks, startDevWebhooks } from '../../server/src/testing/peers/dev-webhooks.ts'
import {
  type DemoEndpoint,
  type DevInstallation,
  makeDemoEndpoint,
  moveDemoEndpoint,
} from '../demo/endpoint.ts'

/** The webhook receiver of `npm run dev`, and what allows Postern to reach it. */
export interface LocalReceiver {
  url: string
  /** The folder for received requests. */
  folder: string
  /**
   * The settings for operators' internal receivers: endpoints may point to 127.0.0.1, to the receiver's port and 443.
   * Only `npm run dev` sets them so; the defaults refuse every address that is not public.
   */
  settings: Record<string, string>
  /** Creates the endpoint in this project, or moves it to the receiver's current port. */
  connect(installation: DevInstallation, projectId: number): Promise<DemoEndpoint>
  close(): Promise<void>
}

export async function startLocalReceiver(home: string, say: (line: string) => void): Promise<LocalReceiver> {
  const file = (name: string): string => path.join(home, name)
  const folder = file('received')
  const secretFile = file('secret')
  const endpointFile = file('endpoint')
  await mkdir(folder, { recursive: true })
  if (!existsSync(file('certificate.pem'))) writeCertificate(home, { days: 3650 })
  const [cert, key] = [await readFile(file('certificate.pem')), await readFile(file('key.pem'))]
  const stored = await readFile(endpointFile, 'utf8').catch(() => undefined)
  let endpoint = stored === undefined ? undefined : (JSON.parse(stored) as DemoEndpoint)
  const server = await startAt(endpoint ? Number(new URL(endpoint.url).port) : 0, (port) =>
    startDevWebhooks({ port, cert, key, folder, secretFile, say }),
  )
  const endpointUrl = `${server.url}/postern`
  return {
    url: server.url,
    folder,
    settings: {
      POSTERN_PRIVATE_NETWORKS: '127.0.0.1',
      POSTERN_WEBHOOK_PORTS: `443,${new URL(server.url).port}`,
      POSTERN_WEBHOOK_CA_FILE: file('certificate.pem'),
    },
    async connect(installation, projectId) {
      if (endpoint?.url === endpointUrl) return endpoint
      endpoint &&= await moveDemoEndpoint(installation, endpoint, endpointUrl)
      if (!endpoint) {
        const made = await makeDemoEndpoint(installation, projectId, endpointUrl)
        await writeFile(secretFile, made.secret, { mode: 0o600 })
        endpoint = made.endpoint
      }
      await writeFile(endpointFile, JSON.stringify(endpoint))
      return endpoint
    },
    close: () => server.close(),
  }
}

/** The port of the last start, so that the endpoint's URL stays the same; another one if it is taken. */
const startAt = (port: number, start: (port: number) => Promise<DevWebhooks>): Promise<DevWebhooks> =>
  start(port).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error
    return start(0)
  })
