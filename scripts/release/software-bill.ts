import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { nodeVersion } from './runtime.ts'

interface Component {
  'bom-ref': string
  name: string
  properties?: { name: string; value: string }[]
}

/**
 * The software bill of materials (CycloneDX): every package that runs in production, by the lock file, and the Node.js
 * that the Debian packages contain. npm gives it a random number and the current time; both are replaced, so that two
 * builds are identical.
 */
export async function softwareBill(root: string, version: string, time: number): Promise<string> {
  const bill = JSON.parse(
    execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev', '--package-lock-only'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    }),
  ) as { components: Component[]; metadata: { component: object }; serialNumber?: string }
  const components = [
    ...bill.components.filter(({ name }) => !ownPackages.has(name)),
    {
      'bom-ref': `node@${nodeVersion}`,
      type: 'application',
      name: 'node',
      version: nodeVersion,
      description: 'The runtime in the Debian packages',
      purl: `pkg:generic/node@${nodeVersion}`,
    },
  ]
  const metadata = {
    timestamp: new Date(time * 1000).toISOString(),
    component: {
      'bom-ref': `postern@${version}`,
      ...{ type: 'application', name: 'postern', version },
      licenses: [{ license: { id: 'Apache-2.0' } }],
    },
  }
  const { serialNumber: _, ...rest } = bill
  const document = { ...rest, metadata, components }
  const digest = createHash('sha256').update(JSON.stringify(document)).digest('hex')
  // RFC 9562 §5.8: a UUID of our own form, from the digest of the contents.
  const uuid = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `8${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join('-')
  return `${JSON.stringify({ ...document, serialNumber: `urn:uuid:${uuid}` }, undefined, 2)}\n`
}

/** The workspaces. */
const ownPackages = new Set(['server', 'console', 'site'])
