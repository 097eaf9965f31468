import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { cruise, type ICruiseResult, type IFlattenedRuleSet } from 'dependency-cruiser'

/**
 * Checks the import boundaries (.dependency-cruiser.json), and that the rules work: one forbidden import per rule is
 * planted in a copy of the tree, and each must be reported. If dependency-cruiser read no modules, it would find no
 * violations, so the number of modules is also checked.
 */
const root = path.resolve(import.meta.dirname, '..')
const config = JSON.parse(await readFile(path.join(root, '.dependency-cruiser.json'), 'utf8'))

const planted: { rule: string; file: string; imports: string }[] = [
  { rule: 'planes-are-separate', file: 'server/src/admin/planted.ts', imports: '../signin/routes.ts' },
  { rule: 'planes-import-downwards', file: 'server/src/signin/planted.ts', imports: '../context/context.ts' },
  { rule: 'doctor-imports-no-plane', file: 'server/src/doctor/planted.ts', imports: '../admin/routes.ts' },
  {
    rule: 'config-imports-downwards',
    file: 'server/src/config/planted.ts',
    imports: '../context/context.ts',
  },
  {
    rule: 'core-imports-downwards',
    file: 'server/src/core/planted/planted.ts',
    imports: '../../admin/routes.ts',
  },
  {
    rule: 'control-never-imports-mail',
    file: 'server/src/core/control/planted/planted.ts',
    imports: '../../mail/messages/wire.ts',
  },
  {
    rule: 'shared-imports-neither-side',
    file: 'server/src/core/shared/planted.ts',
    imports: '../control/plans/wire.ts',
  },
  {
    rule: 'providers-import-downwards',
    file: 'server/src/providers/planted.ts',
    imports: '../core/control/access/verify-access-token.ts',
  },
  {
    rule: 'platform-imports-itself-only',
    file: 'server/src/platform/planted.ts',
    imports: '../core/control/access/verify-access-token.ts',
  },
  { rule: 'formats-are-pure', file: 'server/src/formats/planted.ts', imports: '../platform/errors.ts' },
  {
    rule: 'sql-is-private',
    file: 'server/src/core/control/planted/peek.ts',
    imports: '../access/access.sql.ts',
  },
  {
    rule: 'testing-is-for-tests',
    file: 'server/src/core/planted/cheat.ts',
    imports: '../../testing/harness/database.ts',
  },
  {
    rule: 'console-imports-openapi-only',
    file: 'console/src/planted.ts',
    imports: '../../server/src/config/config.ts',
  },
  {
    rule: 'entrances-are-separate',
    file: 'console/src/app/planted.ts',
    imports: '../admin/pages/planted.ts',
  },
  {
    rule: 'entrances-are-separate',
    file: 'console/src/admin/planted.ts',
    imports: '../app/pages/planted.ts',
  },
  {
    rule: 'shared-imports-no-entrance',
    file: 'console/src/frame/planted.ts',
    imports: '../app/pages/planted.ts',
  },
  {
    rule: 'components-never-import-pages',
    file: 'console/src/components/planted.ts',
    imports: '../frame/planted.ts',
  },
  {
    rule: 'components-never-import-pages',
    file: 'console/src/admin/components/planted.ts',
    imports: '../pages/planted.ts',
  },
  {
    rule: 'model-is-independent',
    file: 'server/src/testing/fuzz/model/planted.ts',
    imports: '../../../core/shared/text.ts',
  },
  { rule: 'scenarios-are-black-box', file: 'e2e/planted.ts', imports: '../server/src/config/config.ts' },
  { rule: 'proofs-are-independent', file: 'bench/planted.ts', imports: '../server/src/config/config.ts' },
  {
    rule: 'proofs-are-independent',
    file: 'proofs/planted.ts',
    imports: '../server/src/testing/harness/database.ts',
  },
]

const problems = [...(await checkTree(root)), ...(await checkRules())]
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1

async function checkTree(directory: string): Promise<string[]> {
  const result = await runCruiser(directory)
  const sources = result.modules.filter(({ source }) => source.startsWith('server/src/'))
  const edges = sources.reduce((sum, { dependencies }) => sum + dependencies.length, 0)
  process.stdout.write(`${sources.length} modules with ${edges} imports read.\n`)
  const blind = sources.length < 20 || edges < sources.length
  return [
    ...(blind ? ['The cruiser read too few modules or imports.'] : []),
    ...result.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} imports ${to}`),
  ]
}

async function checkRules(): Promise<string[]> {
  const copy = await mkdtemp(path.join(tmpdir(), 'postern-boundaries-'))
  try {
    await cp(path.join(root, 'server/src'), path.join(copy, 'server/src'), { recursive: true })
    await symlink(path.join(root, 'node_modules'), path.join(copy, 'node_modules'))
    for (const entrance of ['admin', 'app']) {
      const pages = path.join(copy, 'console/src', entrance, 'pages')
      await mkdir(pages, { recursive: true })
      await writeFile(path.join(pages, 'planted.ts'), 'export const planted = true\n')
    }
    for (const { file, imports } of planted) {
      await mkdir(path.dirname(path.join(copy, file)), { recursive: true })
      await writeFile(
        path.join(copy, file),
        `import * as forbidden from '${imports}'\nexport { forbidden }\n`,
      )
    }
    const { summary } = await runCruiser(copy)
    const unrefused = planted.filter(
      ({ rule, file }) =>
        !summary.violations.some((found) => found.rule.name === rule && found.from === file),
    )
    process.stdout.write(
      `${planted.length - unrefused.length} of ${planted.length} planted imports refused.\n`,
    )
    return unrefused.map(({ rule, file }) => `The rule ${rule} did not refuse ${file}.`)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function runCruiser(directory: string): Promise<ICruiseResult> {
  const before = process.cwd()
  process.chdir(directory)
  try {
    const places = ['server/src', 'console', 'bench', 'proofs', 'e2e', 'scripts']
    const ruleSet: IFlattenedRuleSet = { forbidden: config.forbidden }
    const { output } = await cruise(
      places.filter((place) => existsSync(place)),
      { ...config.options, ruleSet, validate: true },
      config.options.enhancedResolveOptions,
    )
    if (typeof output === 'string') throw new Error('unexpected output of dependency-cruiser')
    return output
  } finally {
    process.chdir(before)
  }
}
