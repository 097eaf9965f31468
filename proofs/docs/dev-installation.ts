import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sender } from '../../scripts/demo/sender.ts'
import { killOnExit } from '../../server/src/testing/harness/kill-on-exit.ts'
import { steadyPort } from '../../server/src/testing/peers/steady-port.ts'

/** An installation started by `npm run dev` in its own folder and on its own port. The pages run on it. */
export interface Place {
  url: string
  folder: string
  /** The value of POSTERN_DEV_FOLDER, which `npm run dev` uses to find the installation. */
  devFolder: string
  /** Settings for the `postern` commands. */
  settings: Record<string, string>
  sender: Sender
  /** Sends a request with an access token. */
  ask(token: string, path: string, body?: object): Promise<{ id: number }>
  /** Invites a member to a new project owned by the token's user, and returns the emailed invitation token. */
  invite(token: string): Promise<string>
  close(): Promise<void>
}

const root = path.resolve(import.meta.dirname, '../..')

export async function openPlace(): Promise<Place> {
  const folder = await mkdtemp(path.join(tmpdir(), 'postern-docs-'))
  // PostgreSQL's files are inside the folder, and belong to another user if this is run as root.
  await chmod(folder, 0o711)
  const port = await steadyPort()
  const own = { POSTERN_DEV_FOLDER: path.join(folder, 'dev'), POSTERN_HTTP_PORT: String(port) }
  const dev = spawn(process.execPath, [path.join(root, 'scripts/dev.ts'), '--no-docs'], {
    env: { ...process.env, ...own, POSTERN_DATABASE_URL: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  killOnExit(dev)
  const ended = once(dev, 'exit')
  let said = ''
  dev.stdout.on('data', (part: Buffer) => {
    said += part
  })
  const close = async () => {
    dev.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  while (!said.includes('Postern is ready.') && dev.exitCode === null) await sleep(100)
  if (dev.exitCode !== null) throw new Error(`npm run dev exited:\n${said}`)

  const read = (...file: string[]) => readFile(path.join(own.POSTERN_DEV_FOLDER, ...file), 'utf8')
  const url = `http://127.0.0.1:${port}`
  const ask: Place['ask'] = async (token, where, body) => {
    const response = await fetch(`${url}${where}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    if (!response.ok) throw new Error(`${where}: ${response.status} ${await response.text()}`)
    return (await response.json()) as { id: number }
  }
  let invited = 0
  return {
    url,
    folder,
    devFolder: own.POSTERN_DEV_FOLDER,
    settings: JSON.parse(await read('running.json')).settings as Record<string, string>,
    sender: JSON.parse(await read('own', 'sender')) as Sender,
    ask,
    async invite(token) {
      const email = `invited-${++invited}@example.net`
      const { id } = await ask(token, '/v1/projects', { name: `For ${email}` })
      await ask(token, `/v1/projects/${id}/members`, { email, role: 'developer' })
      return await mailedToken(path.join(own.POSTERN_DEV_FOLDER, 'own/mail'), email)
    },
    close,
  }
}

async function mailedToken(folder: string, email: string): Promise<string> {
  for (let attempt = 0; attempt < 300; attempt++, await sleep(100)) {
    for (const file of await readdir(folder)) {
      const mail = (await readFile(path.join(folder, file), 'utf8')).replaceAll('=\r\n', '')
      const token = mail.includes(email) ? /inv_[\w-]+/.exec(mail)?.[0] : undefined
      if (token) return token
    }
  }
  throw new Error(`no invitation was mailed to ${email}`)
}
