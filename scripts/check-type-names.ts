import { glob, readFile } from 'node:fs/promises'
import path from 'node:path'

/**
 * One name, one type: no two exported types of server/src that are imported outside their folders share a name. A
 * re-export is the type that it re-exports, so it may repeat the name. Tests and what only tests use are left out.
 * The formatter gives every import and export one form, so that they can be read line by line.
 *
 * A check that reads nothing finds nothing, so two types with one name are planted, and must be found.
 */
const root = path.resolve(import.meta.dirname, '..', 'server', 'src')

interface Export {
  name: string
  file: string
}

interface Module {
  /** Exported types, interfaces and classes that are declared here. */
  declares: Set<string>
  imports: Export[]
  /** By the exported name, what another module exports. */
  reexports: Map<string, Export>
}

const declaration = /^export (?:abstract )?(?:interface|type|class) (\w+)/gm
const imported = /^import (?:type )?\{([^}]*)\} from '(\.[^']*)'/gm
const exported = /^export (?:type )?\{([^}]*)\}(?: from '(\.[^']*)')?/gm

/** `a, type B, C as D` → the name elsewhere, and the name here. */
const namesIn = (list: string): [name: string, alias: string][] =>
  list
    .split(',')
    .map((item) => item.trim().replace(/^type /, ''))
    .filter((item) => item !== '')
    .map((item) => {
      const [name = '', alias = name] = item.split(' as ')
      return [name, alias]
    })

function moduleOf(file: string, text: string): Module {
  const fileOf = (specifier: string) => path.join(path.dirname(file), specifier)
  const imports = new Map<string, Export>()
  for (const [, list = '', from = ''] of text.matchAll(imported)) {
    for (const [name, alias] of namesIn(list)) imports.set(alias, { name, file: fileOf(from) })
  }
  const reexports = new Map<string, Export>()
  for (const [, list = '', from] of text.matchAll(exported)) {
    for (const [name, alias] of namesIn(list)) {
      const target = from === undefined ? imports.get(name) : { name, file: fileOf(from) }
      if (target) reexports.set(alias, target)
    }
  }
  const declares = new Set([...text.matchAll(declaration)].map(([, name = '']) => name))
  return { declares, imports: [...imports.values()], reexports }
}

function declarationOf(modules: ReadonlyMap<string, Module>, { name, file }: Export): Export | undefined {
  const module = modules.get(file)
  if (module?.declares.has(name)) return { name, file }
  const target = module?.reexports.get(name)
  return target && declarationOf(modules, target)
}

/** Names of several types, each with the files that declare one that another folder imports. */
function clashesIn(texts: ReadonlyMap<string, string>): [name: string, files: string[]][] {
  const modules = new Map([...texts].map(([file, text]) => [file, moduleOf(file, text)]))
  const shared = new Map<string, Set<string>>()
  for (const [file, { imports }] of modules) {
    for (const one of imports) {
      const declared = declarationOf(modules, one)
      if (!declared || path.dirname(declared.file) === path.dirname(file)) continue
      shared.set(declared.name, (shared.get(declared.name) ?? new Set()).add(declared.file))
    }
  }
  return [...shared].filter(([, files]) => files.size > 1).map(([name, files]) => [name, [...files].sort()])
}

const texts = new Map<string, string>()
for await (const file of glob('**/*.ts', { cwd: root })) {
  if (/\.test\.ts$|^testing\//.test(file)) continue
  texts.set(file, await readFile(path.join(root, file), 'utf8'))
}

/** One of the two is imported by way of a re-export, the other under another name. */
const planted = new Map([
  ['planted/one/one.ts', 'export interface Planted { one: 1 }'],
  ['planted/one/again.ts', "import type { Planted } from './one.ts'\nexport type { Planted }"],
  ['planted/two/two.ts', 'export class Planted {}'],
  ['planted/user.ts', "import type { Planted } from './one/again.ts'"],
  ['planted/other.ts', "import { Planted as Other } from './two/two.ts'"],
])
const isAlive = clashesIn(new Map([...texts, ...planted])).some(
  ([name, files]) => name === 'Planted' && files.join() === 'planted/one/one.ts,planted/two/two.ts',
)

const problems = [
  ...clashesIn(texts).map(([name, files]) => `${name} is the name of several types: ${files.join(', ')}`),
  ...(isAlive && texts.size > 300 ? [] : ['the check did not find two planted types with one name']),
]
process.stdout.write(
  problems.length === 0
    ? `No two shared types of ${texts.size} modules have one name; two that were planted were found.\n`
    : `${problems.join('\n')}\n`,
)
process.exitCode = problems.length === 0 ? 0 : 1
