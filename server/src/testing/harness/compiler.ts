import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../../../..')
export const sourceFolder = path.join(root, 'server/src')

/** Compiles the files with tsc and returns the errors in each file. */
export async function compile(files: Map<string, string>): Promise<Map<string, string>> {
  const folder = await mkdtemp(path.join(tmpdir(), 'postern-types-'))
  try {
    await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
    await writeFile(path.join(folder, 'package.json'), '{"type": "module"}')
    await writeFile(
      path.join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: path.join(root, 'tsconfig.json'),
        compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
        include: [],
        files: [...files.keys()],
      }),
    )
    for (const [name, text] of files) await writeFile(path.join(folder, name), text)
    const errors = new Map([...files.keys()].map((name) => [name, '']))
    let name = ''
    for (const line of (await tsc(folder)).split('\n').filter(Boolean)) {
      name = /^(\S+)\(\d+,\d+\): error/.exec(line)?.[1] ?? name
      errors.set(name, `${errors.get(name) ?? ''}${line}\n`)
    }
    return errors
  } finally {
    await rm(folder, { recursive: true })
  }
}

const tsc = (cwd: string): Promise<string> =>
  new Promise((resolve) => {
    const program = path.join(root, 'node_modules/.bin/tsc')
    execFile(program, ['--project', '.', '--pretty', 'false'], { cwd }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    )
  })
