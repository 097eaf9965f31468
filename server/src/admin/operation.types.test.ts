import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, sourceFolder } from '../testing/harness/compiler.ts'

/**
 * Operations that must not compile. Each has exactly one fault, so the compiler rejects it because of that fault
 * and not because of a mistake in the test.
 */
const parts = {
  kind: `kind: 'edit',`,
  target: 'target: async () => ({ id: 1, version: 1 }),',
  audit: `audit: { projectId: null, change: { resource: 'thing', id: 1, before: null, after: null } },`,
  effects: 'effects: [],',
  warnings: 'warnings: [],',
  answer: 'answer: { id: 1 },',
  version: 'version: 2,',
}

const imports = `
import Type from 'typebox'
import { adminOperation, adminQuery, unchanged } from '${sourceFolder}/admin/operation.ts'
import type { ReadTx, Tx } from '${sourceFolder}/platform/db/db.ts'

declare const read: (tx: ReadTx) => Promise<number>
declare const write: (tx: Tx) => Promise<number>
const description = {
  id: 'plans.edit' as const,
  path: '/admin/things/:id',
  summary: 'Try',
  description: 'To be compiled.',
  params: Type.Object({ id: Type.Integer() }),
  answer: Type.Object({ id: Type.Integer() }),
}
`

/** A complete operation, with some parts replaced. */
function operation(changes: Partial<typeof parts> = {}): string {
  const { target, kind, audit, effects, warnings, answer, version } = { ...parts, ...changes }
  return `${imports}
export const anOperation = adminOperation({
  ...description,
  ${kind}
  body: {},
  example: {},
  ${target}
  async run({ tx, target }) {
    await write(tx)
    return { ${audit} ${effects} ${warnings} ${answer} ${version} }
  },
})
`
}

const query = (access: string): string => `${imports}
export const aQuery = adminQuery({
  ...description,
  query: {},
  run: async ({ db }) => ({ answer: { id: await db.read(${access}) } }),
})
`

const right: Record<string, string> = {
  'a complete operation': operation(),
  'an operation that changed nothing': operation({ audit: 'audit: unchanged,' }),
  'sentences that need a query': operation({ effects: `effects: async () => ['One.'],` }),
  'a create below a parent without a version': operation({
    kind: `kind: 'create',`,
    target: 'target: async () => null,',
  }),
  'a query that reads': query('read'),
}

const wrong: Record<string, [text: string, complaint: RegExp]> = {
  'an operation without an audit row': [operation({ audit: '' }), /'audit' is missing/],
  'an audit row that is undefined': [operation({ audit: 'audit: undefined,' }), /'undefined'/],
  'an audit row that is null': [operation({ audit: 'audit: null,' }), /'null'/],
  'an audit row for some calls only': [
    operation({ audit: `...(Math.random() < 0.5 ? { ${parts.audit} } : {}),` }),
    /'audit'/,
  ],
  'an audit row without a chain': [
    operation({ audit: parts.audit.replace('projectId: null, ', '') }),
    /'projectId' is missing/,
  ],
  'an audit row without a change': [
    operation({ audit: 'audit: { projectId: null },' }),
    /'change' is missing/,
  ],
  'an audit row without the state before': [
    operation({ audit: parts.audit.replace('before: null, ', '') }),
    /'before' is missing/,
  ],
  'an operation without effects': [operation({ effects: '' }), /'effects' is missing/],
  'an operation without warnings': [operation({ warnings: '' }), /'warnings' is missing/],
  'an operation without an answer': [operation({ answer: '' }), /'answer' is missing/],
  'an answer of another shape': [operation({ answer: `answer: { id: 'one' },` }), /'string'/],
  'an operation without a version': [operation({ version: '' }), /'version' is missing/],
  'an edit of a resource without a version': [
    operation({ target: 'target: async () => ({ id: 1 }),' }),
    /'version'/,
  ],
  'an operation without rights': [operation({ kind: `id: 'things.try', ${parts.kind}` }), /"things.try"/],
  'a query that writes': [query('write'), /ReadTx/],
}

const cases = [
  ...Object.entries(right).map(([what, text]) => ({ what, text, complaint: null })),
  ...Object.entries(wrong).map(([what, [text, complaint]]) => ({ what, text, complaint })),
].map((entry, index) => ({ ...entry, file: `case${index}.ts` }))

const complaints = await compile(new Map(cases.map(({ file, text }) => [file, text])))

describe('the compiler', () => {
  for (const { what, file, complaint } of cases) {
    const said = complaints.get(file) ?? assert.fail()
    if (complaint) test(`rejects ${what}`, () => assert.match(said, complaint))
    else test(`accepts ${what}`, () => assert.equal(said, ''))
  }

  test('reports nothing else', () => {
    assert.deepEqual([...complaints.keys()].sort(), cases.map(({ file }) => file).sort())
  })
})
