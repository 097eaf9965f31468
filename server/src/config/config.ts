import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { SignInIssuer } from '../core/control/access/external-issuers.ts'
import {
  type Environment,
  readSettings,
  type SettingsOf,
  UnusableSettings,
  Wrong,
} from '../platform/settings.ts'
import { type Logo, readLogo } from './branding.ts'
import { settings } from './table.ts'

type Settings = SettingsOf<typeof settings>
type Derived = 'databaseOwnerUrl' | 'mxHost' | 'returnPathHost'

/** The settings, with defaults that depend on other settings filled in. */
export type Config = Omit<Settings, Derived | 'webhookCaFile' | 'logoFile' | 'signInIssuers'> &
  Record<Derived, string> & {
    webhookCa: string | undefined
    logo: Logo | undefined
    signInIssuers: SignInIssuer[]
  }

export function loadConfig(
  env: Environment,
  readFile: (path: string) => string = (path) => readFileSync(path, 'utf8'),
  readBytes: (path: string) => Buffer = (path) => readFileSync(path),
): Config {
  const { webhookCaFile, logoFile, ...config } = readSettings(settings, env, readFile)
  const problems = contradictions(config)
  const addProblem = (fault: string) => void problems.push(fault)
  const webhookCa = authorities('POSTERN_WEBHOOK_CA_FILE', webhookCaFile, readFile, addProblem)
  const signInIssuers = config.signInIssuers.map(({ caFile, ...issuer }) => ({
    ...issuer,
    ca: authorities(`POSTERN_SIGN_IN_ISSUERS: "ca_file" of ${issuer.id}`, caFile, readFile, addProblem),
  }))
  const logo = logoOf(logoFile, readBytes, addProblem)
  if (problems.length > 0) throw new UnusableSettings(problems)
  return {
    ...config,
    webhookCa,
    logo,
    signInIssuers,
    databaseOwnerUrl: config.databaseOwnerUrl ?? config.databaseUrl,
    mxHost: config.mxHost ?? config.publicUrl.hostname,
    returnPathHost: config.returnPathHost ?? config.publicUrl.hostname,
  }
}

/** The settings of `postern signer`. It reads no others. */
export function loadSignerConfig(
  env: Environment,
  readFile: (path: string) => string = (path) => readFileSync(path, 'utf8'),
) {
  const { auditSignerSocket, auditCheckpointFile, signerKey, signerDatabaseUrl, logLevel } = settings
  const table = { auditSignerSocket, auditCheckpointFile, signerKey, signerDatabaseUrl, logLevel }
  const { logLevel: level, ...needed } = readSettings(table, env, readFile, settings)
  const { auditSignerSocket: socket, auditCheckpointFile: file, signerKey: key } = needed
  const { signerDatabaseUrl: databaseUrl } = needed
  if (socket === undefined || file === undefined || key === undefined || databaseUrl === undefined) {
    const absent = Object.entries(needed).filter(([, value]) => value === undefined)
    throw new UnusableSettings(
      absent.map(
        ([name]) => `${table[name as keyof typeof needed].name} is not set; \`postern signer\` needs it`,
      ),
    )
  }
  return { socket, file, key, databaseUrl, logLevel: level }
}

/** Settings that are valid individually but not in combination. */
function contradictions({
  oidcIssuers,
  signInIssuers,
  publicUrl,
  sesRegion,
  sesAccountId,
  sesEndpoint,
  sesConfigurationSet,
  sesTopicArns,
  intakeTlsCertificate,
  intakeTlsKey,
  submissionPort,
  submissionsPort,
  cells,
  cell,
  auditSignerSocket,
  auditPublicKeys,
}: Omit<Settings, 'webhookCaFile' | 'logoFile'>): string[] {
  const problems: string[] = []
  if (cell !== undefined && !cells.some(({ name }) => name === cell)) {
    problems.push(`POSTERN_CELL is "${cell}", which is not in POSTERN_CELLS`)
  }
  if (oidcIssuers.some(({ issuer }) => issuer === publicUrl.origin)) {
    problems.push('POSTERN_OIDC_ISSUERS must not contain POSTERN_PUBLIC_URL')
  }
  if (signInIssuers.some(({ issuer }) => issuer === publicUrl.origin)) {
    problems.push('POSTERN_SIGN_IN_ISSUERS must not contain POSTERN_PUBLIC_URL')
  }
  // A person can connect a login of the former. A token of the latter counts as a second factor.
  for (const { issuer } of signInIssuers.filter((one) =>
    oidcIssuers.some((other) => other.issuer === one.issuer),
  )) {
    problems.push(`POSTERN_SIGN_IN_ISSUERS and POSTERN_OIDC_ISSUERS must not both contain ${issuer}`)
  }
  if ((sesRegion === undefined) !== (sesAccountId === undefined)) {
    problems.push('POSTERN_SES_REGION and POSTERN_SES_ACCOUNT_ID must both be set, or neither')
  }
  if (sesEndpoint !== undefined && sesRegion === undefined) {
    problems.push('POSTERN_SES_ENDPOINT requires POSTERN_SES_REGION')
  }
  if (sesConfigurationSet !== undefined && sesRegion === undefined) {
    problems.push('POSTERN_SES_CONFIGURATION_SET requires POSTERN_SES_REGION')
  }
  if (sesConfigurationSet !== undefined && sesTopicArns.length === 0) {
    problems.push('POSTERN_SES_CONFIGURATION_SET requires POSTERN_SES_TOPIC_ARNS, to receive delivery events')
  }
  if ((intakeTlsCertificate === undefined) !== (intakeTlsKey === undefined)) {
    problems.push('POSTERN_INTAKE_TLS_CERTIFICATE and POSTERN_INTAKE_TLS_KEY must both be set, or neither')
  }
  if ((submissionPort ?? submissionsPort) !== undefined && intakeTlsCertificate === undefined) {
    problems.push(
      'POSTERN_SUBMISSION_PORT and POSTERN_SUBMISSIONS_PORT require POSTERN_INTAKE_TLS_CERTIFICATE',
    )
  }
  if (auditSignerSocket !== undefined && auditPublicKeys.size === 0) {
    problems.push('POSTERN_AUDIT_SIGNER_SOCKET requires POSTERN_AUDIT_PUBLIC_KEYS')
  }
  return problems
}

function authorities(
  name: string,
  file: string | undefined,
  readFile: (path: string) => string,
  addProblem: (problem: string) => void,
): string | undefined {
  if (file === undefined) return undefined
  try {
    const pem = readFile(file)
    new X509Certificate(pem)
    return pem
  } catch (error) {
    addProblem(`${name} is not a file with certificates: ${(error as Error).message}`)
    return undefined
  }
}

function logoOf(
  file: string | undefined,
  readBytes: (path: string) => Buffer,
  addProblem: (problem: string) => void,
): Logo | undefined {
  if (file === undefined) return undefined
  try {
    return readLogo(readBytes(file))
  } catch (error) {
    const fault = error instanceof Wrong ? error.message : `cannot be read: ${(error as Error).message}`
    addProblem(`POSTERN_LOGO_FILE ${fault}`)
    return undefined
  }
}
