import { spawn } from 'node:child_process'
import path from 'node:path'

export interface Step {
  title: string
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
}

const root = path.resolve(import.meta.dirname, '..')

/** Runs all of them, a few at a time. What each says is shown when it ends. Gives back the titles of those that failed. */
export async function sideBySide(steps: Step[], { atOnce }: { atOnce: number }): Promise<string[]> {
  const failed: string[] = []
  const waiting = steps.values()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const { title, command, args, env = process.env } of waiting) {
        const startedAt = performance.now()
        const { code, said } = await run(command, args, env)
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
        process.stdout.write(`\n── ${title} (${seconds} s)\n${said}`)
        if (code !== 0) failed.push(title)
      }
    }),
  )
  return failed
}

async function run(command: string, args: string[], env: NodeJS.ProcessEnv) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: root, env })
  const said: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, said: Buffer.concat(said) }
}
