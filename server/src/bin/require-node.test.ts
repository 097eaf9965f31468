import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import rootManifest from '../../../package.json' with { type: 'json' }
import manifest from '../../package.json' with { type: 'json' }

const file = new URL('require-node.js', import.meta.url)

/** Loads the file in a Node.js process that reports this version. */
const loadedBy = (version: string) =>
  spawnSync(
    process.execPath,
    [
      '--eval',
      `Object.defineProperties(process, { versions: { value: { node: '${version}' } }, version: { value: 'v${version}' } })
       import('${file}').then(() => console.log('loaded'))`,
    ],
    { encoding: 'utf8' },
  )

test('an old Node.js gets an error that names the required version', () => {
  for (const old of ['20.20.2', '22.0.0', '24.15.9']) {
    const { status, stdout, stderr } = loadedBy(old)
    const message = `Postern needs Node.js 24.16 or newer; this is v${old}.\n`
    assert.deepEqual({ status, stdout, stderr }, { status: 1, stdout: '', stderr: message })
  }
  for (const good of ['24.16.0', '24.21.1', '26.0.0']) assert.equal(loadedBy(good).stdout, 'loaded\n', good)
})

test('the required version matches the manifests', () => {
  assert.equal(manifest.engines.node, '>=24.16')
  assert.equal(rootManifest.engines.node, '>=24.16')
})
