import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import path from 'node:path'
import type { Place } from './dev-installation.ts'

/** Values and steps that a page leaves to the reader. */

const root = path.resolve(import.meta.dirname, '../..')

/** The preconditions of a page, created before its first block. */
export const before: Record<string, string> = {
  'docs/guide/domains.md': `BASE=$POSTERN_PUBLIC_URL/v1/admin
AUTH="Authorization: Bearer $(npm run -s dev token)"
JSON='Content-Type: application/json'`,
  'docs/operations/audit.md': `mkdir exports
export POSTERN_AUDIT_CHECKPOINT_FILE=$PROVE_PAGE/checkpoints.ndjson
postern audit checkpoint`,
  'docs/operations/backup.md': `POSTERN_AUDIT_CHECKPOINT_FILE=checkpoints.ndjson postern audit checkpoint`,
}

const signIn = `auth $AUTH/sign-in -H 'Content-Type: application/json' -d "{\\"email\\": \\"you@example.com\\", \\"password\\": \\"$PASSWORD\\"}"`
const backupCode = (no: number) => `$(told 'backup codes' | cut -d ' ' -f ${no})`

/** Variables that a page leaves to the reader. They are set before each block that uses them. */
export const brought: Record<string, string> = {
  TOKEN: 'TOKEN=$(npm run -s dev token)',
  // The password printed by `postern admin create`, unless it has been changed since.
  PASSWORD: `PASSWORD=\${NEW_PASSWORD:-$(told password)}`,
  CODE: `CODE=$(node -e "import('$PROVE_ROOT/server/src/testing/harness/totp.ts').then((it) => console.log(it.totpCode(process.argv[1])))" "$(grep -o 'otpauth:.*' "$PROVE_SAID" | tail -n 1)")`,
  // A backup code is used after a new sign-in, as if from another browser.
  BACKUP_CODE: `rm cookies; ${signIn}; BACKUP_CODE=${backupCode(1)}`,
  SESSION_ID: `SESSION_ID=$(auth $AUTH/sessions | jq '[.data[] | select(.is_current | not)][0].id')`,
  // The first time, the reader has just signed out.
  NEW_PASSWORD: `if [ -z "\${NEW_PASSWORD:-}" ]; then
${signIn}
auth $AUTH/backup-code -H 'Content-Type: application/json' -d "{\\"code\\": \\"${backupCode(2)}\\"}"
NEW_PASSWORD='correct horse battery staple'
fi`,
}

/** Replaces the placeholders of a page with real values. */
export async function inPlaceOf(place: Place): Promise<(text: string) => Promise<string>> {
  const tokenOf = (email: string) =>
    execFileSync(
      process.execPath,
      [path.join(root, 'server/src/bin/postern.js'), 'token', '--email', email],
      {
        env: { ...process.env, ...place.settings },
        encoding: 'utf8',
      },
    ).trim()
  const [ada, grace] = [tokenOf('admin@example.com'), tokenOf('grace@example.com')]
  const own = await place.ask(ada, '/v1/projects', { name: "The reader's project" })
  const { secret, domain } = place.sender
  const mail = { from: `me@${domain}`, to: ['you@example.com'], subject: 'Hello', text: 'It works.' }
  const { id: message } = await place.ask(secret, '/v1/messages', mail)
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
  await place.ask(secret, '/v1/messages', { ...mail, send_at: tomorrow })
  const examples: [string, string][] = [
    ['https://mail.example.com/v1/projects/7', `${place.url}/v1/projects/${own.id}`],
    ['http://127.0.0.1:8080', place.url],
    ['http://localhost:8080', place.url],
    ['https://mail.example.com', place.url],
    ['pk_live_…', secret],
    ['01a1…', String(message)],
    ['acme.example', domain],
    // A user with audit entries.
    ['bob@example.com', 'grace@example.com'],
    ['$(npm root -g)/postern', path.join(root, 'server')],
    ['/usr/lib/postern/', `${path.join(root, 'server')}/`],
    ['/opt/postern-0.2/node_modules/.bin/postern', 'postern'],
    ['/var/backups/postern-audit', '$PROVE_PAGE/exports'],
    ['2026-a:8c41…', place.settings['POSTERN_MASTER_KEYS'] ?? ''],
    ['2026-b:f03e…', `2026-b:${randomBytes(32).toString('hex')}`],
  ]
  return async (text) => {
    let made = examples.reduce((so, [example, real]) => so.replaceAll(example, real), text)
    while (made.includes('inv_…')) made = made.replace('inv_…', await place.invite(grace))
    return made
  }
}
