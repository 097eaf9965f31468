import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { describe, test } from 'node:test'
import { type DkimPair, DkimPairs } from './dkim-pairs.ts'

describe('a pair of keys', () => {
  test('is one of RSA with 2048 bits, its public half as it stands in DNS', async () => {
    const { publicKey, privateKey } = await new DkimPairs().offer(true, async (pair) => pair.use())
    const { modulusLength } = createPrivateKey(privateKey).asymmetricKeyDetails ?? {}
    const half = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
    assert.deepEqual([modulusLength, publicKey], [2048, half.toString('base64')])
  })

  test("that was used is nobody else's, whatever became of the request", async () => {
    const pairs = new DkimPairs()
    const seen: DkimPair[] = []
    for (const failure of [undefined, new Error('no commit')]) {
      const request = pairs.offer(true, async (pair) => {
        seen.push(pair.use())
        assert.equal(pair.use(), seen.at(-1), 'a transaction that is run again has the same')
        if (failure) throw failure
      })
      await request.catch((error) => assert.equal(error, failure))
    }
    seen.push(await pairs.offer(true, async (pair) => pair.use()))
    assert.equal(new Set(seen.map(({ publicKey }) => publicKey)).size, 3)
  })

  test('that was not used is there for the next one, at once', async () => {
    const pairs = new DkimPairs()
    const offered = await pairs.offer(true, async (pair) => pair)
    await assert.rejects(pairs.offer(true, async () => assert.fail('refused')))
    assert.equal(await pairs.offer(true, async (pair) => pair), offered)
  })

  test('is not made for who does not ask for one, and then there is none', async () => {
    await new DkimPairs().offer(false, async (pair) => assert.throws(() => pair.use(), /makesDkimKey/))
  })
})
