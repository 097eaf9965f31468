import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { assertDocumented } from '../../server/src/testing/expectations/documented-events.ts'
import { ServedDocument } from '../../server/src/testing/fuzz/document.ts'
import { readDocument } from './document.ts'
import { exampleOf } from './example.ts'
import { referencePages } from './pages.ts'
import { callOf, curlSample, pythonSample, typescriptSample } from './samples.ts'

const document = await readDocument()
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
)
const pages = referencePages(document)

const checked = new ServedDocument(JSON.stringify(document))

test('every operation of the document has a heading and an example of its response that its schema allows', () => {
  const anchors = new Set(
    pages.flatMap(({ text }) => [...text.matchAll(/(?:\{#|<a id=")([\w.-]+)/g)].map(([, id]) => id)),
  )
  assert.ok(operations.length > 200)
  for (const { operation } of operations) {
    const { operationId, responses } = operation
    assert.ok(anchors.has(operationId), operationId)
    for (const [status, { content = {} }] of Object.entries(responses)) {
      const media = content['application/json']
      if (!media) continue
      const example = exampleOf(document, media.schema)
      const faults = checked.operation(operationId).responses.get(Number(status))?.faultsOf(example)
      assert.deepEqual(faults, [], `${operationId} ${status}: ${JSON.stringify(example)}`)
    }
  }
})

test('every event has a heading and an example that its schema allows', () => {
  const { text = '' } = pages.find(({ path }) => path === 'reference/events.md') ?? {}
  const types = Object.keys(document.webhooks)
  assert.ok(types.length > 10)
  for (const type of types) {
    const [, section = ''] = text.split(`\n## ${type} {#${type}}\n`)
    const [, example = ''] = /```json\n(.*?)\n```/s.exec(section) ?? []
    assert.equal(JSON.parse(example).type, type)
    assertDocumented(JSON.parse(example))
  }
})

test('customers’ operations come first, and sign-in last', () => {
  const groups = [...new Set(pages.map(({ group }) => group))]
  assert.deepEqual(groups, ['API reference', 'Customers', 'Administrators', 'Service', 'Sign-in'])
})

test('the samples are valid shell, TypeScript and Python', () => {
  const calls = operations.map(({ method, path, operation }) => callOf(document, method, path, operation))
  const shell = spawnSync('bash', ['-n'], { input: calls.map(curlSample).join('\n') })
  assert.equal(shell.stderr.toString(), '')
  const parse = 'import ast, json, sys; [ast.parse(sample) for sample in json.load(sys.stdin)]'
  const python = spawnSync('python3', ['-c', parse], { input: JSON.stringify(calls.map(pythonSample)) })
  assert.equal(python.stderr.toString(), '')
  for (const call of calls) {
    const script = stripTypeScriptTypes(`async () => {\n${typescriptSample(call)}\n}`)
    assert.doesNotThrow(() => new Function(script), call.url)
  }
})
