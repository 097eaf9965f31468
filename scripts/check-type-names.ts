import { glob, readFile } from 'node:fs/promises'
import path from 'node:path'

/**
 * One name, one type: among the exported types in server/src that are imported outside their own folders, no two may
 * share a name. A re-export may repeat the name, because it is the same type. Tests and test support are excluded. The
 * formatter normalises imports and exports, so they can be read line by line.
 *
 * To prove that the check reads the files, two types with the same name are planted and must be found.
 */
const root = path.resolve(import.meta.dirname, '..', 'server', 'src')

interface Export {
  name: string
  file: string
}

interface Module {
  /** Exported types, interfaces and classes declared in this file. */
  declares: Set<string>
  imports: Export[]
  /** Re-exports by exported name. */
  reexports: Map<string, Export>
}

const declaration = /^export (?:abstract )?(?:interface|type|class) (\w+)/gm
const imported = /^import (?:type )?\{([^}]*)\} from '(\.[^']*)'/gm
const exported = /^export (?:type )?\{([^}]*)\}(?: from '(\.[^']*)')?/gm

/** Parses `a, type B, C as D` into pairs of the original and the local name. */
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

/**
 * Names shared by several types, each with the files that declare them. Only types imported from another folder count.
 */
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

/** One of the two is imported through a re-export, the other under an alias. */
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
