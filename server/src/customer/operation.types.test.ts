import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, sourceFolder } from '../testing/harness/compiler.ts'

/** Code that must not compile: an operation without a table entry, a query that writes, an edit without a version. */
const imports = `
import Type from 'typebox'
import { customerOperation, customerQuery } from '${sourceFolder}/customer/operation.ts'
import { neededScopes } from '${sourceFolder}/customer/scopes.ts'
import type { ReadTx, Tx } from '${sourceFolder}/platform/db/db.ts'

declare const read: (tx: ReadTx) => Promise<number>
declare const write: (tx: Tx) => Promise<number>
const description = {
  path: '/projects/:project_id/things/:id',
  summary: 'Try',
  description: 'To be compiled.',
  params: Type.Object({ id: Type.Integer() }),
  answer: Type.Object({ id: Type.Integer() }),
}
`

const operation = ({
  id = 'domains.edit',
  target = 'target: async () => ({ id: 1, version: 1 }),',
  kind = 'edit',
  activity = "activity: 'unchanged', ",
  more = '',
} = {}) =>
  `${imports}
export const anOperation = customerOperation({
  ...description,
  id: '${id}',
  kind: '${kind}',
  body: {},
  example: {},
  ${target}
  ${more}
  run: async ({ target }) => ({ answer: { id: target.id }, ${activity}version: 2 }),
})
`

const query = (access: string) => `${imports}
export const aQuery = customerQuery({
  ...description,
  id: 'domains.show',
  query: {},
  run: async ({ tx }) => ({ answer: { id: await ${access}(tx) } }),
})
`

const table = (lines: string) => `${imports}
export const scopes: typeof neededScopes = { ...neededScopes, ${lines} }
`

const right: Record<string, string> = {
  'an operation with table entries': operation(),
  'an operation on the project itself': operation({ target: '' }),
  'a create below a resource without a version': operation({
    kind: 'create',
    target: 'target: async () => ({ id: 1 }),',
  }),
  'a query that reads': query('read'),
  'a scope for an existing operation': table(`'domains.show': 'domains:read'`),
}

const wrong: Record<string, [text: string, complaint: RegExp]> = {
  'an operation without table entries': [operation({ id: 'things.edit' }), /things\.edit/],
  'an edit of a resource without a version': [
    operation({ target: 'target: async () => ({ id: 1 }),' }),
    /'version'/,
  ],
  'an operation without its activity': [operation({ activity: '' }), /'activity'/],
  'an edit on the mail side': [
    operation({ more: "runsIn: 'mail',", target: '' })
      .replace('id: target.id', 'id: 1')
      .replace('{ target }', '{}'),
    /"edit"/,
  ],
  'a secret outside a project': [
    operation({ kind: 'create', more: "runsIn: 'user', revealsSecret: true,", target: '' })
      .replace('id: target.id', 'id: 1')
      .replace('{ target }', '{}')
      .replace('version: 2', 'version: 2, projectId: 1'),
    /'true' is not assignable to type 'never'/,
  ],
  'a query that writes': [query('write'), /ReadTx/],
  'a scope for an unknown operation': [table(`'things.show': 'domains:read'`), /things\.show/],
  'an unknown scope': [table(`'domains.show': 'things:read'`), /things:read/],
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
})
