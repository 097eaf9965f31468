import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'

/** Every package that these modules are part of, with its licence. */
export async function licencesOf(modules: string[]): Promise<string> {
  const folders = new Set(modules.map(packageFolderOf).filter((folder) => folder !== undefined))
  const notices = await Promise.all([...folders].sort().map(noticeOf))
  return [
    'Postern contains these packages, each under the licence that follows its name.\n',
    ...new Set(notices),
  ].join(`\n${'─'.repeat(80)}\n\n`)
}

const packageFolderOf = (module: string): string | undefined =>
  module.match(/^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/)?.[0]

async function noticeOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'))
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort()
  const texts = await Promise.all(files.map((file) => readFile(path.join(folder, file), 'utf8')))
  return [`${name} ${version} (${license})\n`, ...texts.map((text) => `${text.trim()}\n`)].join('\n')
}
